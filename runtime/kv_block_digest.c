#include "runtime/kv_block_parts.h"

#include <string.h>

/* FNV-1a over 64-bit words, folded so that high bits reach low ones. */
static void
add(uint64_t *digest, uint64_t value)
{
	*digest = (*digest ^ value) * UINT64_C(0x100000001b3);
	*digest ^= *digest >> 29;
}

static void
add_blocks(uint64_t *digest, const int32_t *blocks, int64_t n)
{
	add(digest, (uint64_t)n);
	for (int64_t i = 0; i < n; i++)
		add(digest, (uint32_t)blocks[i]);
}

static void
add_text(uint64_t *digest, const char *text)
{
	add(digest, text ? strlen(text) : UINT64_MAX);
	for (; text && *text; text++)
		add(digest, (unsigned char)*text);
}

static void
add_session(uint64_t *digest, const struct pawl_kv_session *session)
{
	add(digest, session->id);
	add(digest, (uint64_t)session->n_tokens);
	add_blocks(digest, session->blocks, session->n_slots);
}

static void
add_handle(uint64_t *digest, const struct pawl_kv_handle *handle)
{
	add(digest, handle->id);
	add(digest, handle->session);
	add(digest, handle->fidelity);
	add(digest, handle->is_pending);
	add(digest, (uint64_t)handle->n);
	for (int64_t i = 0; i < handle->n; i++) {
		add(digest, (uint64_t)handle->slots[i].slot);
		add(digest, (uint32_t)handle->slots[i].block);
	}
}

static void
add_copy(uint64_t *digest, const struct pawl_kv_copy *copy)
{
	add(digest, copy->id);
	add(digest, copy->session);
	add(digest, (uint64_t)copy->slot);
	add(digest, copy->appends);
	add(digest, (uint64_t)copy->shift);
	add(digest, (uint64_t)copy->n);
	for (int64_t i = 0; i < copy->n; i++) {
		add(digest, (uint32_t)copy->blocks[i].from);
		add(digest, (uint32_t)copy->blocks[i].to);
	}
}

static void
add_prefix(uint64_t *digest, const struct pawl_kv_prefix *prefix, int64_t block_size)
{
	add(digest, prefix->id);
	add_blocks(digest, prefix->blocks, prefix->n_blocks);
	for (int64_t i = 0; i < prefix->n_blocks * block_size; i++)
		add(digest, prefix->tokens[i]);
	add_text(digest, prefix->adapter);
	add_text(digest, prefix->salt);
}

uint64_t
pawl_kv_block_pool_digest(const struct pawl_kv_block_pool *pool)
{
	const struct pawl_kv_pool_geometry *geometry = &pool->geometry;
	uint64_t digest = UINT64_C(0xcbf29ce484222325);

	add(&digest, (uint64_t)geometry->n_layers);
	add(&digest, (uint64_t)geometry->n_blocks);
	add(&digest, (uint64_t)geometry->block_size);
	add(&digest, (uint64_t)geometry->n_kv_heads);
	add(&digest, (uint64_t)geometry->row_bytes);
	add_blocks(&digest, pool->free_blocks, pool->n_free);
	for (int64_t i = 0; i < geometry->n_blocks; i++)
		add(&digest, (uint64_t)pool->n_owners[i]);
	add(&digest, (uint64_t)pool->sessions.n);
	for (int64_t i = 0; i < pool->sessions.n; i++)
		add_session(&digest, pool->sessions.items[i]);
	add(&digest, (uint64_t)pool->handles.n);
	for (int64_t i = 0; i < pool->handles.n; i++)
		add_handle(&digest, pool->handles.items[i]);
	add(&digest, (uint64_t)pool->copies.n);
	for (int64_t i = 0; i < pool->copies.n; i++)
		add_copy(&digest, pool->copies.items[i]);
	add(&digest, (uint64_t)pool->prefixes.n);
	for (int64_t i = 0; i < pool->prefixes.n; i++)
		add_prefix(&digest, pool->prefixes.items[i], geometry->block_size);
	return digest;
}

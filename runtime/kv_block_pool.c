#include "runtime/kv_block_pool.h"

#include "runtime/kv_block_parts.h"
#include "runtime/memory.h"

#include <inttypes.h>
#include <string.h>

int32_t
pawl_kv_blocks_take(struct pawl_kv_block_pool *pool)
{
	int32_t block = pool->free_blocks[--pool->n_free];

	pool->n_owners[block] = 1;
	return block;
}

void
pawl_kv_blocks_share(struct pawl_kv_block_pool *pool, int32_t block)
{
	pool->n_owners[block]++;
}

void
pawl_kv_blocks_drop(struct pawl_kv_block_pool *pool, int32_t block)
{
	if (!--pool->n_owners[block])
		pool->free_blocks[pool->n_free++] = block;
}

static enum pawl_status
check_geometry(
	const struct pawl_kv_pool_geometry *geometry, int64_t *block_bytes, struct pawl_error *err)
{
	const struct {
		const char *name;
		int64_t size;
	} fields[] = {
		{"n_layers", geometry->n_layers},
		{"block_size", geometry->block_size},
		{"n_kv_heads", geometry->n_kv_heads},
		{"row_bytes", geometry->row_bytes},
		{"n_blocks", geometry->n_blocks},
	};
	int64_t bytes = 2; /* K and V */

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (fields[i].size < 1)
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"a block pool with %s %" PRId64 " holds nothing", fields[i].name,
				fields[i].size);
		*block_bytes = bytes;
		if (__builtin_mul_overflow(bytes, fields[i].size, &bytes))
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"%s %" PRId64 " makes a block pool larger than memory can be",
				fields[i].name, fields[i].size);
	}
	if (geometry->n_blocks > PAWL_MAX_KV_BLOCKS)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"n_blocks %" PRId64 " is more than the %" PRId64 " a block pool can have",
			geometry->n_blocks, PAWL_MAX_KV_BLOCKS);
	return PAWL_OK;
}

enum pawl_status
pawl_kv_block_pool_new(const struct pawl_kv_pool_geometry *geometry,
	struct pawl_kv_block_pool **out, struct pawl_error *err)
{
	struct pawl_kv_block_pool *pool;
	int64_t block_bytes = 0;
	enum pawl_status status = check_geometry(geometry, &block_bytes, err);

	if (status)
		return status;
	pool = pawl_memory_zalloc(1, sizeof(*pool));
	if (pool) {
		pool->n_owners =
			pawl_memory_zalloc((size_t)geometry->n_blocks, sizeof(*pool->n_owners));
		pool->free_blocks =
			pawl_memory_zalloc((size_t)geometry->n_blocks, sizeof(*pool->free_blocks));
	}
	if (!pool || !pool->n_owners || !pool->free_blocks) {
		pawl_kv_block_pool_free(pool);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY,
			"no memory for a pool of %" PRId64 " blocks", geometry->n_blocks);
	}
	pool->geometry = *geometry;
	pool->block_bytes = block_bytes;
	pool->hash_mask = UINT64_MAX;
	for (int64_t i = geometry->n_blocks; i > 0;)
		pool->free_blocks[pool->n_free++] = (int32_t)--i;
	*out = pool;
	return PAWL_OK;
}

void
pawl_kv_block_pool_free(struct pawl_kv_block_pool *pool)
{
	if (!pool)
		return;
	for (int64_t i = 0; i < pool->sessions.n; i++) {
		struct pawl_kv_session *session = pool->sessions.items[i];

		pawl_memory_free(session->blocks);
		pawl_memory_free(session);
	}
	for (int64_t i = 0; i < pool->handles.n; i++)
		pawl_memory_free(pool->handles.items[i]);
	for (int64_t i = 0; i < pool->copies.n; i++)
		pawl_memory_free(pool->copies.items[i]);
	for (int64_t i = 0; i < pool->prefixes.n; i++)
		pawl_kv_prefix_free(pool->prefixes.items[i]);
	pawl_object_table_release(&pool->sessions);
	pawl_object_table_release(&pool->handles);
	pawl_object_table_release(&pool->copies);
	pawl_object_table_release(&pool->prefixes);
	pawl_memory_free(pool->index);
	pawl_memory_free(pool->n_owners);
	pawl_memory_free(pool->free_blocks);
	pawl_memory_free(pool);
}

const struct pawl_kv_pool_geometry *
pawl_kv_block_pool_geometry(const struct pawl_kv_block_pool *pool)
{
	return &pool->geometry;
}

int64_t
pawl_kv_block_pool_block_bytes(const struct pawl_kv_block_pool *pool)
{
	return pool->block_bytes;
}

int64_t
pawl_kv_block_pool_capacity(const struct pawl_kv_block_pool *pool)
{
	return pool->geometry.n_blocks * pool->geometry.block_size;
}

int64_t
pawl_kv_block_pool_free_blocks(const struct pawl_kv_block_pool *pool)
{
	return pool->n_free;
}

int64_t
pawl_kv_block_pool_bytes_resident(const struct pawl_kv_block_pool *pool)
{
	return (pool->geometry.n_blocks - pool->n_free) * pool->block_bytes;
}

int64_t
pawl_kv_block_pool_owners(const struct pawl_kv_block_pool *pool, int64_t block)
{
	return block < 0 || block >= pool->geometry.n_blocks ? -1 : pool->n_owners[block];
}

int64_t
pawl_kv_block_pool_blocks_required(
	const struct pawl_kv_block_pool *pool, int64_t current, int64_t added)
{
	int64_t size = pool->geometry.block_size, sum;

	if (current < 0 || added < 0 || __builtin_add_overflow(current, added, &sum))
		return -1;
	return sum / size + (sum % size != 0) - current / size - (current % size != 0);
}

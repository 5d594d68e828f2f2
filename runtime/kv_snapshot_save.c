#include "runtime/kv_snapshot.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "runtime/kv_snapshot_parts.h"
#include "runtime/memory.h"
#include "runtime/validity.h"

uint64_t
pawl_kv_checksum(uint64_t before, const void *bytes, int64_t n)
{
	const unsigned char *p = bytes;
	uint64_t hash = before ^ (uint64_t)n, word;

	for (; n > 0; n -= 8, p += 8) {
		word = 0;
		memcpy(&word, p, n < 8 ? (size_t)n : 8);
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash;
}

struct pawl_storage *
pawl_kv_snapshot_storage(const struct pawl_kv_cache *cache, int64_t i)
{
	const struct pawl_kv_layer_id id = {(int32_t)(i / PAWL_N_KV_SLOTS),
		(enum pawl_kv_slot)(i % PAWL_N_KV_SLOTS)};

	return pawl_kv_cache_storage(cache, id);
}

enum pawl_status
pawl_kv_snapshot_check_cache(const struct pawl_kv_cache *cache, struct pawl_error *err)
{
	const struct pawl_kv_shape *shape = pawl_kv_cache_shape(cache);

	if (!shape->max_seq_len)
		return pawl_fail(
			err, PAWL_INVALID_ARGUMENT, "the cache has no capacity");
	if (shape->rings.positions)
		return pawl_fail(err, PAWL_UNSUPPORTED, "a cache with rings has no snapshot");
	for (int64_t i = 0; i < (int64_t)shape->n_layers * PAWL_N_KV_SLOTS; i++) {
		const struct pawl_storage *storage = pawl_kv_snapshot_storage(cache, i);
		const struct pawl_type type =
			pawl_kv_shape_type(shape, (int32_t)(i / PAWL_N_KV_SLOTS),
				(enum pawl_kv_slot)(i % PAWL_N_KV_SLOTS));

		if (!storage || !pawl_type_equal(&storage->type, &type))
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"layer %" PRId64 " slot %d is not of the shape of its cache",
				i / PAWL_N_KV_SLOTS, (int)(i % PAWL_N_KV_SLOTS));
		if (storage->location.space != PAWL_MEMORY_HOST)
			return pawl_fail(err, PAWL_UNSUPPORTED,
				"layer %" PRId64 " slot %d is not in host memory",
				i / PAWL_N_KV_SLOTS, (int)(i % PAWL_N_KV_SLOTS));
	}
	return PAWL_OK;
}

struct pawl_kv_snapshot_header
pawl_kv_snapshot_header_of(const struct pawl_kv_cache *cache,
	const struct pawl_kv_identity *identity, int64_t n_tokens)
{
	const struct pawl_kv_shape *shape = pawl_kv_cache_shape(cache);
	struct pawl_kv_snapshot_header header = {
		.version = PAWL_KV_SNAPSHOT_VERSION,
		.header_bytes = sizeof(header),
		.model = identity->model,
		.n_layers = shape->n_layers,
		.n_kv_heads = shape->n_kv_heads,
		.head_dim = shape->head_dim,
		.n_positions = pawl_kv_cache_len(cache),
		.n_tokens = n_tokens,
	};

	memcpy(header.magic, PAWL_KV_SNAPSHOT_MAGIC, sizeof(header.magic));
	snprintf(header.dtype, sizeof(header.dtype), "%s", pawl_dtype_name(shape->dtype));
	snprintf(header.precision, sizeof(header.precision), "%s",
		pawl_precision_name(identity->precision));
	header.checksum =
		pawl_kv_checksum(0, &header, offsetof(struct pawl_kv_snapshot_header, checksum));
	return header;
}

struct writer {
	const struct pawl_kv_snapshot_sink *to;
	uint64_t checksum;
};

static enum pawl_status
put(struct writer *w, const void *bytes, int64_t n, struct pawl_error *err)
{
	w->checksum = pawl_kv_checksum(w->checksum, bytes, n);
	return n ? w->to->write(w->to->ctx, bytes, (size_t)n, err) : PAWL_OK;
}

/* room holds the logical bytes of the largest storage. */
static enum pawl_status
write_all(struct writer *w, const struct pawl_kv_cache *cache,
	const struct pawl_kv_snapshot_header *header, const uint32_t *tokens, void *room,
	struct pawl_error *err)
{
	const int64_t n = header->n_positions;
	enum pawl_status status = w->to->write(w->to->ctx, header, sizeof(*header), err);

	if (!status)
		status = put(w, tokens, header->n_tokens * (int64_t)sizeof(*tokens), err);
	for (int64_t i = 0; i < header->n_layers * PAWL_N_KV_SLOTS && !status; i++) {
		const struct pawl_storage *storage = pawl_kv_snapshot_storage(cache, i);
		const struct pawl_kv_planes planes = pawl_kv_planes_of(&storage->type, 2);

		pawl_kv_read_positions(&planes, storage->bytes, n, room);
		status = put(w, room, pawl_kv_logical_bytes(&planes, n), err);
	}
	return status ? status
		      : w->to->write(w->to->ctx, &w->checksum, sizeof(w->checksum), err);
}

enum pawl_status
pawl_kv_snapshot_save(const struct pawl_kv_cache *cache, const struct pawl_kv_identity *identity,
	const uint32_t *tokens, int64_t n_tokens, const struct pawl_kv_snapshot_sink *to,
	struct pawl_error *err)
{
	struct pawl_kv_snapshot_header header;
	struct pawl_kv_planes planes;
	struct pawl_type type;
	struct pawl_block room = {0};
	struct writer w = {to, 0};
	enum pawl_status status = pawl_kv_snapshot_check_cache(cache, err);

	if (status)
		return status;
	if (n_tokens < pawl_kv_cache_len(cache) || n_tokens > INT32_MAX)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"%" PRId64 " tokens are given for %" PRId64 " positions", n_tokens,
			pawl_kv_cache_len(cache));
	header = pawl_kv_snapshot_header_of(cache, identity, n_tokens);
	type = pawl_kv_shape_type(pawl_kv_cache_shape(cache), 0, PAWL_KV_K);
	planes = pawl_kv_planes_of(&type, 2);
	status = pawl_block_init(
		&room, pawl_kv_logical_bytes(&planes, header.n_positions), err);
	if (!status)
		status = write_all(&w, cache, &header, tokens, room.bytes, err);
	pawl_block_release(&room);
	return status;
}

#include "runtime/kv_cache.h"

#include "runtime/kv_cache_parts.h"
#include "runtime/kv_layout.h"
#include "runtime/memory.h"

#include <inttypes.h>

enum { POSITIONS_AXIS = 2 };

static enum pawl_status
check(const struct pawl_kv_cache *cache, const struct pawl_kv_shape *shape, struct pawl_error *err)
{
	if (!cache->shape.max_seq_len)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "a cache without capacity cannot grow");
	if (pawl_kv_shape_bytes(shape) < 0)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a cache of %" PRId64 " positions is larger than memory can be",
			shape->max_seq_len);
	for (int32_t i = 0; i < shape->n_layers * PAWL_N_KV_SLOTS; i++) {
		const struct pawl_storage *storage =
			cache->layers[i / PAWL_N_KV_SLOTS].storage[i % PAWL_N_KV_SLOTS];

		if (storage->location.space != PAWL_MEMORY_HOST)
			return pawl_fail(err, PAWL_UNSUPPORTED,
				"layer %d slot %d is not in host memory: it cannot be copied",
				i / PAWL_N_KV_SLOTS, i % PAWL_N_KV_SLOTS);
	}
	return PAWL_OK;
}

/* Storage i for `shape` with the first n positions of `from`, or all of a ring. */
static enum pawl_status
enlarge(const struct pawl_kv_shape *shape, int32_t i, const struct pawl_storage *from, int64_t n,
	struct pawl_storage **out, struct pawl_error *err)
{
	const struct pawl_type type = pawl_kv_shape_type(
		shape, i / PAWL_N_KV_SLOTS, (enum pawl_kv_slot)(i % PAWL_N_KV_SLOTS));
	int64_t held = from->type.dim[POSITIONS_AXIS].base;
	const struct pawl_kv_planes to_planes = pawl_kv_planes_of(&type, POSITIONS_AXIS),
				    from_planes = pawl_kv_planes_of(&from->type, POSITIONS_AXIS);
	enum pawl_status status = pawl_storage_new(&type, out, err);

	if (!status)
		pawl_kv_copy_positions(&to_planes, (*out)->bytes, &from_planes, from->bytes,
			n < held ? n : held);
	return status;
}

static void
drop(struct pawl_storage **storages, int32_t n)
{
	for (int32_t i = 0; i < n; i++)
		pawl_storage_unref(storages[i]);
	pawl_memory_free(storages);
}

enum pawl_status
pawl_kv_cache_move(
	struct pawl_kv_cache *cache, const struct pawl_kv_shape *shape, struct pawl_error *err)
{
	int32_t n_storages = shape->n_layers * PAWL_N_KV_SLOTS;
	struct pawl_storage **storages;
	enum pawl_status status = check(cache, shape, err);

	if (status)
		return status;
	storages = pawl_memory_zalloc((size_t)n_storages, sizeof(struct pawl_storage *));
	if (!storages)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory to copy a cache");
	for (int32_t i = 0; i < n_storages && !status; i++)
		status = enlarge(shape, i,
			cache->layers[i / PAWL_N_KV_SLOTS].storage[i % PAWL_N_KV_SLOTS],
			cache->cached_len, &storages[i], err);
	if (status) {
		drop(storages, n_storages);
		if (err)
			pawl_error_prefix(err,
				"a cache of %" PRId64 " bytes (%d layers, %" PRId64 " positions)",
				pawl_kv_shape_bytes(shape), shape->n_layers, shape->max_seq_len);
		return status;
	}
	for (int32_t i = 0; i < n_storages; i++) {
		struct pawl_storage **at =
			&cache->layers[i / PAWL_N_KV_SLOTS].storage[i % PAWL_N_KV_SLOTS];

		pawl_storage_unref(*at);
		*at = storages[i];
	}
	pawl_memory_free(storages);
	pawl_kv_cache_leave(cache);
	cache->shape = *shape;
	cache->alloc_id = pawl_kv_alloc_id_new();
	cache->location = PAWL_LOCATION_HOST;
	return PAWL_OK;
}

enum pawl_status
pawl_kv_cache_reserve(struct pawl_kv_cache *cache, int64_t n, struct pawl_error *err)
{
	struct pawl_kv_shape shape = cache->shape;

	if (shape.max_seq_len && n <= shape.max_seq_len)
		return PAWL_OK;
	shape.max_seq_len = pawl_kv_round_positions(n);
	return pawl_kv_cache_move(cache, &shape, err);
}

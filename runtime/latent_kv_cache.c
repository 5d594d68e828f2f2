#include "runtime/latent_kv_cache.h"

#include <inttypes.h>

#include "runtime/kv_alloc.h"
#include "runtime/kv_cache_parts.h"
#include "runtime/memory.h"

struct pawl_latent_kv_cache {
	struct pawl_latent_shape shape;
	struct pawl_latent_slot *slots; /* n_layers * n_slots */
	int64_t cached_len;
	struct pawl_kv_alloc_id alloc_id;
	struct pawl_location location;
};

static int32_t
n_storages(const struct pawl_latent_shape *shape)
{
	return shape->n_layers * shape->n_slots;
}

struct pawl_type
pawl_latent_shape_type(const struct pawl_latent_shape *shape, int32_t slot)
{
	const struct pawl_latent_trailing *trailing = &shape->trailing[slot];
	int64_t dims[PAWL_MAX_RANK] = {shape->max_seq_len};

	for (int i = 0; i < trailing->rank; i++)
		dims[1 + i] = trailing->dims[i];
	return pawl_type_make(shape->dtype, 1 + trailing->rank, dims);
}

int64_t
pawl_latent_shape_bytes(const struct pawl_latent_shape *shape)
{
	int64_t sum = 0;

	if (!shape->max_seq_len)
		return -1;
	for (int32_t i = 0; i < shape->n_slots; i++) {
		const struct pawl_type type = pawl_latent_shape_type(shape, i);
		int64_t bytes = pawl_storage_bytes(&type);

		if (bytes < 0 || __builtin_add_overflow(sum, bytes, &sum))
			return -1;
	}
	return __builtin_mul_overflow(sum, shape->n_layers, &sum) ? -1 : sum;
}

static enum pawl_status
check_shape(const struct pawl_latent_shape *shape, struct pawl_error *err)
{
	if (shape->n_layers < 1 || shape->max_seq_len < 1)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a latent cache of %d layers and %" PRId64 " positions has no content",
			shape->n_layers, shape->max_seq_len);
	if (shape->n_slots < 1 || shape->n_slots > PAWL_MAX_LATENT_SLOTS)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a latent cache of %d slots; 1 to %d are possible", shape->n_slots,
			PAWL_MAX_LATENT_SLOTS);
	if (!pawl_dtype_is_float(shape->dtype))
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a latent cache is f16, bf16 or f32, not %s",
			pawl_dtype_name(shape->dtype));
	for (int32_t i = 0; i < shape->n_slots; i++) {
		const struct pawl_latent_trailing *trailing = &shape->trailing[i];

		if (trailing->rank < 1 || trailing->rank >= PAWL_MAX_RANK)
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"slot %d has %d dims behind the position; 1 to %d are possible", i,
				trailing->rank, PAWL_MAX_RANK - 1);
		for (int j = 0; j < trailing->rank; j++)
			if (trailing->dims[j] < 1)
				return pawl_fail(err, PAWL_INVALID_ARGUMENT,
					"slot %d has %" PRId64 " elements along dim %d", i,
					trailing->dims[j], j + 1);
	}
	if ((int64_t)shape->n_layers * shape->n_slots > INT32_MAX ||
		pawl_latent_shape_bytes(shape) < 0)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a latent cache of %" PRId64 " positions is larger than memory can be",
			shape->max_seq_len);
	return PAWL_OK;
}

static enum pawl_status
allocate(struct pawl_latent_kv_cache *cache, struct pawl_inference_context *context,
	struct pawl_error *err)
{
	int32_t n = n_storages(&cache->shape);
	struct pawl_type *types = pawl_memory_zalloc((size_t)n, sizeof(*types));
	struct pawl_storage **storages =
		pawl_memory_zalloc((size_t)n, sizeof(struct pawl_storage *));
	enum pawl_status status;

	cache->slots = pawl_memory_zalloc((size_t)n, sizeof(*cache->slots));
	if (!types || !storages || !cache->slots) {
		status = pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for %d slots", n);
	} else {
		for (int32_t i = 0; i < n; i++)
			types[i] = pawl_latent_shape_type(
				&cache->shape, i % cache->shape.n_slots);
		status = pawl_kv_alloc(context, n, types, storages, err);
		for (int32_t i = 0; i < n && !status; i++)
			cache->slots[i].storage = storages[i];
	}
	pawl_memory_free(storages);
	pawl_memory_free(types);
	return status;
}

enum pawl_status
pawl_latent_kv_cache_with_capacity(struct pawl_inference_context *context,
	const struct pawl_latent_shape *shape, struct pawl_latent_kv_cache **out,
	struct pawl_error *err)
{
	struct pawl_latent_kv_cache *cache;
	enum pawl_status status = check_shape(shape, err);

	if (status)
		return status;
	cache = pawl_memory_zalloc(1, sizeof(*cache));
	if (!cache)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a latent cache");
	cache->shape = *shape;
	status = allocate(cache, context, err);
	if (status) {
		if (err && status == PAWL_OUT_OF_MEMORY)
			pawl_error_prefix(err,
				"a latent cache of %" PRId64 " bytes (%d layers, %" PRId64
				" positions)",
				pawl_latent_shape_bytes(shape), shape->n_layers,
				shape->max_seq_len);
		if (err && status == PAWL_INVALID_ARGUMENT)
			pawl_error_prefix(err, "a latent cache of %" PRId64 " positions",
				shape->max_seq_len);
		pawl_latent_kv_cache_free(cache);
		return status;
	}
	cache->alloc_id = pawl_kv_alloc_id_new();
	cache->location = pawl_inference_context_device(context)->location;
	*out = cache;
	return PAWL_OK;
}

static void
drop_slots(struct pawl_latent_kv_cache *cache)
{
	for (int32_t i = 0; cache->slots && i < n_storages(&cache->shape); i++) {
		pawl_storage_unref(cache->slots[i].storage);
		cache->slots[i] = (struct pawl_latent_slot){0};
	}
}

void
pawl_latent_kv_cache_free(struct pawl_latent_kv_cache *cache)
{
	if (!cache)
		return;
	drop_slots(cache);
	pawl_memory_free(cache->slots);
	pawl_memory_free(cache);
}

const struct pawl_latent_shape *
pawl_latent_kv_cache_shape(const struct pawl_latent_kv_cache *cache)
{
	return &cache->shape;
}

int64_t
pawl_latent_kv_cache_len(const struct pawl_latent_kv_cache *cache)
{
	return cache->cached_len;
}

struct pawl_kv_alloc_id
pawl_latent_kv_cache_alloc_id(const struct pawl_latent_kv_cache *cache)
{
	return cache->alloc_id;
}

struct pawl_location
pawl_latent_kv_cache_location(const struct pawl_latent_kv_cache *cache)
{
	return cache->location;
}

const struct pawl_latent_slot *
pawl_latent_kv_cache_slot(const struct pawl_latent_kv_cache *cache, int32_t layer, int32_t slot)
{
	if (layer < 0 || layer >= cache->shape.n_layers || slot < 0 || slot >= cache->shape.n_slots)
		return NULL;
	return &cache->slots[layer * cache->shape.n_slots + slot];
}

struct pawl_storage *
pawl_latent_kv_cache_storage(const struct pawl_latent_kv_cache *cache, int32_t layer, int32_t slot)
{
	const struct pawl_latent_slot *at = pawl_latent_kv_cache_slot(cache, layer, slot);

	return at ? at->storage : NULL;
}

void
pawl_latent_kv_cache_bump(struct pawl_latent_kv_cache *cache, int32_t layer, int32_t slot)
{
	if (pawl_latent_kv_cache_storage(cache, layer, slot))
		cache->slots[layer * cache->shape.n_slots + slot].version++;
}

static void
bump_all(struct pawl_latent_kv_cache *cache)
{
	for (int32_t i = 0; i < n_storages(&cache->shape); i++)
		pawl_latent_kv_cache_bump(
			cache, i / cache->shape.n_slots, i % cache->shape.n_slots);
}

void
pawl_latent_kv_cache_clear(struct pawl_latent_kv_cache *cache)
{
	drop_slots(cache);
	cache->shape.max_seq_len = 0;
	cache->cached_len = 0;
	cache->alloc_id = pawl_kv_alloc_id_new();
}

void
pawl_latent_kv_cache_truncate_to(struct pawl_latent_kv_cache *cache, int64_t n)
{
	if (n < 0 || n >= cache->cached_len)
		return;
	cache->cached_len = n;
	bump_all(cache);
}

enum pawl_status
pawl_latent_kv_cache_check_room(
	const struct pawl_latent_kv_cache *cache, int64_t n, struct pawl_error *err)
{
	return pawl_kv_check_room(cache->cached_len, cache->shape.max_seq_len, n, err);
}

void
pawl_latent_kv_cache_advance(struct pawl_latent_kv_cache *cache, int64_t n)
{
	cache->cached_len += n;
	bump_all(cache);
}

static struct pawl_kv_alloc_id
source_alloc_id(void *ctx)
{
	return pawl_latent_kv_cache_alloc_id(ctx);
}

static struct pawl_location
source_location(void *ctx)
{
	return pawl_latent_kv_cache_location(ctx);
}

static struct pawl_storage *
source_slot(void *ctx, int32_t layer, int which)
{
	return pawl_latent_kv_cache_storage(ctx, layer, which);
}

/* No storage comes from elsewhere. */
static bool
source_is_disjoint(void *ctx)
{
	(void)ctx;
	return true;
}

struct pawl_kv_rebind_source
pawl_latent_kv_cache_source(struct pawl_latent_kv_cache *cache)
{
	return (struct pawl_kv_rebind_source){
		cache, source_alloc_id, source_location, source_slot, NULL,
		source_is_disjoint};
}

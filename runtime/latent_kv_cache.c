#include "runtime/latent_kv_cache.h"

#include <inttypes.h>

#include "runtime/kv_cache_parts.h"
#include "runtime/latent_cache_parts.h"
#include "runtime/memory.h"
#include "runtime/option_check.h"

enum { POSITIONS_AXIS = 0 };

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

static struct pawl_type
type_of(const void *shape, int32_t layer, int32_t slot)
{
	(void)layer;
	return pawl_latent_shape_type(shape, slot);
}

struct pawl_kv_form
pawl_latent_shape_form(const struct pawl_latent_shape *shape)
{
	return (struct pawl_kv_form){"a latent cache", shape, type_of, shape->n_layers,
		shape->n_slots, POSITIONS_AXIS, shape->max_seq_len,
		pawl_latent_shape_bytes(shape)};
}

enum pawl_status
pawl_latent_shape_check(const struct pawl_latent_shape *shape, struct pawl_error *err)
{
	enum pawl_status status;

	if (shape->n_layers < 1 || shape->max_seq_len < 1)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a latent cache of %d layers and %" PRId64 " positions has no content",
			shape->n_layers, shape->max_seq_len);
	if (shape->n_slots < 1 || shape->n_slots > PAWL_MAX_LATENT_SLOTS)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a latent cache of %d slots; 1 to %d are possible", shape->n_slots,
			PAWL_MAX_LATENT_SLOTS);
	status = pawl_check_option("dtype", shape->dtype, 0, PAWL_N_DTYPES - 1, err);
	if (status)
		return status;
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

enum pawl_status
pawl_latent_kv_cache_bare(const struct pawl_latent_shape *shape, struct pawl_latent_kv_cache **out,
	struct pawl_error *err)
{
	struct pawl_latent_kv_cache *cache = pawl_memory_zalloc(1, sizeof(*cache));
	enum pawl_status status;

	if (!cache)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a latent cache");
	status = pawl_kv_store_init(&cache->store, shape->n_layers, shape->n_slots, err);
	if (status) {
		pawl_memory_free(cache);
		return status;
	}
	cache->shape = *shape;
	*out = cache;
	return PAWL_OK;
}

enum pawl_status
pawl_latent_kv_cache_with_capacity(struct pawl_inference_context *context,
	const struct pawl_latent_shape *shape, struct pawl_latent_kv_cache **out,
	struct pawl_error *err)
{
	struct pawl_latent_kv_cache *cache;
	struct pawl_kv_form form;
	enum pawl_status status = pawl_latent_shape_check(shape, err);

	if (!status)
		status = pawl_latent_kv_cache_bare(shape, &cache, err);
	if (status)
		return status;
	form = pawl_latent_shape_form(shape);
	status = pawl_kv_store_alloc(&cache->store, &form, context, err);
	if (status)
		pawl_latent_kv_cache_free(cache);
	else
		*out = cache;
	return status;
}

void
pawl_latent_kv_cache_free(struct pawl_latent_kv_cache *cache)
{
	if (!cache)
		return;
	pawl_kv_store_release(&cache->store);
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
	return cache->store.len;
}

struct pawl_kv_alloc_id
pawl_latent_kv_cache_alloc_id(const struct pawl_latent_kv_cache *cache)
{
	return cache->store.alloc_id;
}

struct pawl_location
pawl_latent_kv_cache_location(const struct pawl_latent_kv_cache *cache)
{
	return cache->store.location;
}

const struct pawl_kv_tensor *
pawl_latent_kv_cache_slot(const struct pawl_latent_kv_cache *cache, int32_t layer, int32_t slot)
{
	return pawl_kv_store_at(&cache->store, layer, slot);
}

struct pawl_storage *
pawl_latent_kv_cache_storage(const struct pawl_latent_kv_cache *cache, int32_t layer, int32_t slot)
{
	const struct pawl_kv_tensor *tensor = pawl_kv_store_at(&cache->store, layer, slot);

	return tensor ? tensor->storage : NULL;
}

void
pawl_latent_kv_cache_bump(struct pawl_latent_kv_cache *cache, int32_t layer, int32_t slot)
{
	pawl_kv_store_bump(&cache->store, layer, slot);
}

enum pawl_status
pawl_latent_kv_cache_reserve(struct pawl_latent_kv_cache *cache, int64_t n, struct pawl_error *err)
{
	struct pawl_latent_shape grown = cache->shape;
	const struct pawl_kv_form form = pawl_latent_shape_form(&cache->shape);
	struct pawl_kv_form grown_form;
	enum pawl_status status;

	if (form.positions && n <= form.positions)
		return PAWL_OK;
	grown.max_seq_len = n;
	grown_form = pawl_latent_shape_form(&grown);
	status = pawl_kv_store_move(&cache->store, &form, &grown_form, err);
	if (!status)
		cache->shape = grown;
	return status;
}

enum pawl_status
pawl_latent_kv_cache_fork(struct pawl_latent_kv_cache *cache, struct pawl_latent_kv_cache **out,
	struct pawl_error *err)
{
	const struct pawl_kv_form form = pawl_latent_shape_form(&cache->shape);
	struct pawl_latent_kv_cache *fork;
	enum pawl_status status = pawl_latent_kv_cache_bare(&cache->shape, &fork, err);

	if (status)
		return status;
	status = pawl_kv_store_fork(&cache->store, &form, &fork->store, err);
	if (status)
		pawl_latent_kv_cache_free(fork);
	else
		*out = fork;
	return status;
}

bool
pawl_latent_kv_cache_is_shared(const struct pawl_latent_kv_cache *cache)
{
	return pawl_kv_store_is_shared(&cache->store);
}

enum pawl_status
pawl_latent_kv_cache_own(struct pawl_latent_kv_cache *cache, struct pawl_error *err)
{
	struct pawl_kv_form form;

	if (pawl_kv_store_leave(&cache->store))
		return PAWL_OK;
	form = pawl_latent_shape_form(&cache->shape);
	return pawl_kv_store_own(&cache->store, &form, err);
}

void
pawl_latent_kv_cache_clear(struct pawl_latent_kv_cache *cache)
{
	pawl_kv_store_clear(&cache->store);
	cache->shape.max_seq_len = 0;
}

void
pawl_latent_kv_cache_truncate_to(struct pawl_latent_kv_cache *cache, int64_t n)
{
	if (n >= 0 && n < cache->store.len)
		pawl_kv_store_set_len(&cache->store, n);
}

enum pawl_status
pawl_latent_kv_cache_check_room(
	const struct pawl_latent_kv_cache *cache, int64_t n, struct pawl_error *err)
{
	return pawl_kv_store_check_room(&cache->store, cache->shape.max_seq_len, n, err);
}

void
pawl_latent_kv_cache_advance(struct pawl_latent_kv_cache *cache, int64_t n)
{
	pawl_kv_store_set_len(&cache->store, cache->store.len + n);
}

struct pawl_kv_rebind_source
pawl_latent_kv_cache_source(struct pawl_latent_kv_cache *cache)
{
	return pawl_kv_store_source(&cache->store);
}

#include "runtime/kv_cache.h"

#include <inttypes.h>

#include "ir/each_token.h"
#include "runtime/kv_cache_parts.h"
#include "runtime/memory.h"
#include "runtime/option_check.h"

enum { POSITIONS_ALIGN = 16, POSITIONS_AXIS = 2 };

struct pawl_type
pawl_kv_shape_type(const struct pawl_kv_shape *shape, int32_t layer, enum pawl_kv_slot slot)
{
	bool is_ring = shape->rings.positions && pawl_layer_set_has(&shape->rings.layers, layer);
	const int64_t dims[] = {1, shape->n_kv_heads,
		is_ring ? shape->rings.positions : shape->max_seq_len, shape->head_dim};
	struct pawl_type type = pawl_type_make(shape->dtype, 4, dims);

	type.layout = shape->layout[slot];
	return type;
}

/* n layers like that one; -1 where there is no such memory. */
static int64_t
layers_bytes(const struct pawl_kv_shape *shape, int32_t layer, int64_t n)
{
	struct pawl_type k = pawl_kv_shape_type(shape, layer, PAWL_KV_K),
			 v = pawl_kv_shape_type(shape, layer, PAWL_KV_V);
	int64_t k_bytes = pawl_storage_bytes(&k), v_bytes = pawl_storage_bytes(&v), bytes;

	if (k_bytes < 0 || v_bytes < 0 || __builtin_mul_overflow(k_bytes + v_bytes, n, &bytes))
		return -1;
	return bytes;
}

int64_t
pawl_kv_shape_bytes(const struct pawl_kv_shape *shape)
{
	int64_t n_rings = 0, bytes, ring_bytes = 0;
	int32_t ring = 0;

	if (shape->n_layers < 1 || shape->max_seq_len < 1)
		return -1;
	for (int32_t i = 0; shape->rings.positions && i < shape->n_layers &&
			    i < PAWL_MAX_WINDOW_LAYERS; i++)
		if (pawl_layer_set_has(&shape->rings.layers, i)) {
			ring = i;
			n_rings++;
		}
	/* Layer -1 is in no set. */
	bytes = layers_bytes(shape, -1, shape->n_layers - n_rings);
	if (n_rings)
		ring_bytes = layers_bytes(shape, ring, n_rings);
	if (bytes < 0 || ring_bytes < 0 || __builtin_add_overflow(bytes, ring_bytes, &bytes))
		return -1;
	return bytes;
}

static struct pawl_type
type_of(const void *shape, int32_t layer, int32_t which)
{
	return pawl_kv_shape_type(shape, layer, (enum pawl_kv_slot)which);
}

struct pawl_kv_form
pawl_kv_shape_form(const struct pawl_kv_shape *shape)
{
	return (struct pawl_kv_form){"a cache", shape, type_of, shape->n_layers, PAWL_N_KV_SLOTS,
		POSITIONS_AXIS, shape->max_seq_len, pawl_kv_shape_bytes(shape)};
}

int64_t
pawl_kv_round_positions(int64_t n)
{
	return n <= INT64_MAX - POSITIONS_ALIGN
		       ? (n + POSITIONS_ALIGN - 1) / POSITIONS_ALIGN * POSITIONS_ALIGN
		       : n;
}

enum pawl_status
pawl_kv_cache_with_dims(int32_t n_layers, int64_t n_kv_heads, int64_t head_dim,
	struct pawl_kv_cache **out, struct pawl_error *err)
{
	struct pawl_kv_cache *cache;
	enum pawl_status status;

	if (n_layers < 1 || n_kv_heads < 1 || head_dim < 1)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a cache of %d layers, %" PRId64 " kv heads of %" PRId64 " has no content",
			n_layers, n_kv_heads, head_dim);
	cache = pawl_memory_zalloc(1, sizeof(*cache));
	if (!cache)
		return pawl_fail(
			err, PAWL_OUT_OF_MEMORY, "no memory for a cache of %d layers", n_layers);
	status = pawl_kv_store_init(&cache->store, n_layers, PAWL_N_KV_SLOTS, err);
	if (status) {
		pawl_memory_free(cache);
		return status;
	}
	cache->shape =
		(struct pawl_kv_shape){n_layers, n_kv_heads, head_dim, .dtype = PAWL_DTYPE_F32};
	*out = cache;
	return PAWL_OK;
}

static enum pawl_status
check_rings(const struct pawl_kv_shape *shape, struct pawl_error *err)
{
	const struct pawl_kv_rings *rings = &shape->rings;

	if (!rings->positions)
		return PAWL_OK;
	if (rings->window < 1 || rings->positions < rings->window ||
		rings->positions % POSITIONS_ALIGN ||
		rings->positions >= shape->max_seq_len)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"rings of %" PRId64 " positions for a window of %" PRId64
			" in a cache of %" PRId64,
			rings->positions, rings->window, shape->max_seq_len);
	return PAWL_OK;
}

enum pawl_status
pawl_kv_shape_check(const struct pawl_kv_shape *shape, struct pawl_error *err)
{
	enum pawl_status status;

	if (shape->n_layers < 1 || shape->n_kv_heads < 1 || shape->head_dim < 1)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a cache of %d layers, %" PRId64 " kv heads of %" PRId64 " has no content",
			shape->n_layers, shape->n_kv_heads, shape->head_dim);
	if (shape->max_seq_len < 1)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a cache of %" PRId64 " positions has no content", shape->max_seq_len);
	status = pawl_check_option("dtype", shape->dtype, 0, PAWL_N_DTYPES - 1, err);
	if (status)
		return status;
	if (!pawl_dtype_is_float(shape->dtype) && shape->dtype != PAWL_DTYPE_Q8_0)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a cache is f16, bf16, f32 or q8_0, not %s", pawl_dtype_name(shape->dtype));
	if (shape->head_dim % pawl_dtype_info(shape->dtype)->block)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a cache of %s has heads of a multiple of %d elements, not of %" PRId64,
			pawl_dtype_name(shape->dtype), pawl_dtype_info(shape->dtype)->block,
			shape->head_dim);
	if ((shape->layout[PAWL_KV_K] != PAWL_LAYOUT_ROWS &&
		    shape->layout[PAWL_KV_K] != PAWL_LAYOUT_K16) ||
		shape->layout[PAWL_KV_V] != PAWL_LAYOUT_ROWS)
		return pawl_fail(
			err, PAWL_INVALID_ARGUMENT, "a cache has K in rows or k16 and V in rows");
	return check_rings(shape, err);
}

enum pawl_status
pawl_kv_cache_with_capacity(struct pawl_inference_context *context,
	const struct pawl_kv_shape *shape, struct pawl_kv_cache **out, struct pawl_error *err)
{
	struct pawl_kv_shape rounded = *shape;
	struct pawl_kv_cache *cache;
	struct pawl_kv_form form;
	enum pawl_status status = pawl_kv_shape_check(shape, err);

	if (status)
		return status;
	status = pawl_kv_cache_with_dims(
		shape->n_layers, shape->n_kv_heads, shape->head_dim, &cache, err);
	if (status)
		return status;
	rounded.max_seq_len = pawl_kv_round_positions(shape->max_seq_len);
	cache->shape = rounded;
	form = pawl_kv_shape_form(&cache->shape);
	if (form.bytes < 0)
		status = pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a cache of %" PRId64 " positions is larger than memory can be",
			shape->max_seq_len);
	else
		status = pawl_kv_store_alloc(&cache->store, &form, context, err);
	if (status) {
		pawl_kv_cache_free(cache);
		return status;
	}
	*out = cache;
	return PAWL_OK;
}

void
pawl_kv_cache_free(struct pawl_kv_cache *cache)
{
	if (!cache)
		return;
	pawl_kv_store_release(&cache->store);
	pawl_memory_free(cache);
}

PAWL_EACH_TOKEN const struct pawl_kv_shape *
pawl_kv_cache_shape(const struct pawl_kv_cache *cache)
{
	return &cache->shape;
}

PAWL_EACH_TOKEN int64_t
pawl_kv_cache_len(const struct pawl_kv_cache *cache)
{
	return cache->store.len;
}

struct pawl_kv_alloc_id
pawl_kv_cache_alloc_id(const struct pawl_kv_cache *cache)
{
	return cache->store.alloc_id;
}

struct pawl_location
pawl_kv_cache_location(const struct pawl_kv_cache *cache)
{
	return cache->store.location;
}

const struct pawl_kv_tensor *
pawl_kv_cache_layer(const struct pawl_kv_cache *cache, int32_t layer)
{
	return pawl_kv_store_at(&cache->store, layer, 0);
}

struct pawl_storage *
pawl_kv_cache_storage(const struct pawl_kv_cache *cache, struct pawl_kv_layer_id id)
{
	const struct pawl_kv_tensor *tensor =
		pawl_kv_store_at(&cache->store, id.layer, (int32_t)id.slot);

	return tensor ? tensor->storage : NULL;
}

void
pawl_kv_cache_bump(struct pawl_kv_cache *cache, struct pawl_kv_layer_id id)
{
	pawl_kv_store_bump(&cache->store, id.layer, (int32_t)id.slot);
}

enum pawl_status
pawl_kv_cache_set_layer(struct pawl_kv_cache *cache, int32_t layer, struct pawl_storage *k,
	struct pawl_storage *v, struct pawl_error *err)
{
	struct pawl_storage *const storages[PAWL_N_KV_SLOTS] = {k, v};
	struct pawl_kv_tensor *tensors = pawl_kv_store_at(&cache->store, layer, 0);
	enum pawl_status status;

	if (!tensors)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "layer %d of a cache of %d layers",
			layer, cache->shape.n_layers);
	status = pawl_kv_cache_own(cache, err);
	if (status)
		return status;
	for (int slot = 0; slot < PAWL_N_KV_SLOTS; slot++)
		if (storages[slot])
			pawl_storage_ref(storages[slot]);
	for (int slot = 0; slot < PAWL_N_KV_SLOTS; slot++) {
		pawl_kv_store_drop(&tensors[slot]);
		tensors[slot].storage = storages[slot];
	}
	cache->store.alloc_id = pawl_kv_alloc_id_new();
	cache->store.location = PAWL_LOCATION_UNKNOWN;
	return PAWL_OK;
}

enum pawl_status
pawl_kv_cache_set_capacity(struct pawl_kv_cache *cache, int64_t max_seq_len, enum pawl_dtype dtype,
	enum pawl_layout k_layout, struct pawl_error *err)
{
	struct pawl_kv_shape shape = cache->shape;
	enum pawl_status status;

	shape.max_seq_len = max_seq_len;
	shape.dtype = dtype;
	shape.layout[PAWL_KV_K] = k_layout;
	shape.layout[PAWL_KV_V] = PAWL_LAYOUT_ROWS;
	status = pawl_kv_shape_check(&shape, err);
	if (status)
		return status;
	for (int32_t i = 0; i < shape.n_layers; i++)
		for (int slot = 0; slot < PAWL_N_KV_SLOTS; slot++) {
			struct pawl_type type =
				pawl_kv_shape_type(&shape, i, (enum pawl_kv_slot)slot);
			const struct pawl_storage *storage =
				pawl_kv_cache_layer(cache, i)[slot].storage;

			if (!storage || !pawl_type_equal(&storage->type, &type))
				return pawl_fail(err, PAWL_INVALID_ARGUMENT, "layer %d slot %d %s",
					i, slot,
					storage ? "has another type than is declared"
						: "has no storage");
		}
	if (cache->store.len > max_seq_len)
		return pawl_fail(err, PAWL_CAPACITY,
			"%" PRId64 " positions are cached, %" PRId64 " are declared",
			cache->store.len, max_seq_len);
	cache->shape = shape;
	return PAWL_OK;
}

enum pawl_status
pawl_kv_cache_reserve(struct pawl_kv_cache *cache, int64_t n, struct pawl_error *err)
{
	struct pawl_kv_shape grown = cache->shape;
	const struct pawl_kv_form form = pawl_kv_shape_form(&cache->shape);
	struct pawl_kv_form grown_form;
	enum pawl_status status;

	if (form.positions && n <= form.positions)
		return PAWL_OK;
	grown.max_seq_len = pawl_kv_round_positions(n);
	grown_form = pawl_kv_shape_form(&grown);
	status = pawl_kv_store_move(&cache->store, &form, &grown_form, err);
	if (!status)
		cache->shape = grown;
	return status;
}

enum pawl_status
pawl_kv_cache_fork(
	struct pawl_kv_cache *cache, struct pawl_kv_cache **out, struct pawl_error *err)
{
	const struct pawl_kv_shape *shape = &cache->shape;
	const struct pawl_kv_form form = pawl_kv_shape_form(shape);
	struct pawl_kv_cache *fork;
	enum pawl_status status = pawl_kv_cache_with_dims(
		shape->n_layers, shape->n_kv_heads, shape->head_dim, &fork, err);

	if (status)
		return status;
	fork->shape = *shape;
	fork->written = cache->written;
	status = pawl_kv_store_fork(&cache->store, &form, &fork->store, err);
	if (status)
		pawl_kv_cache_free(fork);
	else
		*out = fork;
	return status;
}

bool
pawl_kv_cache_is_shared(const struct pawl_kv_cache *cache)
{
	return pawl_kv_store_is_shared(&cache->store);
}

PAWL_EACH_TOKEN enum pawl_status
pawl_kv_cache_own(struct pawl_kv_cache *cache, struct pawl_error *err)
{
	struct pawl_kv_form form;

	/* What a cache is made of is a sum over its layers: not for each token. */
	if (pawl_kv_store_leave(&cache->store))
		return PAWL_OK;
	form = pawl_kv_shape_form(&cache->shape);
	return pawl_kv_store_own(&cache->store, &form, err);
}

void
pawl_kv_cache_clear(struct pawl_kv_cache *cache)
{
	pawl_kv_store_clear(&cache->store);
	cache->store.location = PAWL_LOCATION_UNKNOWN;
	cache->shape.max_seq_len = 0;
	cache->shape.rings.positions = 0;
	cache->written = 0;
}

void
pawl_kv_cache_truncate_to(struct pawl_kv_cache *cache, int64_t n)
{
	if (n < 0 || n >= cache->store.len)
		return;
	pawl_kv_store_set_len(&cache->store, n < pawl_kv_cache_least_len(cache) ? 0 : n);
	if (!cache->store.len)
		cache->written = 0;
}

/* The row at length n sees from n - window + 1 on, of which positions below written - ring are gone. */
int64_t
pawl_kv_cache_least_len(const struct pawl_kv_cache *cache)
{
	const struct pawl_kv_rings *rings = &cache->shape.rings;
	int64_t gone = cache->written - rings->positions;

	return rings->positions && gone > 0 ? gone + rings->window - 1 : 0;
}

int64_t
pawl_kv_cache_most_rows(const struct pawl_kv_cache *cache)
{
	const struct pawl_kv_rings *rings = &cache->shape.rings;

	return rings->positions ? rings->positions - rings->window + 1 : INT64_MAX;
}

PAWL_EACH_TOKEN enum pawl_status
pawl_kv_cache_check_rows(
	const struct pawl_kv_cache *cache, int64_t rows, struct pawl_error *err)
{
	const struct pawl_kv_rings *rings = &cache->shape.rings;

	if (!rings->positions)
		return PAWL_OK;
	if (rows < 1 || rows > pawl_kv_cache_most_rows(cache))
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"%" PRId64 " rows would cover what a window of %" PRId64
			" sees in a ring of %" PRId64,
			rows, rings->window, rings->positions);
	return PAWL_OK;
}

PAWL_EACH_TOKEN void
pawl_kv_cache_note_write(struct pawl_kv_cache *cache, int64_t rows)
{
	if (cache->written < cache->store.len + rows)
		cache->written = cache->store.len + rows;
}

PAWL_EACH_TOKEN enum pawl_status
pawl_kv_cache_check_room(const struct pawl_kv_cache *cache, int64_t n, struct pawl_error *err)
{
	return pawl_kv_store_check_room(&cache->store, cache->shape.max_seq_len, n, err);
}

PAWL_EACH_TOKEN void
pawl_kv_cache_advance(struct pawl_kv_cache *cache, int64_t n)
{
	pawl_kv_store_set_len(&cache->store, cache->store.len + n);
}

PAWL_EACH_TOKEN struct pawl_kv_rebind_source
pawl_kv_cache_source(struct pawl_kv_cache *cache)
{
	return pawl_kv_store_source(&cache->store);
}

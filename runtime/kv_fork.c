#include "runtime/kv_cache.h"

#include <inttypes.h>

#include "runtime/kv_cache_parts.h"
#include "runtime/memory.h"

void
pawl_kv_cache_leave(struct pawl_kv_cache *cache)
{
	struct pawl_kv_sharing *sharing = cache->sharing;

	cache->sharing = NULL;
	if (sharing &&
		atomic_fetch_sub_explicit(&sharing->n_caches, 1, memory_order_acq_rel) == 1)
		pawl_memory_free(sharing);
}

bool
pawl_kv_cache_is_shared(const struct pawl_kv_cache *cache)
{
	return cache->sharing &&
	       atomic_load_explicit(&cache->sharing->n_caches, memory_order_acquire) > 1;
}

static enum pawl_status
check(const struct pawl_kv_cache *cache, struct pawl_error *err)
{
	if (!cache->shape.max_seq_len)
		return pawl_fail(
			err, PAWL_INVALID_ARGUMENT, "a cache without capacity cannot be forked");
	for (int32_t i = 0; i < cache->shape.n_layers; i++)
		for (int slot = 0; slot < PAWL_N_KV_SLOTS; slot++) {
			const struct pawl_storage *storage = cache->layers[i].storage[slot];
			const struct pawl_type type =
				pawl_kv_shape_type(&cache->shape, i, (enum pawl_kv_slot)slot);

			if (!storage || !pawl_type_equal(&storage->type, &type))
				return pawl_fail(err, PAWL_INVALID_ARGUMENT,
					"layer %d slot %d is not of the shape of its cache", i,
					slot);
		}
	return PAWL_OK;
}

static enum pawl_status
share(struct pawl_kv_cache *cache, struct pawl_error *err)
{
	if (cache->sharing)
		return PAWL_OK;
	cache->sharing = pawl_memory_zalloc(1, sizeof(*cache->sharing));
	if (!cache->sharing)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory to fork a cache");
	atomic_init(&cache->sharing->n_caches, 1);
	return PAWL_OK;
}

enum pawl_status
pawl_kv_cache_fork(
	struct pawl_kv_cache *cache, struct pawl_kv_cache **out, struct pawl_error *err)
{
	const struct pawl_kv_shape *shape = &cache->shape;
	struct pawl_kv_cache *fork;
	enum pawl_status status = check(cache, err);

	if (!status)
		status = pawl_kv_cache_with_dims(
			shape->n_layers, shape->n_kv_heads, shape->head_dim, &fork, err);
	if (status)
		return status;
	status = share(cache, err);
	if (status) {
		pawl_kv_cache_free(fork);
		return status;
	}
	atomic_fetch_add_explicit(&cache->sharing->n_caches, 1, memory_order_relaxed);
	fork->sharing = cache->sharing;
	fork->shape = *shape;
	fork->cached_len = cache->cached_len;
	fork->written = cache->written;
	fork->location = cache->location;
	for (int32_t i = 0; i < shape->n_layers; i++) {
		fork->layers[i] = cache->layers[i];
		for (int slot = 0; slot < PAWL_N_KV_SLOTS; slot++)
			pawl_storage_ref(fork->layers[i].storage[slot]);
	}
	cache->alloc_id = pawl_kv_alloc_id_new();
	*out = fork;
	return PAWL_OK;
}

enum pawl_status
pawl_kv_cache_own(struct pawl_kv_cache *cache, struct pawl_error *err)
{
	const struct pawl_kv_shape shape = cache->shape;

	if (pawl_kv_cache_is_shared(cache))
		return pawl_kv_cache_move(cache, &shape, err);
	pawl_kv_cache_leave(cache);
	return PAWL_OK;
}

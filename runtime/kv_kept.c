#include "runtime/kv_cache.h"

#include <inttypes.h>

#include "runtime/kv_cache_parts.h"
#include "runtime/memory.h"

struct pawl_kv_kept {
	int64_t written;
	char bytes[]; /* of all rings, in the order of layers and slots */
};

/* The next storage that is a ring, from *at on; NULL: none. */
static struct pawl_storage *
next_ring(const struct pawl_kv_cache *cache, int32_t *at)
{
	for (; *at < cache->shape.n_layers * PAWL_N_KV_SLOTS; ++*at)
		if (pawl_layer_set_has(&cache->shape.rings.layers, *at / PAWL_N_KV_SLOTS))
			return cache->store.tensors[(*at)++].storage;
	return NULL;
}

enum pawl_status
pawl_kv_cache_keep(const struct pawl_kv_cache *cache, int64_t first, int64_t rows,
	struct pawl_kv_kept **kept, struct pawl_error *err)
{
	const struct pawl_kv_rings *rings = &cache->shape.rings;
	int64_t gone = cache->store.len + rows - rings->positions, n_bytes = 0;
	enum pawl_status status = PAWL_OK;
	struct pawl_storage *ring;
	char *to;

	if (*kept || !first || !rings->positions || gone <= 0 || gone + rings->window - 1 <= first)
		return PAWL_OK;
	for (int32_t at = 0; (ring = next_ring(cache, &at));) {
		if (!pawl_storage_is_reachable(ring))
			return pawl_fail(err, PAWL_UNSUPPORTED,
				"a ring is not in host memory: what a run overwrites in it cannot "
				"be kept");
		n_bytes += ring->n_bytes;
	}
	*kept = pawl_memory_zalloc(1, sizeof(**kept) + (size_t)n_bytes);
	if (!*kept)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY,
			"no memory to keep %" PRId64 " bytes of rings", n_bytes);
	(*kept)->written = cache->written;
	to = (*kept)->bytes;
	for (int32_t at = 0; (ring = next_ring(cache, &at)) && !status; to += ring->n_bytes)
		status = pawl_storage_read_all(ring, to, err);
	if (status) {
		pawl_memory_free(*kept);
		*kept = NULL;
	}
	return status;
}

void
pawl_kv_cache_put_back(struct pawl_kv_cache *cache, const struct pawl_kv_kept *kept)
{
	enum pawl_status status = PAWL_OK;
	const char *from = kept->bytes;
	struct pawl_storage *ring;

	for (int32_t at = 0; (ring = next_ring(cache, &at)) && !status; from += ring->n_bytes)
		status = pawl_storage_write_all(ring, from, NULL);
	if (!status)
		cache->written = kept->written;
}

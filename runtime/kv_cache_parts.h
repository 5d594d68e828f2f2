/* What the files of a contiguous KV cache share. */
#ifndef PAWL_RUNTIME_KV_CACHE_PARTS_H
#define PAWL_RUNTIME_KV_CACHE_PARTS_H

#include "runtime/kv_cache.h"

enum { PAWL_KV_POSITIONS_ALIGN = 16 };

/* Caches that have the same storages.  Each may be in another thread. */
struct pawl_kv_sharing {
	atomic_int n_caches;
};

struct pawl_kv_cache {
	struct pawl_kv_shape shape;
	struct pawl_kv_layer *layers;
	struct pawl_kv_sharing *sharing; /* NULL: never forked; else all layers are of the shape */
	int64_t cached_len;
	int64_t written; /* one beyond the last position that rings may hold */
	struct pawl_kv_alloc_id alloc_id;
	struct pawl_location location;
};

/*
 * Moves the cache to fresh storages of `shape`, which differs in capacity at most, with the positions
 * cached.  New allocation id; no longer shared.  All or nothing.
 */
enum pawl_status pawl_kv_cache_move(
	struct pawl_kv_cache *cache, const struct pawl_kv_shape *shape, struct pawl_error *err);
/* The storages are dropped, or this cache is the last that has them. */
void pawl_kv_cache_leave(struct pawl_kv_cache *cache);

/* Whether a cache of that shape may be; what pawl_kv_cache_with_capacity refuses. */
enum pawl_status pawl_kv_shape_check(const struct pawl_kv_shape *shape, struct pawl_error *err);

/* PAWL_CAPACITY, naming the sizes, when n more do not fit. */
enum pawl_status pawl_kv_check_room(
	int64_t cached_len, int64_t capacity, int64_t n, struct pawl_error *err);

/* n rounded up to what layouts need; n itself where that overflows. */
int64_t pawl_kv_round_positions(int64_t n);

#endif

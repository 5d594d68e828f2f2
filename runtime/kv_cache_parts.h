/* What the files of a contiguous KV cache share. */
#ifndef PAWL_RUNTIME_KV_CACHE_PARTS_H
#define PAWL_RUNTIME_KV_CACHE_PARTS_H

#include "runtime/kv_cache.h"
#include "runtime/kv_store.h"

struct pawl_kv_cache {
	struct pawl_kv_store store;
	struct pawl_kv_shape shape;
	int64_t written; /* one beyond the last position that rings may hold */
};

struct pawl_kv_form pawl_kv_shape_form(const struct pawl_kv_shape *shape);

/* Whether a cache of that shape may be; what pawl_kv_cache_with_capacity refuses. */
enum pawl_status pawl_kv_shape_check(const struct pawl_kv_shape *shape, struct pawl_error *err);

/* n rounded up to what layouts need; n itself where that overflows. */
int64_t pawl_kv_round_positions(int64_t n);

#endif

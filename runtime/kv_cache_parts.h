/* What the files of a contiguous KV cache share. */
#ifndef PAWL_RUNTIME_KV_CACHE_PARTS_H
#define PAWL_RUNTIME_KV_CACHE_PARTS_H

#include "runtime/kv_cache.h"

enum { PAWL_KV_POSITIONS_ALIGN = 16 };

struct pawl_kv_cache {
	struct pawl_kv_shape shape;
	struct pawl_kv_layer *layers;
	int64_t cached_len;
	struct pawl_kv_alloc_id alloc_id;
	struct pawl_location location;
};

/* n rounded up to what layouts need; n itself where that overflows. */
int64_t pawl_kv_round_positions(int64_t n);

#endif

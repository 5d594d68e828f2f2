#include "runtime/kv_ring.h"

#include "ir/eval_consts.h"

bool
pawl_layer_set_has(const struct pawl_layer_set *set, int64_t layer)
{
	return layer >= 0 && layer < PAWL_MAX_WINDOW_LAYERS &&
	       (set->bits[layer / 64] >> layer % 64 & 1);
}

void
pawl_layer_set_add(struct pawl_layer_set *set, int64_t layer)
{
	set->bits[layer / 64] |= (uint64_t)1 << layer % 64;
}

int64_t
pawl_kv_ring_capacity(int64_t window, int64_t tile, int64_t k)
{
	int64_t more = tile > k ? tile - 1 : k, n; /* rows written beyond the first */

	if (window < 1 || tile < 1 || k < 0 || __builtin_add_overflow(window, more, &n) ||
		__builtin_add_overflow(n, PAWL_ATTEND_CHUNK - 1, &n))
		return -1;
	return n / PAWL_ATTEND_CHUNK * PAWL_ATTEND_CHUNK;
}

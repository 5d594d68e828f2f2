#include "runtime/kv_ring.h"

#include "ir/eval_consts.h"

int64_t
pawl_kv_ring_capacity(int64_t window, int64_t tile, int64_t k)
{
	int64_t written = tile > k ? tile : k + 1, n;

	if (window < 1 || tile < 1 || k < 0 || k == INT64_MAX ||
		__builtin_add_overflow(window, written - 1, &n) ||
		__builtin_add_overflow(n, PAWL_ATTEND_CHUNK - 1, &n))
		return -1;
	return n / PAWL_ATTEND_CHUNK * PAWL_ATTEND_CHUNK;
}

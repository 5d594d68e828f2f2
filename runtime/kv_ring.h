/* How large the ring of a sliding window must be. */
#ifndef PAWL_RUNTIME_KV_RING_H
#define PAWL_RUNTIME_KV_RING_H

#include <stdint.h>

/*
 * Positions of a ring in which no write covers what is still visible:
 *   roundup(window + max(tile, k + 1) - 1, 128)
 * A row sees the last `window` positions, its own included.  A run writes up to `tile` rows, of which
 * the first still sees window - 1 positions before them; a speculative run writes k + 1 and may take
 * all but one of them back.  128 is the chunk of attention, which docs/arithmetic.md fixes.
 * -1 when window < 1, tile < 1, k < 0, or the sum overflows.
 */
int64_t pawl_kv_ring_capacity(int64_t window, int64_t tile, int64_t k);

#endif

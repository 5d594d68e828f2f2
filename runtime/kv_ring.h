/*
 * Rings: layers whose attention sees a window keep position p at p modulo the size of the ring.
 * Which layers a model has them for, and how large a ring must be.
 */
#ifndef PAWL_RUNTIME_KV_RING_H
#define PAWL_RUNTIME_KV_RING_H

#include <stdbool.h>
#include <stdint.h>

enum { PAWL_MAX_WINDOW_LAYERS = 1024 };

/* Some layers of a model. */
struct pawl_layer_set {
	uint64_t bits[PAWL_MAX_WINDOW_LAYERS / 64];
};

/* False beyond the last possible layer. */
bool pawl_layer_set_has(const struct pawl_layer_set *set, int64_t layer);
/* layer is 0 .. PAWL_MAX_WINDOW_LAYERS - 1. */
void pawl_layer_set_add(struct pawl_layer_set *set, int64_t layer);

struct pawl_kv_rings {
	int64_t positions; /* 0: no layer has one */
	int64_t window;    /* that attention of those layers sees */
	struct pawl_layer_set layers;
};

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

/* One layer's attention over a cache, as a host of ggml hands it over, and what it comes to. */
#ifndef PAWL_TESTS_GGML_LAYER_H
#define PAWL_TESTS_GGML_LAYER_H

#include "tests/ggml_host.h"

enum { PAWL_FAKE_WIDTH = 32, PAWL_FAKE_HEADS = 4, PAWL_FAKE_GROUPS = 2, PAWL_FAKE_CELLS = 512 };

/* The tensors that the host fills.  g, streams, groups and cells are the caller's. */
struct pawl_fake_layer {
	struct pawl_fake_graph *g;
	int64_t streams; /* with n tokens each, and a cache for each */
	int64_t groups, cells; /* heads of keys and values; of a cache */
	struct pawl_ggml_tensor *q, *k, *v, *positions, *k_list, *v_list, *mask, *k_cache, *v_cache;
	struct pawl_ggml_tensor *y; /* [width * heads, tokens of all streams] */
};

/* n tokens of each stream that look at `seen` cells; spelled out as products, or as one op. */
void pawl_fake_layer_make(struct pawl_fake_layer *l, int64_t n, int64_t seen, bool spelled_out);

/*
 * Token t of a stream stands at position 100 + t, in cell `first` + 7 t, and sees the cells of all up to
 * itself.
 */
void pawl_fake_layer_fill(
	struct pawl_fake_layer *l, int64_t n, int64_t seen, int64_t first, bool spelled_out);

/* Fails the test unless y is the attention, computed in double. */
void pawl_fake_layer_assert(const struct pawl_fake_layer *l, int64_t n);

/* Numbers from -1 to 1. */
void pawl_fake_random(struct pawl_ggml_tensor *t, unsigned seed);
/* Fails the test unless x is y up to some roundings of f32. */
void pawl_fake_assert_near(double x, double y);

#endif

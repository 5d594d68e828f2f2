/* What tiny models share: random weights by name, rope tables.  Everything asserts that it works. */
#ifndef PAWL_TESTS_TINY_WEIGHTS_H
#define PAWL_TESTS_TINY_WEIGHTS_H

#include "runtime/weights.h"

enum { PAWL_TINY_MAX_WEIGHTS = 256 };

struct pawl_tiny_weights {
	struct pawl_tiny_weight {
		char name[48];
		struct pawl_weight weight;
		void *bytes;
	} items[PAWL_TINY_MAX_WEIGHTS];
	int n;
};

/* Elements within `most` of `middle`; quantized ones of middle 0. */
void pawl_tiny_weights_add(struct pawl_tiny_weights *weights, const char *name,
	enum pawl_dtype dtype, int rank, const int64_t *dims, double middle, double most);
/* Gives copies of its own to weights that were copied with the struct. */
void pawl_tiny_weights_own(struct pawl_tiny_weights *weights);
void pawl_tiny_weights_release(struct pawl_tiny_weights *weights);

enum pawl_status pawl_tiny_weights_find(const struct pawl_tiny_weights *weights, const char *name,
	struct pawl_weight *out, struct pawl_error *err);

/*
 * The rope of a model source: base 10000, pairs adjacent, width <= 128.  No assertion here: it would
 * allocate, which tests/alloc_free.c counts.
 */
void pawl_tiny_rope(void *ctx, int64_t position, int64_t width, float *cos, float *sin);

#endif

#include "tests/tiny_weights.h"

#include "codegen/tensor.h"
#include "ir/trig.h"
#include "tests/tensors.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *
new_bytes(int64_t n)
{
	void *bytes = aligned_alloc(64, (size_t)(n + 63) / 64 * 64);

	ck_assert_ptr_nonnull(bytes);
	return bytes;
}

void
pawl_tiny_weights_add(struct pawl_tiny_weights *weights, const char *name, enum pawl_dtype dtype,
	int rank, const int64_t *dims, double middle, double most)
{
	struct pawl_tiny_weight *w = &weights->items[weights->n++];
	struct pawl_tensor t;
	int64_t bytes;

	ck_assert_int_lt(weights->n, PAWL_TINY_MAX_WEIGHTS);
	ck_assert_int_eq(
		pawl_tensor_init(&t, dtype, PAWL_LAYOUT_ROWS, false, rank, dims, &bytes, NULL),
		PAWL_OK);
	w->bytes = t.data = new_bytes(bytes);
	pawl_test_fill(&t, most);
	for (int64_t i = 0; middle != 0 && i < pawl_tensor_elems(&t); i++)
		pawl_test_set(&t, i, middle + pawl_test_get(&t, i));
	snprintf(w->name, sizeof(w->name), "%s", name);
	w->weight = (struct pawl_weight){t.data, bytes, dtype, rank, {0}};
	memcpy(w->weight.dim, dims, (size_t)rank * sizeof(*dims));
}

void
pawl_tiny_weights_own(struct pawl_tiny_weights *weights)
{
	for (int i = 0; i < weights->n; i++) {
		struct pawl_tiny_weight *w = &weights->items[i];

		w->bytes = new_bytes(w->weight.n_bytes);
		memcpy(w->bytes, w->weight.bytes, (size_t)w->weight.n_bytes);
		w->weight.bytes = w->bytes;
	}
}

void
pawl_tiny_weights_release(struct pawl_tiny_weights *weights)
{
	for (int i = 0; i < weights->n; i++)
		free(weights->items[i].bytes);
	weights->n = 0;
}

enum pawl_status
pawl_tiny_weights_find(const struct pawl_tiny_weights *weights, const char *name,
	struct pawl_weight *out, struct pawl_error *err)
{
	for (int i = 0; i < weights->n; i++)
		if (!strcmp(weights->items[i].name, name)) {
			*out = weights->items[i].weight;
			return PAWL_OK;
		}
	return pawl_fail(err, PAWL_INVALID_ARGUMENT, "the tiny model has no %s", name);
}

void
pawl_tiny_rope(void *ctx, int64_t position, int64_t width, float *cos, float *sin)
{
	double frequency[64] = {0};
	float c[64], s[64];

	(void)ctx;
	for (int64_t i = 0; i < width / 2; i++)
		frequency[i] = pawl_rope_frequency(10000.0, i, width);
	pawl_rope_row(position, frequency, width / 2, c, s);
	for (int64_t i = 0; i < width; i++) {
		cos[i] = c[i / 2];
		sin[i] = s[i / 2];
	}
}

/*
 * Matmul kernels of every type of weights and activations, each element of the result on its own
 * against a sum in f64 of decoded weights and the very activations that were multiplied, quantized
 * or not: |difference| <= TOLERANCE * sum |w * x|.  In one graph a matmul alone, of three rows, and
 * one with a norm before and a residual after it; no size is whole tiles or warps.
 */
#include "tests/cuda/test_matmuls.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/decode.h"
#include "ir/fpenv.h"
#include "ir/quantize.h"
#include "ir/random.h"
#include "ir/rowops.h"
#include "tests/cuda/kernel_run.h"

static const double TOLERANCE = 1e-5;

static const float EPS = 0.00001f; /* of the graph */

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

/* A const of the graph as it was filled, in rows. */
static void *
content(const struct pawl_cuda_case *c, uint64_t seed, const char *name, struct pawl_type *type)
{
	const struct pawl_node *node = pawl_graph_find(c->graph, name);
	void *bytes;

	ck_assert_ptr_nonnull(node);
	*type = node->type;
	bytes = malloc((size_t)pawl_dtype_bytes(type->dtype, pawl_type_elems(type)));
	ck_assert_ptr_nonnull(bytes);
	OK(pawl_random_fill_const(c->graph, node, seed, NULL, bytes, &err));
	return bytes;
}

/* What a row of activations stands for once it is as the kernel multiplies it. */
static void
activations(enum pawl_dtype dtype, const float *x, int64_t k, double *out)
{
	void *blocks = malloc((size_t)pawl_dtype_bytes(dtype, k));
	uint32_t saved = pawl_fpenv_enter();

	ck_assert_ptr_nonnull(blocks);
	pawl_encode(dtype, x, k, blocks);
	pawl_fpenv_leave(saved);
	pawl_decode_f64(dtype, blocks, k, out);
	free(blocks);
}

/* A product in the result: rows of x, weights, what is added to it (NULL: nothing). */
struct product {
	const char *output, *weights;
	const float *x, *added;
	int64_t n_rows, k;
	enum pawl_dtype activations;
};

static void
check_product(const struct pawl_cuda_case *c, uint64_t seed, const struct product *p,
	const float *got)
{
	struct pawl_type type;
	char *w = content(c, seed, p->weights, &type);
	int64_t n = type.dim[0].base, row, i, j;
	size_t row_bytes = (size_t)pawl_dtype_bytes(type.dtype, p->k);
	double *x = calloc((size_t)p->k, sizeof(*x)), *v = calloc((size_t)p->k, sizeof(*v));

	ck_assert(x && v);
	for (row = 0; row < p->n_rows; row++) {
		activations(p->activations, p->x + row * p->k, p->k, x);
		for (i = 0; i < n; i++) {
			double sum = p->added ? (double)p->added[row * n + i] : 0, size = fabs(sum),
			       there = (double)got[row * n + i];

			pawl_decode_f64(type.dtype, w + (size_t)i * row_bytes, p->k, v);
			for (j = 0; j < p->k; j++) {
				sum += v[j] * x[j];
				size += fabs(v[j] * x[j]);
			}
			ck_assert_msg(size > 0 && fabs(there - sum) <= TOLERANCE * size,
				"%s: %s[%d, %d] is %.9g, not %.9g: %.3g of sum |w * x|", c->name,
				p->output, (int)row, (int)i, there, sum, fabs(there - sum) / size);
		}
	}
	free(v);
	free(x);
	free(w);
}

static void
check_all(const struct pawl_cuda_case *c, uint64_t seed, const struct pawl_cuda_memory *m,
	enum pawl_dtype activations)
{
	struct pawl_type x_type, z_type, other;
	float *x = content(c, seed, "x", &x_type), *z = content(c, seed, "z", &z_type);
	float *g = content(c, seed, "g", &other), *r = content(c, seed, "r", &other);
	const struct product alone = {.output = "y",
		.weights = "w",
		.x = x,
		.n_rows = x_type.dim[0].base,
		.k = x_type.dim[1].base,
		.activations = activations};
	const struct product fused = {.output = "u",
		.weights = "v",
		.x = z,
		.added = r,
		.n_rows = 1,
		.k = z_type.dim[1].base,
		.activations = activations};
	uint32_t saved = pawl_fpenv_enter();

	pawl_row_rms_norm(z, g, fused.k, EPS, z);
	pawl_fpenv_leave(saved);
	check_product(c, seed, &alone, (const float *)m->slots[c->program->outputs[0]]);
	check_product(c, seed, &fused, (const float *)m->slots[c->program->outputs[1]]);
	free(x);
	free(z);
	free(g);
	free(r);
}

START_TEST(each_element_is_near_the_exact_sum)
{
	const enum pawl_fiber_order order = (enum pawl_fiber_order)(_i % PAWL_FIBER_N_ORDERS);
	const int64_t no_symbols[1] = {0};
	enum pawl_dtype weights, activations;
	struct pawl_cuda_memory gpu, ref;
	struct pawl_cuda_case c;
	uint64_t seed;

	pawl_cuda_case_open(PAWL_CUDA_MATMULS + _i, &c);
	pawl_cuda_matmul_types(_i, &weights, &activations);
	for (seed = 1; seed <= 2; seed++) {
		pawl_cuda_memory_init(&gpu, c.graph, c.program, seed, no_symbols);
		pawl_cuda_memory_copy(&ref, &gpu);
		pawl_cuda_run(&c, &gpu, no_symbols, order, 0, NULL);
		check_all(&c, seed, &gpu, activations);
		/* What the CPU's kernels compute, bit for bit. */
		pawl_cuda_run_reference(&ref, no_symbols);
		check_all(&c, seed, &ref, activations);
		pawl_cuda_memory_release(&ref);
		pawl_cuda_memory_release(&gpu);
	}
	pawl_cuda_case_close(&c);
}
END_TEST

TCase *
pawl_cuda_matmuls_tcase(void)
{
	TCase *tcase = tcase_create("matmuls");

	tcase_add_loop_test(tcase, each_element_is_near_the_exact_sum, 0, PAWL_CUDA_N_MATMULS);
	return tcase;
}

/*
 * Generated kernels, compiled for the host and run by fibers, against the reference on the same
 * program and bytes.
 *
 * Whatever the order of threads and the number of blocks, the bits are the same.  Against the
 * reference, whose sums have another order: |difference| <= TOLERANCE * the largest |value| of the
 * output; logits of the tiny llama included.  What is stored as f16 or bf16 may also fall on the
 * other side of a rounding: one unit of the type more.  Only float weights have an order of their
 * own: steps without are to have the reference's bits.
 */
#include "tests/cuda/cases.h"
#include "tests/cuda/kernel_run.h"
#include "tests/cuda/test_fibers.h"
#include "tests/cuda/test_matmuls.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/decode.h"
#include "ir/trig.h"

static const double TOLERANCE = 1e-5;

enum { MAX_SYMBOLS = 16 };

static bool
is_result(const struct pawl_slot *slot)
{
	return slot->role == PAWL_SLOT_OUTPUT || slot->role == PAWL_SLOT_KV;
}

/* Elements that a slot holds for these symbols; all that it has room for, for a K16 cache. */
static int64_t
count_elements(const struct pawl_slot *slot, const int64_t *symbols)
{
	int64_t n = 1;
	int i;

	if (slot->type.layout == PAWL_LAYOUT_K16)
		return slot->bytes / pawl_dtype_info(slot->type.dtype)->block_bytes *
		       pawl_dtype_info(slot->type.dtype)->block;
	for (i = 0; i < slot->type.rank; i++) {
		struct pawl_dim dim = slot->type.dim[i];

		n *= dim.sym < 0 ? dim.base : dim.base + dim.factor * symbols[dim.sym];
	}
	return n;
}

/* Relative size of a unit in the last place. */
static double
unit_of(enum pawl_dtype dtype)
{
	return dtype == PAWL_DTYPE_F16 ? 0x1p-10 : dtype == PAWL_DTYPE_BF16 ? 0x1p-7 : 0;
}

static void
compare_floats(const struct pawl_slot *slot, const char *got, const char *want, int64_t n,
	double tolerance, const char *what)
{
	double unit = tolerance > 0 ? unit_of(slot->type.dtype) : 0;
	double *x = calloc((size_t)n + 1, sizeof(*x)), *y = calloc((size_t)n + 1, sizeof(*y)),
	       largest = 0;
	int64_t i;

	ck_assert(x && y);
	pawl_decode_f64(slot->type.dtype, got, n, x);
	pawl_decode_f64(slot->type.dtype, want, n, y);
	for (i = 0; i < n; i++) {
		if (isfinite(y[i]) && fabs(y[i]) > largest)
			largest = fabs(y[i]);
	}
	for (i = 0; i < n; i++) {
		double limit = tolerance * largest + unit * fabs(y[i]);
		bool same = x[i] == y[i] || (isnan(x[i]) && isnan(y[i]));

		ck_assert_msg(same || fabs(x[i] - y[i]) <= limit,
			"%s: %s[%d] is %g, not %g (largest %g)", what, slot->name, (int)i, x[i],
			y[i], largest);
	}
	free(x);
	free(y);
}

static void
compare(const struct pawl_cuda_memory *got, const struct pawl_cuda_memory *want,
	const int64_t *symbols, double tolerance, const char *what)
{
	int n_compared = 0;
	int32_t i;

	for (i = 0; i < want->program->n_slots; i++) {
		const struct pawl_slot *slot = &want->program->slots[i];
		int64_t n = count_elements(slot, symbols);

		if (!is_result(slot))
			continue;
		n_compared++;
		if (pawl_dtype_is_float(slot->type.dtype))
			compare_floats(slot, got->slots[i], want->slots[i], n, tolerance, what);
		else
			ck_assert_msg(!memcmp(got->slots[i], want->slots[i],
					      (size_t)pawl_dtype_bytes(slot->type.dtype, n)),
				"%s: %s differs", what, slot->name);
	}
	ck_assert_int_gt(n_compared, 0);
}

/* The name of a slot with other bits, NULL: there is none. */
static const char *
find_difference(const struct pawl_cuda_memory *a, const struct pawl_cuda_memory *b)
{
	int32_t i;

	for (i = 0; i < a->program->n_slots; i++) {
		const struct pawl_slot *slot = &a->program->slots[i];

		if (is_result(slot) && memcmp(a->slots[i], b->slots[i], (size_t)slot->bytes))
			return slot->name;
	}
	return NULL;
}

/* All orders and some grids from the same memory; *m is what the reference makes of it. */
static void
check_run(const struct pawl_cuda_case *c, struct pawl_cuda_memory *m, const int64_t *symbols,
	double tolerance)
{
	static const struct {
		enum pawl_fiber_order order;
		int32_t blocks;
	} ways[] = {{PAWL_FIBER_ASCENDING, 0}, {PAWL_FIBER_DESCENDING, 0}, {PAWL_FIBER_RANDOM, 0},
		{PAWL_FIBER_ASCENDING, 1}, {PAWL_FIBER_RANDOM, 3}};
	enum { N_WAYS = sizeof(ways) / sizeof(*ways) };
	struct pawl_cuda_memory runs[N_WAYS];
	const char *other;
	char what[96];
	int i;

	for (i = 0; i < N_WAYS; i++) {
		pawl_cuda_memory_copy(&runs[i], m);
		pawl_cuda_run(c, &runs[i], symbols, ways[i].order, ways[i].blocks, NULL);
		snprintf(what, sizeof(what), "%s, order %d, %d blocks", c->name, (int)ways[i].order,
			(int)ways[i].blocks);
		other = i ? find_difference(&runs[0], &runs[i]) : NULL;
		ck_assert_msg(!other, "%s: %s has other bits", what, other);
	}
	pawl_cuda_run_reference(m, symbols);
	compare(&runs[0], m, symbols, tolerance, c->name);
	for (i = 0; i < N_WAYS; i++)
		pawl_cuda_memory_release(&runs[i]);
}

/* The tokens, angles, offset and mask of a step of the tiny llama at `position`. */
static void
set_token(const struct pawl_cuda_case *c, const struct pawl_cuda_memory *m, int64_t position)
{
	int64_t n =
		c->program->slots[pawl_program_find_slot(c->program, "token_ids")].type.dim[0].base;
	uint32_t *ids = pawl_cuda_memory_find(m, "token_ids");
	float *cos = pawl_cuda_memory_find(m, "rope_cos"),
	      *sin = pawl_cuda_memory_find(m, "rope_sin");
	float *mask = pawl_program_find_slot(c->program, "mask") < 0
			      ? NULL
			      : pawl_cuda_memory_find(m, "mask");
	int64_t capacity = 192, t, p;
	double frequency[8];
	float cosine[8], sine[8];
	int i;

	for (i = 0; i < 8; i++)
		frequency[i] = pawl_rope_frequency(10000.0, i, 16);
	for (t = 0; t < n; t++) {
		ids[t] = (uint32_t)((position + t) * 7 % 40);
		pawl_rope_row(position + t, frequency, 8, cosine, sine);
		for (i = 0; i < 16; i++) {
			cos[t * 16 + i] = cosine[i / 2];
			sin[t * 16 + i] = sine[i / 2];
		}
		for (p = 0; mask && p < capacity; p++)
			mask[t * capacity + p] = p <= position + t ? 0.0f : -INFINITY;
	}
	*(int64_t *)pawl_cuda_memory_find(m, "offset") = position;
}

/*
 * A cache of NaNs is filled by the reference up to some position; then one step more is compared.
 * Position 150 is beyond a chunk of attention.  With a mask all positions are read, so that the
 * cache must hold numbers.
 */
START_TEST(a_step_of_the_tiny_llama_is_that_of_the_reference)
{
	static const int64_t positions[] = {6, 150};
	struct pawl_cuda_case c;
	int64_t symbols[MAX_SYMBOLS] = {0}, position, n;
	size_t i;
	int32_t s;

	pawl_cuda_case_open(_i, &c);
	n = _i == PAWL_CUDA_TINY_CHUNK ? 3 : 1;
	for (i = 0; i < sizeof(positions) / sizeof(*positions); i++) {
		struct pawl_cuda_memory m;

		symbols[0] = n;
		pawl_cuda_memory_init(&m, c.graph, c.program, 5, symbols);
		for (s = 0; s < c.program->n_slots; s++) {
			if (c.program->slots[s].role == PAWL_SLOT_KV)
				memset(m.slots[s], _i == PAWL_CUDA_TINY_CHUNK ? 0 : 0xff,
					(size_t)c.program->slots[s].bytes);
		}
		for (position = 0; position < positions[i]; position += n) {
			set_token(&c, &m, position);
			symbols[0] = position + n;
			pawl_cuda_run_reference(&m, symbols);
		}
		set_token(&c, &m, position);
		symbols[0] = position + n;
		check_run(&c, &m, symbols, TOLERANCE);
		pawl_cuda_memory_release(&m);
	}
	pawl_cuda_case_close(&c);
}
END_TEST

static void
check_random(int number, uint64_t seed, double tolerance)
{
	struct pawl_cuda_case c;
	struct pawl_cuda_memory m;
	int64_t symbols[MAX_SYMBOLS];
	int32_t i;

	pawl_cuda_case_open(number, &c);
	ck_assert_int_le(c.program->n_symbols, MAX_SYMBOLS);
	for (i = 0; i < c.program->n_symbols; i++) {
		const struct pawl_program_symbol *s = &c.program->symbols[i];

		symbols[i] = s->min + (int64_t)seed % (s->max - s->min + 1);
		symbols[i] -= s->multiple > 1 ? symbols[i] % s->multiple : 0;
	}
	if (c.is_supported) {
		pawl_cuda_memory_init(&m, c.graph, c.program, seed, symbols);
		check_run(&c, &m, symbols, tolerance);
		pawl_cuda_memory_release(&m);
	}
	pawl_cuda_case_close(&c);
}

START_TEST(every_kind_of_op_is_that_of_the_reference)
{
	check_random(PAWL_CUDA_MEDLEY, (uint64_t)_i, TOLERANCE);
}
END_TEST

START_TEST(every_kind_of_attention_is_that_of_the_reference)
{
	check_random(PAWL_CUDA_ATTENTIONS, (uint64_t)(37 * _i), 0);
}
END_TEST

START_TEST(steps_of_every_family_are_those_of_the_reference)
{
	struct pawl_cuda_case c;
	bool is_exact;

	pawl_cuda_case_open(_i, &c);
	is_exact = c.is_exact;
	pawl_cuda_case_close(&c);
	check_random(_i, 11, is_exact ? 0 : TOLERANCE);
	if (_i < PAWL_CUDA_MODELS)
		check_random(_i, 12345, is_exact ? 0 : TOLERANCE);
}
END_TEST

START_TEST(random_graphs_are_those_of_the_reference)
{
	check_random(_i, 1, TOLERANCE);
}
END_TEST

/* That what these tests are to find is found, in one order at least. */
START_TEST(a_removed_barrier_and_a_wrong_mask_are_seen)
{
	const struct pawl_cuda_spoiled *s = &pawl_cuda_spoiled[_i];
	struct pawl_cuda_case c;
	struct pawl_cuda_memory m, right, wrong;
	int64_t symbols[MAX_SYMBOLS] = {140};
	bool is_seen = false;
	int order;

	pawl_cuda_case_open(PAWL_CUDA_SPOILED, &c);
	ck_assert_int_eq(c.program->n_symbols, 1);
	pawl_cuda_memory_init(&m, c.graph, c.program, 3, symbols);
	pawl_cuda_memory_copy(&right, &m);
	pawl_cuda_run(&c, &right, symbols, PAWL_FIBER_ASCENDING, 0, NULL);
	for (order = 0; order < PAWL_FIBER_N_ORDERS; order++) {
		pawl_cuda_memory_copy(&wrong, &m);
		pawl_cuda_run(&c, &wrong, symbols, (enum pawl_fiber_order)order, 0, s);
		is_seen = is_seen || find_difference(&right, &wrong);
		pawl_cuda_memory_release(&wrong);
	}
	ck_assert_msg(is_seen, "%s of %s is not seen", s->what, c.cuda.kernels[s->kernel].name);
	pawl_cuda_memory_release(&right);
	pawl_cuda_memory_release(&m);
	pawl_cuda_case_close(&c);
}
END_TEST

START_TEST(most_random_graphs_have_kernels)
{
	ck_assert_int_ge(pawl_cuda_n_kernels - PAWL_CUDA_RANDOM - PAWL_CUDA_N_MATMULS, 30);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("cuda kernels");
	TCase *tiny = tcase_create("tiny"), *random = tcase_create("random");
	SRunner *runner;
	int run, failed;

	tcase_add_loop_test(
		tiny, a_step_of_the_tiny_llama_is_that_of_the_reference, 0, PAWL_CUDA_TINY_CASES);
	tcase_add_loop_test(tiny, steps_of_every_family_are_those_of_the_reference,
		PAWL_CUDA_FAMILIES, PAWL_CUDA_MEDLEY);
	tcase_add_loop_test(random, every_kind_of_op_is_that_of_the_reference, 0, 6);
	tcase_add_loop_test(random, every_kind_of_attention_is_that_of_the_reference, 0, 6);
	tcase_add_loop_test(
		tiny, a_removed_barrier_and_a_wrong_mask_are_seen, 0, pawl_cuda_n_spoiled);
	tcase_add_test(random, most_random_graphs_have_kernels);
	tcase_add_loop_test(random, random_graphs_are_those_of_the_reference, PAWL_CUDA_RANDOM,
		PAWL_CUDA_MATMULS);
	suite_add_tcase(suite, pawl_fibers_tcase());
	suite_add_tcase(suite, pawl_cuda_matmuls_tcase());
	suite_add_tcase(suite, tiny);
	suite_add_tcase(suite, random);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	run = srunner_ntests_run(runner);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	printf("%d passed, %d failed, 0 skipped\n", run - failed, failed);
	return run > 0 && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

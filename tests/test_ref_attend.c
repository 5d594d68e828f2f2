/*
 * Attention in both arithmetics against the plain formula in long double: grouped heads, window,
 * cap, mask, lengths across chunks, both layouts of k, f16 caches.  What a row does not see
 * is NaN, so that one look at it shows.
 */
#include "tests/tensors.h"

#include "ir/attend.h"
#include "ir/dots.h"
#include "tests/suites.h"

#include <math.h>
#include <string.h>

enum { TOKENS = 3, HEADS = 6, GROUPS = 2, SIZE = 20, WIDTH = 12, POSITIONS = 400 };

struct attention {
	struct pawl_attrs attrs;
	struct pawl_tensor in[5];
	int n_inputs;
	bool exact;
};

static bool
is_seen(const struct attention *a, int64_t offset, int64_t length, int64_t t, int64_t p)
{
	int64_t at = offset + t;

	if (p >= length || (a->attrs.causal && p > at))
		return false;
	return a->attrs.window == 0 || p > at - a->attrs.window;
}

static void
set_up(struct attention *a, enum pawl_dtype dtype, bool k16, int64_t offset)
{
	*a = (struct attention){.attrs = pawl_attrs_default(), .n_inputs = 4};
	a->attrs.scale = 0.3;
	a->in[0] = pawl_test_tensor(PAWL_DTYPE_F32, 3, PAWL_DIMS(TOKENS, HEADS, SIZE));
	a->in[1] = k16 ? pawl_test_k16(dtype, PAWL_DIMS(1, GROUPS, POSITIONS, SIZE))
		       : pawl_test_tensor(dtype, 4, PAWL_DIMS(1, GROUPS, POSITIONS, SIZE));
	a->in[2] = pawl_test_tensor(dtype, 4, PAWL_DIMS(1, GROUPS, POSITIONS, WIDTH));
	a->in[3] = pawl_test_int(offset);
	a->in[4] = pawl_test_tensor(PAWL_DTYPE_F32, 2, PAWL_DIMS(TOKENS, POSITIONS));
	pawl_test_fill(&a->in[0], 2.0);
	pawl_test_fill(&a->in[1], 2.0);
	pawl_test_fill(&a->in[2], 1.0);
	pawl_test_fill(&a->in[4], 1.0);
}

/* NaN at every position that no row sees, and in the mask where its own row does not. */
static void
poison(struct attention *a, int64_t offset, int64_t length)
{
	int64_t g, p, t, i;

	for (p = 0; p < POSITIONS; p++) {
		bool any = false;

		for (t = 0; t < TOKENS; t++) {
			bool seen = is_seen(a, offset, length, t, p);

			if (!seen)
				pawl_test_set(&a->in[4], t * POSITIONS + p, NAN);
			any |= seen;
		}
		for (g = 0; g < GROUPS && !any; g++) {
			for (i = 0; i < SIZE; i++)
				pawl_test_set(&a->in[1], (g * POSITIONS + p) * SIZE + i, NAN);
			for (i = 0; i < WIDTH; i++)
				pawl_test_set(&a->in[2], (g * POSITIONS + p) * WIDTH + i, NAN);
		}
	}
}

static long double
score(const struct attention *a, int64_t t, int64_t h, int64_t p)
{
	int64_t g = h / (HEADS / GROUPS), i;
	long double s = 0;

	for (i = 0; i < SIZE; i++)
		s += (long double)pawl_test_get(&a->in[0], (t * HEADS + h) * SIZE + i) *
		     pawl_test_get(&a->in[1], (g * POSITIONS + p) * SIZE + i);
	s *= a->attrs.scale;
	if (a->attrs.softcap > 0)
		s = a->attrs.softcap * tanhl(s / a->attrs.softcap);
	return a->n_inputs == 5 ? s + pawl_test_get(&a->in[4], t * POSITIONS + p) : s;
}

static void
check_row(const struct attention *a, const struct pawl_tensor *out, int64_t offset, int64_t length,
	int64_t t, int64_t h)
{
	long double sum = 0, want[WIDTH] = {0};
	int64_t g = h / (HEADS / GROUPS), p, i;

	for (p = 0; p < POSITIONS; p++) {
		long double e;

		if (!is_seen(a, offset, length, t, p))
			continue;
		e = expl(score(a, t, h, p));
		sum += e;
		for (i = 0; i < WIDTH; i++)
			want[i] += e * pawl_test_get(&a->in[2], (g * POSITIONS + p) * WIDTH + i);
	}
	for (i = 0; i < WIDTH; i++) {
		double got = pawl_test_get(out, (t * HEADS + h) * WIDTH + i);

		if (sum == 0)
			ck_assert(got == 0);
		else
			ck_assert_msg(fabsl(got - want[i] / sum) < (a->exact ? 1e-13 : 4e-6),
				"got %.9g, want %.9Lg", got, want[i] / sum);
	}
}

static void
check(struct attention *a, int64_t offset, int64_t length)
{
	struct pawl_tensor out;
	struct pawl_error err = {0};
	int64_t t, h;

	for (int exact = 0; exact < 2; exact++) {
		a->exact = exact;
		out = exact ? pawl_test_wide(3, PAWL_DIMS(TOKENS, HEADS, WIDTH))
			    : pawl_test_tensor(PAWL_DTYPE_F32, 3, PAWL_DIMS(TOKENS, HEADS, WIDTH));
		ck_assert_msg(pawl_test_call(exact, PAWL_OP_ATTENTION, &a->attrs, a->in,
				      a->n_inputs, &out, &err) == PAWL_OK,
			"%s", err.text);
		for (t = 0; t < TOKENS; t++) {
			for (h = 0; h < HEADS; h++)
				check_row(a, &out, offset, length, t, h);
		}
	}
}

START_TEST(causal_rows_see_what_came_before)
{
	static const int64_t offsets[] = {0, 1, 15, 16, 125, 126, 127, 128, 254, 397};
	struct attention a;
	size_t i;

	for (i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		set_up(&a, i % 2 ? PAWL_DTYPE_F16 : PAWL_DTYPE_F32, i % 3 == 0, offsets[i]);
		poison(&a, offsets[i], POSITIONS);
		check(&a, offsets[i], POSITIONS);
	}
}
END_TEST

START_TEST(a_window_hides_the_past)
{
	static const int64_t windows[] = {1, 3, 128, 130, 1000};
	struct attention a;
	size_t i;

	for (i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
		set_up(&a, PAWL_DTYPE_F32, i % 2, 300);
		a.attrs.window = windows[i];
		poison(&a, 300, POSITIONS);
		check(&a, 300, POSITIONS);
	}
}
END_TEST

START_TEST(all_is_seen_when_not_causal)
{
	struct attention a;

	set_up(&a, PAWL_DTYPE_BF16, false, 7);
	a.attrs.causal = false;
	check(&a, 7, POSITIONS);
}
END_TEST

START_TEST(caps_and_masks_change_the_scores)
{
	struct attention a;
	int64_t i;

	set_up(&a, PAWL_DTYPE_F32, false, 200);
	a.attrs.softcap = 1.5;
	check(&a, 200, POSITIONS);
	a.n_inputs = 5;
	for (i = 0; i < 150; i++)
		pawl_test_set(&a.in[4], i, -INFINITY);
	poison(&a, 200, POSITIONS);
	check(&a, 200, POSITIONS);
}
END_TEST

START_TEST(a_row_that_sees_nothing_is_zero)
{
	struct attention a;
	int64_t i;

	/* By its mask. */
	set_up(&a, PAWL_DTYPE_F32, false, 200);
	a.n_inputs = 5;
	for (i = 0; i < POSITIONS; i++)
		pawl_test_set(&a.in[4], POSITIONS + i, -INFINITY);
	check(&a, 200, POSITIONS);
	/* By its window, which lies beyond the cache for all rows but the first. */
	set_up(&a, PAWL_DTYPE_F32, false, POSITIONS + 9);
	a.attrs.window = 11;
	poison(&a, POSITIONS + 9, POSITIONS);
	check(&a, POSITIONS + 9, POSITIONS);
}
END_TEST

static struct pawl_tensor
as_floats(const struct pawl_tensor *t)
{
	struct pawl_tensor out = pawl_test_tensor(PAWL_DTYPE_F32, t->rank, t->dim);

	pawl_tensor_copy(t, &out);
	return out;
}

/* From blocks, bit for bit what it is from the numbers that they stand for. */
START_TEST(blocks_are_the_numbers_they_stand_for)
{
	enum { D = 64, V = 32, N = 144 };
	struct attention a = {.attrs = pawl_attrs_default()};
	bool exact = _i / 2;
	struct pawl_tensor x = pawl_test_tensor(PAWL_DTYPE_F32, 4, PAWL_DIMS(1, GROUPS, N, D));
	struct pawl_tensor out[2];

	a.attrs.scale = 0.2;
	a.in[0] = pawl_test_tensor(PAWL_DTYPE_F32, 3, PAWL_DIMS(TOKENS, HEADS, D));
	a.in[1] = _i % 2 ? pawl_test_k16(PAWL_DTYPE_Q8_0, x.dim)
			 : pawl_test_tensor(PAWL_DTYPE_Q8_0, 4, x.dim);
	a.in[2] = pawl_test_tensor(PAWL_DTYPE_Q8_0, 4, PAWL_DIMS(1, GROUPS, N, V));
	a.in[3] = pawl_test_int(N - TOKENS);
	pawl_test_fill(&a.in[0], 2.0);
	pawl_test_fill(&x, 2.0);
	pawl_test_fill(&a.in[2], 1.0);
	pawl_test_run(false, PAWL_OP_QUANTIZE,
		&(struct pawl_attrs){.dtype = PAWL_DTYPE_Q8_0, .sym = -1}, &x, 1, &a.in[1]);
	for (int i = 0; i < 2; i++) {
		out[i] = exact ? pawl_test_wide(3, PAWL_DIMS(TOKENS, HEADS, V))
			       : pawl_test_tensor(PAWL_DTYPE_F32, 3, PAWL_DIMS(TOKENS, HEADS, V));
		pawl_test_run(exact, PAWL_OP_ATTENTION, &a.attrs, a.in, 4, &out[i]);
		a.in[1] = as_floats(&a.in[1]);
		a.in[2] = as_floats(&a.in[2]);
	}
	for (int64_t i = 0; i < GROUPS * N * D; i++)
		pawl_test_near(
			pawl_test_get(&a.in[1], i), pawl_test_get(&x, i), 2.0 / 254 + 2.0 / 2048);
	for (int64_t i = 0; i < TOKENS * HEADS * V; i++) {
		double got = pawl_test_get(&out[0], i);

		ck_assert_double_ne(got, 0.0);
		ck_assert_double_eq(got, pawl_test_get(&out[1], i));
	}
}
END_TEST

START_TEST(a_symbol_bounds_the_positions)
{
	struct attention a;
	struct pawl_tensor out =
		pawl_test_tensor(PAWL_DTYPE_F32, 3, PAWL_DIMS(TOKENS, HEADS, WIDTH));
	_Alignas(16) char scratch[64 * 1024];
	struct pawl_ref_call call = {
		.inputs = a.in, .n_inputs = 4, .out = &out, .scratch = scratch};
	struct pawl_error err;
	int64_t lengths[] = {0, 1, 128, 129, 300}, t, h;
	size_t i;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		set_up(&a, PAWL_DTYPE_F32, true, 350);
		poison(&a, 350, lengths[i]);
		a.attrs.sym = 0;
		call.attrs = &a.attrs;
		call.sym = lengths[i];
		ck_assert_int_eq(pawl_ref_ATTENTION(&call, &err), PAWL_OK);
		for (t = 0; t < TOKENS; t++) {
			for (h = 0; h < HEADS; h++)
				check_row(&a, &out, 350, lengths[i], t, h);
		}
	}
	call.sym = POSITIONS + 1;
	ck_assert_int_eq(pawl_ref_ATTENTION(&call, &err), PAWL_CAPACITY);
}
END_TEST

START_TEST(offsets_out_of_range_are_refused)
{
	struct attention a;
	struct pawl_tensor out =
		pawl_test_tensor(PAWL_DTYPE_F32, 3, PAWL_DIMS(TOKENS, HEADS, WIDTH));
	struct pawl_error err;

	set_up(&a, PAWL_DTYPE_F32, false, -1);
	ck_assert_int_eq(pawl_test_call(false, PAWL_OP_ATTENTION, &a.attrs, a.in, 4, &out, &err),
		PAWL_INVALID_ARGUMENT);
	pawl_tensor_store_i64(&a.in[3], 0, INT64_MAX);
	ck_assert_int_eq(pawl_test_call(true, PAWL_OP_ATTENTION, &a.attrs, a.in, 4, &out, &err),
		PAWL_INVALID_ARGUMENT);
}
END_TEST

/* Rows are independent, and so is the layout: bits, not bounds. */
START_TEST(layout_and_neighbours_change_no_bit)
{
	struct attention a, b;
	struct pawl_tensor all =
		pawl_test_tensor(PAWL_DTYPE_F32, 3, PAWL_DIMS(TOKENS, HEADS, WIDTH));
	struct pawl_tensor one = pawl_test_tensor(PAWL_DTYPE_F32, 3, PAWL_DIMS(1, HEADS, WIDTH));
	size_t row = HEADS * WIDTH * sizeof(float);
	int64_t t;

	set_up(&a, PAWL_DTYPE_F16, false, 255);
	ck_assert_int_eq(
		pawl_test_call(false, PAWL_OP_ATTENTION, &a.attrs, a.in, 4, &all, NULL), PAWL_OK);
	b = a;
	b.in[1] = pawl_test_k16(PAWL_DTYPE_F16, a.in[1].dim);
	pawl_tensor_copy(&a.in[1], &b.in[1]);
	for (t = 0; t < TOKENS; t++) {
		pawl_tensor_slice(
			&a.in[0], PAWL_DIMS(t, 0, 0), PAWL_DIMS(t + 1, HEADS, SIZE), &b.in[0]);
		b.in[3] = pawl_test_int(255 + t);
		ck_assert_int_eq(
			pawl_test_call(false, PAWL_OP_ATTENTION, &b.attrs, b.in, 4, &one, NULL),
			PAWL_OK);
		ck_assert_mem_eq(one.data, all.data + (size_t)t * row, row);
	}
}
END_TEST

/* Positions 70 .. 300 are the chunks 70 .. 127, 128 .. 255, 256 .. 300: the bits of just these. */
START_TEST(chunks_lie_at_multiples_of_128)
{
	static const int64_t edges[] = {70, 128, 256, 301};
	struct pawl_tensor out =
		pawl_test_tensor(PAWL_DTYPE_F32, 3, PAWL_DIMS(TOKENS, HEADS, WIDTH));
	float scores[PAWL_ATTEND_CHUNK], o[2][WIDTH];
	struct pawl_attend_part total = {.o = o[0]}, part = {.o = o[1]};
	struct attention a;
	const float *q, *k, *v;
	int64_t p;
	int c;

	set_up(&a, PAWL_DTYPE_F32, false, 300);
	a.attrs.window = 231;
	ck_assert_int_eq(
		pawl_test_call(false, PAWL_OP_ATTENTION, &a.attrs, a.in, 4, &out, NULL), PAWL_OK);
	q = (const float *)(const void *)a.in[0].data;
	k = (const float *)(const void *)a.in[1].data;
	v = (const float *)(const void *)a.in[2].data;
	for (c = 0; c < 3; c++) {
		int n = (int)(edges[c + 1] - edges[c]);

		for (p = edges[c]; p < edges[c + 1]; p++)
			scores[p - edges[c]] = pawl_attend_score(
				pawl_dot_float(PAWL_DTYPE_F32, k + p * SIZE, q, SIZE),
				(float)a.attrs.scale, 0);
		pawl_attend_chunk(edges[c], n, scores, v + edges[c] * WIDTH, WIDTH, WIDTH,
			c ? &part : &total);
		if (c)
			pawl_attend_merge(&total, &part, WIDTH);
	}
	pawl_attend_finish(&total, WIDTH, o[0]);
	ck_assert_mem_eq(out.data, o[0], sizeof(o[0]));
}
END_TEST

Suite *
pawl_ref_attend_suite(void)
{
	Suite *suite = suite_create("ref_attend");
	TCase *tcase = tcase_create("ref_attend");

	tcase_add_checked_fixture(tcase, pawl_tensors_begin, pawl_tensors_end);
	tcase_add_test(tcase, causal_rows_see_what_came_before);
	tcase_add_test(tcase, a_window_hides_the_past);
	tcase_add_test(tcase, all_is_seen_when_not_causal);
	tcase_add_test(tcase, caps_and_masks_change_the_scores);
	tcase_add_test(tcase, a_row_that_sees_nothing_is_zero);
	tcase_add_loop_test(tcase, blocks_are_the_numbers_they_stand_for, 0, 4);
	tcase_add_test(tcase, a_symbol_bounds_the_positions);
	tcase_add_test(tcase, offsets_out_of_range_are_refused);
	tcase_add_test(tcase, layout_and_neighbours_change_no_bit);
	tcase_add_test(tcase, chunks_lie_at_multiples_of_128);
	suite_add_tcase(suite, tcase);
	return suite;
}

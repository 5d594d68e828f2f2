/* Row reductions, norms, softmax, argmax, rope and attention. */
#include "ir/attend.h"
#include "ir/eval.h"
#include "ir/half.h"
#include "ir/rowops.h"
#include "tests/arithmetic_cases.h"
#include "tests/fpenv_fixture.h"
#include "tests/suites.h"

#include <math.h>
#include <string.h>

#define N PAWL_ROW_CASE_N
#define POSITIONS PAWL_ATTEND_CASE_N
#define WIDTH PAWL_ATTEND_CASE_WIDTH

static void
fill(float *x, int n, uint32_t *seed)
{
	int i;

	for (i = 0; i < n; i++)
		x[i] = pawl_case_value(seed);
}

static void
check_bits(const float *y, const uint32_t *bits, int n)
{
	int i;

	for (i = 0; i < n; i++)
		ck_assert_uint_eq(pawl_f32_bits(y[i]), bits[i]);
}

START_TEST(rows_equal_the_rational_evaluation)
{
	uint32_t seed = 55;
	float x[N], w[N], b[N], y[N], most;
	int i;

	fill(x, N, &seed);
	fill(w, N, &seed);
	fill(b, N, &seed);
	ck_assert_uint_eq(pawl_f32_bits(pawl_row_sum(x, N)), pawl_row_case.sum);
	ck_assert_uint_eq(pawl_f32_bits(pawl_row_sum_squares(x, N)), pawl_row_case.sum_squares);
	pawl_row_rms_norm(x, w, N, 1e-5f, y);
	check_bits(y, pawl_row_case.rms_norm, N);
	pawl_row_layer_norm(x, w, b, N, 1e-5f, y);
	check_bits(y, pawl_row_case.layer_norm, N);
	pawl_row_softmax(x, N, y);
	check_bits(y, pawl_row_case.softmax, N);
	for (most = x[0], i = 1; i < N; i++)
		most = x[i] > most ? x[i] : most;
	ck_assert(pawl_row_max(x, N) == most);
	/* In place. */
	pawl_row_softmax(x, N, x);
	check_bits(x, pawl_row_case.softmax, N);
}
END_TEST

START_TEST(lanes_are_strided_and_the_tree_is_fixed)
{
	float x[20] = {0};
	float lanes[PAWL_LANES] = {0};

	/* Lane 0 holds 1 and then loses 2^-25 twice; kept apart they would have counted. */
	x[0] = 1.0f;
	x[16] = 0x1p-25f;
	x[8] = 0x1p-25f;
	x[1] = 0x1p-24f;
	ck_assert(pawl_row_sum(x, 20) == 1.0f);
	x[8] = 0x1p-24f;
	x[1] = 0.0f;
	x[4] = 0x1p-24f;
	x[12] = 0x1p-24f;
	/* 1 + 2^-24 stays 1 (even); 2^-24 + 2^-24 = 2^-23 then counts. */
	ck_assert(pawl_row_sum(x, 20) == 1.0f + 0x1p-23f);
	lanes[3] = 5.0f;
	ck_assert(pawl_lanes_sum(lanes) == 5.0f);
	ck_assert(pawl_row_max(x + 17, 1) == 0.0f);
}
END_TEST

START_TEST(softmax_has_edges)
{
	float x[20], y[20];
	int i;

	for (i = 0; i < 20; i++)
		x[i] = -INFINITY;
	pawl_row_softmax(x, 20, y);
	for (i = 0; i < 20; i++)
		ck_assert(pawl_f32_bits(y[i]) == 0);
	x[7] = -1e30f;
	pawl_row_softmax(x, 20, y);
	for (i = 0; i < 20; i++)
		ck_assert(y[i] == (i == 7 ? 1.0f : 0.0f));
	x[3] = NAN;
	pawl_row_softmax(x, 20, y);
	for (i = 0; i < 20; i++)
		ck_assert(isnan(y[i]));
	for (i = 0; i < 20; i++)
		x[i] = i == 5 ? NAN : -INFINITY;
	pawl_row_softmax(x, 20, y);
	for (i = 0; i < 20; i++)
		ck_assert(isnan(y[i]));
	x[5] = INFINITY;
	pawl_row_softmax(x, 20, y);
	ck_assert(isnan(y[0]) && isnan(y[5]));
}
END_TEST

START_TEST(argmax_takes_the_lowest_and_refuses_nan)
{
	float x[40];
	int i;

	for (i = 0; i < 40; i++)
		x[i] = -1.0f;
	x[33] = x[17] = 4.0f;
	ck_assert_int_eq(pawl_row_argmax(x, 40), 17);
	x[2] = INFINITY;
	ck_assert_int_eq(pawl_row_argmax(x, 40), 2);
	x[39] = NAN;
	ck_assert_int_eq(pawl_row_argmax(x, 40), -1);
	x[0] = NAN;
	ck_assert_int_eq(pawl_row_argmax(x, 1), -1);
	for (i = 0; i < 40; i++)
		x[i] = -INFINITY;
	ck_assert_int_eq(pawl_row_argmax(x, 40), 0);
	x[0] = -0.0f;
	x[1] = 0.0f;
	ck_assert_int_eq(pawl_row_argmax(x, 40), 0);
}
END_TEST

START_TEST(rope_products_are_rounded_apart)
{
	/* c x0 = 1 + 2^-22 + 2^-46; with an fma the last term would survive the subtraction. */
	float x[2] = {0x1.000002p0f, 0x1.000004p0f}, y[2];

	pawl_rope_pair(0x1.000002p0f, 1.0f, x, y);
	ck_assert(y[0] == 0.0f);
	pawl_rope_pair(0.0f, 1.0f, x, x);
	ck_assert(x[0] == -0x1.000004p0f && x[1] == 0x1.000002p0f);
}
END_TEST

/* Attention over n visible positions from `first` on, as a caller strings the chunks together. */
static void
attend(int first, int n, const float *scores, const float *values, float *y)
{
	float o[2][WIDTH];
	struct pawl_attend_part total = {.o = o[0]}, part = {.o = o[1]};
	int at, end;

	for (at = 0; at < n; at = end) {
		end = at + PAWL_ATTEND_CHUNK - (first + at) % PAWL_ATTEND_CHUNK;
		end = end < n ? end : n;
		pawl_attend_chunk(first + at, end - at, scores + at, values + at * WIDTH, WIDTH,
			WIDTH, at ? &part : &total);
		if (at)
			pawl_attend_merge(&total, &part, WIDTH);
	}
	pawl_attend_finish(&total, WIDTH, y);
}

START_TEST(attention_equals_the_rational_evaluation)
{
	static float scores[POSITIONS], values[POSITIONS * WIDTH];
	uint32_t seed = 77;
	float y[WIDTH];

	fill(scores, POSITIONS, &seed);
	fill(values, POSITIONS * WIDTH, &seed);
	attend(PAWL_ATTEND_CASE_FIRST, POSITIONS, scores, values, y);
	check_bits(y, pawl_row_case.attend, WIDTH);
}
END_TEST

START_TEST(attention_is_near_the_f64_softmax)
{
	static float scores[POSITIONS], values[POSITIONS * WIDTH];
	uint32_t seed = 78;
	float y[WIDTH];
	int d, i;

	fill(scores, POSITIONS, &seed);
	fill(values, POSITIONS * WIDTH, &seed);
	attend(3, POSITIONS, scores, values, y);
	for (d = 0; d < WIDTH; d++) {
		double sum = 0.0, weighted = 0.0;

		for (i = 0; i < POSITIONS; i++) {
			sum += exp((double)scores[i]);
			weighted += exp((double)scores[i]) * values[i * WIDTH + d];
		}
		ck_assert_double_le(fabs(y[d] - weighted / sum), 2e-6);
	}
}
END_TEST

START_TEST(masked_positions_count_for_nothing)
{
	static float scores[POSITIONS], values[POSITIONS * WIDTH];
	uint32_t seed = 79;
	float y[WIDTH], masked[WIDTH];
	int i;

	fill(scores, POSITIONS, &seed);
	fill(values, POSITIONS * WIDTH, &seed);
	/* Only positions 128 .. 255 are left: one chunk, the others all -inf. */
	attend(128, 128, scores + 128, values + 128 * WIDTH, y);
	for (i = 0; i < POSITIONS; i++) {
		if (i < 128 || i >= 256)
			scores[i] = -INFINITY;
	}
	attend(0, POSITIONS, scores, values, masked);
	for (i = 0; i < WIDTH; i++)
		ck_assert(y[i] == masked[i]);
	for (i = 0; i < POSITIONS; i++)
		scores[i] = -INFINITY;
	attend(0, POSITIONS, scores, values, masked);
	for (i = 0; i < WIDTH; i++)
		ck_assert(pawl_f32_bits(masked[i]) == 0);
	scores[200] = NAN;
	attend(0, POSITIONS, scores, values, masked);
	for (i = 0; i < WIDTH; i++)
		ck_assert(isnan(masked[i]));
}
END_TEST

START_TEST(scores_are_scaled_then_capped)
{
	ck_assert(pawl_attend_score(3.0f, 0.125f, 0.0f) == 0.375f);
	ck_assert(pawl_attend_score(3.0f, 0.125f, 50.0f) == 50.0f * pawl_eval_tanh(0.375f / 50.0f));
	ck_assert(pawl_attend_score(1e20f, 1.0f, 30.0f) == 30.0f);
}
END_TEST

Suite *
pawl_rowops_suite(void)
{
	Suite *suite = suite_create("rowops");
	TCase *tcase = tcase_create("rowops");

	tcase_add_checked_fixture(tcase, enter, leave);
	tcase_add_test(tcase, rows_equal_the_rational_evaluation);
	tcase_add_test(tcase, lanes_are_strided_and_the_tree_is_fixed);
	tcase_add_test(tcase, softmax_has_edges);
	tcase_add_test(tcase, argmax_takes_the_lowest_and_refuses_nan);
	tcase_add_test(tcase, rope_products_are_rounded_apart);
	tcase_add_test(tcase, attention_equals_the_rational_evaluation);
	tcase_add_test(tcase, attention_is_near_the_f64_softmax);
	tcase_add_test(tcase, masked_positions_count_for_nothing);
	tcase_add_test(tcase, scores_are_scaled_then_capped);
	suite_add_tcase(suite, tcase);
	return suite;
}

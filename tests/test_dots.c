/* Dot products of weight rows with activations. */
#include "ir/decode.h"
#include "ir/dots.h"
#include "ir/half.h"
#include "ir/quantize.h"
#include "tests/arithmetic_cases.h"
#include "tests/fpenv_fixture.h"
#include "tests/suites.h"

#include <math.h>
#include <string.h>

#define MOST 512

static void
fill(float *x, int n, uint32_t seed)
{
	int i;

	for (i = 0; i < n; i++)
		x[i] = pawl_case_value(&seed);
}

START_TEST(quantized_dots_equal_the_rational_evaluation)
{
	const struct pawl_block_case *c = &pawl_block_cases[_i];
	float x[MOST];
	struct pawl_block_a16 a16[MOST / 32];
	struct pawl_block_a8 a8[MOST / 32];

	fill(x, MOST, c->seed);
	pawl_quantize_a16(x, c->n, a16);
	pawl_quantize_a8(x, c->n, a8);
	ck_assert_uint_eq(pawl_f32_bits(pawl_dot_a16(c->dtype, c->bytes, a16, c->n)), c->dot_a16);
	ck_assert_uint_eq(pawl_f32_bits(pawl_dot_a8(c->dtype, c->bytes, a8, c->n)), c->dot_a8);
}
END_TEST

START_TEST(quantized_dots_are_near_the_f64_dot)
{
	const struct pawl_block_case *c = &pawl_block_cases[_i];
	float x[MOST];
	double w[MOST], q[MOST], exact = 0.0, exact_x = 0.0, size = 0.0;
	struct pawl_block_a16 a16[MOST / 32];
	double y;
	int i;

	fill(x, MOST, c->seed + 1);
	pawl_quantize_a16(x, c->n, a16);
	pawl_decode_f64(c->dtype, c->bytes, c->n, w);
	pawl_decode_f64(PAWL_DTYPE_A16, a16, c->n, q);
	for (i = 0; i < c->n; i++) {
		exact += w[i] * q[i];
		exact_x += w[i] * x[i];
		size += fabs(w[i] * q[i]);
	}
	y = pawl_dot_a16(c->dtype, c->bytes, a16, c->n);
	/* A handful of roundings of the scaled sums of a block. */
	ck_assert_double_le(fabs(y - exact), size * 8 * 0x1p-24);
	ck_assert_double_le(fabs(y - exact_x), size * 4 / 16256);
}
END_TEST

/* With d = 0 only the offset is left, rounded in the specified order. */
START_TEST(the_offset_meets_the_scaled_sum)
{
	uint8_t w[20] = {0};
	float x[32];
	struct pawl_block_a16 a16;
	int other = 0, i;

	for (i = 0; i < 64; i++) {
		uint16_t m = (uint16_t)(0x3000 + 37 * i);
		float offset = pawl_f32_from_f16(m);
		float y;

		fill(x, 32, 500 + (uint32_t)i);
		pawl_quantize_a16(x, 32, &a16);
		memcpy(w + 2, &m, sizeof(m));
		y = pawl_dot_a16(PAWL_DTYPE_Q4_1, w, &a16, 32);
		ck_assert(y == offset * (a16.d * (float)a16.sum));
		other += y != offset * a16.d * (float)a16.sum;
	}
	ck_assert_int_gt(other, 8);
}
END_TEST

START_TEST(the_integer_sum_does_not_overflow)
{
	uint8_t w[34] = {0x00, 0x3c}; /* d = 1 */
	float x[32];
	struct pawl_block_a16 a16;
	int i;

	memset(w + 2, 0x80, 32); /* -128 */
	for (i = 0; i < 32; i++)
		x[i] = -16256.0f;
	pawl_quantize_a16(x, 32, &a16);
	ck_assert(pawl_dot_a16(PAWL_DTYPE_Q8_0, w, &a16, 32) == 32.0f * 128 * 16256);
}
END_TEST

START_TEST(a_spoilt_block_spoils_the_result)
{
	const struct pawl_block_case *c = &pawl_block_cases[_i];
	float x[MOST];
	struct pawl_block_a16 a16[MOST / 32];
	struct pawl_block_a8 a8[MOST / 32];

	fill(x, MOST, c->seed);
	x[40] = INFINITY;
	pawl_quantize_a16(x, c->n, a16);
	pawl_quantize_a8(x, c->n, a8);
	ck_assert(isnan(pawl_dot_a16(c->dtype, c->bytes, a16, c->n)));
	ck_assert(isnan(pawl_dot_a8(c->dtype, c->bytes, a8, c->n)));
}
END_TEST

START_TEST(float_dots_are_one_ascending_chain)
{
	float w[300], x[300];
	uint16_t halves[300];
	float acc = 0.0f;
	int i;

	fill(w, 300, 1);
	fill(x, 300, 2);
	for (i = 0; i < 300; i++)
		acc = fmaf(w[i], x[i], acc);
	ck_assert(pawl_dot_float(PAWL_DTYPE_F32, w, x, 300) == acc);
	pawl_encode(PAWL_DTYPE_F16, w, 300, halves);
	for (acc = 0.0f, i = 0; i < 300; i++)
		acc = fmaf(pawl_f32_from_f16(halves[i]), x[i], acc);
	ck_assert(pawl_dot_float(PAWL_DTYPE_F16, halves, x, 300) == acc);
	pawl_encode(PAWL_DTYPE_BF16, w, 300, halves);
	for (acc = 0.0f, i = 0; i < 300; i++)
		acc = fmaf(pawl_f32_from_bf16(halves[i]), x[i], acc);
	ck_assert(pawl_dot_float(PAWL_DTYPE_BF16, halves, x, 300) == acc);
}
END_TEST

Suite *
pawl_dots_suite(void)
{
	Suite *suite = suite_create("dots");
	TCase *tcase = tcase_create("dots");

	tcase_add_checked_fixture(tcase, enter, leave);
	tcase_add_loop_test(
		tcase, quantized_dots_equal_the_rational_evaluation, 0, PAWL_N_BLOCK_CASES);
	tcase_add_loop_test(tcase, quantized_dots_are_near_the_f64_dot, 0, PAWL_N_BLOCK_CASES);
	tcase_add_test(tcase, the_offset_meets_the_scaled_sum);
	tcase_add_test(tcase, the_integer_sum_does_not_overflow);
	tcase_add_loop_test(tcase, a_spoilt_block_spoils_the_result, 0, PAWL_N_BLOCK_CASES);
	tcase_add_test(tcase, float_dots_are_one_ascending_chain);
	suite_add_tcase(suite, tcase);
	return suite;
}

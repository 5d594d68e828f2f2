/* Activation quantizers, values rounded to a stored type, and the weight quantizers of tests. */
#include "ir/decode.h"
#include "ir/eval_consts.h"
#include "ir/half.h"
#include "ir/quantize.h"
#include "tests/arithmetic_cases.h"
#include "tests/fpenv_fixture.h"
#include "tests/quantize_weights.h"
#include "tests/suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int
a16_value(const struct pawl_block_a16 *block, int i)
{
	return 128 * block->hi[i] + block->lo[i];
}

static void
fill(float *x, int n, uint32_t seed, float scale)
{
	int i;

	for (i = 0; i < n; i++)
		x[i] = pawl_case_value(&seed) * scale;
}

START_TEST(a16_is_within_half_a_step)
{
	static const float scales[] = {1.0f, 1e-20f, 1e30f, 0x1.fp-103f, 0x1p125f, 0.001f};
	float x[32 * 64];
	struct pawl_block_a16 blocks[64];
	int b, i;

	fill(x, 32 * 64, 11 + (uint32_t)_i, scales[_i]);
	pawl_quantize_a16(x, 32 * 64, blocks);
	for (b = 0; b < 64; b++) {
		float amax = 0.0f;
		int sum = 0, most = 0;

		for (i = 0; i < 32; i++)
			amax = fmaxf(amax, fabsf(x[32 * b + i]));
		if (amax < 0x1p-100f)
			continue;
		ck_assert(blocks[b].d == amax / 16256.0f);
		for (i = 0; i < 32; i++) {
			double value = (double)blocks[b].d * a16_value(&blocks[b], i);

			/* Half a step, and three roundings of at most 16256 steps. */
			ck_assert_double_le(fabs(value - x[32 * b + i]),
				blocks[b].d * (0.5 + 16256 * 3 * 0x1p-24));
			ck_assert(blocks[b].lo[i] >= -64 && blocks[b].lo[i] <= 63);
			if (abs(a16_value(&blocks[b], i)) > most)
				most = abs(a16_value(&blocks[b], i));
			sum += a16_value(&blocks[b], i);
		}
		ck_assert_int_eq(most, 16256);
		ck_assert_int_eq(sum, blocks[b].sum);
	}
}
END_TEST

START_TEST(a8_is_within_half_a_step)
{
	float x[32 * 64];
	struct pawl_block_a8 blocks[64];
	int b, i;

	fill(x, 32 * 64, 5, 3.0f);
	pawl_quantize_a8(x, 32 * 64, blocks);
	for (b = 0; b < 64; b++) {
		int sum = 0, most = 0;

		for (i = 0; i < 32; i++) {
			ck_assert_double_le(
				fabs((double)blocks[b].d * blocks[b].q[i] - x[32 * b + i]),
				blocks[b].d * (0.5 + 127 * 3 * 0x1p-24));
			most = abs(blocks[b].q[i]) > most ? abs(blocks[b].q[i]) : most;
			sum += blocks[b].q[i];
		}
		ck_assert_int_eq(most, 127);
		ck_assert_int_eq(sum, blocks[b].sum);
	}
}
END_TEST

START_TEST(quantizing_rounds_halves_to_even)
{
	float x[32] = {16256.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 64.0f, 63.0f, -64.0f, -65.0f};
	static const int expected[] = {16256, 0, 2, 2, 0, -2, 64, 63, -64, -65, 0};
	struct pawl_block_a16 block;
	int i;

	pawl_quantize_a16(x, 32, &block);
	ck_assert(block.d == 1.0f);
	for (i = 0; i < 11; i++)
		ck_assert_int_eq(a16_value(&block, i), expected[i]);
	ck_assert(block.hi[6] == 1 && block.lo[6] == -64 && block.hi[7] == 0 && block.lo[7] == 63);
	ck_assert(block.hi[8] == 0 && block.lo[8] == -64 && block.hi[9] == -1 && block.lo[9] == 63);
	x[0] = -16256.0f;
	pawl_quantize_a16(x, 32, &block);
	ck_assert(block.hi[0] == -127 && block.lo[0] == 0 && block.d == 1.0f);
}
END_TEST

START_TEST(a_value_that_is_not_finite_spoils_its_block)
{
	static const uint32_t bad[] = {0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffffffff};
	float x[64];
	struct pawl_block_a16 a16[2];
	struct pawl_block_a8 a8[2];
	uint8_t q8[2 * 34];
	int i;

	fill(x, 64, 1, 1.0f);
	x[32 + _i * 7] = pawl_f32_from_bits(bad[_i]);
	pawl_quantize_a16(x, 64, a16);
	pawl_quantize_a8(x, 64, a8);
	pawl_encode(PAWL_DTYPE_Q8_0, x, 64, q8);
	ck_assert(isfinite(a16[0].d) && isnan(a16[1].d) && a16[1].sum == 0);
	ck_assert(isfinite(a8[0].d) && isnan(a8[1].d) && a8[1].sum == 0);
	ck_assert(isnan(pawl_f32_from_f16((uint16_t)(q8[34] | q8[35] << 8))));
	for (i = 0; i < 32; i++)
		ck_assert(!a16[1].hi[i] && !a16[1].lo[i] && !a8[1].q[i] && !q8[36 + i]);
}
END_TEST

START_TEST(small_blocks_are_zero)
{
	static const float largest[] = {0.0f, 0x1p-149f, 0x1p-126f, 0x1.fffffep-101f};
	float x[32] = {0};
	struct pawl_block_a16 a16;
	struct pawl_block_a8 a8;
	size_t i;

	for (i = 0; i < sizeof(largest) / sizeof(largest[0]); i++) {
		x[3] = -largest[i];
		memset(&a16, 0x55, sizeof(a16));
		memset(&a8, 0x55, sizeof(a8));
		pawl_quantize_a16(x, 32, &a16);
		pawl_quantize_a8(x, 32, &a8);
		ck_assert(pawl_f32_bits(a16.d) == 0 && a16.sum == 0);
		ck_assert(a16.hi[3] == 0 && a16.lo[3] == 0);
		ck_assert(pawl_f32_bits(a8.d) == 0 && a8.sum == 0 && a8.q[3] == 0);
	}
	x[3] = -0x1p-100f;
	pawl_quantize_a16(x, 32, &a16);
	ck_assert(a16.d > 0.0f && a16_value(&a16, 3) == -16256 && a16.sum == -16256);
	pawl_quantize_a8(x, 32, &a8);
	ck_assert(a8.d > 0.0f && a8.q[3] == -127 && a8.sum == -127);
}
END_TEST

START_TEST(stored_types_round)
{
	float x[32] = {1.0f + 0x1p-11f, -0x1.8p-24f, 0x1.03p0f, 127.0f};
	uint16_t halves[32];
	uint8_t q8[34];
	float back[32];

	pawl_encode(PAWL_DTYPE_F16, x, 32, halves);
	ck_assert(halves[0] == 0x3c00 && halves[1] == 0x8002);
	pawl_encode(PAWL_DTYPE_BF16, x, 32, halves);
	ck_assert(halves[0] == 0x3f80 && halves[2] == 0x3f82);
	pawl_encode(PAWL_DTYPE_F32, x, 32, back);
	ck_assert(!memcmp(x, back, sizeof(x)));
	pawl_encode(PAWL_DTYPE_Q8_0, x, 32, q8);
	pawl_decode_f32(PAWL_DTYPE_Q8_0, q8, 32, back);
	ck_assert(back[3] == 127.0f && back[0] == 1.0f && back[1] == 0.0f);
	ck_assert(pawl_can_encode(PAWL_DTYPE_A8) && !pawl_can_encode(PAWL_DTYPE_Q4_0) &&
		  !pawl_can_encode(PAWL_DTYPE_I32));
}
END_TEST

/* Steps of the largest group of a block of values in [-4, 4). */
START_TEST(weights_are_within_their_steps)
{
	static const struct {
		enum pawl_dtype dtype;
		double most;
	} types[] = {
		{PAWL_DTYPE_Q4_0, 4.0 / 8},
		{PAWL_DTYPE_Q4_1, 8.0 / 15 / 2},
		{PAWL_DTYPE_Q5_0, 4.0 / 16},
		{PAWL_DTYPE_Q5_1, 8.0 / 31 / 2},
		{PAWL_DTYPE_Q8_0, 4.0 / 127 / 2},
		{PAWL_DTYPE_Q4_K, 8.0 / 15 / 2},
		{PAWL_DTYPE_Q5_K, 8.0 / 31 / 2},
		{PAWL_DTYPE_Q6_K, 4.0 / 32},
		{PAWL_DTYPE_F16, 0x1p-10},
		{PAWL_DTYPE_BF16, 0x1p-7},
		{PAWL_DTYPE_F32, 0.0},
	};
	float x[1024], y[1024];
	uint8_t bytes[4096];
	double worst = 0.0;
	int i;

	fill(x, 1024, 99, 1.0f);
	pawl_quantize_weights(types[_i].dtype, x, 1024, bytes);
	pawl_decode_f32(types[_i].dtype, bytes, 1024, y);
	for (i = 0; i < 1024; i++)
		worst = fmax(worst, fabs((double)x[i] - y[i]));
	/* The K types round their scales to six or eight bits, too. */
	ck_assert_msg(
		worst <= 1.15 * types[_i].most, "%s: %g", pawl_dtype_name(types[_i].dtype), worst);
	ck_assert(worst >= 0.2 * types[_i].most);
}
END_TEST

START_TEST(weights_of_zero_stay_zero)
{
	static const enum pawl_dtype types[] = {PAWL_DTYPE_Q4_0, PAWL_DTYPE_Q4_1, PAWL_DTYPE_Q5_0,
		PAWL_DTYPE_Q5_1, PAWL_DTYPE_Q8_0, PAWL_DTYPE_Q4_K, PAWL_DTYPE_Q5_K,
		PAWL_DTYPE_Q6_K};
	float x[256] = {0}, y[256];
	uint8_t bytes[1024];
	int i;

	pawl_quantize_weights(types[_i], x, 256, bytes);
	pawl_decode_f32(types[_i], bytes, 256, y);
	for (i = 0; i < 256; i++)
		ck_assert(y[i] == 0.0f);
}
END_TEST

Suite *
pawl_quantize_suite(void)
{
	Suite *suite = suite_create("quantize");
	TCase *tcase = tcase_create("activations");
	TCase *weights = tcase_create("weights");

	tcase_add_checked_fixture(tcase, enter, leave);
	tcase_add_loop_test(tcase, a16_is_within_half_a_step, 0, 6);
	tcase_add_test(tcase, a8_is_within_half_a_step);
	tcase_add_test(tcase, quantizing_rounds_halves_to_even);
	tcase_add_loop_test(tcase, a_value_that_is_not_finite_spoils_its_block, 0, 5);
	tcase_add_test(tcase, small_blocks_are_zero);
	tcase_add_test(tcase, stored_types_round);
	suite_add_tcase(suite, tcase);
	tcase_add_loop_test(weights, weights_are_within_their_steps, 0, 11);
	tcase_add_loop_test(weights, weights_of_zero_stay_zero, 0, 8);
	suite_add_tcase(suite, weights);
	return suite;
}

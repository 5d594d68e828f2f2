/* Blocks to values. */
#include "ir/decode.h"
#include "ir/half.h"
#include "ir/weight_block.h"
#include "tests/arithmetic_cases.h"
#include "tests/suites.h"

#include <math.h>
#include <string.h>

START_TEST(blocks_decode_to_the_exact_values)
{
	const struct pawl_block_case *c = &pawl_block_cases[_i];
	uint8_t unaligned[2 * 256 + 1];
	double exact[512];
	float rounded[512];
	int bytes = (int)pawl_dtype_bytes(c->dtype, c->n);
	int i;

	ck_assert_int_le(c->n, 512);
	ck_assert_int_lt(bytes, (int)sizeof(unaligned));
	memcpy(unaligned + 1, c->bytes, (size_t)bytes);
	pawl_decode_f64(c->dtype, unaligned + 1, c->n, exact);
	pawl_decode_f32(c->dtype, unaligned + 1, c->n, rounded);
	for (i = 0; i < c->n; i++) {
		ck_assert_msg(exact[i] == ldexp((double)c->values[i], -24), "%s element %d",
			pawl_dtype_name(c->dtype), i);
		ck_assert(rounded[i] == (float)exact[i]);
	}
}
END_TEST

START_TEST(every_weight_type_has_a_case)
{
	bool seen[PAWL_N_DTYPES] = {false};
	int i;

	for (i = 0; i < PAWL_N_BLOCK_CASES; i++)
		seen[pawl_block_cases[i].dtype] = true;
	for (i = 0; i < PAWL_N_DTYPES; i++)
		ck_assert(
			seen[i] == (pawl_dtype_info((enum pawl_dtype)i)->kind == PAWL_KIND_QUANT));
}
END_TEST

/* Scale, integers and offset as a kernel uses them give the same values. */
START_TEST(unpacked_blocks_give_the_values_in_f32)
{
	const struct pawl_block_case *c = &pawl_block_cases[_i];
	int block_size = pawl_dtype_info(c->dtype)->block;
	struct pawl_weight_block block;
	int i, g;

	pawl_weight_block_unpack(c->dtype, c->bytes, &block);
	ck_assert_int_eq(block.n_groups * block.group, block_size);
	for (i = 0; i < block_size; i++) {
		double value = ldexp((double)c->values[i], -24);

		g = i / block.group;
		ck_assert(fmaf(pawl_weight_scale(&block, g), block.q[i],
				  pawl_weight_offset(&block, g)) == (float)value);
		ck_assert(pawl_weight_has_offset(&block) || pawl_weight_offset(&block, g) == 0.0f);
	}
}
END_TEST

START_TEST(plain_types_decode)
{
	static const float f32[] = {1.5f, -0.0f, 0x1p-149f};
	static const uint16_t f16[] = {0x3c00, 0x8001, 0x7bff, 0xfc00};
	static const uint16_t bf16[] = {0x3f80, 0xc049, 0x0001};
	static const int8_t i8[] = {-128, 127};
	static const int32_t i32[] = {INT32_MIN, 16777217};
	static const int64_t i64[] = {
		-5, (INT64_C(1) << 54) + 3, (INT64_C(1) << 54) + (1 << 30) + 1};
	static const uint32_t u32[] = {UINT32_MAX};
	double d[4];
	float f[4];

	pawl_decode_f64(PAWL_DTYPE_F32, f32, 3, d);
	ck_assert(d[0] == 1.5 && signbit(d[1]) && d[2] == 0x1p-149);
	pawl_decode_f32(PAWL_DTYPE_F32, f32, 3, f);
	ck_assert(!memcmp(f, f32, sizeof(f32)));
	pawl_decode_f64(PAWL_DTYPE_F16, f16, 4, d);
	ck_assert(d[0] == 1.0 && d[1] == -0x1p-24 && d[2] == 65504.0 && d[3] == -INFINITY);
	pawl_decode_f64(PAWL_DTYPE_BF16, bf16, 3, d);
	ck_assert(d[0] == 1.0 && d[1] == -3.140625 && d[2] == 0x1p-133);
	pawl_decode_f32(PAWL_DTYPE_I8, i8, 2, f);
	ck_assert(f[0] == -128.0f && f[1] == 127.0f);
	pawl_decode_f64(PAWL_DTYPE_I32, i32, 2, d);
	ck_assert(d[0] == -0x1p31 && d[1] == 16777217.0);
	pawl_decode_f32(PAWL_DTYPE_I32, i32, 2, f);
	ck_assert(f[1] == 16777216.0f);
	pawl_decode_f64(PAWL_DTYPE_I64, i64, 2, d);
	ck_assert(d[0] == -5.0 && d[1] == 0x1p54 + 4.0);
	/* Through f64 the last one would fall on a tie and round down. */
	pawl_decode_f32(PAWL_DTYPE_I64, i64 + 2, 1, f);
	ck_assert(f[0] == 0x1p54f + 0x1p31f);
	pawl_decode_f64(PAWL_DTYPE_U32, u32, 1, d);
	ck_assert(d[0] == 4294967295.0);
}
END_TEST

START_TEST(activations_decode)
{
	struct pawl_block_a16 a16 = {.d = 0.25f, .hi = {-127, 1, 0}, .lo = {0, -64, 63}};
	struct pawl_block_a8 a8 = {.d = -0.5f, .q = {-127, 1, 0, 127}};
	double d[32];

	pawl_decode_f64(PAWL_DTYPE_A16, &a16, 32, d);
	ck_assert(d[0] == -0.25 * 16256 && d[1] == 16.0 && d[2] == 15.75 && d[31] == 0.0);
	pawl_decode_f64(PAWL_DTYPE_A8, &a8, 32, d);
	ck_assert(d[0] == 63.5 && d[1] == -0.5 && d[2] == 0.0 && d[3] == -63.5);
}
END_TEST

START_TEST(a_scale_that_is_no_number_shows)
{
	uint8_t block[34] = {0x01, 0x7e, 0, 1};
	double d[32];

	pawl_decode_f64(PAWL_DTYPE_Q8_0, block, 32, d);
	ck_assert(isnan(d[0]) && isnan(d[1]) && isnan(d[31]));
}
END_TEST

Suite *
pawl_decode_suite(void)
{
	Suite *suite = suite_create("decode");
	TCase *tcase = tcase_create("decode");

	tcase_add_loop_test(tcase, blocks_decode_to_the_exact_values, 0, PAWL_N_BLOCK_CASES);
	tcase_add_test(tcase, every_weight_type_has_a_case);
	tcase_add_loop_test(tcase, unpacked_blocks_give_the_values_in_f32, 0, PAWL_N_BLOCK_CASES);
	tcase_add_test(tcase, plain_types_decode);
	tcase_add_test(tcase, activations_decode);
	tcase_add_test(tcase, a_scale_that_is_no_number_shows);
	suite_add_tcase(suite, tcase);
	return suite;
}

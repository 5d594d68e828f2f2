/* Scalar primitives, f16 and bf16, and the environment that they are specified in. */
#include "ir/eval.h"
#include "ir/eval_consts.h"
#include "ir/fpenv.h"
#include "ir/half.h"
#include "tests/arithmetic_cases.h"
#include "tests/fpenv_fixture.h"
#include "tests/suites.h"

#include <math.h>

/* The cases come from fractions, which have no negative zero. */
static bool
is_case(float y, uint32_t bits)
{
	return pawl_f32_bits(y) == bits || (y == 0.0f && bits == 0);
}

START_TEST(functions_equal_the_rational_evaluation)
{
	const struct pawl_function_case *c = &pawl_function_cases[_i];
	float x = pawl_f32_from_bits(c->x);

	ck_assert_msg(is_case(pawl_eval_exp(x), c->exp), "exp(%a) = %a", x, pawl_eval_exp(x));
	ck_assert_msg(is_case(pawl_eval_sigmoid(x), c->sigmoid), "sigmoid(%a)", x);
	ck_assert_msg(is_case(pawl_eval_silu(x), c->silu), "silu(%a)", x);
	ck_assert_msg(is_case(pawl_eval_tanh(x), c->tanh), "tanh(%a)", x);
	ck_assert_msg(is_case(pawl_eval_gelu_tanh(x), c->gelu_tanh), "gelu_tanh(%a)", x);
}
END_TEST

START_TEST(exp_equals_the_rational_evaluation)
{
	uint32_t seed = 8, mixed = 2166136261u;
	int i;

	for (i = 0; i < 8192; i++)
		mixed = (mixed ^ pawl_f32_bits(pawl_eval_exp(pawl_case_value(&seed) * 15.0f))) *
			16777619u;
	ck_assert_uint_eq(mixed, pawl_exp_fingerprint);
}
END_TEST

START_TEST(exp_has_exact_edges)
{
	static const uint32_t nans[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0x7fffffff, 0xff812345};
	float most = pawl_eval_exp(88.0f);
	size_t i;

	ck_assert_uint_eq(pawl_f32_bits(pawl_eval_exp(0.0f)), 0x3f800000);
	ck_assert_uint_eq(pawl_f32_bits(pawl_eval_exp(-0.0f)), 0x3f800000);
	ck_assert_uint_eq(pawl_f32_bits(pawl_eval_exp(0x1p-140f)), 0x3f800000);
	ck_assert_uint_eq(pawl_f32_bits(pawl_eval_exp(nextafterf(-60.0f, -61.0f))), 0);
	ck_assert_uint_eq(pawl_f32_bits(pawl_eval_exp(-INFINITY)), 0);
	ck_assert(pawl_eval_exp(-60.0f) > 8.7e-27f);
	ck_assert(isfinite(most) && most > 1.6e38f);
	ck_assert(pawl_eval_exp(88.001f) == most && pawl_eval_exp(INFINITY) == most);
	for (i = 0; i < sizeof(nans) / sizeof(nans[0]); i++)
		ck_assert(isnan(pawl_eval_exp(pawl_f32_from_bits(nans[i]))));
}
END_TEST

/* 0.892 ulp is the largest over all floats; the sample must not exceed it. */
START_TEST(exp_is_within_an_ulp)
{
	double worst = 0.0;
	uint32_t bits, sign;

	for (sign = 0; sign < 2; sign++) {
		uint32_t last = pawl_f32_bits(sign ? 60.0f : 88.0f);

		for (bits = pawl_f32_bits(0x1p-30f); bits <= last; bits += 997) {
			float x = pawl_f32_from_bits(bits | sign << 31);
			double exact = exp((double)x);
			int exponent;
			double error;

			frexp(exact, &exponent);
			error = fabs(pawl_eval_exp(x) - exact) * ldexp(1.0, 24 - exponent);
			worst = error > worst ? error : worst;
		}
	}
	ck_assert_double_lt(worst, 0.892);
	ck_assert_double_gt(worst, 0.8);
}
END_TEST

START_TEST(functions_through_exp_are_accurate)
{
	double sigmoid = 0.0, silu = 0.0, tanh_ = 0.0, gelu = 0.0;
	int i;

	for (i = -400000; i <= 400000; i++) {
		float x = (float)i * 0x1p-14f;
		double t = x, s = 1.0 / (1.0 + exp(-t));
		double inner = sqrt(2.0 / 3.14159265358979323846) * (t + 0.044715 * t * t * t);
		double g = 0.5 * t * (1.0 + tanh(inner));

		sigmoid = fmax(sigmoid, fabs(pawl_eval_sigmoid(x) / s - 1.0));
		silu = fmax(silu, x == 0.0f ? 0.0 : fabs(pawl_eval_silu(x) / (t * s) - 1.0));
		tanh_ = fmax(tanh_, fabs(pawl_eval_tanh(x) - tanh(t)));
		gelu = fmax(gelu, fabs(pawl_eval_gelu_tanh(x) - g) / fmax(1.0, fabs(t)));
	}
	ck_assert_double_lt(sigmoid, 2.2e-7);
	ck_assert_double_lt(silu, 2.2e-7);
	ck_assert_double_lt(tanh_, 1.8e-7);
	ck_assert_double_lt(gelu, 1.5e-7);
}
END_TEST

START_TEST(functions_through_exp_have_limits)
{
	ck_assert(pawl_eval_tanh(INFINITY) == 1.0f && pawl_eval_tanh(-INFINITY) == -1.0f);
	ck_assert(pawl_eval_tanh(0.0f) == 0.0f);
	ck_assert(pawl_eval_sigmoid(0.0f) == 0.5f && pawl_eval_sigmoid(INFINITY) == 1.0f);
	ck_assert(pawl_eval_sigmoid(-1e30f) == 0.0f);
	ck_assert(pawl_eval_silu(0.0f) == 0.0f && pawl_eval_silu(1e30f) == 1e30f);
	ck_assert(fabsf(pawl_eval_silu(-1e30f)) < 1e-8f);
	ck_assert(pawl_eval_gelu_tanh(1e30f) == 1e30f && pawl_eval_gelu_tanh(-1e30f) == 0.0f);
	ck_assert(isnan(pawl_eval_tanh(NAN)) && isnan(pawl_eval_sigmoid(NAN)));
	ck_assert(isnan(pawl_eval_silu(NAN)) && isnan(pawl_eval_gelu_tanh(NAN)));
}
END_TEST

START_TEST(max_and_min_return_the_second_unless_the_first_wins)
{
	ck_assert(pawl_eval_max(2.0f, 1.0f) == 2.0f && pawl_eval_max(1.0f, 2.0f) == 2.0f);
	ck_assert(pawl_eval_min(2.0f, 1.0f) == 1.0f && pawl_eval_min(1.0f, 2.0f) == 1.0f);
	ck_assert(pawl_eval_max(NAN, 1.0f) == 1.0f && isnan(pawl_eval_max(1.0f, NAN)));
	ck_assert(pawl_eval_min(NAN, 1.0f) == 1.0f && isnan(pawl_eval_min(1.0f, NAN)));
	ck_assert(signbit(pawl_eval_max(0.0f, -0.0f)) && !signbit(pawl_eval_max(-0.0f, 0.0f)));
	ck_assert(signbit(pawl_eval_min(0.0f, -0.0f)) && !signbit(pawl_eval_min(-0.0f, 0.0f)));
}
END_TEST

START_TEST(simple_primitives)
{
	ck_assert(isnan(pawl_eval_relu(NAN)) && signbit(pawl_eval_relu(-0.0f)));
	ck_assert(pawl_eval_relu(-3.0f) == 0.0f && pawl_eval_relu(3.0f) == 3.0f);
	ck_assert(pawl_eval_rne(0.5f) == 0.0f && pawl_eval_rne(1.5f) == 2.0f);
	ck_assert(pawl_eval_rne(2.5f) == 2.0f && pawl_eval_rne(-2.5f) == -2.0f);
	ck_assert(pawl_eval_rne(-2.51f) == -3.0f && pawl_eval_rne(8388609.0f) == 8388609.0f);
	ck_assert(pawl_eval_neg(1.0f) == -1.0f && signbit(pawl_eval_neg(0.0f)));
	ck_assert(!signbit(pawl_eval_abs(-0.0f)) && pawl_eval_abs(-2.0f) == 2.0f);
	ck_assert(pawl_eval_square(3.0f) == 9.0f && pawl_eval_sqrt(9.0f) == 3.0f);
	ck_assert(isnan(pawl_eval_sqrt(-1.0f)));
	ck_assert(pawl_eval_add(1.0f, 0x1p-24f) == 1.0f && pawl_eval_sub(1.0f, 3.0f) == -2.0f);
	ck_assert(pawl_eval_div(1.0f, 3.0f) == 0x1.555556p-2f);
	ck_assert(pawl_eval_mul(0x1.000002p0f, 0x1.000002p0f) == 0x1.000004p0f);
	/* The product's last bits decide: 1 + 2^-22 + 2^-46, less 1 + 2^-22. */
	ck_assert(pawl_eval_fma(0x1.000002p0f, 0x1.000002p0f, -0x1.000004p0f) == 0x1p-46f);
	/* z + 2^-24 - 2^-70 is below halfway; rounded to f64 first it would be a tie, and go up. */
	ck_assert(pawl_eval_fma(0x1.000002p-24f, 0x1.fffffcp-1f, 0x1.000002p0f) == 0x1.000002p0f);
	ck_assert(pawl_eval_round_f16(0x1.002p0f) == 1.0f);
	ck_assert(pawl_eval_round_f16(-0x1.006p0f) == -0x1.008p0f);
	ck_assert(pawl_eval_round_bf16(0x1.01p0f) == 1.0f);
	ck_assert(pawl_eval_round_bf16(-0x1.03p0f) == -0x1.04p0f);
}
END_TEST

START_TEST(dispatch_follows_the_table)
{
	static const float x[PAWL_SCALAR_MAX_ARITY] = {1.25f, -0.75f, 3.0f};

	ck_assert_str_eq(pawl_scalar_info(PAWL_SCALAR_GELU_TANH)->name, "gelu_tanh");
	ck_assert_int_eq(pawl_scalar_info(PAWL_SCALAR_FMA)->arity, 3);
	ck_assert(pawl_scalar_eval(PAWL_SCALAR_SUB, x) == 2.0f);
	ck_assert(pawl_scalar_eval(PAWL_SCALAR_FMA, x) == 2.0625f);
	ck_assert(pawl_scalar_eval(PAWL_SCALAR_EXP, x) == pawl_eval_exp(1.25f));
	ck_assert(pawl_scalar_eval(PAWL_SCALAR_MIN, x) == -0.75f);
}
END_TEST

START_TEST(every_elementwise_op_is_a_primitive_or_has_an_attribute)
{
	enum pawl_scalar scalar = PAWL_N_SCALARS;
	enum pawl_op op;
	int n = 0;

	for (op = 0; op < PAWL_N_OPS; op++) {
		const struct pawl_op_info *info = pawl_op_info(op);
		bool takes_attribute = op == PAWL_OP_COPY || op == PAWL_OP_CAST || op == PAWL_OP_SCALE;

		ck_assert_msg(pawl_op_scalar(op, &scalar) ==
				((info->flags & PAWL_OPF_ELEM) && !takes_attribute),
			"%s", info->name);
		if (!pawl_op_scalar(op, &scalar))
			continue;
		ck_assert_str_eq(pawl_scalar_info(scalar)->name, info->name);
		ck_assert_int_eq(pawl_scalar_info(scalar)->arity, info->max_inputs);
		n++;
	}
	ck_assert_int_gt(n, 0);
	ck_assert(!pawl_op_scalar(PAWL_OP_SCALE, &scalar));
}
END_TEST

START_TEST(environment_flushes_and_is_given_back)
{
	volatile float tiny = 0x1p-70f, least = 0x1p-149f;
	volatile float product;
	uint32_t saved;

	saved = pawl_fpenv_enter();
	product = pawl_eval_mul(tiny, tiny);
	ck_assert(pawl_f32_bits(product) == 0);
	ck_assert(pawl_f32_bits(pawl_eval_neg(pawl_eval_mul(tiny, tiny))) == 0x80000000);
	/* Read as zero. */
	ck_assert(pawl_f32_bits(pawl_eval_mul(least, 0x1p100f)) == 0);
	ck_assert(pawl_f32_bits(pawl_eval_sqrt(least)) == 0);
	ck_assert(pawl_f32_bits(pawl_eval_fma(least, 0x1p100f, 0.0f)) == 0);
	/* Tiny before rounding, but not after: kept. */
	ck_assert(pawl_f32_bits(pawl_eval_mul(0x1.000002p-63f, 0x1.fffffcp-64f)) == 0x00800000);
	pawl_fpenv_leave(saved);
	product = pawl_eval_mul(tiny, tiny);
	ck_assert(product == 0x1p-140f);
	ck_assert(pawl_eval_mul(least, 0x1p100f) == 0x1p-49f);
}
END_TEST

START_TEST(same_takes_nans_and_subnormals_as_classes)
{
	ck_assert(pawl_eval_same(NAN, pawl_f32_from_bits(0xff800001)));
	ck_assert(!pawl_eval_same(NAN, INFINITY) && !pawl_eval_same(1.0f, NAN));
	ck_assert(pawl_eval_same(pawl_f32_from_bits(1), 0.0f));
	ck_assert(!pawl_eval_same(pawl_f32_from_bits(1), -0.0f) && !pawl_eval_same(0.0f, -0.0f));
	ck_assert(pawl_eval_same(1.5f, 1.5f) && !pawl_eval_same(1.0f, 1.0f + 0x1p-23f));
}
END_TEST

/* The nearest multiple of the spacing that f16 has at |x|, by f64 arithmetic. */
static double
nearest_f16(double x)
{
	int exponent;
	double unit, y;

	frexp(x, &exponent);
	unit = ldexp(1.0, exponent < -13 ? -24 : exponent - 11);
	y = nearbyint(x / unit) * unit;
	return fabs(y) >= 65536.0 ? copysign(INFINITY, x) : y;
}

START_TEST(every_f16_survives)
{
	uint32_t h;

	for (h = 0; h < 65536; h++) {
		float x = pawl_f32_from_f16((uint16_t)h);
		uint32_t exponent = h >> 10 & 31;
		double magnitude = exponent ? ldexp(1024 + (h & 1023), (int)exponent - 25)
					    : ldexp(h & 1023, -24);

		if (exponent == 31 && (h & 1023)) {
			ck_assert(isnan(x));
			ck_assert_uint_eq(pawl_f16_from_f32(x), h | 0x200);
			continue;
		}
		if (exponent == 31)
			magnitude = INFINITY;
		ck_assert(fabs((double)x) == magnitude && !signbit(x) == !(h & 0x8000));
		ck_assert_uint_eq(pawl_f16_from_f32(x), h);
	}
}
END_TEST

START_TEST(f16_rounds_to_nearest_even)
{
	uint32_t i;

	ck_assert_uint_eq(pawl_f16_from_f32(65519.996f), 0x7bff);
	ck_assert_uint_eq(pawl_f16_from_f32(65520.0f), 0x7c00);
	ck_assert_uint_eq(pawl_f16_from_f32(-INFINITY), 0xfc00);
	ck_assert_uint_eq(pawl_f16_from_f32(0x1p-25f), 0);
	ck_assert_uint_eq(pawl_f16_from_f32(nextafterf(0x1p-25f, 1.0f)), 1);
	ck_assert_uint_eq(pawl_f16_from_f32(-0x1.8p-24f), 0x8002);
	ck_assert_uint_eq(pawl_f16_from_f32(pawl_f32_from_bits(0x007fffff)), 0);
	ck_assert_uint_eq(pawl_f16_from_f32(pawl_f32_from_bits(0x7f800001)), 0x7e00);
	for (i = 0; i < 1u << 20; i++) {
		/* All of 2^-28 to 2^17, both signs, odd fractions and halfway ones. */
		uint32_t bits = 0x31800000 + i % 0x5a * 0x400000 + i * 2654435761u % 0x400000;
		float x;

		if (i % 3 == 0)
			bits = (bits & 0xffffe000) | 0x1000;
		x = pawl_f32_from_bits(bits | (i / 90) << 31);
		ck_assert_msg((double)pawl_f32_from_f16(pawl_f16_from_f32(x)) == nearest_f16(x),
			"f16 of %a", x);
	}
}
END_TEST

START_TEST(every_bf16_survives_and_rounds)
{
	uint32_t b;

	for (b = 0; b < 65536; b++) {
		float x = pawl_f32_from_bf16((uint16_t)b);

		if (isnan(x)) {
			ck_assert_uint_eq(pawl_bf16_from_f32(x), b | 0x40);
			continue;
		}
		ck_assert_uint_eq(pawl_bf16_from_f32(x), b);
		if ((b & 0x7fff) == 0x7f80)
			continue;
		ck_assert_uint_eq(pawl_bf16_from_f32(pawl_f32_from_bits(b << 16 | 0x7fff)), b);
		ck_assert_uint_eq(
			pawl_bf16_from_f32(pawl_f32_from_bits(b << 16 | 0x8000)), b + (b & 1));
		ck_assert_uint_eq(pawl_bf16_from_f32(pawl_f32_from_bits(b << 16 | 0x8001)), b + 1);
	}
	/* A NaN whose kept bits are all zero. */
	ck_assert_uint_eq(pawl_bf16_from_f32(pawl_f32_from_bits(0x7f800001)), 0x7fc0);
}
END_TEST

Suite *
pawl_eval_suite(void)
{
	Suite *suite = suite_create("eval");
	TCase *inside = tcase_create("functions");
	TCase *outside = tcase_create("conversions");

	tcase_add_checked_fixture(inside, enter, leave);
	tcase_set_timeout(inside, 60);
	tcase_add_loop_test(
		inside, functions_equal_the_rational_evaluation, 0, PAWL_N_FUNCTION_CASES);
	tcase_add_test(inside, exp_equals_the_rational_evaluation);
	tcase_add_test(inside, exp_has_exact_edges);
	tcase_add_test(inside, exp_is_within_an_ulp);
	tcase_add_test(inside, functions_through_exp_are_accurate);
	tcase_add_test(inside, functions_through_exp_have_limits);
	tcase_add_test(inside, max_and_min_return_the_second_unless_the_first_wins);
	tcase_add_test(inside, simple_primitives);
	tcase_add_test(inside, dispatch_follows_the_table);
	tcase_add_test(inside, every_elementwise_op_is_a_primitive_or_has_an_attribute);
	suite_add_tcase(suite, inside);
	tcase_set_timeout(outside, 60);
	tcase_add_test(outside, environment_flushes_and_is_given_back);
	tcase_add_test(outside, same_takes_nans_and_subnormals_as_classes);
	tcase_add_test(outside, every_f16_survives);
	tcase_add_test(outside, f16_rounds_to_nearest_even);
	tcase_add_test(outside, every_bf16_survives_and_rounds);
	suite_add_tcase(suite, outside);
	return suite;
}

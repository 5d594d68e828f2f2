/*
 * The ops that compute, in both arithmetics, against long double formulas written here.  Bounds
 * are relative to the sum of magnitudes that enter a result: 2^-23 a rounding.
 */
#include "tests/tensors.h"

#include "tests/suites.h"

#include <float.h>
#include <math.h>

/* Relative errors allowed: exp is good to 2 ulp and enters others once or twice. */
#define PLANNED_FUNCTION 8e-7
#define EXACT 1e-14

#define ALL_MODES 2

static const int64_t lengths[] = {1, 5, 16, 31, 256, 577};
enum { N_LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

/* NAN: the op is no function of elements that this test knows. */
static long double
formula(enum pawl_op op, long double x, long double y)
{
	long double inner = 0.797884560802865355879892119869L * (x + 0.044715L * x * x * x);

	switch ((int)op) {
	case PAWL_OP_NEG:
		return -x;
	case PAWL_OP_ABS:
		return fabsl(x);
	case PAWL_OP_SQRT:
		return sqrtl(x);
	case PAWL_OP_EXP:
		return expl(x);
	case PAWL_OP_TANH:
		return tanhl(x);
	case PAWL_OP_SIGMOID:
		return 1 / (1 + expl(-x));
	case PAWL_OP_SILU:
		return x / (1 + expl(-x));
	case PAWL_OP_GELU_TANH:
		return x / 2 * (1 + tanhl(inner));
	case PAWL_OP_RELU:
		return x > 0 ? x : 0;
	case PAWL_OP_SCALE:
		return x * 0.75L;
	case PAWL_OP_ADD:
		return x + y;
	case PAWL_OP_SUB:
		return x - y;
	case PAWL_OP_MUL:
		return x * y;
	case PAWL_OP_DIV:
		return x / y;
	case PAWL_OP_MAX:
		return x > y ? x : y;
	case PAWL_OP_MIN:
		return x < y ? x : y;
	}
	return NAN;
}

START_TEST(every_elementwise_op_follows_its_formula)
{
	/* scale, and those that are a primitive of their own */
	const int n_formulas = 1
#define PAWL_SCALAR_OP_ROW(id, name, arity, formula) +1
#include "ir/scalar.def"
		;
	struct pawl_tensor in[2] = {pawl_test_tensor(PAWL_DTYPE_F32, 2, PAWL_DIMS(3, 301)),
		pawl_test_tensor(PAWL_DTYPE_F32, 2, PAWL_DIMS(3, 301))};
	struct pawl_attrs attrs = pawl_attrs_default();
	int op, mode, tested = 0;
	int64_t i;

	attrs.scale = 0.75;
	pawl_test_fill(&in[0], 6.0);
	pawl_test_fill(&in[1], 6.0);
	for (op = 0; op < PAWL_N_OPS; op++) {
		if (!pawl_op_has(op, PAWL_OPF_ELEM) || op == PAWL_OP_COPY || op == PAWL_OP_CAST)
			continue;
		tested++;
		for (mode = 0; mode < ALL_MODES; mode++) {
			struct pawl_tensor out = pawl_test_result(&in[0], mode);
			bool root = op == PAWL_OP_SQRT;

			for (i = 0; root && i < pawl_tensor_elems(&in[0]); i++)
				pawl_test_set(&in[0], i, fabs(pawl_test_get(&in[0], i)));
			pawl_test_run(mode, op, &attrs, in, pawl_op_info(op)->min_inputs, &out);
			for (i = 0; i < pawl_tensor_elems(&out); i++) {
				long double x = pawl_test_get(&in[0], i),
					    y = pawl_test_get(&in[1], i);
				long double want = formula(op, x, y);
				/* 1 + tanh and 1 - 2 / (...) cancel: absolute there. */
				double scale = fmax(fabs((double)want), op == PAWL_OP_TANH ? 1.0
									: op == PAWL_OP_GELU_TANH
										? fabs((double)x)
										: 0.0);

				ck_assert_msg(
					!isnan(want), "%s has no formula here", pawl_op_name(op));
				pawl_test_near(pawl_test_get(&out, i), want,
					(mode ? EXACT : PLANNED_FUNCTION) * scale);
			}
		}
	}
	ck_assert_int_eq(tested, n_formulas);
}
END_TEST

/* x > y ? x : y yields the second operand when either is NaN. */
START_TEST(nan_goes_as_written)
{
	static const struct {
		enum pawl_op op;
		double x, y, want;
	} cases[] = {{PAWL_OP_MAX, NAN, 1, 1}, {PAWL_OP_MAX, 1, NAN, NAN}, {PAWL_OP_MIN, NAN, 1, 1},
		{PAWL_OP_MIN, 1, NAN, NAN}, {PAWL_OP_ADD, NAN, 1, NAN}, {PAWL_OP_RELU, NAN, 0, NAN},
		{PAWL_OP_EXP, NAN, 0, NAN}, {PAWL_OP_EXP, -INFINITY, 0, 0},
		{PAWL_OP_SQRT, -1, 0, NAN}, {PAWL_OP_SILU, NAN, 0, NAN},
		{PAWL_OP_TANH, INFINITY, 0, 1}, {PAWL_OP_TANH, -INFINITY, 0, -1},
		{PAWL_OP_SIGMOID, -INFINITY, 0, 0}, {PAWL_OP_DIV, 1, 0, INFINITY}};
	size_t i;
	int mode;

	for (i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		const size_t c = i / 2;
		struct pawl_tensor in[2] = {pawl_test_tensor(PAWL_DTYPE_F32, 0, NULL),
			pawl_test_tensor(PAWL_DTYPE_F32, 0, NULL)};
		struct pawl_tensor out;
		double got;

		mode = i % 2;
		out = pawl_test_result(&in[0], mode);
		pawl_test_set(&in[0], 0, cases[c].x);
		pawl_test_set(&in[1], 0, cases[c].y);
		pawl_test_run(
			mode, cases[c].op, NULL, in, pawl_op_info(cases[c].op)->min_inputs, &out);
		got = pawl_test_get(&out, 0);
		/* The planned exp stays above 0 at -inf in a quotient; that is below any f32 here.
		 */
		ck_assert_msg(isnan(cases[c].want)
				      ? isnan(got)
				      : fabs(got - cases[c].want) < 1e-30 || got == cases[c].want,
			"%s(%g, %g) = %g", pawl_op_name(cases[c].op), cases[c].x, cases[c].y, got);
	}
}
END_TEST

START_TEST(casts_round_to_nearest_even)
{
	static const double x[] = {
		1.0 + 0x1p-11, 1.0 + 0x1.8p-10, 65519.0, 65520.0, 0x1p-25, 0x1.8p-25};
	static const double f16[] = {1.0, 1.0 + 0x1p-9, 65504.0, INFINITY, 0.0, 0x1p-24};
	static const double bf16[] = {1.0, 1.0, 65536.0, 65536.0, 0x1p-25, 0x1.8p-25};
	struct pawl_tensor in = pawl_test_tensor(PAWL_DTYPE_F32, 1, PAWL_DIMS(6));
	struct pawl_attrs attrs = pawl_attrs_default();
	int mode, half, i;

	for (i = 0; i < 6; i++)
		pawl_test_set(&in, i, x[i]);
	for (mode = 0; mode < ALL_MODES; mode++) {
		for (half = 0; half < 2; half++) {
			struct pawl_tensor out;

			attrs.dtype = half ? PAWL_DTYPE_F16 : PAWL_DTYPE_BF16;
			out = mode ? pawl_test_wide(1, in.dim)
				   : pawl_test_tensor(attrs.dtype, 1, in.dim);
			pawl_test_run(mode, PAWL_OP_CAST, &attrs, &in, 1, &out);
			for (i = 0; i < 6; i++)
				ck_assert_double_eq(
					pawl_test_get(&out, i), half ? f16[i] : bf16[i]);
		}
	}
}
END_TEST

START_TEST(integers_cast_to_f32)
{
	static const enum pawl_dtype dtypes[] = {
		PAWL_DTYPE_I8, PAWL_DTYPE_I32, PAWL_DTYPE_I64, PAWL_DTYPE_U32};
	struct pawl_attrs attrs = pawl_attrs_default();
	size_t i;

	attrs.dtype = PAWL_DTYPE_F32;
	for (i = 0; i < 4; i++) {
		struct pawl_tensor in = pawl_test_tensor(dtypes[i], 1, PAWL_DIMS(3));
		struct pawl_tensor out = pawl_test_tensor(PAWL_DTYPE_F32, 1, PAWL_DIMS(3));
		double last = dtypes[i] == PAWL_DTYPE_U32 ? 4294967295.0 : -128.0;

		pawl_test_set(&in, 1, 127);
		pawl_test_set(&in, 2, last);
		pawl_test_run(false, PAWL_OP_CAST, &attrs, &in, 1, &out);
		ck_assert_double_eq(pawl_test_get(&out, 0), 0);
		ck_assert_double_eq(pawl_test_get(&out, 1), 127);
		ck_assert_double_eq(pawl_test_get(&out, 2), (float)last);
	}
}
END_TEST

START_TEST(norms_follow_their_formulas)
{
	struct pawl_attrs attrs = pawl_attrs_default();
	int mode, layer, l;
	int64_t row, i;

	attrs.eps = 1e-5;
	for (l = 0; l < N_LENGTHS * 4; l++) {
		int64_t n = lengths[l / 4];
		struct pawl_tensor in[3] = {pawl_test_tensor(PAWL_DTYPE_F32, 3, PAWL_DIMS(2, 3, n)),
			pawl_test_tensor(PAWL_DTYPE_F32, 1, PAWL_DIMS(n)),
			pawl_test_tensor(PAWL_DTYPE_F32, 1, PAWL_DIMS(n))};
		struct pawl_tensor out;

		mode = l / 2 % 2;
		layer = l % 2;
		out = pawl_test_result(&in[0], mode);
		for (i = 0; i < 3; i++)
			pawl_test_fill(&in[i], 2.0);
		pawl_test_run(mode, layer ? PAWL_OP_LAYER_NORM : PAWL_OP_RMS_NORM, &attrs, in,
			layer ? 3 : 2, &out);
		for (row = 0; row < 6; row++) {
			long double mean = 0, square = 0, scale;

			for (i = 0; layer && i < n; i++)
				mean += pawl_test_get(&in[0], row * n + i) / (long double)n;
			for (i = 0; i < n; i++)
				square += powl(pawl_test_get(&in[0], row * n + i) - mean, 2) / n;
			scale = 1 / sqrtl(square + attrs.eps);
			for (i = 0; i < n; i++) {
				long double x = pawl_test_get(&in[0], row * n + i),
					    w = pawl_test_get(&in[1], i);
				long double want = (x - mean) * scale * w +
						   (layer ? pawl_test_get(&in[2], i) : 0);
				double size = (double)(fabsl(x * scale * w) +
						       fabsl(mean * scale * w) + 2);

				pawl_test_near(pawl_test_get(&out, row * n + i), want,
					(mode ? EXACT : 1e-6) * size);
			}
		}
	}
}
END_TEST

START_TEST(softmax_sums_to_one_and_survives_infinities)
{
	int mode, l;
	int64_t i;

	for (l = 0; l < 2 * N_LENGTHS; l++) {
		int64_t n = lengths[l / 2];
		struct pawl_tensor in = pawl_test_tensor(PAWL_DTYPE_F32, 2, PAWL_DIMS(4, n)), out;
		long double sum = 0;

		mode = l % 2;
		out = pawl_test_result(&in, mode);
		pawl_test_fill(&in, 30.0);
		for (i = 0; i < n; i++) {
			pawl_test_set(&in, n + i, -INFINITY);
			sum += expl(pawl_test_get(&in, i));
		}
		pawl_test_set(&in, 2 * n, -INFINITY);
		pawl_test_set(&in, 3 * n + n / 2, NAN);
		pawl_test_run(mode, PAWL_OP_SOFTMAX, NULL, &in, 1, &out);
		for (i = 0; i < n; i++) {
			long double want = expl(pawl_test_get(&in, i)) / sum;

			pawl_test_near(pawl_test_get(&out, i), want,
				(mode ? EXACT : 4e-6) * (double)want + 1e-26);
			ck_assert(pawl_test_get(&out, n + i) == 0);
			ck_assert(isnan(pawl_test_get(&out, 3 * n + i)));
		}
		ck_assert(pawl_test_get(&out, 2 * n) == 0);
	}
}
END_TEST

START_TEST(argmax_takes_the_lowest_and_reports_nan)
{
	static const float rows[4][5] = {{1, 7, 7, 0, 7}, {-3, -2, -1, -1, -5}, {0, NAN, 9, 9, 9},
		{-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY}};
	static const int32_t want[4] = {1, 2, -1, 0};
	struct pawl_tensor in = pawl_test_tensor(PAWL_DTYPE_F32, 3, PAWL_DIMS(2, 2, 5));
	struct pawl_tensor out = pawl_test_tensor(PAWL_DTYPE_I32, 2, PAWL_DIMS(2, 2));
	int mode, i;

	for (i = 0; i < 20; i++)
		pawl_test_set(&in, i, rows[i / 5][i % 5]);
	for (mode = 0; mode < ALL_MODES; mode++) {
		pawl_test_run(mode, PAWL_OP_ARGMAX, NULL, &in, 1, &out);
		for (i = 0; i < 4; i++)
			ck_assert_int_eq(pawl_tensor_load_i64(&out, i), want[i]);
	}
}
END_TEST

START_TEST(rope_rotates_both_kinds_of_pairs)
{
	const int64_t tokens = 3, heads = 2, d = 12;
	struct pawl_attrs attrs = pawl_attrs_default();
	int c;
	int64_t t, h, i;

	for (c = 0; c < 8; c++) {
		int64_t width = c & 1 ? 8 : 12;
		bool adjacent = c & 2, exact = c & 4;
		struct pawl_tensor in[3] = {
			pawl_test_tensor(PAWL_DTYPE_F32, 3, PAWL_DIMS(tokens, heads, d)),
			pawl_test_tensor(PAWL_DTYPE_F32, 2, PAWL_DIMS(tokens, width)),
			pawl_test_tensor(PAWL_DTYPE_F32, 2, PAWL_DIMS(tokens, width))};
		struct pawl_tensor out = pawl_test_result(&in[0], exact);

		attrs.pairs = adjacent ? PAWL_PAIRS_ADJACENT : PAWL_PAIRS_HALVES;
		pawl_test_fill(&in[0], 1.0);
		/* Pair i of token t turns by 0.1 (t + 1)(i + 1); both of its columns say so. */
		for (i = 0; i < tokens * width; i++) {
			int64_t column = i % width,
				pair = adjacent ? column / 2 : column % (width / 2);
			double angle = 0.1 * (double)((i / width + 1) * (pair + 1));

			pawl_test_set(&in[1], i, cos(angle));
			pawl_test_set(&in[2], i, sin(angle));
		}
		pawl_test_run(exact, PAWL_OP_ROPE, &attrs, in, 3, &out);
		for (t = 0; t < tokens; t++) {
			for (h = 0; h < heads; h++) {
				int64_t at = (t * heads + h) * d;

				for (i = 0; i < width / 2; i++) {
					int64_t a = at + (adjacent ? 2 * i : i);
					int64_t b = adjacent ? a + 1 : a + width / 2;
					long double x = pawl_test_get(&in[0], a),
						    y = pawl_test_get(&in[0], b);
					long double angle = 0.1L * (t + 1) * (i + 1);

					pawl_test_near(pawl_test_get(&out, a),
						x * cosl(angle) - y * sinl(angle), 3e-7);
					pawl_test_near(pawl_test_get(&out, b),
						y * cosl(angle) + x * sinl(angle), 3e-7);
				}
				for (i = width; i < d; i++)
					ck_assert(pawl_test_get(&out, at + i) ==
						  pawl_test_get(&in[0], at + i));
			}
		}
	}
}
END_TEST

Suite *
pawl_ref_ops_suite(void)
{
	Suite *suite = suite_create("ref_ops");
	TCase *tcase = tcase_create("ref_ops");

	tcase_add_checked_fixture(tcase, pawl_tensors_begin, pawl_tensors_end);
	tcase_add_test(tcase, every_elementwise_op_follows_its_formula);
	tcase_add_test(tcase, nan_goes_as_written);
	tcase_add_test(tcase, casts_round_to_nearest_even);
	tcase_add_test(tcase, integers_cast_to_f32);
	tcase_add_test(tcase, norms_follow_their_formulas);
	tcase_add_test(tcase, softmax_sums_to_one_and_survives_infinities);
	tcase_add_test(tcase, argmax_takes_the_lowest_and_reports_nan);
	tcase_add_test(tcase, rope_rotates_both_kinds_of_pairs);
	suite_add_tcase(suite, tcase);
	return suite;
}

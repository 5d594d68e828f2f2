/*
 * The products, in both arithmetics and over every weight type, against sums in long double.
 * Bounds are relative to the sum of magnitudes that enter a result.
 */
#include "tests/tensors.h"

#include "codegen/pack.h"
#include "tests/suites.h"

#include <math.h>
#include <stdlib.h>

#define EXACT 1e-14

/* Rows of w against rows of x, which hold what the op sees; *size is the sum of magnitudes. */
static long double
product(const struct pawl_tensor *w, int64_t n, const struct pawl_tensor *x, int64_t row,
	long double *size)
{
	int64_t k = pawl_tensor_row_length(w), i;
	long double sum = 0;

	*size = 0;
	for (i = 0; i < k; i++) {
		long double term =
			(long double)pawl_test_get(w, n * k + i) * pawl_test_get(x, row * k + i);

		sum += term;
		*size += fabsl(term);
	}
	return sum;
}

START_TEST(matmul_sums_every_weight_type)
{
	int dtype, mode, tested = 0;
	int64_t n, t;

	for (dtype = 0; dtype < PAWL_N_DTYPES; dtype++) {
		const struct pawl_dtype_info *info = pawl_dtype_info(dtype);
		int64_t k = info->block > 1 ? 2 * info->block : 37;
		struct pawl_tensor in[2] = {pawl_test_tensor(
			PAWL_DTYPE_F32, 3, PAWL_DIMS(1, 3, k))},
				   out;

		if (info->kind != PAWL_KIND_QUANT && info->kind != PAWL_KIND_FLOAT)
			continue;
		tested++;
		in[1] = pawl_test_tensor(dtype, 2, PAWL_DIMS(19, k));
		pawl_test_fill(&in[0], 3.0);
		pawl_test_fill(&in[1], 1.0);
		for (mode = 0; mode < 2; mode++) {
			out = mode ? pawl_test_wide(3, PAWL_DIMS(1, 3, 19))
				   : pawl_test_tensor(PAWL_DTYPE_F32, 3, PAWL_DIMS(1, 3, 19));
			pawl_test_run(mode, PAWL_OP_MATMUL, NULL, in, 2, &out);
			for (t = 0; t < 3; t++) {
				for (n = 0; n < 19; n++) {
					long double size,
						want = product(&in[1], n, &in[0], t, &size);

					pawl_test_near(pawl_test_get(&out, t * 19 + n), want,
						(mode ? EXACT : (double)k * 0x1p-23) *
							(double)size);
				}
			}
		}
	}
	ck_assert_int_eq(tested, 11);
}
END_TEST

/* Against the same product of the values that the quantized activations stand for. */
START_TEST(matmul_of_quantized_activations_is_nearly_exact)
{
	static const enum pawl_dtype acts[] = {PAWL_DTYPE_A16, PAWL_DTYPE_A8};
	struct pawl_attrs attrs = pawl_attrs_default();
	struct pawl_error err;
	int dtype, a;
	int64_t n, t, i;

	for (dtype = 0; dtype < 2 * PAWL_N_DTYPES; dtype++) {
		const struct pawl_dtype_info *info = pawl_dtype_info(dtype / 2);
		int64_t k = 2 * info->block;
		struct pawl_tensor x, in[2], out;

		a = dtype % 2;
		if (info->kind != PAWL_KIND_QUANT)
			continue;
		x = pawl_test_tensor(PAWL_DTYPE_F32, 2, PAWL_DIMS(2, k));
		in[0] = pawl_test_tensor(acts[a], 2, PAWL_DIMS(2, k));
		in[1] = pawl_test_tensor(dtype / 2, 2, PAWL_DIMS(19, k));
		out = pawl_test_tensor(PAWL_DTYPE_F32, 2, PAWL_DIMS(2, 19));
		attrs.dtype = acts[a];
		pawl_test_fill(&x, 3.0);
		pawl_test_fill(&in[1], 1.0);
		pawl_test_run(false, PAWL_OP_QUANTIZE, &attrs, &x, 1, &in[0]);
		for (i = 0; i < 2 * k; i++)
			pawl_test_near(pawl_test_get(&in[0], i), pawl_test_get(&x, i),
				3.0 / (a ? 254.0 : 32512.0) * 1.001);
		pawl_test_run(false, PAWL_OP_MATMUL, NULL, in, 2, &out);
		for (t = 0; t < 2; t++) {
			for (n = 0; n < 19; n++) {
				long double size, want = product(&in[1], n, &in[0], t, &size);

				/* Offsets are summed apart from what they cancel: 16 times the size
				 * is ample. */
				pawl_test_near(pawl_test_get(&out, t * 19 + n), want,
					(double)k / 32 * 0x1p-20 * (double)size + 1e-6);
			}
		}
		pawl_test_set(&x, k + 3, NAN);
		pawl_test_run(false, PAWL_OP_QUANTIZE, &attrs, &x, 1, &in[0]);
		pawl_test_run(false, PAWL_OP_MATMUL, NULL, in, 2, &out);
		ck_assert(!isnan(pawl_test_get(&out, 0)));
		for (n = 0; n < 19; n++)
			ck_assert(isnan(pawl_test_get(&out, 19 + n)));
	}
	ck_assert_int_eq(pawl_test_call(true, PAWL_OP_QUANTIZE, &attrs, NULL, 0,
				 &(struct pawl_tensor){.rank = 0}, &err),
		PAWL_UNSUPPORTED);
}
END_TEST

/* Packing is lossless: rows and tiles give the same bits, whatever the activations. */
START_TEST(packed_weights_give_the_same_bits)
{
	static const enum pawl_dtype acts[] = {PAWL_DTYPE_F32, PAWL_DTYPE_A16, PAWL_DTYPE_A8};
	const int64_t n = 35;
	struct pawl_attrs attrs = pawl_attrs_default();
	int dtype, a, tested = 0;

	for (dtype = 0; dtype < 3 * PAWL_N_DTYPES; dtype++) {
		const struct pawl_dtype_info *info = pawl_dtype_info(dtype / 3);
		bool is_quantized = info->kind == PAWL_KIND_QUANT;
		int64_t k = is_quantized ? 2 * info->block : 37;
		struct pawl_tensor x, in[2], out, of_packed;
		char *packed;

		a = dtype % 3;
		if (!is_quantized && (info->kind != PAWL_KIND_FLOAT || a))
			continue;
		tested++;
		x = pawl_test_tensor(PAWL_DTYPE_F32, 2, PAWL_DIMS(2, k));
		in[0] = a ? pawl_test_tensor(acts[a], 2, PAWL_DIMS(2, k)) : x;
		in[1] = pawl_test_tensor(dtype / 3, 2, PAWL_DIMS(n, k));
		out = pawl_test_tensor(PAWL_DTYPE_F32, 2, PAWL_DIMS(2, n));
		of_packed = pawl_test_tensor(PAWL_DTYPE_F32, 2, PAWL_DIMS(2, n));
		attrs.dtype = acts[a];
		pawl_test_fill(&x, 3.0);
		pawl_test_fill(&in[1], 1.0);
		if (a)
			pawl_test_run(false, PAWL_OP_QUANTIZE, &attrs, &x, 1, &in[0]);
		pawl_test_run(false, PAWL_OP_MATMUL, NULL, in, 2, &out);
		packed = malloc((size_t)pawl_pack_bytes(in[1].dtype, n, k));
		ck_assert_ptr_nonnull(packed);
		pawl_pack_tiles(in[1].dtype, n, k, in[1].data, packed, 0, 3);
		in[1].data = packed;
		in[1].layout = PAWL_LAYOUT_TILE16;
		pawl_test_run(false, PAWL_OP_MATMUL, NULL, in, 2, &of_packed);
		ck_assert_mem_eq(of_packed.data, out.data, (size_t)(2 * n) * sizeof(float));
		free(packed);
	}
	ck_assert_int_eq(tested, 3 + 3 * 8);
}
END_TEST

START_TEST(batch_matmul_multiplies_each_batch)
{
	static const enum pawl_dtype dtypes[] = {PAWL_DTYPE_F32, PAWL_DTYPE_F16};
	int c, mode;
	int64_t b, m, n, k;

	for (c = 0; c < 4; c++) {
		struct pawl_tensor in[2] = {
			pawl_test_tensor(PAWL_DTYPE_F32, 3, PAWL_DIMS(2, 3, 41)),
			pawl_test_tensor(dtypes[c / 2], 3, PAWL_DIMS(2, 5, 41))};
		struct pawl_tensor out;

		mode = c % 2;
		out = mode ? pawl_test_wide(3, PAWL_DIMS(2, 3, 5))
			   : pawl_test_tensor(PAWL_DTYPE_F32, 3, PAWL_DIMS(2, 3, 5));
		pawl_test_fill(&in[0], 1.0);
		pawl_test_fill(&in[1], 1.0);
		pawl_test_run(mode, PAWL_OP_BATCH_MATMUL, NULL, in, 2, &out);
		for (b = 0; b < 2; b++) {
			for (m = 0; m < 3; m++) {
				for (n = 0; n < 5; n++) {
					long double want = 0;

					for (k = 0; k < 41; k++)
						want += (long double)pawl_test_get(
								&in[0], (b * 3 + m) * 41 + k) *
							pawl_test_get(&in[1], (b * 5 + n) * 41 + k);
					pawl_test_near(pawl_test_get(&out, (b * 3 + m) * 5 + n),
						want, mode ? EXACT * 41 : 41 * 41 * 0x1p-24);
				}
			}
		}
	}
}
END_TEST

Suite *
pawl_ref_matmul_suite(void)
{
	Suite *suite = suite_create("ref_matmul");
	TCase *tcase = tcase_create("ref_matmul");

	tcase_add_checked_fixture(tcase, pawl_tensors_begin, pawl_tensors_end);
	tcase_add_test(tcase, matmul_sums_every_weight_type);
	tcase_add_test(tcase, matmul_of_quantized_activations_is_nearly_exact);
	tcase_add_test(tcase, packed_weights_give_the_same_bits);
	tcase_add_test(tcase, batch_matmul_multiplies_each_batch);
	suite_add_tcase(suite, tcase);
	return suite;
}

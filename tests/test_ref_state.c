/* The ops that move and write elements: exact values, in every element type. */
#include "tests/tensors.h"

#include "tests/suites.h"

#include <math.h>
#include <string.h>

/* Elements 0, 1, 2 ... (modulo 100, so that i8 holds them). */
static struct pawl_tensor
counting(enum pawl_dtype dtype, int rank, const int64_t *dims)
{
	struct pawl_tensor t = pawl_test_tensor(dtype, rank, dims);
	int64_t i;

	for (i = 0; i < pawl_tensor_elems(&t); i++)
		pawl_test_set(&t, i, (double)(i % 100));
	return t;
}

static const enum pawl_dtype plain[] = {PAWL_DTYPE_F32, PAWL_DTYPE_F16, PAWL_DTYPE_BF16,
	PAWL_DTYPE_I8, PAWL_DTYPE_I32, PAWL_DTYPE_I64, PAWL_DTYPE_U32};
enum { N_PLAIN = sizeof(plain) / sizeof(plain[0]) };

START_TEST(views_move_every_plain_type)
{
	struct pawl_attrs attrs = pawl_attrs_default();
	int c;
	int64_t i, j, k;

	attrs.perm[0] = 2;
	attrs.perm[1] = 0;
	attrs.perm[2] = 1;
	for (c = 0; c < N_PLAIN; c++) {
		struct pawl_tensor x = counting(plain[c], 3, PAWL_DIMS(2, 3, 5));
		struct pawl_tensor permuted = pawl_test_tensor(plain[c], 3, PAWL_DIMS(5, 2, 3));
		struct pawl_tensor flat = pawl_test_tensor(plain[c], 1, PAWL_DIMS(30));
		struct pawl_tensor wider = pawl_test_tensor(plain[c], 4, PAWL_DIMS(2, 2, 3, 5));

		pawl_test_run(false, PAWL_OP_PERMUTE, &attrs, &x, 1, &permuted);
		pawl_test_run(false, PAWL_OP_RESHAPE, NULL, &x, 1, &flat);
		pawl_test_run(false, PAWL_OP_BROADCAST, NULL, &x, 1, &wider);
		for (i = 0; i < 2; i++) {
			for (j = 0; j < 3; j++) {
				for (k = 0; k < 5; k++) {
					double want = (double)((i * 3 + j) * 5 + k);

					ck_assert(pawl_test_get(&permuted, (k * 2 + i) * 3 + j) ==
						  want);
					ck_assert(
						pawl_test_get(&flat, (i * 3 + j) * 5 + k) == want);
					ck_assert(
						pawl_test_get(&wider, (i * 3 + j) * 5 + k) == want);
					ck_assert(pawl_test_get(&wider,
							  ((2 + i) * 3 + j) * 5 + k) == want);
				}
			}
		}
	}
}
END_TEST

START_TEST(a_view_of_a_view_of_a_view)
{
	struct pawl_tensor x = counting(PAWL_DTYPE_I32, 3, PAWL_DIMS(4, 5, 6)), a, b, c;
	struct pawl_tensor out = pawl_test_tensor(PAWL_DTYPE_I32, 4, PAWL_DIMS(2, 2, 3, 2));
	int64_t n, i, j, k;

	/* c[n, i, j, k] = x[1 + j, 2 + k, 3 + i] */
	pawl_tensor_slice(&x, PAWL_DIMS(1, 2, 3), PAWL_DIMS(4, 4, 5), &a);
	pawl_tensor_permute(&a, PAWL_DIMS(2, 0, 1), &b);
	pawl_tensor_broadcast(&b, 4, PAWL_DIMS(2, 2, 3, 2), &c);
	pawl_tensor_copy(&c, &out);
	for (n = 0; n < 2; n++) {
		for (i = 0; i < 2; i++) {
			for (j = 0; j < 3; j++) {
				for (k = 0; k < 2; k++)
					ck_assert_int_eq(pawl_tensor_load_i64(&out,
								 ((n * 2 + i) * 3 + j) * 2 + k),
						(((1 + j) * 5 + 2 + k) * 6 + 3 + i) % 100);
			}
		}
	}
}
END_TEST

/* Views of blocked types go by blocks and keep every bit. */
START_TEST(blocks_move_whole)
{
	struct pawl_tensor x = pawl_test_tensor(PAWL_DTYPE_Q4_K, 3, PAWL_DIMS(3, 2, 512));
	struct pawl_tensor cut = pawl_test_tensor(PAWL_DTYPE_Q4_K, 3, PAWL_DIMS(2, 2, 256));
	struct pawl_tensor turned = pawl_test_tensor(PAWL_DTYPE_Q4_K, 3, PAWL_DIMS(2, 2, 256));
	struct pawl_attrs attrs = pawl_attrs_default();
	const size_t block = 144;
	int64_t i, j;

	pawl_test_fill(&x, 1.0);
	attrs.start[0] = 1;
	attrs.start[2] = 256;
	pawl_test_run(false, PAWL_OP_SLICE, &attrs, &x, 1, &cut);
	attrs.perm[0] = 1;
	attrs.perm[1] = 0;
	attrs.perm[2] = 2;
	pawl_test_run(false, PAWL_OP_PERMUTE, &attrs, &cut, 1, &turned);
	for (i = 0; i < 2; i++) {
		for (j = 0; j < 2; j++) {
			const char *from = x.data + (size_t)(((1 + i) * 2 + j) * 2 + 1) * block;

			ck_assert_mem_eq(cut.data + (size_t)(i * 2 + j) * block, from, block);
			ck_assert_mem_eq(turned.data + (size_t)(j * 2 + i) * block, from, block);
		}
	}
}
END_TEST

START_TEST(k16_puts_positions_into_lanes)
{
	const int64_t heads = 2, positions = 20, d = 3;
	struct pawl_tensor rows = counting(PAWL_DTYPE_F32, 4, PAWL_DIMS(1, heads, positions, d));
	struct pawl_tensor k16 = pawl_test_k16(PAWL_DTYPE_F32, rows.dim), window;
	struct pawl_tensor back = pawl_test_tensor(PAWL_DTYPE_F32, 4, rows.dim);
	const float *stored = (const float *)(const void *)k16.data;
	int64_t h, p, i, bytes;

	ck_assert_int_eq(pawl_tensor_init(&window, PAWL_DTYPE_F32, PAWL_LAYOUT_K16, false, 4,
				 rows.dim, &bytes, NULL),
		PAWL_OK);
	ck_assert_int_eq(bytes, heads * 32 * d * 4);
	pawl_test_run(false, PAWL_OP_COPY, NULL, &rows, 1, &k16);
	pawl_test_run(false, PAWL_OP_COPY, NULL, &k16, 1, &back);
	for (h = 0; h < heads; h++) {
		for (p = 0; p < positions; p++) {
			for (i = 0; i < d; i++) {
				float want = (float)(((h * positions + p) * d + i) % 100);

				ck_assert(stored[((h * 2 + p / 16) * d + i) * 16 + p % 16] == want);
				ck_assert(
					pawl_test_get(&back, (h * positions + p) * d + i) == want);
			}
		}
	}
}
END_TEST

START_TEST(writes_land_where_they_say_in_every_type)
{
	struct pawl_attrs fixed = pawl_attrs_default(), moving = pawl_attrs_default();
	int c;
	int64_t i, j;

	fixed.start[0] = 2;
	fixed.start[1] = 1;
	moving.start[1] = 1;
	moving.axis = 0;
	for (c = 0; c < 2 * N_PLAIN; c++) {
		enum pawl_dtype dtype = plain[c / 2];
		struct pawl_tensor in[3] = {counting(dtype, 2, PAWL_DIMS(5, 4)),
			pawl_test_tensor(dtype, 2, PAWL_DIMS(3, 2)), pawl_test_int(2)};
		struct pawl_tensor out = pawl_test_tensor(dtype, 2, PAWL_DIMS(5, 4));

		for (i = 0; i < 6; i++)
			pawl_test_set(&in[1], i, (double)(100 + i));
		pawl_test_run(false, PAWL_OP_WRITE_SLICE, c % 2 ? &moving : &fixed, in,
			c % 2 ? 3 : 2, &out);
		for (i = 0; i < 5; i++) {
			for (j = 0; j < 4; j++) {
				bool is_new = i >= 2 && j >= 1 && j < 3;

				ck_assert(pawl_test_get(&out, i * 4 + j) ==
					  (double)(is_new ? 100 + (i - 2) * 2 + j - 1 : i * 4 + j));
				ck_assert(pawl_test_get(&in[0], i * 4 + j) == (double)(i * 4 + j));
			}
		}
	}
}
END_TEST

START_TEST(a_dynamic_start_is_checked)
{
	static const struct {
		int64_t start;
		enum pawl_status want;
	} cases[] = {{0, PAWL_OK}, {2, PAWL_OK}, {3, PAWL_CAPACITY}, {-1, PAWL_INVALID_ARGUMENT},
		{INT64_MAX, PAWL_CAPACITY}, {INT64_MIN, PAWL_INVALID_ARGUMENT}};
	struct pawl_attrs attrs = pawl_attrs_default();
	struct pawl_tensor in[3] = {counting(PAWL_DTYPE_F32, 2, PAWL_DIMS(5, 1)),
		counting(PAWL_DTYPE_F32, 2, PAWL_DIMS(3, 1))};
	struct pawl_tensor out = pawl_test_tensor(PAWL_DTYPE_F32, 2, PAWL_DIMS(5, 1));
	struct pawl_ref_call call = {.attrs = &attrs, .inputs = in, .n_inputs = 2, .out = &out};
	size_t i;

	attrs.axis = 0;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pawl_error err;

		in[2] = pawl_test_int(cases[i].start);
		attrs.sym = -1;
		ck_assert_int_eq(
			pawl_test_call(false, PAWL_OP_WRITE_SLICE, &attrs, in, 3, &out, &err),
			cases[i].want);
		attrs.sym = 0;
		call.sym = cases[i].start;
		ck_assert_int_eq(pawl_ref_WRITE_SLICE(&call, &err), cases[i].want);
		if (!cases[i].want)
			ck_assert(pawl_test_get(&out, cases[i].start + 2) == 2);
	}
}
END_TEST

START_TEST(a_ring_splits_at_its_seam)
{
	/* Dim 6, modulus 5: the last row is never written. */
	static const int64_t starts[] = {0, 3, 4, 13, 1000000004};
	struct pawl_attrs attrs = pawl_attrs_default();
	struct pawl_tensor in[3] = {counting(PAWL_DTYPE_F32, 2, PAWL_DIMS(6, 2)),
		pawl_test_tensor(PAWL_DTYPE_F32, 2, PAWL_DIMS(3, 2))};
	struct pawl_tensor out = pawl_test_tensor(PAWL_DTYPE_F32, 2, PAWL_DIMS(6, 2));
	struct pawl_error err;
	size_t c;
	int64_t i, j;

	attrs.axis = 0;
	attrs.modulus = 5;
	for (i = 0; i < 6; i++)
		pawl_test_set(&in[1], i, (double)(100 + i));
	for (c = 0; c < 2 * sizeof(starts) / sizeof(starts[0]); c++) {
		int64_t start = starts[c / 2];

		in[2] = pawl_test_tensor(c % 2 ? PAWL_DTYPE_U32 : PAWL_DTYPE_I64, 0, NULL);
		pawl_tensor_store_i64(&in[2], 0, start);
		pawl_test_run(false, PAWL_OP_WRITE_SLICE_ROTATING, &attrs, in, 3, &out);
		for (i = 0; i < 6; i++) {
			int64_t slab = i == 5 ? 3 : (i - start % 5 + 5) % 5;

			for (j = 0; j < 2; j++)
				ck_assert(pawl_test_get(&out, i * 2 + j) ==
					  (double)(slab < 3 ? 100 + slab * 2 + j : i * 2 + j));
		}
	}
	in[2] = pawl_test_int(-1);
	ck_assert_int_eq(
		pawl_test_call(false, PAWL_OP_WRITE_SLICE_ROTATING, &attrs, in, 3, &out, &err),
		PAWL_INVALID_ARGUMENT);
}
END_TEST

START_TEST(rows_go_to_their_index)
{
	struct pawl_tensor in[3] = {counting(PAWL_DTYPE_F16, 3, PAWL_DIMS(4, 1, 3)),
		pawl_test_tensor(PAWL_DTYPE_F16, 3, PAWL_DIMS(4, 1, 3)),
		pawl_test_tensor(PAWL_DTYPE_I64, 1, PAWL_DIMS(4))};
	struct pawl_tensor out = pawl_test_tensor(PAWL_DTYPE_F16, 3, PAWL_DIMS(4, 1, 3));
	static const int64_t index[] = {3, -1, 0, 3}, source[] = {2, -1, -1, 3};
	struct pawl_error err;
	int64_t i;

	for (i = 0; i < 12; i++)
		pawl_test_set(&in[1], i, (double)(100 + i));
	for (i = 0; i < 4; i++)
		pawl_tensor_store_i64(&in[2], i, index[i]);
	pawl_test_run(false, PAWL_OP_WRITE_ROWS, NULL, in, 3, &out);
	for (i = 0; i < 12; i++)
		ck_assert(pawl_test_get(&out, i) ==
			  (double)(source[i / 3] < 0 ? i : 100 + source[i / 3] * 3 + i % 3));
	pawl_tensor_store_i64(&in[2], 1, 4);
	ck_assert_int_eq(
		pawl_test_call(false, PAWL_OP_WRITE_ROWS, NULL, in, 3, &out, &err), PAWL_CAPACITY);
}
END_TEST

START_TEST(gather_decodes_rows_of_every_type)
{
	int dtype, wide;
	int64_t t, i;
	struct pawl_error err;

	for (dtype = 0; dtype < 2 * PAWL_N_DTYPES; dtype++) {
		const struct pawl_dtype_info *info = pawl_dtype_info(dtype / 2);
		int64_t k = info->block > 1 ? 3 * info->block : 7;
		struct pawl_tensor in[2], out;

		wide = dtype % 2;
		if (info->kind != PAWL_KIND_FLOAT && info->kind != PAWL_KIND_QUANT)
			continue;
		in[0] = pawl_test_tensor(dtype / 2, 2, PAWL_DIMS(9, k));
		in[1] = pawl_test_tensor(wide ? PAWL_DTYPE_U32 : PAWL_DTYPE_I32, 1, PAWL_DIMS(3));
		out = wide ? pawl_test_wide(2, PAWL_DIMS(3, k))
			   : pawl_test_tensor(PAWL_DTYPE_F32, 2, PAWL_DIMS(3, k));
		pawl_test_fill(&in[0], 1.0);
		pawl_tensor_store_i64(&in[1], 0, 8);
		pawl_tensor_store_i64(&in[1], 2, 5);
		ck_assert_int_eq(
			pawl_test_call(wide, PAWL_OP_GATHER, NULL, in, 2, &out, &err), PAWL_OK);
		for (t = 0; t < 3; t++) {
			for (i = 0; i < k; i++) {
				double want = pawl_test_get(
					&in[0], pawl_tensor_load_i64(&in[1], t) * k + i);

				ck_assert(pawl_test_get(&out, t * k + i) ==
					  (wide ? want : (float)want));
			}
		}
		pawl_tensor_store_i64(&in[1], 1, wide ? 9 : -1);
		ck_assert_int_eq(
			pawl_test_call(wide, PAWL_OP_GATHER, NULL, in, 2, &out, &err), PAWL_OK);
		for (i = 0; i < k; i++) {
			ck_assert(isnan(pawl_test_get(&out, k + i)));
			ck_assert(!isnan(pawl_test_get(&out, 2 * k + i)));
		}
	}
}
END_TEST

START_TEST(concat_goes_along_any_axis)
{
	struct pawl_attrs attrs = pawl_attrs_default();
	int64_t axis, i, j;

	for (axis = 0; axis < 2; axis++) {
		struct pawl_tensor in[3] = {counting(PAWL_DTYPE_F16, 2, PAWL_DIMS(2, 2)),
			counting(PAWL_DTYPE_F16, 2, axis ? PAWL_DIMS(2, 3) : PAWL_DIMS(3, 2)),
			counting(PAWL_DTYPE_F16, 2, axis ? PAWL_DIMS(2, 1) : PAWL_DIMS(1, 2))};
		struct pawl_tensor out = pawl_test_tensor(
			PAWL_DTYPE_F16, 2, axis ? PAWL_DIMS(2, 6) : PAWL_DIMS(6, 2));

		attrs.axis = axis;
		pawl_test_run(false, PAWL_OP_CONCAT, &attrs, in, 3, &out);
		for (i = 0; i < out.dim[0]; i++) {
			for (j = 0; j < out.dim[1]; j++) {
				int64_t along = axis ? j : i, part = along < 2   ? 0
								     : along < 5 ? 1
										 : 2;
				int64_t at = along - (part == 0 ? 0 : part == 1 ? 2 : 5);
				int64_t source = axis ? i * in[part].dim[1] + at : at * 2 + j;

				ck_assert(
					pawl_test_get(&out, i * out.dim[1] + j) == (double)source);
			}
		}
	}
}
END_TEST

START_TEST(leaves_fill_their_storage)
{
	static const double values[3] = {0.1, -2, 1e30};
	struct pawl_attrs attrs = pawl_attrs_default();
	struct pawl_tensor x = pawl_test_tensor(PAWL_DTYPE_F32, 1, PAWL_DIMS(3));
	struct pawl_tensor n = pawl_test_tensor(PAWL_DTYPE_I64, 1, PAWL_DIMS(2));

	pawl_test_run(false, PAWL_OP_ALLOC, &attrs, NULL, 0, &x);
	ck_assert(isnan(pawl_test_get(&x, 2)));
	attrs.fill = PAWL_FILL_ZERO;
	pawl_test_run(false, PAWL_OP_ALLOC, &attrs, NULL, 0, &x);
	ck_assert(pawl_test_get(&x, 2) == 0);
	attrs.role = PAWL_ROLE_LITERAL;
	attrs.values = values;
	attrs.n_values = 3;
	pawl_test_run(false, PAWL_OP_CONST, &attrs, NULL, 0, &x);
	ck_assert(pawl_test_get(&x, 0) == 0.1f && pawl_test_get(&x, 1) == -2 &&
		  pawl_test_get(&x, 2) == 1e30f);
	attrs.values = (double[]){-0x1p53};
	attrs.n_values = 1;
	pawl_test_run(false, PAWL_OP_CONST, &attrs, NULL, 0, &n);
	ck_assert_int_eq(pawl_tensor_load_i64(&n, 1), -((int64_t)1 << 53));
	pawl_test_run(false, PAWL_OP_ZERO_FILL, &attrs, &x, 1, &x);
	ck_assert(pawl_test_get(&x, 0) == 0);
}
END_TEST

START_TEST(impossible_tensors_are_refused)
{
	struct pawl_tensor t;
	int64_t bytes;

	ck_assert_int_eq(pawl_tensor_init(&t, PAWL_DTYPE_F32, PAWL_LAYOUT_ROWS, false, 1,
				 PAWL_DIMS(-1), &bytes, NULL),
		PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(pawl_tensor_init(&t, PAWL_DTYPE_Q8_0, PAWL_LAYOUT_ROWS, false, 2,
				 PAWL_DIMS(32, 31), &bytes, NULL),
		PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(pawl_tensor_init(&t, PAWL_DTYPE_Q8_0, PAWL_LAYOUT_ROWS, false, 0, NULL,
				 &bytes, NULL),
		PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(pawl_tensor_init(&t, PAWL_DTYPE_F32, PAWL_LAYOUT_ROWS, false, 2,
				 PAWL_DIMS((int64_t)1 << 40, (int64_t)1 << 40), &bytes, NULL),
		PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(pawl_tensor_init(&t, PAWL_DTYPE_F32, PAWL_LAYOUT_ROWS, false, 2,
				 PAWL_DIMS((int64_t)1 << 31, (int64_t)1 << 31), &bytes, NULL),
		PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(pawl_tensor_init(&t, PAWL_DTYPE_F32, PAWL_LAYOUT_K16, false, 4,
				 PAWL_DIMS(1, 1, INT64_MAX, 1), &bytes, NULL),
		PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(pawl_tensor_init(&t, PAWL_DTYPE_Q8_0, PAWL_LAYOUT_ROWS, false, 2,
				 PAWL_DIMS(3, 64), &bytes, NULL),
		PAWL_OK);
	ck_assert_int_eq(bytes, 3 * 2 * 34);
}
END_TEST

Suite *
pawl_ref_state_suite(void)
{
	Suite *suite = suite_create("ref_state");
	TCase *tcase = tcase_create("ref_state");

	tcase_add_checked_fixture(tcase, pawl_tensors_begin, pawl_tensors_end);
	tcase_add_test(tcase, views_move_every_plain_type);
	tcase_add_test(tcase, a_view_of_a_view_of_a_view);
	tcase_add_test(tcase, blocks_move_whole);
	tcase_add_test(tcase, k16_puts_positions_into_lanes);
	tcase_add_test(tcase, writes_land_where_they_say_in_every_type);
	tcase_add_test(tcase, a_dynamic_start_is_checked);
	tcase_add_test(tcase, a_ring_splits_at_its_seam);
	tcase_add_test(tcase, rows_go_to_their_index);
	tcase_add_test(tcase, gather_decodes_rows_of_every_type);
	tcase_add_test(tcase, concat_goes_along_any_axis);
	tcase_add_test(tcase, leaves_fill_their_storage);
	tcase_add_test(tcase, impossible_tensors_are_refused);
	suite_add_tcase(suite, tcase);
	return suite;
}

/*
 * Packing: every number of a matrix is found again where codegen/pack.h says, in all types; the
 * filled-up rows are zero; tiles are independent.
 */
#include "codegen/pack.h"
#include "ir/half.h"
#include "ir/weight_block.h"

#include "tests/suites.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { K = 512, N = 37 };

static const enum pawl_dtype types[] = {PAWL_DTYPE_F32, PAWL_DTYPE_F16, PAWL_DTYPE_BF16,
	PAWL_DTYPE_Q4_0, PAWL_DTYPE_Q4_1, PAWL_DTYPE_Q5_0, PAWL_DTYPE_Q5_1, PAWL_DTYPE_Q8_0,
	PAWL_DTYPE_Q4_K, PAWL_DTYPE_Q5_K, PAWL_DTYPE_Q6_K};

enum { N_TYPES = sizeof(types) / sizeof(types[0]) };

static uint8_t *
random_bytes(size_t n)
{
	uint8_t *bytes = malloc(n);
	uint64_t state = 7;
	size_t i;

	ck_assert_ptr_nonnull(bytes);
	for (i = 0; i < n; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		bytes[i] = (uint8_t)(state >> 56);
	}
	return bytes;
}

/* The stored integer of row r, column c of a tile's block, by the header's words. */
static int
stored(const struct pawl_pack_format *f, const uint8_t *block, int r, int c)
{
	const uint8_t *planes = block + f->plane_at, *high = block + f->high_at;
	int v = c / 4, i = 4 * r + c % 4, w;
	uint64_t word;

	if (f->planes == 8)
		return planes[64 * v + i];
	w = v < 4 ? planes[64 * v + i] & 15 : planes[64 * (v - 4) + i] >> 4;
	if (f->planes == 5) {
		memcpy(&word, high + 8 * v, sizeof(word));
		w |= (int)(word >> i & 1) << 4;
	}
	if (f->planes == 6)
		w |= (high[64 * (v / 4) + i] >> 2 * (v % 4) & 3) << 4;
	return w;
}

static float
half_at(const uint8_t *at, int r)
{
	uint16_t half;

	memcpy(&half, at + 2 * r, sizeof(half));
	return pawl_f32_from_f16(half);
}

static bool
same(float x, float y)
{
	return pawl_f32_bits(x) == pawl_f32_bits(y);
}

/* Row r of block b of a tile holds columns 32 part .. of a stored block. */
static void
check_block(const struct pawl_pack_format *f, const uint8_t *tile, int b, int r,
	const struct pawl_weight_block *block, int part)
{
	const uint8_t *packed = tile + pawl_pack_block_at(f, b);
	const uint8_t *header = tile + pawl_pack_header_at(f, b);
	const uint8_t *bytes = header + 64 + 32 * (b % 8);
	int c;

	for (c = 0; c < 32; c++)
		ck_assert_int_eq(stored(f, packed, r, c) - f->zero, block->q[32 * part + c]);
	ck_assert_int_eq(f->has_offset, pawl_weight_has_offset(block));
	if (f->group == 1) {
		ck_assert(same(half_at(packed + f->scale_at, r), pawl_weight_scale(block, 0)));
		if (f->has_offset)
			ck_assert(same(
				half_at(packed + f->offset_at, r), pawl_weight_offset(block, 0)));
		return;
	}
	ck_assert(same(half_at(header, r) * (float)(int8_t)bytes[r],
		pawl_weight_scale(block, part * f->n_scales)));
	if (f->n_scales == 2)
		ck_assert(same(half_at(header, r) * (float)(int8_t)bytes[16 + r],
			pawl_weight_scale(block, 2 * part + 1)));
	if (f->has_offset)
		ck_assert(same(-(half_at(header + 32, r) * (float)bytes[16 + r]),
			pawl_weight_offset(block, part)));
}

static void
check_quantized(enum pawl_dtype dtype, const struct pawl_pack_format *f, const uint8_t *rows,
	const uint8_t *packed)
{
	const struct pawl_dtype_info *info = pawl_dtype_info(dtype);
	struct pawl_weight_block block;
	int n, b, part;

	for (n = 0; n < N; n++) {
		for (b = 0; b < K / info->block; b++) {
			pawl_weight_block_unpack(dtype,
				rows + (size_t)n * (size_t)pawl_dtype_bytes(dtype, K) +
					(size_t)(b * info->block_bytes),
				&block);
			for (part = 0; part < info->block / 32; part++)
				check_block(f, packed + n / 16 * pawl_pack_tile_bytes(f, K),
					b * info->block / 32 + part, n % 16, &block, part);
		}
	}
}

static void
check_floats(enum pawl_dtype dtype, const uint8_t *rows, const uint8_t *packed)
{
	int size = pawl_dtype_info(dtype)->block_bytes, n, k;

	for (n = 0; n < N; n++) {
		for (k = 0; k < K; k++)
			ck_assert(!memcmp(packed + ((n / 16 * K + k) * 16 + n % 16) * size,
				rows + (n * K + k) * size, (size_t)size));
	}
}

START_TEST(every_number_is_found_again)
{
	enum pawl_dtype dtype = types[_i];
	int64_t bytes = pawl_pack_bytes(dtype, N, K), i;
	uint8_t *rows = random_bytes((size_t)(N * pawl_dtype_bytes(dtype, K)));
	uint8_t *packed = malloc((size_t)bytes + 1), *again = malloc((size_t)bytes);
	struct pawl_pack_format f;

	ck_assert(packed && again && pawl_pack_format(dtype, &f));
	packed[bytes] = 0x5a;
	memset(packed, 0xff, (size_t)bytes);
	pawl_pack_tiles(dtype, N, K, rows, packed, 0, 3);
	ck_assert_int_eq(packed[bytes], 0x5a);
	if (f.planes)
		check_quantized(dtype, &f, rows, packed);
	else
		check_floats(dtype, rows, packed);
	/* Row 37 does not exist. */
	for (i = 0; f.planes && i < K / 32; i++) {
		const uint8_t *tile = packed + 2 * pawl_pack_tile_bytes(&f, K);
		const uint8_t *block = tile + pawl_pack_block_at(&f, i);

		ck_assert_int_eq(stored(&f, block, 5, (int)i), 0);
		ck_assert(same(half_at(f.group == 1 ? block : tile, 5), 0.0f));
	}
	/* Tile by tile, in any order. */
	memset(again, 0, (size_t)bytes);
	for (i = 2; i >= 0; i--)
		pawl_pack_tiles(dtype, N, K, rows, again, i, i + 1);
	ck_assert(!memcmp(again, packed, (size_t)bytes));
	free(rows);
	free(packed);
	free(again);
}
END_TEST

START_TEST(sizes)
{
	ck_assert_int_eq(pawl_pack_bytes(PAWL_DTYPE_Q4_1, 16, 32), 320);
	ck_assert_int_eq(pawl_pack_bytes(PAWL_DTYPE_Q8_0, 17, 64), 4 * 544);
	ck_assert_int_eq(pawl_pack_bytes(PAWL_DTYPE_F16, 1, 3), 3 * 32);
	ck_assert_int_eq(pawl_pack_bytes(PAWL_DTYPE_Q4_K, 16, 512), 2 * (320 + 8 * 256));
	ck_assert_int_eq(pawl_pack_bytes(PAWL_DTYPE_Q6_K, 20, 256), 2 * (320 + 8 * 384));
	ck_assert_int_eq(pawl_pack_bytes(PAWL_DTYPE_Q4_1, 16, 33), -1);
	ck_assert_int_eq(pawl_pack_bytes(PAWL_DTYPE_Q4_K, 16, 128), -1);
	ck_assert_int_eq(pawl_pack_bytes(PAWL_DTYPE_A16, 16, 32), -1);
	ck_assert_int_eq(pawl_pack_bytes(PAWL_DTYPE_F32, INT64_MAX, 32), -1);
	ck_assert_int_eq(pawl_pack_bytes(PAWL_DTYPE_F32, INT64_MAX / 64, INT64_MAX / 64), -1);
	ck_assert_int_eq(pawl_pack_bytes(PAWL_DTYPE_F32, -1, 32), -1);
}
END_TEST

Suite *
pawl_pack_suite(void)
{
	Suite *suite = suite_create("pack");
	TCase *tcase = tcase_create("pack");

	tcase_add_loop_test(tcase, every_number_is_found_again, 0, N_TYPES);
	tcase_add_test(tcase, sizes);
	suite_add_tcase(suite, tcase);
	return suite;
}

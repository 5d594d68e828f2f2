#include "codegen/pack.h"

#include "ir/weight_block.h"

#include <string.h>

bool
pawl_pack_format(enum pawl_dtype dtype, struct pawl_pack_format *out)
{
	struct pawl_pack_format f = {.n_scales = 1, .group = 1};
	int scale_bytes;

	switch (dtype) {
	case PAWL_DTYPE_F32:
	case PAWL_DTYPE_F16:
	case PAWL_DTYPE_BF16:
		f.n_scales = 0;
		f.block_bytes = PAWL_TILE_ROWS * pawl_dtype_info(dtype)->block_bytes;
		*out = f;
		return true;
	case PAWL_DTYPE_Q4_0:
		f.planes = 4;
		f.zero = 8;
		break;
	case PAWL_DTYPE_Q4_1:
		f.planes = 4;
		f.has_offset = true;
		break;
	case PAWL_DTYPE_Q5_0:
		f.planes = 5;
		f.zero = 16;
		break;
	case PAWL_DTYPE_Q5_1:
		f.planes = 5;
		f.has_offset = true;
		break;
	case PAWL_DTYPE_Q8_0:
		f.planes = 8;
		f.zero = 128;
		break;
	case PAWL_DTYPE_Q4_K:
	case PAWL_DTYPE_Q5_K:
		f.planes = dtype == PAWL_DTYPE_Q4_K ? 4 : 5;
		f.has_offset = true;
		f.group = 8;
		break;
	case PAWL_DTYPE_Q6_K:
		f.planes = 6;
		f.zero = 32;
		f.n_scales = 2;
		f.group = 8;
		break;
	case PAWL_DTYPE_I8:
	case PAWL_DTYPE_I32:
	case PAWL_DTYPE_I64:
	case PAWL_DTYPE_U32:
	case PAWL_DTYPE_A16:
	case PAWL_DTYPE_A8:
	case PAWL_N_DTYPES:
		return false;
	}
	scale_bytes = f.group == 1 ? PAWL_TILE_ROWS * 2 : 0;
	f.header_bytes = f.group == 1 ? 0 : PAWL_PACK_BYTES_AT + PAWL_PACK_BYTES * f.group;
	f.offset_at = scale_bytes;
	f.plane_at = f.offset_at + (f.has_offset ? scale_bytes : 0);
	f.high_at = f.plane_at + (f.planes == 8 ? 512 : 256);
	f.block_bytes = f.high_at + (f.planes == 5 ? 64 : f.planes == 6 ? 128 : 0);
	*out = f;
	return true;
}

int64_t
pawl_pack_bytes(enum pawl_dtype dtype, int64_t n, int64_t k)
{
	struct pawl_pack_format f;
	int64_t tiles, bytes;

	/* No type takes 64 bytes a column of a tile and more than its header on top. */
	if (!pawl_pack_format(dtype, &f) || n < 0 || k < 0 || k % pawl_dtype_info(dtype)->block ||
		n > INT64_MAX - PAWL_TILE_ROWS || k > INT64_MAX / 128)
		return -1;
	tiles = (n + PAWL_TILE_ROWS - 1) / PAWL_TILE_ROWS;
	if (__builtin_mul_overflow(tiles, pawl_pack_tile_bytes(&f, k), &bytes))
		return -1;
	return bytes;
}

static void
pack_floats(int size, int64_t k, int n_rows, const uint8_t *rows, uint8_t *tile)
{
	int64_t c;
	int r;

	for (r = 0; r < n_rows; r++) {
		for (c = 0; c < k; c++)
			memcpy(tile + (c * PAWL_TILE_ROWS + r) * size, rows + (r * k + c) * size,
				(size_t)size);
	}
}

/* 16 bytes whose low halves are columns 0 .. 15 and whose high halves are columns 16 .. 31. */
static void
put_nibbles(const struct pawl_pack_format *f, const uint8_t *nibbles, int r, uint8_t *dest)
{
	int j;

	for (j = 0; j < 4; j++)
		memcpy(dest + f->plane_at + 64 * j + 4 * r, nibbles + 4 * j, 4);
}

/* Bit c of `bits` is the fifth bit of column c. */
static void
put_fifth_bits(const struct pawl_pack_format *f, uint32_t bits, int r, uint8_t *dest)
{
	int v;

	for (v = 0; v < 8; v++) {
		uint8_t *byte = dest + f->high_at + 8 * v + r / 2;

		*byte = (uint8_t)(*byte | (bits >> 4 * v & 15) << (r % 2 * 4));
	}
}

/* The fifth and sixth bits. */
static void
put_upper_bits(const struct pawl_pack_format *f, const int8_t *q, int r, uint8_t *dest)
{
	int c;

	for (c = 0; c < PAWL_TILE_COLUMNS; c++) {
		int v = c / 4, bits = (q[c] + f->zero) >> 4;
		uint8_t *byte = dest + f->high_at + 64 * (v / 4) + 4 * r + c % 4;

		*byte = (uint8_t)(*byte | bits << 2 * (v % 4));
	}
}

static void
put_bytes(const struct pawl_pack_format *f, const int8_t *q, int r, uint8_t *dest)
{
	uint8_t *to = dest + f->plane_at + 4 * r;
	int c;

	for (c = 0; c < PAWL_TILE_COLUMNS; c++)
		to[64 * (c / 4) + c % 4] = (uint8_t)(q[c] + f->zero);
}

/* Types whose block is the tile's: the stored nibbles are already paired as the planes want. */
static void
pack_small_block(enum pawl_dtype dtype, const struct pawl_pack_format *f, const uint8_t *src, int r,
	uint8_t *dest)
{
	int scales = f->has_offset ? 4 : 2;
	uint32_t high;

	memcpy(dest + f->scale_at + 2 * r, src, 2);
	if (f->has_offset)
		memcpy(dest + f->offset_at + 2 * r, src + 2, 2);
	if (dtype == PAWL_DTYPE_Q8_0) {
		put_bytes(f, (const int8_t *)src + 2, r, dest);
		return;
	}
	if (f->planes == 5) {
		memcpy(&high, src + scales, 4);
		put_fifth_bits(f, high, r, dest);
		scales += 4;
	}
	put_nibbles(f, src + scales, r, dest);
}

/* Columns 32 part .. 32 part + 31 of a block of 256, but for the header. */
static void
pack_part(const struct pawl_pack_format *f, const struct pawl_weight_block *block, int part, int r,
	uint8_t *dest)
{
	const int8_t *q = block->q + PAWL_TILE_COLUMNS * part;
	uint8_t nibbles[16];
	uint32_t high = 0;
	int i;

	for (i = 0; i < 16; i++)
		nibbles[i] = (uint8_t)(((q[i] + f->zero) & 15) | ((q[16 + i] + f->zero) & 15) << 4);
	put_nibbles(f, nibbles, r, dest);
	if (f->planes == 6)
		put_upper_bits(f, q, r, dest);
	for (i = 0; f->planes == 5 && i < PAWL_TILE_COLUMNS; i++)
		high |= (uint32_t)(q[i] >> 4 & 1) << i;
	if (f->planes == 5)
		put_fifth_bits(f, high, r, dest);
}

static void
pack_header(const struct pawl_pack_format *f, const struct pawl_weight_block *block, int r,
	uint8_t *header)
{
	int part;

	memcpy(header + 2 * r, &block->d, 2);
	if (f->has_offset)
		memcpy(header + PAWL_PACK_LEAST_AT + 2 * r, &block->m, 2);
	for (part = 0; part < f->group; part++) {
		uint8_t *bytes = header + PAWL_PACK_BYTES_AT + PAWL_PACK_BYTES * part;

		bytes[r] = (uint8_t)block->scale[part * f->n_scales];
		bytes[PAWL_TILE_ROWS + r] =
			(uint8_t)(f->has_offset ? block->least[part] : block->scale[2 * part + 1]);
	}
}

static void
pack_quantized(enum pawl_dtype dtype, const struct pawl_pack_format *f, int64_t k, int n_rows,
	const uint8_t *rows, uint8_t *tile)
{
	const struct pawl_dtype_info *info = pawl_dtype_info(dtype);
	int parts = info->block / PAWL_TILE_COLUMNS;
	struct pawl_weight_block block;
	int64_t b;
	int r, part;

	for (r = 0; r < n_rows; r++) {
		for (b = 0; b < k / info->block; b++, rows += info->block_bytes) {
			if (parts == 1) {
				pack_small_block(
					dtype, f, rows, r, tile + pawl_pack_block_at(f, b));
				continue;
			}
			pawl_weight_block_unpack(dtype, rows, &block);
			pack_header(f, &block, r, tile + pawl_pack_header_at(f, b * parts));
			for (part = 0; part < parts; part++)
				pack_part(f, &block, part, r,
					tile + pawl_pack_block_at(f, b * parts + part));
		}
	}
}

void
pawl_pack_tiles(enum pawl_dtype dtype, int64_t n, int64_t k, const void *rows, void *dest,
	int64_t tile0, int64_t tile1)
{
	struct pawl_pack_format f;
	int64_t tile_bytes, row_bytes, tile;

	if (!pawl_pack_format(dtype, &f))
		return;
	tile_bytes = pawl_pack_tile_bytes(&f, k);
	row_bytes = pawl_dtype_bytes(dtype, k);
	for (tile = tile0; tile < tile1; tile++) {
		const uint8_t *from = (const uint8_t *)rows + tile * PAWL_TILE_ROWS * row_bytes;
		uint8_t *to = (uint8_t *)dest + tile * tile_bytes;
		int64_t left = n - tile * PAWL_TILE_ROWS;
		int n_rows = left < PAWL_TILE_ROWS ? (int)left : PAWL_TILE_ROWS;

		if (f.planes == 5 || f.planes == 6 || n_rows < PAWL_TILE_ROWS)
			memset(to, 0, (size_t)tile_bytes);
		if (f.planes)
			pack_quantized(dtype, &f, k, n_rows, from, to);
		else
			pack_floats(pawl_dtype_info(dtype)->block_bytes, k, n_rows, from, to);
	}
}

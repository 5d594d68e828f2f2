#include "codegen/ref_packed.h"

#include "codegen/pack.h"
#include "ir/decode.h"
#include "ir/half.h"

#include <math.h>
#include <string.h>

/* One row of a block: value i is scale[i / 16] * q[i] + offset. */
struct piece {
	float scale[2], offset;
	int32_t q[PAWL_TILE_COLUMNS];
};

static float
read_half(const uint8_t *at, int r)
{
	uint16_t half;

	memcpy(&half, at + 2 * r, sizeof(half));
	return pawl_f32_from_f16(half);
}

/* Scales and offset of row r of block b. */
static void
read_scales(const struct pawl_pack_format *f, const uint8_t *tile, int64_t b, int r,
	struct piece *piece)
{
	const uint8_t *block = tile + pawl_pack_block_at(f, b);
	const uint8_t *header = tile + pawl_pack_header_at(f, b);
	const uint8_t *bytes = header + PAWL_PACK_BYTES_AT + PAWL_PACK_BYTES * (b % f->group);

	piece->offset = 0.0f;
	if (f->group == 1) {
		piece->scale[0] = piece->scale[1] = read_half(block + f->scale_at, r);
		if (f->has_offset)
			piece->offset = read_half(block + f->offset_at, r);
		return;
	}
	piece->scale[0] = read_half(header, r) * (float)(int8_t)bytes[r];
	piece->scale[1] = piece->scale[0];
	if (f->n_scales == 2)
		piece->scale[1] = read_half(header, r) * (float)(int8_t)bytes[PAWL_TILE_ROWS + r];
	if (f->has_offset)
		piece->offset = -(read_half(header + PAWL_PACK_LEAST_AT, r) *
				  (float)bytes[PAWL_TILE_ROWS + r]);
}

static int
read_integer(const struct pawl_pack_format *f, const uint8_t *block, int r, int c)
{
	int v = c / 4, i = 4 * r + c % 4, q;

	if (f->planes == 8)
		return block[f->plane_at + 64 * v + i] - f->zero;
	q = v < 4 ? block[f->plane_at + 64 * v + i] & 15 : block[f->plane_at + 64 * (v - 4) + i] >> 4;
	if (f->planes == 5)
		q |= (block[f->high_at + 8 * v + i / 8] >> i % 8 & 1) << 4;
	if (f->planes == 6)
		q |= (block[f->high_at + 64 * (v / 4) + i] >> 2 * (v % 4) & 3) << 4;
	return q - f->zero;
}

static void
read_piece(const struct pawl_pack_format *f, const uint8_t *tile, int64_t b, int r,
	struct piece *piece)
{
	const uint8_t *block = tile + pawl_pack_block_at(f, b);
	int c;

	read_scales(f, tile, b, r, piece);
	for (c = 0; c < PAWL_TILE_COLUMNS; c++)
		piece->q[c] = read_integer(f, block, r, c);
}

static float
add_products(const struct pawl_pack_format *f, const struct piece *w, float d, int32_t sum,
	const int32_t *q, float acc)
{
	int group = PAWL_TILE_COLUMNS / f->n_scales, first, i;

	for (first = 0; first < PAWL_TILE_COLUMNS; first += group) {
		int32_t s = 0;

		for (i = first; i < first + group; i++)
			s += w->q[i] * q[i];
		acc = fmaf(w->scale[first / 16] * d, (float)s, acc);
	}
	return f->has_offset ? fmaf(w->offset, d * (float)sum, acc) : acc;
}

/* The activations of block b, in whichever form they are. */
static float
add_block(const struct pawl_pack_format *f, const struct piece *w, enum pawl_dtype x_dtype,
	const void *x, int64_t b, float acc)
{
	const struct pawl_block_a16 *a16 = (const struct pawl_block_a16 *)x + b;
	const struct pawl_block_a8 *a8 = (const struct pawl_block_a8 *)x + b;
	const float *f32 = (const float *)x + b * PAWL_TILE_COLUMNS;
	int32_t q[PAWL_TILE_COLUMNS];
	int i;

	for (i = 0; i < PAWL_TILE_COLUMNS; i++) {
		if (x_dtype == PAWL_DTYPE_A16)
			q[i] = 128 * a16->hi[i] + a16->lo[i];
		else if (x_dtype == PAWL_DTYPE_A8)
			q[i] = a8->q[i];
		else
			acc = fmaf(fmaf(w->scale[i / 16], (float)w->q[i], w->offset), f32[i], acc);
	}
	if (x_dtype == PAWL_DTYPE_A16)
		return add_products(f, w, a16->d, a16->sum, q, acc);
	return x_dtype == PAWL_DTYPE_A8 ? add_products(f, w, a8->d, a8->sum, q, acc) : acc;
}

float
pawl_packed_dot(enum pawl_dtype w_dtype, const void *w, int64_t k, int64_t row,
	enum pawl_dtype x_dtype, const void *x)
{
	struct pawl_pack_format f;
	int64_t n_blocks, b;
	const uint8_t *tile;
	int r = (int)(row % PAWL_TILE_ROWS);
	float acc = 0.0f;

	pawl_pack_format(w_dtype, &f);
	n_blocks = f.planes ? k / PAWL_TILE_COLUMNS : k;
	tile = (const uint8_t *)w + row / PAWL_TILE_ROWS * pawl_pack_tile_bytes(&f, k);
	for (b = 0; b < n_blocks; b++) {
		struct piece piece;
		float value;

		if (f.planes) {
			read_piece(&f, tile, b, r, &piece);
			acc = add_block(&f, &piece, x_dtype, x, b, acc);
		} else {
			pawl_decode_f32(w_dtype,
				tile + pawl_pack_block_at(&f, b) + pawl_dtype_bytes(w_dtype, r), 1, &value);
			acc = fmaf(value, ((const float *)x)[b], acc);
		}
	}
	return acc;
}

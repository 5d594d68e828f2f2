/*
 * Packed weights, layout TILE16 of a matrix w[n, k].
 *
 * Rows are taken 16 at a time (the last tile is filled up with zero rows), columns in blocks of
 * 32.  Tile after tile; in a tile block after block; a block of a quantized type holds, for its
 * 16 rows r and 32 columns c:
 *
 *   scales   d[r]                     f16 for q4_0 q4_1 q5_0 q5_1 q8_0
 *            d[r] (or d0[r], d1[r])   f32 for q4_k q5_k (d = super-block d * sub-block scale,
 *                                     exact in f32) and q6_k (two: columns 0-15, 16-31)
 *   offsets  m[r]                     same type; q4_1 q5_1 (m), q4_k q5_k (-dmin * min)
 *   planes   the integers w, unsigned: value = d * (w - z) + m with z of the type
 *            4 bits (q4_0 q4_1 q4_k): 256 bytes; byte 64 j + 4 r + i holds column 4 j + i in the
 *                low and column 16 + 4 j + i in the high nibble, j = 0..3, i = 0..3
 *            5 bits (q5_0 q5_1 q5_k): as 4 bits, then 64 bytes: bit r % 8 ... see codegen/pack.c
 *            8 bits (q8_0, q6_k): 512 bytes; byte 64 j + 4 r + i holds column 4 j + i, j = 0..7
 *
 *   z: q4_0 8, q5_0 16, q8_0 128, q6_k 32, else 0.
 *
 * F32, F16, BF16: for each column c the 16 values of the rows, 16 * element bytes; no blocks.
 * Packing is lossless.
 */
#ifndef PAWL_CODEGEN_PACK_H
#define PAWL_CODEGEN_PACK_H

#include "ir/status.h"
#include "ir/type.h"

struct pawl_pack_format {
	int planes;          /* bits of a plane entry: 4, 5, 8; 0 for float types */
	int zero;            /* z */
	int n_scales;        /* 1, or 2 for q6_k */
	bool has_offset;
	bool wide_scales;    /* f32 scales and offsets instead of f16 */
	int scale_at, offset_at, plane_at, high_at; /* byte offsets in a block; high_at: fifth bits */
	int block_bytes;     /* per 16 rows x 32 columns; float types: per 16 rows x 1 column */
};

/* False for types that have no packed form (integers, activations). */
bool pawl_pack_format(enum pawl_dtype dtype, struct pawl_pack_format *out);
/* Bytes of the packed form of n x k. */
int64_t pawl_pack_bytes(enum pawl_dtype dtype, int64_t n, int64_t k);
/*
 * Packs tiles [tile0, tile1) of row-major rows (ggml block layout) into dest (start of the whole
 * packed matrix).  Disjoint tile ranges may be packed by different threads.
 */
void pawl_pack_tiles(enum pawl_dtype dtype, int64_t n, int64_t k, const void *rows, void *dest,
	int64_t tile0, int64_t tile1);

#endif

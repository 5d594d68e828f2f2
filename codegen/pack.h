/*
 * Packed weights, layout TILE16 of a matrix w[n, k].
 *
 * Rows are taken 16 at a time (the last tile is filled up with zero bytes), columns in blocks of
 * 32.  Tile after tile; in a tile block after block; a block of a quantized type holds, for its
 * 16 rows r and 32 columns c:
 *
 *   scales   d[r]                     f16 for q4_0 q4_1 q5_0 q5_1 q8_0
 *            d[r] (or d0[r], d1[r])   f32 for q4_k q5_k (super-block d * sub-block scale, exact
 *                                     in f32) and q6_k (two: columns 0-15, 16-31)
 *   offsets  m[r]                     same type; q4_1 q5_1 (m), q4_k q5_k (-dmin * min)
 *   planes   the integers w, unsigned: value = d * (w - z) + m with z of the type.  Column c
 *            is byte c % 4 of row r in vector c / 4:
 *            4 bits (q4_0 q4_1 q4_k): 256 bytes; vector v < 4 is the low nibble of byte
 *                64 v + 4 r + c % 4, vector v >= 4 the high nibble of byte 64 (v - 4) + 4 r + c % 4
 *            5 bits (q5_0 q5_1 q5_k): as 4 bits; the fifth bits of vector v are the 64 bits of
 *                the little-endian word at high_at + 8 v, bit 4 r + c % 4
 *            8 bits (q8_0, q6_k): 512 bytes; vector v is byte 64 v + 4 r + c % 4
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

enum { PAWL_TILE_ROWS = 16, PAWL_TILE_COLUMNS = 32 };

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
/*
 * Bytes of the packed form of n x k; -1 when the type has none, when k is no multiple of its
 * block, or when the size overflows.
 */
int64_t pawl_pack_bytes(enum pawl_dtype dtype, int64_t n, int64_t k);
/*
 * Packs tiles [tile0, tile1) of row-major rows (ggml block layout) into dest (start of the whole
 * packed matrix).  Disjoint tile ranges may be packed by different threads.  The type must have
 * a packed form and k be a multiple of its block.
 */
void pawl_pack_tiles(enum pawl_dtype dtype, int64_t n, int64_t k, const void *rows, void *dest,
	int64_t tile0, int64_t tile1);

#endif

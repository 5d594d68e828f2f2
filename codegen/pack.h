/*
 * Packed weights, layout TILE16 of a matrix w[n, k].
 *
 * Rows are taken 16 at a time (the last tile is filled up with zero bytes), columns in blocks of
 * 32.  Tile after tile; in a tile block after block; a block of a quantized type holds, for its
 * 16 rows r and 32 columns c:
 *
 *   scales   d[r]                     f16: q4_0 q4_1 q5_0 q5_1 q8_0
 *   offsets  m[r]                     f16: q4_1 q5_1
 *   planes   the integers w, unsigned: value = d * (w - z) + m with z of the type.  Column c
 *            is byte i = 4 r + c % 4 of vector v = c / 4, a vector having 64 bytes:
 *            low      4 bits: 256 bytes at plane_at; the low halves of the bytes are vectors
 *                     0 to 3, the high halves vectors 4 to 7.  8 bits (q8_0): 512 bytes, the
 *                     vectors one after the other.
 *            high     at high_at; bit i of the little-endian u64 number v is the fifth bit of
 *                     vector v (q5_0 q5_1 q5_k); bits 2 (v % 4) and up of byte 64 (v / 4) + i
 *                     are the fifth and sixth bit (q6_k)
 *
 *   z: q4_0 8, q5_0 16, q8_0 128, q6_k 32, else 0.
 *
 * q4_k, q5_k, q6_k: 8 blocks share a header, which comes before them:
 *
 *   at 0     d[r]                     f16
 *   at 32    dmin[r]                  f16: q4_k q5_k
 *   at 64 + 32 j, for block j:        16 bytes scale[r] and 16 bytes least[r], unsigned; of q6_k
 *            16 bytes of the scale[r] of columns 0-15 and 16 of columns 16-31, signed
 *
 * and the scale of a row is d * scale, its offset -(dmin * least); both are exact in f32.
 *
 * F32, F16, BF16: for each column c the 16 values of the rows, 16 * element bytes; no blocks.
 * Packing is lossless.
 */
#ifndef PAWL_CODEGEN_PACK_H
#define PAWL_CODEGEN_PACK_H

#include "ir/status.h"
#include "ir/type.h"

enum { PAWL_TILE_ROWS = 16, PAWL_TILE_COLUMNS = 32 };

/* Places within the header of the K types. */
enum { PAWL_PACK_LEAST_AT = 32, PAWL_PACK_BYTES_AT = 64, PAWL_PACK_BYTES = 32 };

struct pawl_pack_format {
	int planes;   /* bits of a plane entry: 4, 5, 6, 8; 0 for float types */
	int zero;     /* z */
	int n_scales; /* 1, or 2 for q6_k */
	bool has_offset;
	int group;        /* blocks that share a header; 1 for types without */
	int header_bytes; /* 0 for types without */
	int scale_at, offset_at, plane_at, high_at; /* byte offsets in a block */
	int block_bytes; /* per 16 rows x 32 columns; float types: per 16 rows x 1 column */
};

/* Where block b lies in its tile, and the header that it belongs to. */
static inline int64_t
pawl_pack_block_at(const struct pawl_pack_format *f, int64_t b)
{
	return (b / f->group + 1) * f->header_bytes + b * f->block_bytes;
}

static inline int64_t
pawl_pack_header_at(const struct pawl_pack_format *f, int64_t b)
{
	return b / f->group * (f->header_bytes + f->group * f->block_bytes);
}

/* Bytes of a tile of k columns, a multiple of the type's block. */
static inline int64_t
pawl_pack_tile_bytes(const struct pawl_pack_format *f, int64_t k)
{
	return pawl_pack_header_at(f, f->planes ? k / PAWL_TILE_COLUMNS : k);
}

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

/*
 * The type of a value: element type, dims (constant, or affine in one symbol), layout.
 * Dims count elements; axis 0 is the slowest.  Only axis 0 of a value that owns storage may be
 * symbolic, so that strides are constants.
 */
#ifndef PAWL_IR_TYPE_H
#define PAWL_IR_TYPE_H

#include "ir/dtype.h"

enum { PAWL_MAX_RANK = 5 };

/* base + factor * symbol; sym is -1 (and factor 0) for a constant. */
struct pawl_dim {
	int64_t base;
	int64_t factor;
	int32_t sym;
};

/* How elements lie in storage; names in ir/type.c. */
enum pawl_layout {
	PAWL_LAYOUT_ROWS,   /* row-major */
	/*
	 * [1, head, pos, d] stored as [head][pos / 16][d][16]: a lane is a position.  Blocks of q8_0:
	 * [head][pos / 16][d / 32] of { f16 scale[16]; i8 q[32][16]; } (ir/woven_block.h)
	 */
	PAWL_LAYOUT_K16,
	PAWL_LAYOUT_TILE16, /* weights [n, k]: 16 rows interleaved per block of columns (codegen/pack.h) */
	PAWL_N_LAYOUTS
};

struct pawl_type {
	enum pawl_dtype dtype;
	enum pawl_layout layout;
	int rank;
	struct pawl_dim dim[PAWL_MAX_RANK];
};

static inline struct pawl_dim
pawl_dim_const(int64_t n)
{
	return (struct pawl_dim){n, 0, -1};
}

static inline bool
pawl_dim_equal(struct pawl_dim a, struct pawl_dim b)
{
	return a.base == b.base && a.factor == b.factor && a.sym == b.sym;
}

const char *pawl_layout_name(enum pawl_layout layout);
bool pawl_layout_from_name(const char *name, size_t n, enum pawl_layout *out);

/* Row-major type of constant dims. */
struct pawl_type pawl_type_make(enum pawl_dtype dtype, int rank, const int64_t *dims);
bool pawl_type_equal(const struct pawl_type *a, const struct pawl_type *b);
bool pawl_type_same_dims(const struct pawl_type *a, const struct pawl_type *b);
bool pawl_type_is_static(const struct pawl_type *type);

/* Product of the dims; only for static types. */
int64_t pawl_type_elems(const struct pawl_type *type);
/* Product of all dims but the last. */
int64_t pawl_type_rows(const struct pawl_type *type);
/* The last dim; 1 for rank 0. */
int64_t pawl_type_row_length(const struct pawl_type *type);

#endif

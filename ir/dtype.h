/* Element types and their block geometry; rows in ir/dtypes.def. */
#ifndef PAWL_IR_DTYPE_H
#define PAWL_IR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pawl_dtype {
#define PAWL_DTYPE_ROW(id, name, block, bytes, ggml, kind) PAWL_DTYPE_##id,
#include "ir/dtypes.def"
	PAWL_N_DTYPES
};

enum pawl_dtype_kind { PAWL_KIND_FLOAT, PAWL_KIND_INT, PAWL_KIND_QUANT, PAWL_KIND_ACT };

struct pawl_dtype_info {
	const char *name;
	int block;       /* elements per block */
	int block_bytes; /* bytes per block */
	int ggml_type;   /* -1: none */
	enum pawl_dtype_kind kind;
};

/*
 * A block of 32 quantized activations.  Value i is d * (128 * hi[i] + lo[i]) for a16 and
 * d * q[i] for a8; sum is the exact sum of the integers (of 128 * hi + lo for a16).
 */
struct pawl_block_a16 {
	float d;
	int32_t sum;
	int8_t hi[32];
	int8_t lo[32];
};

struct pawl_block_a8 {
	float d;
	int32_t sum;
	int8_t q[32];
};

const struct pawl_dtype_info *pawl_dtype_info(enum pawl_dtype dtype);
const char *pawl_dtype_name(enum pawl_dtype dtype);
/* False when no type has that name or number. */
bool pawl_dtype_from_name(const char *name, size_t n, enum pawl_dtype *out);
bool pawl_dtype_from_ggml(uint32_t ggml_type, enum pawl_dtype *out);

static inline bool
pawl_dtype_is_float(enum pawl_dtype dtype)
{
	return pawl_dtype_info(dtype)->kind == PAWL_KIND_FLOAT;
}

static inline bool
pawl_dtype_is_blocked(enum pawl_dtype dtype)
{
	return pawl_dtype_info(dtype)->block > 1;
}

/* Bytes of n elements; n must be a multiple of the block size. */
static inline int64_t
pawl_dtype_bytes(enum pawl_dtype dtype, int64_t n)
{
	const struct pawl_dtype_info *info = pawl_dtype_info(dtype);

	return n / info->block * info->block_bytes;
}

#endif

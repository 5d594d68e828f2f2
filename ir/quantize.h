/*
 * Activation quantizers and the rounding of values to a stored type, as docs/arithmetic.md,
 * "Quantizing activations" and "Stored types", specifies them; to be called in the environment
 * of ir/fpenv.h.  Thread-safe; rows do not overlap their results.
 */
#ifndef PAWL_IR_QUANTIZE_H
#define PAWL_IR_QUANTIZE_H

#include "ir/dtype.h"

/* n values, a multiple of 32, to n / 32 blocks. */
void pawl_quantize_a16(const float *x, int64_t n, struct pawl_block_a16 *blocks);
void pawl_quantize_a8(const float *x, int64_t n, struct pawl_block_a8 *blocks);

/* F32, F16, BF16, Q8_0, A16, A8: the types that values are rounded to at run time. */
bool pawl_can_encode(enum pawl_dtype dtype);

/* n values (a multiple of the block size) to the bytes of a type that pawl_can_encode. */
void pawl_encode(enum pawl_dtype dtype, const float *x, int64_t n, void *dst);

#endif

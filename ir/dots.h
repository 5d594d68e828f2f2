/*
 * One output element of a matmul: the dot product of a row of weights with a row of
 * activations, in the order of docs/arithmetic.md.  To be called in the environment of
 * ir/fpenv.h.  k is a multiple of the weight type's block size (and of 32 for a16 and a8).
 */
#ifndef PAWL_IR_DOTS_H
#define PAWL_IR_DOTS_H

#include "ir/dtype.h"

/* w of kind QUANT: "Quantized matmul". */
float pawl_dot_a16(
	enum pawl_dtype w_dtype, const void *w, const struct pawl_block_a16 *x, int64_t k);
float pawl_dot_a8(enum pawl_dtype w_dtype, const void *w, const struct pawl_block_a8 *x, int64_t k);

/* w of kind FLOAT: "Float matmul", one ascending fma chain from +0; also q . k of attention. */
float pawl_dot_float(enum pawl_dtype w_dtype, const void *w, const float *x, int64_t k);

#endif

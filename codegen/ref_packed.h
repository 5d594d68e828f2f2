/* The dot products of ir/dots.h with a row of a packed weight (codegen/pack.h): the same bits. */
#ifndef PAWL_CODEGEN_REF_PACKED_H
#define PAWL_CODEGEN_REF_PACKED_H

#include "ir/dtype.h"

/*
 * Row `row` of w[., k] with k activations x: blocks of a16 or a8 where x_dtype says so (w of
 * kind QUANT), else f32.  In the environment of ir/fpenv.h.
 */
float pawl_packed_dot(enum pawl_dtype w_dtype, const void *w, int64_t k, int64_t row,
	enum pawl_dtype x_dtype, const void *x);

#endif

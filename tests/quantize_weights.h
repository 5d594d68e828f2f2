/*
 * Random f32 rows to the quantized weight types, for test models: every integer is rounded
 * to nearest after a plain scaling by the extremes, so that an element is off by at most half
 * a step of its group (and by the rounding of the f16 scales).
 */
#ifndef PAWL_TESTS_QUANTIZE_WEIGHTS_H
#define PAWL_TESTS_QUANTIZE_WEIGHTS_H

#include "ir/dtype.h"

/* dtype of kind QUANT or FLOAT; n is a multiple of its block size; |x| <= 1000. */
void pawl_quantize_weights(enum pawl_dtype dtype, const float *x, int64_t n, void *dst);

#endif

/*
 * The values that stored elements stand for.  n is a multiple of the type's block size; src
 * needs no alignment; src and dst do not overlap.  All types of ir/dtypes.def are decoded.
 *
 * To be called outside of the environment of ir/fpenv.h where f32 or bf16 subnormals are to
 * be seen: inside it pawl_decode_f64 reads them as zero.  Nothing else depends on it.
 */
#ifndef PAWL_IR_DECODE_H
#define PAWL_IR_DECODE_H

#include "ir/dtype.h"

/* The exact value; only an i64 beyond 2^53 is rounded (to nearest even). */
void pawl_decode_f64(enum pawl_dtype dtype, const void *src, int64_t n, double *dst);

/* The exact value rounded once, to nearest even. */
void pawl_decode_f32(enum pawl_dtype dtype, const void *src, int64_t n, float *dst);

#endif

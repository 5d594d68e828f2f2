/*
 * The pieces of pawl_exact_run (codegen/ref_ops.h), in f64; contracts as there.  Constants of
 * the planned functions (clamps, floors) do not apply: exp is e^x.
 */
#ifndef PAWL_CODEGEN_EXACT_OPS_H
#define PAWL_CODEGEN_EXACT_OPS_H

#include "codegen/ref_ops.h"

/* The ops with the flag ELEM but copy and cast. */
enum pawl_status pawl_exact_map(enum pawl_op op, const struct pawl_ref_call *call);
enum pawl_status pawl_exact_cast(const struct pawl_ref_call *call);
/* layer_norm when there are three inputs, else rms_norm. */
enum pawl_status pawl_exact_norm(const struct pawl_ref_call *call);
enum pawl_status pawl_exact_softmax(const struct pawl_ref_call *call);
enum pawl_status pawl_exact_argmax(const struct pawl_ref_call *call);
enum pawl_status pawl_exact_rope(const struct pawl_ref_call *call);
enum pawl_status pawl_exact_matmul(const struct pawl_ref_call *call);
enum pawl_status pawl_exact_batch_matmul(const struct pawl_ref_call *call);
enum pawl_status pawl_exact_attention(const struct pawl_ref_call *call, struct pawl_error *err);

/* In place; zeros when all are -inf. */
void pawl_exact_softmax_row(double *x, int64_t n);

#endif

/*
 * The reference operations: what each op of ir/ops.def computes, over tensors, one plain C
 * function an op.
 *
 *   pawl_ref_<ID>   the arithmetic that docs/arithmetic.md specifies, bit for bit; to be called
 *                   in the environment of ir/fpenv.h
 *   pawl_exact_run  the mathematical meaning: weights decoded exactly, f64 throughout, sums in
 *                   no specified order, results in wide tensors; only a cast to f16 or bf16
 *                   rounds.  To be called outside of that environment.
 *
 * A matmul of quantized weights with f32 activations (a graph before quantize-activations) is
 * a float matmul over the decoded weights.
 *
 * Ops that only move elements serve both; so do the writes, which here make a new value:
 * out = input 0 with the slab written into it.
 *
 * Thread-safe.  What the verifier of the IR guarantees is not checked again; what only a run can
 * tell is: PAWL_CAPACITY for a start or row beyond the destination, PAWL_INVALID_ARGUMENT for
 * a negative start or offset and for an id out of range.  out is unspecified after a failure.
 */
#ifndef PAWL_CODEGEN_REF_OPS_H
#define PAWL_CODEGEN_REF_OPS_H

#include "codegen/tensor.h"
#include "ir/op.h"

struct pawl_ref_call {
	const struct pawl_attrs *attrs;
	const struct pawl_tensor *inputs;
	int n_inputs;
	const struct pawl_tensor *out; /* row-major, whole; overlaps no input */
	int64_t sym;                   /* value of the symbol attrs->sym, when that names one */
	void *scratch;                 /* pawl_ref_scratch_bytes, aligned to 16 */
};

#define PAWL_OP_ROW(id, name, min, max, infer, flags, attrs, doc)                                  \
	enum pawl_status pawl_ref_##id(const struct pawl_ref_call *call, struct pawl_error *err);
#include "ir/ops.def"

/* pawl_ref_<ID> of op. */
enum pawl_status pawl_ref_run(
	enum pawl_op op, const struct pawl_ref_call *call, struct pawl_error *err);
enum pawl_status pawl_exact_run(
	enum pawl_op op, const struct pawl_ref_call *call, struct pawl_error *err);

/* What a call on these operands needs, in either way of computing; data pointers may be NULL. */
int64_t pawl_ref_scratch_bytes(enum pawl_op op, const struct pawl_tensor *inputs, int n_inputs,
	const struct pawl_tensor *out);

#endif

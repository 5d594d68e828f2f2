/*
 * Operations whose instructions differ from variant to variant, and that all give the same bits
 * (docs/arithmetic.md).  Floats are f32 scalars or vectors of any number of lanes.
 */
#ifndef PAWL_CODEGEN_LLVM_MACHINE_H
#define PAWL_CODEGEN_LLVM_MACHINE_H

#include "codegen/llvm/emit.h"

/* a * b + c, rounded once. */
LLVMValueRef pawl_machine_fma(struct pawl_emit *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c);

/* The nearest integer, ties to even, as i32; for |x| < 2^22. */
LLVMValueRef pawl_machine_nearest(struct pawl_emit *e, LLVMValueRef x);

/* Bits of f16 or bf16 (i16) to f32 and back, to nearest even. */
LLVMValueRef pawl_machine_f32_from_f16(struct pawl_emit *e, LLVMValueRef bits);
LLVMValueRef pawl_machine_f16_from_f32(struct pawl_emit *e, LLVMValueRef x);
LLVMValueRef pawl_machine_f32_from_bf16(struct pawl_emit *e, LLVMValueRef bits);
LLVMValueRef pawl_machine_bf16_from_f32(struct pawl_emit *e, LLVMValueRef x);

/*
 * acc[r] + sum over v < n, i < 4 of w[v][4 r + i] * x[v]_i for 16 lanes r, exact modulo 2^32: w[v]
 * is <64 x i8> of unsigned numbers of at most max_w, x[v]_i are the four signed bytes of the i32
 * x[v], of magnitude 127 at most.
 */
LLVMValueRef pawl_machine_dot(struct pawl_emit *e, LLVMValueRef acc, const LLVMValueRef *w,
	int max_w, const LLVMValueRef *x, int n);

/*
 * The same for numbers w[v] from -128 to 127.  pawl_machine_has_signed_dot says whether it is the
 * faster way for bytes of all sizes.
 */
LLVMValueRef pawl_machine_signed_dot(
	struct pawl_emit *e, LLVMValueRef acc, const LLVMValueRef *w, const LLVMValueRef *x, int n);
bool pawl_machine_has_signed_dot(const struct pawl_emit *e);

/* Sum of the lanes of a vector of integers, maximum of unsigned ones. */
LLVMValueRef pawl_machine_lanes_add(struct pawl_emit *e, LLVMValueRef v);
LLVMValueRef pawl_machine_lanes_umax(struct pawl_emit *e, LLVMValueRef v);

#endif

/*
 * The primitives of ir/scalar.def on f32 scalars or vectors, operation by operation as
 * ir/eval.c has them.
 */
#ifndef PAWL_CODEGEN_LLVM_EMIT_SCALAR_H
#define PAWL_CODEGEN_LLVM_EMIT_SCALAR_H

#include "codegen/llvm/emit.h"
#include "ir/eval.h"

/* x holds as many operands as the primitive's arity says, all of one type. */
LLVMValueRef pawl_emit_scalar(struct pawl_emit *e, enum pawl_scalar scalar, const LLVMValueRef *x);

LLVMValueRef pawl_emit_max(struct pawl_emit *e, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef pawl_emit_exp(struct pawl_emit *e, LLVMValueRef x);
LLVMValueRef pawl_emit_sqrt(struct pawl_emit *e, LLVMValueRef x);
LLVMValueRef pawl_emit_tanh(struct pawl_emit *e, LLVMValueRef x);

/* The sum and the maximum of 16 lanes by the tree of ir/rowops.c. */
LLVMValueRef pawl_emit_lanes_sum(struct pawl_emit *e, LLVMValueRef lanes);
LLVMValueRef pawl_emit_lanes_max(struct pawl_emit *e, LLVMValueRef lanes);

#endif

/* Weights in ggml's block layout, row-major: the integers and scales of 16 columns. */
#ifndef PAWL_CODEGEN_LLVM_EMIT_DECODE_H
#define PAWL_CODEGEN_LLVM_EMIT_DECODE_H

#include "codegen/llvm/emit.h"

/* Column l stands for scale * q[l] + offset. */
struct pawl_decoded {
	LLVMValueRef q;             /* <16 x i32> */
	LLVMValueRef scale, offset; /* f32; offset is NULL for types without */
};

/* Columns column .. column + 15 of a row; column is a multiple of 16, dtype of kind QUANT. */
void pawl_emit_decode(struct pawl_emit *e, enum pawl_dtype dtype, LLVMValueRef row,
	LLVMValueRef column, struct pawl_decoded *out);

#endif

/*
 * Blocks of q8_0 in a cache, in rows or in layout K16 (ir/woven_block.h).  Read, an element is the f32
 * scale * q, exact; a product of -0 counts as +0, as for all weights (docs/arithmetic.md).
 */
#ifndef PAWL_CODEGEN_LLVM_EMIT_BLOCKS_H
#define PAWL_CODEGEN_LLVM_EMIT_BLOCKS_H

#include "codegen/llvm/emit_access.h"

enum { PAWL_Q8_0_BLOCK = 32 };

/* A block in two vectors of 16 columns. */
struct pawl_q8_0 {
	LLVMValueRef scale; /* f16 bits: i16 */
	LLVMValueRef q[2];  /* <16 x i8> */
};

/* Stores a block to every out of op; index holds the dims as op sees them, the last one its column. */
void pawl_emit_store_block(struct pawl_emit *e, const struct pawl_step_op *op,
	const LLVMValueRef *index, const struct pawl_q8_0 *block);

/* The row of an op that copies blocks or makes zeros, stored to its outs. */
void pawl_emit_block_row(
	struct pawl_emit *e, const struct pawl_step_op *op, const LLVMValueRef *index);

/* 16 columns of one row in rows, from a multiple of 16 on (the last of the indices). */
LLVMValueRef pawl_emit_load_block(struct pawl_emit *e, const struct pawl_access *access, int rank,
	const LLVMValueRef *index);

/*
 * Column `first + i` of 16 positions in layout K16; blocks is the address of those of column 0.  The
 * scales of a `first` are read once, however many i < 32 - first % 32 there are.
 */
LLVMValueRef pawl_emit_load_woven(
	struct pawl_emit *e, LLVMValueRef blocks, LLVMValueRef first, int64_t i);

/* Bytes as 16 elements; scales is <16 x i16>, the f16 bits of each one's. */
LLVMValueRef pawl_emit_q8_0_value(struct pawl_emit *e, LLVMValueRef q, LLVMValueRef scales);

#endif

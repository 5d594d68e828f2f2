/*
 * Attention of one chunk of positions: what a unit of phase 0 computes, for all query heads that
 * share a key head.
 */
#ifndef PAWL_CODEGEN_LLVM_EMIT_ATTEND_H
#define PAWL_CODEGEN_LLVM_EMIT_ATTEND_H

#include "codegen/llvm/emit_rows.h"
#include "ir/eval_consts.h"

struct pawl_attend {
	const struct pawl_step_op *op;
	int32_t index;                 /* of op */
	int64_t heads, groups, shared; /* query heads, key heads, query heads of a key head */
	int64_t d, width;              /* of a key row, of a value row */
	LLVMValueRef offset, length,
		chunks; /* i64: position of row 0, positions, ceil(length / 128); offset is NULL
			   for a paged attention, whose rows have positions of their own */
	LLVMValueRef scores; /* scratch: f32 [shared][128] */
	LLVMValueRef parts;  /* f32 [row][head][chunk][2 + width]: maximum, sum, values */
};

/* Positions first .. end - 1 of one chunk as row `row` sees them through key head `group`. */
struct pawl_attend_unit {
	LLVMValueRef row, group, chunk, first, end;
	LLVMValueRef q;  /* address of d f32 of the first query head */
	int64_t q_bytes; /* distance of the query heads */
};

/* Where the part of (row, head, chunk) lies. */
LLVMValueRef pawl_attend_part(struct pawl_emit *e, const struct pawl_attend *a, LLVMValueRef row,
	LLVMValueRef head, LLVMValueRef chunk);

/* Where position p (i64) of the sequence of row `row` lies along the positions of k and v. */
LLVMValueRef pawl_attend_slot(
	struct pawl_emit *e, const struct pawl_attend *a, LLVMValueRef row, LLVMValueRef p);

void pawl_emit_attend_chunk(
	struct pawl_emit *e, const struct pawl_attend *a, const struct pawl_attend_unit *unit);

#endif

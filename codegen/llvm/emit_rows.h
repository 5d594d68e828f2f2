/*
 * Rows: ops of a body that are evaluated row by row (norms, softmax, quantize, argmax and the
 * elementwise ops around them), in body order.
 *
 * An elementwise op that feeds one other op is computed where it is used; what is read more than
 * once goes through a buffer of the thread's scratch.
 */
#ifndef PAWL_CODEGEN_LLVM_EMIT_ROWS_H
#define PAWL_CODEGEN_LLVM_EMIT_ROWS_H

#include "codegen/llvm/emit_value.h"

struct pawl_rows {
	bool has[PAWL_MAX_BODY_OPS];            /* ops that belong to it */
	bool keeps[PAWL_MAX_BODY_OPS];          /* the row is wanted in a buffer */
	LLVMValueRef memory[PAWL_MAX_BODY_OPS]; /* f32 buffer of one row, NULL: none */
	/* Where the blocks of a quantize's row go besides its outs; set before each row, or NULL.
	 */
	LLVMValueRef blocks[PAWL_MAX_BODY_OPS];
};

/*
 * The ops that `op` is computed from, and itself; keep: its row (or blocks) will be read whole.
 * More ops may be added by further calls; pawl_rows_allocate then takes buffers from scratch.
 */
void pawl_rows_add(struct pawl_emit *e, struct pawl_rows *rows, int32_t op, bool keep);
void pawl_rows_allocate(struct pawl_emit *e, struct pawl_rows *rows);

/* Evaluates the row at index (all dims but the last) of every op. */
void pawl_emit_row(struct pawl_emit *e, struct pawl_rows *rows, const LLVMValueRef *index);

/* The row at index of an operand, as f32 at `to`; nothing is written behind its end. */
void pawl_emit_copy_row(struct pawl_emit *e, const struct pawl_operand *operand,
	const LLVMValueRef *index, LLVMValueRef to);

/* emit_quantize.c: quantize op's row. */
void pawl_emit_quantize(
	struct pawl_emit *e, int32_t op, const LLVMValueRef *index, LLVMValueRef blocks);

#endif

/*
 * Values of a body's ops, pulled: the value of an op at a position is computed from the values
 * of its operands there, down to loads, to a row that was put into a buffer, and to values that
 * a template fixed (accumulators of a matmul).
 */
#ifndef PAWL_CODEGEN_LLVM_EMIT_VALUE_H
#define PAWL_CODEGEN_LLVM_EMIT_VALUE_H

#include "codegen/llvm/emit_access.h"

/* Forgets what was computed at the last position; to be called before going to another. */
void pawl_emit_move(struct pawl_emit *e);

LLVMValueRef pawl_emit_value(struct pawl_emit *e, int32_t op, const struct pawl_position *at);
LLVMValueRef pawl_emit_operand(
	struct pawl_emit *e, const struct pawl_operand *operand, const struct pawl_position *at);

/* Computes an op and stores it where its outs say. */
void pawl_emit_outs(struct pawl_emit *e, int32_t op, const struct pawl_position *at);

/*
 * Calls visit for every 16 columns of a row of `length` elements: in a loop while all lanes
 * are on, then for the rest under a mask.  at->index of all dims but the last is set by the
 * caller.
 */
typedef void pawl_visit_columns(struct pawl_emit *e, const struct pawl_position *at, void *arg);
void pawl_emit_columns(struct pawl_emit *e, struct pawl_dim length, int rank,
	struct pawl_position *at, pawl_visit_columns *visit, void *arg);

/* emit_gather.c, emit_batch.c: values of these ops. */
LLVMValueRef pawl_emit_gather_value(
	struct pawl_emit *e, const struct pawl_step_op *op, const struct pawl_position *at);
LLVMValueRef pawl_emit_batch_value(
	struct pawl_emit *e, const struct pawl_step_op *op, const struct pawl_position *at);

/* emit_rows.c: the elementwise half of a norm or softmax whose row scalars are known. */
LLVMValueRef pawl_emit_norm_value(struct pawl_emit *e, int32_t op, const struct pawl_position *at);

#endif

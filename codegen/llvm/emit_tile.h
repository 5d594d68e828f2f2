/*
 * The inner loop of a matmul: 16 output columns of a few rows, accumulated over the whole of K in
 * the order of docs/arithmetic.md.
 */
#ifndef PAWL_CODEGEN_LLVM_EMIT_TILE_H
#define PAWL_CODEGEN_LLVM_EMIT_TILE_H

#include "codegen/llvm/emit_value.h"

enum { MAX_TILE = 16, MAX_ZEROS = 4 };

/* x of a matmul, its rows one after the other at row_bytes: blocks of a16 or a8, or f32. */
struct pawl_activations {
	enum pawl_dtype dtype;
	LLVMValueRef base;
	int64_t row_bytes;
	LLVMValueRef rows; /* their number */
	int64_t most_rows, k;
	/*
	 * What the blocks do not hold and every tile needs, at [row][block], in scratch; NULL where
	 * no weight of the step needs it: d * (float)sum; -z * sum for each z; -z * the sums of
	 * columns 0-15 and 16-31.
	 */
	LLVMValueRef scaled_sum, half_bias;
	struct {
		int zero;
		LLVMValueRef memory;
	} bias[MAX_ZEROS];
};

/* Notes what weight w needs . */
void pawl_activations_need(struct pawl_emit *e, struct pawl_activations *x, enum pawl_dtype w);
/* Fills what was noted, from the blocks of all rows. */
void pawl_activations_fill(struct pawl_emit *e, const struct pawl_activations *x);

/*
 * acc[u * n + i]: <16 x f32> of row first_row + i (i64), i < n, for columns 16 (unit + u) .. of
 * matmul op, u < n_units; n_units * n is at most MAX_TILE.  Columns beyond the matrix hold
 * anything.
 */
void pawl_emit_tile(struct pawl_emit *e, const struct pawl_step_op *op,
	const struct pawl_activations *x, LLVMValueRef unit, int n_units, LLVMValueRef first_row,
	int n, LLVMValueRef *acc);

/* Units that are worth computing at once for n rows: one chain of fma a row is too few. */
int pawl_tile_units(const struct pawl_step_op *op, int64_t n);

#endif

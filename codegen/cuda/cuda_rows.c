/*
 * Template ROWS: a block takes a row.  Each norm, softmax or argmax has its scalars computed by
 * the whole block; its values are then elementwise, so that nothing of a row is kept.
 *
 * Order: thread t of 256 takes columns t, t + 256, ... ascending; halves of a warp are added, then
 * quarters ...; then the warps in ascending order.
 */
#include "codegen/cuda/cuda_emit.h"

#include <inttypes.h>
#include <stdio.h>

/* Column numbers are exact in f32 up to here. */
#define MOST_COLUMNS ((int64_t)1 << 24)

/* The loop over the columns that a thread takes. */
static int
columns(struct pawl_cuda_emit *e, const struct pawl_type *type)
{
	char n[32];

	snprintf(n, sizeof(n), "%" PRId64, pawl_type_row_length(type));
	return pawl_cuda_loop(e, "PAWL_THREAD", n, "PAWL_THREADS");
}

/* Operand 0 of an op at a column of the row. */
static int
x_at(struct pawl_cuda_emit *e, const struct pawl_step_op *op, const struct pawl_cuda_position *row,
	int column)
{
	struct pawl_cuda_position at = *row;

	at.index[op->inputs[0].type.rank - 1] = column;
	return pawl_cuda_operand(e, op, 0, &at);
}

/* The sum of x over the row, of (x - mean)^2 when squared; mean is a variable, 0: none. */
static int
block_sum(struct pawl_cuda_emit *e, const struct pawl_step_op *op,
	const struct pawl_cuda_position *row, bool squared, int mean)
{
	int sum = pawl_cuda_var(e, "float", "0.0f");
	int x = x_at(e, op, row, columns(e, &op->inputs[0].type));

	if (mean)
		x = pawl_cuda_let(e, "float", "v%d - v%d", x, mean);
	if (squared)
		pawl_cuda_line(e, "v%d = pawl_fma(v%d, v%d, v%d);", sum, x, x, sum);
	else
		pawl_cuda_line(e, "v%d = v%d + v%d;", sum, sum, x);
	pawl_cuda_close(e);
	return pawl_cuda_let(e, "float", "pawl_block_sum(v%d)", sum);
}

static int
block_max(struct pawl_cuda_emit *e, const struct pawl_step_op *op,
	const struct pawl_cuda_position *row)
{
	int max = pawl_cuda_var(e, "float", "-PAWL_INF");
	int x = x_at(e, op, row, columns(e, &op->inputs[0].type));

	pawl_cuda_line(e, "v%d = pawl_max(v%d, v%d);", max, max, x);
	pawl_cuda_close(e);
	return pawl_cuda_let(e, "float", "pawl_block_max(v%d)", max);
}

static void
norm_stats(struct pawl_cuda_emit *e, int32_t index, const struct pawl_cuda_position *row)
{
	const struct pawl_step_op *op = &e->step->ops[index];
	struct pawl_cuda_words n = pawl_cuda_real((double)pawl_type_row_length(&op->type));
	int mean = 0, squares;

	if (op->op == PAWL_OP_LAYER_NORM) {
		mean = block_sum(e, op, row, false, 0);
		mean = pawl_cuda_let(e, "float", "v%d / %s", mean, n.s);
	}
	squares = block_sum(e, op, row, true, mean);
	e->stat[index][0] = pawl_cuda_let(e, "float", "1.0f / pawl_sqrt(v%d / %s + %s)", squares,
		n.s, pawl_cuda_real(op->attrs.eps).s);
	e->stat[index][1] = mean;
}

static void
softmax_stats(struct pawl_cuda_emit *e, int32_t index, const struct pawl_cuda_position *row)
{
	const struct pawl_step_op *op = &e->step->ops[index];
	int max = block_max(e, op, row), shift, sum, x;

	shift = pawl_cuda_let(e, "float", "pawl_attend_shift(v%d)", max);
	sum = pawl_cuda_var(e, "float", "0.0f");
	x = x_at(e, op, row, columns(e, &op->inputs[0].type));
	pawl_cuda_line(e, "v%d = v%d + pawl_exp(v%d - v%d);", sum, sum, x, shift);
	pawl_cuda_close(e);
	e->stat[index][0] = shift;
	e->stat[index][1] = pawl_cuda_let(e, "float", "pawl_block_sum(v%d)", sum);
}

/* The lowest column of the largest value, -1 when one is a NaN; an i64. */
static void
argmax_stats(struct pawl_cuda_emit *e, int32_t index, const struct pawl_cuda_position *row)
{
	const struct pawl_step_op *op = &e->step->ops[index];
	int max, has_nan, least, column, x;

	if (pawl_type_row_length(&op->inputs[0].type) > MOST_COLUMNS)
		pawl_cuda_refuse(e, op, "a row of more than 2^24");
	max = block_max(e, op, row);
	has_nan = pawl_cuda_var(e, "float", "0.0f");
	least = pawl_cuda_var(e, "float", "%" PRId64 ".0f", MOST_COLUMNS);
	column = columns(e, &op->inputs[0].type);
	x = x_at(e, op, row, column);
	pawl_cuda_line(e, "v%d = v%d == v%d ? v%d : 1.0f;", has_nan, x, x, has_nan);
	pawl_cuda_line(e, "v%d = v%d == v%d ? pawl_min(v%d, (float)v%d) : v%d;", least, x, max,
		least, column, least);
	pawl_cuda_close(e);
	has_nan = pawl_cuda_let(e, "float", "pawl_block_max(v%d)", has_nan);
	least = pawl_cuda_let(e, "float", "-pawl_block_max(-v%d)", least);
	e->fixed[index] =
		pawl_cuda_let(e, "i64", "v%d > 0.0f ? (i64)-1 : (i64)v%d", has_nan, least);
}

void
pawl_cuda_row_stats(
	struct pawl_cuda_emit *e, int32_t first, int32_t end, const struct pawl_cuda_position *at)
{
	int32_t i;

	for (i = first; i < end; i++) {
		enum pawl_op op = e->step->ops[i].op;

		if (op == PAWL_OP_RMS_NORM || op == PAWL_OP_LAYER_NORM)
			norm_stats(e, i, at);
		else if (op == PAWL_OP_SOFTMAX)
			softmax_stats(e, i, at);
		else if (op == PAWL_OP_ARGMAX)
			argmax_stats(e, i, at);
		else if (op == PAWL_OP_QUANTIZE)
			pawl_cuda_refuse(e, &e->step->ops[i], "quantized activations");
	}
}

/* What is one number a row comes from thread 0, the rest column by column. */
static void
store_row(struct pawl_cuda_emit *e, const struct pawl_cuda_position *row, bool is_scalar)
{
	const struct pawl_step *step = e->step;
	struct pawl_cuda_position at = *row;
	bool is_open = false;
	int32_t i;

	for (i = 0; i < step->n_ops; i++) {
		const struct pawl_step_op *op = &step->ops[i];

		if (!op->n_outs || (op->op == PAWL_OP_ARGMAX) != is_scalar)
			continue;
		if (!is_scalar && !pawl_type_same_dims(&op->type, &step->ops[0].inputs[0].type))
			pawl_cuda_refuse(e, op, "rows differ within a step");
		if (is_scalar && !is_open)
			pawl_cuda_open(e, "if (PAWL_THREAD == 0)");
		else if (!is_open)
			at.index[op->type.rank - 1] = columns(e, &op->type);
		is_open = true;
		pawl_cuda_outs(e, i, &at);
	}
	if (is_open)
		pawl_cuda_close(e);
}

void
pawl_cuda_rows_kernel(struct pawl_cuda_emit *e)
{
	const struct pawl_type *type = &e->step->ops[0].inputs[0].type;
	struct pawl_cuda_position row = {.index = {0}};
	int number = pawl_cuda_loop(e, "PAWL_BLOCK", pawl_cuda_rows(type).s, "PAWL_BLOCKS");

	pawl_cuda_split_row(e, type, number, &row);
	pawl_cuda_row_stats(e, 0, e->step->n_ops, &row);
	store_row(e, &row, true);
	store_row(e, &row, false);
	pawl_cuda_close(e);
}

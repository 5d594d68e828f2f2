/*
 * Template ROWS: a block takes a row.  What a norm or softmax reads goes to shared memory; their
 * scalars come from 16 lanes of the first warp, in the order of docs/arithmetic.md, "Rows"; their
 * values are then elementwise.
 */
#include "codegen/cuda/cuda_emit.h"

#include <inttypes.h>
#include <stdio.h>

/* Column numbers are exact in f32 up to here. */
#define MOST_COLUMNS ((int64_t)1 << 24)

int
pawl_cuda_columns(struct pawl_cuda_emit *e, const struct pawl_type *type)
{
	char n[32];

	snprintf(n, sizeof(n), "%" PRId64, pawl_type_row_length(type));
	return pawl_cuda_loop(e, "PAWL_THREAD", n, "PAWL_THREADS");
}

int
pawl_cuda_x_at(struct pawl_cuda_emit *e, const struct pawl_step_op *op,
	const struct pawl_cuda_position *row, int column)
{
	int32_t index = (int32_t)(op - e->step->ops);
	struct pawl_cuda_position at = *row;

	if (e->x_row[index])
		return pawl_cuda_let(e, "float", "r%d[v%d]", e->x_row[index] - 1, column);
	at.index[op->inputs[0].type.rank - 1] = column;
	return pawl_cuda_operand(e, op, 0, &at);
}

/* Operand 0 of a row op into shared memory, while there is room: it is read several times. */
static void
stage(struct pawl_cuda_emit *e, int32_t index, const struct pawl_cuda_position *row)
{
	const struct pawl_step_op *op = &e->step->ops[index];
	const struct pawl_operand *x = &op->inputs[0];
	int64_t n = pawl_type_row_length(&x->type);
	int column;

	if (x->value >= 0 && e->row[x->value]) {
		e->x_row[index] = e->row[x->value];
		return;
	}
	if (e->shared_bytes + 4 * n > PAWL_CUDA_SHARED_BYTES)
		return;
	e->shared_bytes += 4 * n;
	pawl_cuda_line(e, "PAWL_SHARED float r%" PRId32 "[%" PRId64 "];", index, n);
	column = pawl_cuda_columns(e, &x->type);
	pawl_cuda_line(
		e, "r%" PRId32 "[v%d] = v%d;", index, column, pawl_cuda_x_at(e, op, row, column));
	pawl_cuda_close(e);
	pawl_cuda_line(e, "PAWL_SYNC();");
	e->x_row[index] = index + 1;
	if (x->value >= 0)
		e->row[x->value] = index + 1;
}

/* Opens the loop of a lane of 16 over its columns; in the first warp, whose halves do the same. */
static int
open_lanes(struct pawl_cuda_emit *e, const struct pawl_step_op *op)
{
	char n[32];

	snprintf(n, sizeof(n), "%" PRId64, pawl_type_row_length(&op->inputs[0].type));
	pawl_cuda_open(e, "if (PAWL_THREAD < PAWL_WARP)");
	return pawl_cuda_loop(e, "PAWL_THREAD % PAWL_LANES", n, "PAWL_LANES");
}

static int
close_lanes(struct pawl_cuda_emit *e, const char *tree, int lane)
{
	pawl_cuda_close(e);
	pawl_cuda_close(e);
	return pawl_cuda_let(e, "float", "pawl_broadcast(pawl_tree_%s(v%d))", tree, lane);
}

/* The sum of x over the row, of (x - mean)^2 when squared; mean is a variable, 0: none. */
static int
row_sum(struct pawl_cuda_emit *e, const struct pawl_step_op *op,
	const struct pawl_cuda_position *row, bool squared, int mean)
{
	int lane = pawl_cuda_var(e, "float", "0.0f");
	int x = pawl_cuda_x_at(e, op, row, open_lanes(e, op));

	if (mean)
		x = pawl_cuda_let(e, "float", "v%d - v%d", x, mean);
	if (squared)
		pawl_cuda_line(e, "v%d = pawl_fma(v%d, v%d, v%d);", lane, x, x, lane);
	else
		pawl_cuda_line(e, "v%d = v%d + v%d;", lane, lane, x);
	return close_lanes(e, "sum", lane);
}

static void
norm_stats(struct pawl_cuda_emit *e, int32_t index, const struct pawl_cuda_position *row)
{
	const struct pawl_step_op *op = &e->step->ops[index];
	struct pawl_cuda_words n = pawl_cuda_real((double)pawl_type_row_length(&op->type));
	int mean = 0, squares;

	stage(e, index, row);
	if (op->op == PAWL_OP_LAYER_NORM) {
		mean = row_sum(e, op, row, false, 0);
		mean = pawl_cuda_let(e, "float", "v%d / %s", mean, n.s);
	}
	squares = row_sum(e, op, row, true, mean);
	e->stat[index][0] = pawl_cuda_let(e, "float", "1.0f / pawl_sqrt(v%d / %s + %s)", squares,
		n.s, pawl_cuda_real(op->attrs.eps).s);
	e->stat[index][1] = mean;
}

static void
softmax_stats(struct pawl_cuda_emit *e, int32_t index, const struct pawl_cuda_position *row)
{
	const struct pawl_step_op *op = &e->step->ops[index];
	int lane, shift, x;

	stage(e, index, row);
	lane = pawl_cuda_var(e, "float", "-PAWL_INF");
	x = pawl_cuda_x_at(e, op, row, open_lanes(e, op));
	pawl_cuda_line(e, "v%d = pawl_max(v%d, v%d);", lane, lane, x);
	shift = close_lanes(e, "max", lane);
	shift = pawl_cuda_let(e, "float", "pawl_attend_shift(v%d)", shift);
	lane = pawl_cuda_var(e, "float", "0.0f");
	x = pawl_cuda_x_at(e, op, row, open_lanes(e, op));
	pawl_cuda_line(e, "v%d = v%d + pawl_exp(v%d - v%d);", lane, lane, x, shift);
	e->stat[index][0] = shift;
	e->stat[index][1] = close_lanes(e, "sum", lane);
}

/*
 * By all threads, as any order gives the same.  The lowest column of the largest value, -1 when one
 * is a NaN; an i64.
 */
static void
argmax_stats(struct pawl_cuda_emit *e, int32_t index, const struct pawl_cuda_position *row)
{
	const struct pawl_step_op *op = &e->step->ops[index];
	int max, has_nan, least, column, x;

	if (pawl_type_row_length(&op->inputs[0].type) > MOST_COLUMNS)
		pawl_cuda_refuse(e, op, "a row of more than 2^24");
	max = pawl_cuda_var(e, "float", "-PAWL_INF");
	x = pawl_cuda_x_at(e, op, row, pawl_cuda_columns(e, &op->inputs[0].type));
	pawl_cuda_line(e, "v%d = pawl_max(v%d, v%d);", max, max, x);
	pawl_cuda_close(e);
	max = pawl_cuda_let(e, "float", "pawl_block_max(v%d)", max);
	has_nan = pawl_cuda_var(e, "float", "0.0f");
	least = pawl_cuda_var(e, "float", "%" PRId64 ".0f", MOST_COLUMNS);
	column = pawl_cuda_columns(e, &op->inputs[0].type);
	x = pawl_cuda_x_at(e, op, row, column);
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
	}
}

/* Activations of a row, a warp for 32 columns at a time. */
static void
store_blocks(struct pawl_cuda_emit *e, const struct pawl_step_op *op,
	const struct pawl_cuda_position *at, int column)
{
	bool is_a16 = op->type.dtype == PAWL_DTYPE_A16;
	int words = is_a16 ? 18 : 10, x = pawl_cuda_operand(e, op, 0, at), offset;
	struct pawl_cuda_position start = *at;
	int32_t i;

	for (i = 0; i < op->n_outs; i++) {
		const struct pawl_access *out = &op->outs[i];

		if (out->at_rows)
			pawl_cuda_refuse(e, op, "activations are stored by a list of rows");
		start.index[op->type.rank - 1] = column;
		offset = pawl_cuda_offset(e, op, out, op->type.rank, &start);
		pawl_cuda_line(e, "pawl_quantize_%s(v%d, (u32 *)a%" PRId32 " + v%d / 32 * %d, 2);",
			pawl_dtype_name(op->type.dtype), x, out->arg, offset, words);
	}
}

/* What is one number a row comes from thread 0, the rest column by column. */
static void
store_row(struct pawl_cuda_emit *e, const struct pawl_cuda_position *row, bool is_scalar)
{
	const struct pawl_step *step = e->step;
	struct pawl_cuda_position at = *row;
	bool is_open = false;
	int column = 0;
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
			column = at.index[op->type.rank - 1] = pawl_cuda_columns(e, &op->type);
		is_open = true;
		if (op->op == PAWL_OP_QUANTIZE)
			store_blocks(e, op, &at, column);
		else
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
	int number = pawl_cuda_unrolled(e, 1, e->is_single ? "0" : "PAWL_BLOCK",
		pawl_cuda_rows(type).s, e->is_single ? "1" : "PAWL_BLOCKS");

	pawl_cuda_split_row(e, type, number, &row);
	pawl_cuda_row_stats(e, 0, e->step->n_ops, &row);
	store_row(e, &row, true);
	store_row(e, &row, false);
	pawl_cuda_close(e);
}

#include "codegen/cuda/cuda_emit.h"

#include <inttypes.h>
#include <string.h>

/* An operand at another position, without losing what is known at the current one. */
static int
operand_elsewhere(struct pawl_cuda_emit *e, const struct pawl_step_op *op, int32_t input,
	const struct pawl_cuda_position *at)
{
	int saved[PAWL_MAX_BODY_OPS], value;

	memcpy(saved, e->memo, sizeof(saved));
	pawl_cuda_move(e);
	value = pawl_cuda_operand(e, op, input, at);
	memcpy(e->memo, saved, sizeof(saved));
	return value;
}

int
pawl_cuda_operand(struct pawl_cuda_emit *e, const struct pawl_step_op *op, int32_t input,
	const struct pawl_cuda_position *at)
{
	const struct pawl_operand *operand = &op->inputs[input];

	/* Ops of a body see each other's values as they are, never through a view. */
	if (operand->value >= 0)
		return pawl_cuda_value(e, operand->value, at);
	return pawl_cuda_load(e, op, operand, at);
}

static enum pawl_dtype
operand_dtype(const struct pawl_operand *operand)
{
	return operand->value < 0 ? operand->access.dtype : operand->type.dtype;
}

/*
 * y[a] = x[a] c[a] - x[b] s[a], y[b] = x[b] c[b] + x[a] s[b] for the pair (a, b); columns from the
 * width of the tables on are kept.
 */
static int
rope_value(struct pawl_cuda_emit *e, const struct pawl_step_op *op,
	const struct pawl_cuda_position *at)
{
	int64_t width = op->inputs[1].type.dim[1].base;
	bool is_partial = width < op->type.dim[2].base;
	int x = pawl_cuda_operand(e, op, 0, at), column = at->index[2], is_first, partner, other, c,
	    s;
	struct pawl_cuda_position there = *at, angle = {.index = {at->index[0], column}};

	if (op->attrs.pairs == PAWL_PAIRS_ADJACENT) {
		is_first = pawl_cuda_let(e, e->index, "v%d %% 2 == 0", column);
		partner = pawl_cuda_let(e, e->index, "v%d ^ 1", column);
	} else {
		is_first = pawl_cuda_let(e, e->index, "v%d < %" PRId64, column, width / 2);
		partner = pawl_cuda_let(e, e->index, "v%d ? v%d + %" PRId64 " : v%d - %" PRId64,
			is_first, column, width / 2, column, width / 2);
	}
	if (is_partial) {
		partner = pawl_cuda_let(e, e->index, "v%d < %" PRId64 " ? v%d : v%d", column, width,
			partner, column);
		angle.index[1] = pawl_cuda_let(
			e, e->index, "v%d < %" PRId64 " ? v%d : 0", column, width, column);
	}
	there.index[2] = partner;
	other = operand_elsewhere(e, op, 0, &there);
	c = operand_elsewhere(e, op, 1, &angle);
	s = operand_elsewhere(e, op, 2, &angle);
	other = pawl_cuda_let(e, "float", "v%d ? v%d * v%d - v%d * v%d : v%d * v%d + v%d * v%d",
		is_first, x, c, other, s, x, c, other, s);
	return is_partial ? pawl_cuda_let(e, "float", "v%d < %" PRId64 " ? v%d : v%d", column,
				    width, other, x)
			  : other;
}

/* The elementwise half of an op whose row scalars are known. */
static int
row_value(struct pawl_cuda_emit *e, int32_t index, const struct pawl_cuda_position *at)
{
	const struct pawl_step_op *op = &e->step->ops[index];
	const int *stat = e->stat[index];
	struct pawl_cuda_position column = {.index = {at->index[op->type.rank - 1]}};
	int x, w, b;

	if (!stat[0]) {
		pawl_cuda_refuse(e, op, "outside of a row");
		return 0;
	}
	x = pawl_cuda_x_at(e, op, at, at->index[op->inputs[0].type.rank - 1]);
	if (op->op == PAWL_OP_SOFTMAX) {
		x = pawl_cuda_let(e, "float", "pawl_exp(v%d - v%d)", x, stat[0]);
		return pawl_cuda_let(
			e, "float", "v%d == 0.0f ? 0.0f : v%d / v%d", stat[1], x, stat[1]);
	}
	w = operand_elsewhere(e, op, 1, &column);
	if (op->op == PAWL_OP_RMS_NORM)
		return pawl_cuda_let(e, "float", "v%d * v%d * v%d", x, stat[0], w);
	b = operand_elsewhere(e, op, 2, &column);
	return pawl_cuda_let(
		e, "float", "(v%d - v%d) * v%d * v%d + v%d", x, stat[1], stat[0], w, b);
}

static int
compute(struct pawl_cuda_emit *e, int32_t index, const struct pawl_cuda_position *at)
{
	const struct pawl_step_op *op = &e->step->ops[index];
	enum pawl_scalar scalar;
	int x[PAWL_SCALAR_MAX_ARITY];
	int32_t i;

	if (pawl_op_scalar(op->op, &scalar)) {
		for (i = 0; i < op->n_inputs; i++)
			x[i] = pawl_cuda_operand(e, op, i, at);
		return pawl_cuda_scalar(e, scalar, x);
	}
	if (op->op == PAWL_OP_SCALE) {
		x[0] = pawl_cuda_operand(e, op, 0, at);
		return pawl_cuda_let(
			e, "float", "v%d * %s", x[0], pawl_cuda_real(op->attrs.scale).s);
	}
	if (op->op == PAWL_OP_COPY || op->op == PAWL_OP_CAST) {
		x[0] = pawl_cuda_operand(e, op, 0, at);
		return pawl_cuda_convert(
			e, op, x[0], operand_dtype(&op->inputs[0]), op->type.dtype);
	}
	if (op->op == PAWL_OP_ZERO_FILL || op->op == PAWL_OP_ALLOC)
		return pawl_cuda_let(e, pawl_cuda_type_name(op->type.dtype), "0");
	if (op->op == PAWL_OP_ROPE)
		return rope_value(e, op, at);
	if (op->op == PAWL_OP_GATHER)
		return pawl_cuda_gather_value(e, op, at);
	if (op->op == PAWL_OP_BATCH_MATMUL)
		return pawl_cuda_batch_value(e, op, at);
	if (op->op == PAWL_OP_RMS_NORM || op->op == PAWL_OP_LAYER_NORM || op->op == PAWL_OP_SOFTMAX)
		return row_value(e, index, at);
	pawl_cuda_refuse(e, op, "no elements that could be computed one by one");
	return 0;
}

int
pawl_cuda_value(struct pawl_cuda_emit *e, int32_t op, const struct pawl_cuda_position *at)
{
	if (e->fixed[op])
		return e->fixed[op];
	if (e->row[op] && !e->memo[op])
		e->memo[op] = pawl_cuda_let(e, "float", "r%d[v%d]", e->row[op] - 1,
			at->index[e->step->ops[op].type.rank - 1]);
	if (!e->memo[op])
		e->memo[op] = compute(e, op, at);
	return e->memo[op];
}

void
pawl_cuda_outs(struct pawl_cuda_emit *e, int32_t op, const struct pawl_cuda_position *at)
{
	const struct pawl_step_op *o = &e->step->ops[op];
	int value = pawl_cuda_value(e, op, at);
	int32_t i;

	for (i = 0; i < o->n_outs; i++)
		pawl_cuda_store(e, o, &o->outs[i], at, value);
}

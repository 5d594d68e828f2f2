#include "codegen/llvm/emit_value.h"

#include <string.h>

#include "codegen/llvm/emit_scalar.h"

void
pawl_emit_move(struct pawl_emit *e)
{
	memset(e->memo, 0, sizeof(e->memo));
}

/* The value of an op at another position, without losing what is known at the current one. */
static LLVMValueRef
operand_elsewhere(
	struct pawl_emit *e, const struct pawl_operand *operand, const struct pawl_position *at)
{
	LLVMValueRef saved[PAWL_MAX_BODY_OPS], value;

	memcpy(saved, e->memo, sizeof(saved));
	pawl_emit_move(e);
	value = pawl_emit_operand(e, operand, at);
	memcpy(e->memo, saved, sizeof(saved));
	return value;
}

/* Number of the row that a position is in. */
static LLVMValueRef
row_number(struct pawl_emit *e, const struct pawl_type *type, const struct pawl_position *at)
{
	LLVMValueRef row = k64(e, 0);
	int j;

	for (j = 0; j + 1 < type->rank; j++)
		row = iadd(e, imul(e, row, pawl_emit_dim(e, type->dim[j])), at->index[j]);
	return row;
}

/*
 * A position among dims `from` as one among dims `to` of equally many elements in the same order.
 * Rows are of one length, or hold whole vectors, so that lanes stay neighbours.
 */
static void
reshape_position(struct pawl_emit *e, const struct pawl_type *from, const struct pawl_type *to,
	const struct pawl_position *at, struct pawl_position *out)
{
	int64_t from_length = pawl_type_row_length(from), to_length = pawl_type_row_length(to);
	LLVMValueRef row = row_number(e, from, at), column, flat;

	*out = *at;
	if (from->rank == 0 || to->rank == 0) {
		pawl_emit_refuse(e, "a reshape from rank %d to rank %d", from->rank, to->rank);
		return;
	}
	column = at->index[from->rank - 1];
	if (from_length != to_length) {
		if (from_length % LANES || to_length % LANES || pawl_emit_lanes(column) > 1)
			pawl_emit_refuse(e, "a reshape of rows of %lld to rows of %lld",
				(long long)from_length, (long long)to_length);
		flat = iadd(e, imul(e, row, k64(e, from_length)), column);
		row = udiv(e, flat, k64(e, to_length));
		column = urem(e, flat, k64(e, to_length));
	}
	pawl_emit_split_row(e, to, row, out->index);
	out->index[to->rank - 1] = column;
}

LLVMValueRef
pawl_emit_operand(
	struct pawl_emit *e, const struct pawl_operand *operand, const struct pawl_position *at)
{
	struct pawl_position there;

	if (operand->value < 0)
		return pawl_emit_load(e, &operand->access, operand->type.rank, at);
	if (pawl_type_same_dims(&operand->type, &e->step->ops[operand->value].type))
		return pawl_emit_value(e, operand->value, at);
	reshape_position(e, &operand->type, &e->step->ops[operand->value].type, at, &there);
	return operand_elsewhere(e,
		&(struct pawl_operand){
			.value = operand->value, .type = e->step->ops[operand->value].type},
		&there);
}

static enum pawl_dtype
operand_dtype(const struct pawl_operand *operand)
{
	return operand->value < 0 ? operand->access.dtype : operand->type.dtype;
}

/* Lanes 2 i and 2 i + 1 exchanged. */
static LLVMValueRef
swap_pairs(struct pawl_emit *e, LLVMValueRef v)
{
	LLVMValueRef lanes[LANES];
	int i;

	for (i = 0; i < LANES; i++)
		lanes[i] = k32(e, i ^ 1);
	return LLVMBuildShuffleVector(
		e->builder, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(lanes, LANES), "");
}

static LLVMValueRef
even_lanes_first(struct pawl_emit *e)
{
	LLVMValueRef lanes[LANES];
	int i;

	for (i = 0; i < LANES; i++)
		lanes[i] = LLVMConstInt(e->i1, i % 2 == 0, 0);
	return LLVMConstVector(lanes, LANES);
}

struct rope {
	const struct pawl_step_op *op;
	int64_t width;
};

/* Columns of a position as a vector, one a lane. */
static LLVMValueRef
columns_of(struct pawl_emit *e, LLVMValueRef column)
{
	return pawl_emit_lanes(column) > 1 ? column
					   : iadd(e, splat16(e, column), pawl_emit_iota(e));
}

/*
 * y[a] = x[a] c[a] - x[b] s[a], y[b] = x[b] c[b] + x[a] s[b] for the pair (a, b); columns from
 * width on are kept.  x, partner, c and s are at the columns asked for; is_first says which are
 * an a.
 */
static LLVMValueRef
rotate(struct pawl_emit *e, LLVMValueRef x, LLVMValueRef partner, LLVMValueRef c, LLVMValueRef s,
	LLVMValueRef is_first)
{
	LLVMValueRef kept = fmul(e, x, c), turned = fmul(e, partner, s);

	return choose(e, is_first, fsub(e, kept, turned), fadd(e, kept, turned));
}

/* c[t, column] and s[t, column]. */
static LLVMValueRef
angle(struct pawl_emit *e, const struct pawl_operand *operand, LLVMValueRef row,
	LLVMValueRef column, LLVMValueRef mask)
{
	struct pawl_position at = {.index = {row, column}, .mask = mask};

	return operand_elsewhere(e, operand, &at);
}

static LLVMValueRef
rope_by_lane(struct pawl_emit *e, const struct rope *rope, const struct pawl_position *at,
	LLVMValueRef x)
{
	const struct pawl_step_op *op = rope->op;
	struct pawl_position there = *at;
	LLVMValueRef column = columns_of(e, at->index[2]), half = like(column, rope->width / 2);
	LLVMValueRef is_turned, is_first, partner, mask, c, s, turned;

	is_turned = icmp(e, LLVMIntSLT, column, like(column, rope->width));
	if (op->attrs.pairs == PAWL_PAIRS_ADJACENT) {
		is_first = icmp(e, LLVMIntEQ, iand(e, column, like(column, 1)), like(column, 0));
		partner = ixor(e, column, like(column, 1));
	} else {
		is_first = icmp(e, LLVMIntSLT, column, half);
		partner = choose(e, is_first, iadd(e, column, half), isub(e, column, half));
	}
	there.mask = mask = pawl_emit_mask_and(e, at->mask, is_turned);
	there.index[2] = partner;
	c = angle(e, &op->inputs[1], at->index[0], column, mask);
	s = angle(e, &op->inputs[2], at->index[0], column, mask);
	turned = rotate(e, x, operand_elsewhere(e, &op->inputs[0], &there), c, s, is_first);
	return choose(e, is_turned, turned, x);
}

static LLVMValueRef
rope_by_vector(struct pawl_emit *e, const struct rope *rope, const struct pawl_position *at,
	LLVMValueRef x)
{
	const struct pawl_step_op *op = rope->op;
	struct pawl_position there = *at;
	LLVMValueRef column = at->index[2], half = k64(e, rope->width / 2);
	LLVMValueRef is_turned, is_first, partner, at_angle, c, s, turned;

	/* Vectors that are not turned read what is there, and drop it. */
	is_turned = icmp(e, LLVMIntSLT, column, k64(e, rope->width));
	at_angle = choose(e, is_turned, column, k64(e, 0));
	c = angle(e, &op->inputs[1], at->index[0], at_angle, NULL);
	s = angle(e, &op->inputs[2], at->index[0], at_angle, NULL);
	if (op->attrs.pairs == PAWL_PAIRS_ADJACENT) {
		is_first = even_lanes_first(e);
		partner = swap_pairs(e, x);
	} else {
		LLVMValueRef is_low = icmp(e, LLVMIntSLT, column, half);

		there.index[2] = choose(e, is_low, iadd(e, column, half), isub(e, column, half));
		there.index[2] = choose(e, is_turned, there.index[2], column);
		partner = operand_elsewhere(e, &op->inputs[0], &there);
		is_first = splat16(e, is_low);
	}
	turned = rotate(e, x, partner, c, s, is_first);
	return choose(e, splat16(e, is_turned), turned, x);
}

static LLVMValueRef
rope_value(struct pawl_emit *e, const struct pawl_step_op *op, const struct pawl_position *at)
{
	struct rope rope = {.op = op, .width = op->inputs[1].type.dim[1].base};
	int64_t unit = op->attrs.pairs == PAWL_PAIRS_ADJACENT ? rope.width : rope.width / 2;
	LLVMValueRef x = pawl_emit_operand(e, &op->inputs[0], at);

	if (op->inputs[1].type.rank != 2 || op->type.rank != 3) {
		pawl_emit_refuse(e, "rope of rank %d", op->type.rank);
		return x;
	}
	/* Whether the partners of a vector of columns are one vector. */
	if (unit % LANES == 0 && !at->mask && pawl_emit_lanes(at->index[2]) == 1)
		return rope_by_vector(e, &rope, at, x);
	return rope_by_lane(e, &rope, at, x);
}

static LLVMValueRef
elementwise(struct pawl_emit *e, const struct pawl_step_op *op, enum pawl_scalar scalar,
	const struct pawl_position *at)
{
	LLVMValueRef x[PAWL_SCALAR_MAX_ARITY];
	int32_t i;

	for (i = 0; i < op->n_inputs; i++)
		x[i] = pawl_emit_operand(e, &op->inputs[i], at);
	return pawl_emit_scalar(e, scalar, x);
}

static LLVMValueRef
compute(struct pawl_emit *e, int32_t index, const struct pawl_position *at)
{
	const struct pawl_step_op *op = &e->step->ops[index];
	LLVMTypeRef type = LLVMVectorType(pawl_emit_element(e, op->type.dtype), LANES);

	switch (op->op) {
#define PAWL_SCALAR_OP_ROW(id, name, arity, formula)                                               \
	case PAWL_OP_##id:                                                                         \
		return elementwise(e, op, PAWL_SCALAR_##id, at);
#include "ir/scalar.def"
	case PAWL_OP_SCALE:
		return fmul(e, pawl_emit_operand(e, &op->inputs[0], at),
			pawl_emit_real(e, type, (float)op->attrs.scale));
	case PAWL_OP_COPY:
	case PAWL_OP_CAST:
		return pawl_emit_convert(e, pawl_emit_operand(e, &op->inputs[0], at),
			operand_dtype(&op->inputs[0]), op->type.dtype);
	case PAWL_OP_ZERO_FILL:
	case PAWL_OP_ALLOC:
		return LLVMConstNull(type);
	case PAWL_OP_ROPE:
		return rope_value(e, op, at);
	case PAWL_OP_GATHER:
		return pawl_emit_gather_value(e, op, at);
	case PAWL_OP_BATCH_MATMUL:
		return pawl_emit_batch_value(e, op, at);
	case PAWL_OP_RMS_NORM:
	case PAWL_OP_LAYER_NORM:
		return pawl_emit_norm_value(e, index, at);
	case PAWL_OP_CONST:
	case PAWL_OP_WRITE_SLICE:
	case PAWL_OP_WRITE_SLICE_ROTATING:
	case PAWL_OP_WRITE_ROWS:
	case PAWL_OP_RESHAPE:
	case PAWL_OP_PERMUTE:
	case PAWL_OP_SLICE:
	case PAWL_OP_BROADCAST:
	case PAWL_OP_CONCAT:
	case PAWL_OP_PACK:
	case PAWL_OP_MATMUL:
	case PAWL_OP_SOFTMAX:
	case PAWL_OP_QUANTIZE:
	case PAWL_OP_ATTENTION:
	case PAWL_OP_PAGED_ATTENTION:
	case PAWL_OP_ARGMAX:
	case PAWL_N_OPS:
		break;
	}
	pawl_emit_refuse(e, "%s: op %s has no elements that could be computed here", op->name,
		pawl_op_name(op->op));
	return LLVMConstNull(type);
}

static LLVMValueRef
from_buffer(struct pawl_emit *e, int32_t op, const struct pawl_position *at)
{
	LLVMValueRef column = at->index[e->step->ops[op].type.rank - 1];

	if (pawl_emit_lanes(column) > 1)
		return pawl_emit_gather(
			e, e->v16f32, e->buffer[op], pawl_emit_mix_mul(e, column, 4), 4, at->mask);
	/* Buffers hold whole vectors: no mask is needed. */
	return pawl_emit_read(
		e, e->v16f32, pawl_emit_at(e, e->buffer[op], imul(e, column, k64(e, 4))), 4);
}

LLVMValueRef
pawl_emit_value(struct pawl_emit *e, int32_t op, const struct pawl_position *at)
{
	if (e->fixed[op])
		return e->fixed[op];
	if (!e->memo[op])
		e->memo[op] = e->buffer[op] ? from_buffer(e, op, at) : compute(e, op, at);
	return e->memo[op];
}

void
pawl_emit_outs(struct pawl_emit *e, int32_t op, const struct pawl_position *at)
{
	const struct pawl_step_op *o = &e->step->ops[op];
	LLVMValueRef value = pawl_emit_value(e, op, at);
	struct pawl_branch branch;
	int32_t i;

	if (o->n_outs && e->stores_when)
		pawl_if_begin(e, &branch, e->stores_when);
	for (i = 0; i < o->n_outs; i++)
		pawl_emit_store(e, &o->outs[i], o->type.rank, at, o->type.dtype, value);
	if (o->n_outs && e->stores_when)
		pawl_if_end(e, &branch);
}

void
pawl_emit_columns(struct pawl_emit *e, struct pawl_dim length, int rank, struct pawl_position *at,
	pawl_visit_columns *visit, void *arg)
{
	LLVMValueRef whole, count = pawl_emit_dim(e, length);
	struct pawl_loop loop = {.n = 0};
	struct pawl_branch branch;

	at->mask = NULL;
	whole = iand(e, count, k64(e, -LANES));
	if (length.sym >= 0 || length.base >= LANES) {
		pawl_loop_begin(e, &loop, k64(e, 0), whole, LANES);
		at->index[rank - 1] = loop.index;
		pawl_emit_move(e);
		visit(e, at, arg);
		pawl_loop_end(e, &loop);
	}
	if (length.sym < 0 && length.base % LANES == 0)
		return;
	at->index[rank - 1] = whole;
	at->mask = length.sym < 0 ? pawl_emit_mask_first(e, (int)(length.base % LANES))
				  : pawl_emit_mask_below(e, isub(e, count, whole));
	if (length.sym >= 0)
		pawl_if_begin(e, &branch, icmp(e, LLVMIntSLT, whole, count));
	pawl_emit_move(e);
	visit(e, at, arg);
	if (length.sym >= 0)
		pawl_if_end(e, &branch);
	at->mask = NULL;
}

#include "codegen/llvm/emit_rows.h"

#include "codegen/llvm/emit_scalar.h"
#include "codegen/llvm/machine.h"
#include "codegen/llvm/templates.h"
#include "ir/half.h"

/* Whether an op goes over its operand more than once, or at other columns than its own. */
static bool
reads_again(enum pawl_op op)
{
	return op == PAWL_OP_RMS_NORM || op == PAWL_OP_LAYER_NORM || op == PAWL_OP_SOFTMAX ||
	       op == PAWL_OP_ROPE;
}

void
pawl_rows_add(struct pawl_emit *e, struct pawl_rows *rows, int32_t op, bool keep)
{
	const struct pawl_step_op *o = &e->step->ops[op];
	int32_t i, value;

	rows->keeps[op] |= keep || o->op == PAWL_OP_SOFTMAX;
	if (rows->has[op])
		return;
	rows->has[op] = true;
	for (i = 0; i < o->n_inputs; i++) {
		value = o->inputs[i].value;
		if (value < 0)
			continue;
		if (pawl_type_row_length(&o->inputs[i].type) !=
			pawl_type_row_length(&e->step->ops[value].type))
			pawl_emit_refuse(e, "%s: rows of different lengths in one step", o->name);
		pawl_rows_add(e, rows, value,
			reads_again(o->op) || rows->has[value] || e->step->ops[value].n_outs > 0);
	}
}

void
pawl_rows_allocate(struct pawl_emit *e, struct pawl_rows *rows)
{
	int32_t i;

	for (i = 0; i < e->step->n_ops; i++) {
		const struct pawl_step_op *op = &e->step->ops[i];
		int64_t length = pawl_type_row_length(&op->type);

		rows->memory[i] = NULL;
		if (rows->has[i] && rows->keeps[i] && op->op != PAWL_OP_QUANTIZE &&
			op->op != PAWL_OP_ARGMAX)
			rows->memory[i] =
				pawl_emit_scratch(e, (length + LANES - 1) / LANES * LANES * 4);
	}
}

static float
minus_infinity(void)
{
	return pawl_f32_from_bits(0xff800000);
}

/* A reduction of a row: visits its columns with 16 lanes kept in a variable. */
struct reduction {
	const struct pawl_operand *x;
	LLVMValueRef lanes;          /* <16 x f32> */
	LLVMValueRef shift;          /* subtracted first, NULL: nothing */
	LLVMValueRef memory;         /* exp only: where e^x goes */
	LLVMValueRef best, seen_nan; /* argmax only: <16 x i32> */
};

static LLVMValueRef
reduced_x(struct pawl_emit *e, const struct reduction *r, const struct pawl_position *at)
{
	LLVMValueRef x = pawl_emit_operand(e, r->x, at);

	return r->shift ? fsub(e, x, splat16(e, r->shift)) : x;
}

/* Lanes that are off keep what they have. */
static void
set_lanes(struct pawl_emit *e, const struct pawl_position *at, LLVMValueRef variable,
	LLVMValueRef next)
{
	if (at->mask)
		next = choose(e, at->mask, next, pawl_emit_get(e, variable));
	pawl_emit_set(e, variable, next);
}

static void
visit_sum(struct pawl_emit *e, const struct pawl_position *at, void *arg)
{
	struct reduction *r = arg;

	set_lanes(e, at, r->lanes, fadd(e, pawl_emit_get(e, r->lanes), reduced_x(e, r, at)));
}

static void
visit_squares(struct pawl_emit *e, const struct pawl_position *at, void *arg)
{
	struct reduction *r = arg;
	LLVMValueRef x = reduced_x(e, r, at);

	set_lanes(e, at, r->lanes, pawl_machine_fma(e, x, x, pawl_emit_get(e, r->lanes)));
}

static void
visit_max(struct pawl_emit *e, const struct pawl_position *at, void *arg)
{
	struct reduction *r = arg;

	set_lanes(
		e, at, r->lanes, pawl_emit_max(e, pawl_emit_get(e, r->lanes), reduced_x(e, r, at)));
}

static void
visit_exp(struct pawl_emit *e, const struct pawl_position *at, void *arg)
{
	struct reduction *r = arg;
	LLVMValueRef y = pawl_emit_exp(e, reduced_x(e, r, at));
	LLVMValueRef column = at->index[r->x->type.rank - 1];

	set_lanes(e, at, r->lanes, fadd(e, pawl_emit_get(e, r->lanes), y));
	pawl_emit_write(e, y, pawl_emit_at(e, r->memory, imul(e, column, k64(e, 4))), 4);
}

static void
visit_argmax(struct pawl_emit *e, const struct pawl_position *at, void *arg)
{
	struct reduction *r = arg;
	LLVMValueRef x = reduced_x(e, r, at), kept = pawl_emit_get(e, r->lanes);
	LLVMValueRef column =
		iadd(e, splat16(e, at->index[r->x->type.rank - 1]), pawl_emit_iota(e));
	LLVMValueRef is_more = fcmp(e, LLVMRealOGT, x, kept), is_nan = fcmp(e, LLVMRealUNO, x, x);

	column = LLVMBuildTrunc(e->builder, column, e->v16i32, "");
	set_lanes(e, at, r->lanes, choose(e, is_more, x, kept));
	set_lanes(e, at, r->best, choose(e, is_more, column, pawl_emit_get(e, r->best)));
	set_lanes(e, at, r->seen_nan,
		ior(e, pawl_emit_get(e, r->seen_nan),
			LLVMBuildSExt(e->builder, is_nan, e->v16i32, "")));
}

static void
reduce(struct pawl_emit *e, struct reduction *r, const LLVMValueRef *index, float initial,
	pawl_visit_columns *visit)
{
	const struct pawl_type *type = &r->x->type;
	struct pawl_position at = {.mask = NULL};
	int j;

	for (j = 0; j + 1 < type->rank; j++)
		at.index[j] = index[j];
	if (!r->lanes)
		r->lanes = pawl_emit_variable(e, e->v16f32);
	pawl_emit_set(e, r->lanes, pawl_emit_real(e, e->v16f32, initial));
	pawl_emit_columns(e, type->dim[type->rank - 1], type->rank, &at, visit, r);
}

static LLVMValueRef
sum_of(struct pawl_emit *e, struct reduction *r, const LLVMValueRef *index,
	pawl_visit_columns *visit)
{
	reduce(e, r, index, 0.0f, visit);
	return pawl_emit_lanes_sum(e, pawl_emit_get(e, r->lanes));
}

/* 1 / sqrt(sum / n + eps) */
static LLVMValueRef
scale_of(struct pawl_emit *e, const struct pawl_step_op *op, LLVMValueRef sum, LLVMValueRef n)
{
	LLVMValueRef mean = fdiv(e, sum, n);

	mean = fadd(e, mean, pawl_emit_real(e, e->f32, (float)op->attrs.eps));
	return fdiv(e, pawl_emit_real(e, e->f32, 1.0f), pawl_emit_sqrt(e, mean));
}

static void
norm_scalars(struct pawl_emit *e, int32_t index_of_op, const LLVMValueRef *index)
{
	const struct pawl_step_op *op = &e->step->ops[index_of_op];
	struct reduction r = {.x = &op->inputs[0]};
	LLVMValueRef n = pawl_emit_real(e, e->f32, (float)pawl_type_row_length(&op->type));

	if (op->op == PAWL_OP_LAYER_NORM) {
		r.shift = fdiv(e, sum_of(e, &r, index, visit_sum), n);
		e->rowstat[index_of_op][1] = r.shift;
	}
	e->rowstat[index_of_op][0] = scale_of(e, op, sum_of(e, &r, index, visit_squares), n);
}

LLVMValueRef
pawl_emit_norm_value(struct pawl_emit *e, int32_t index, const struct pawl_position *at)
{
	const struct pawl_step_op *op = &e->step->ops[index];
	struct pawl_position vector = {.index = {at->index[op->type.rank - 1]}, .mask = at->mask};
	LLVMValueRef x = pawl_emit_operand(e, &op->inputs[0], at), w, b;

	if (!e->rowstat[index][0] || op->inputs[1].value >= 0) {
		pawl_emit_refuse(e, "%s: op %s outside of rows", op->name, pawl_op_name(op->op));
		return x;
	}
	w = pawl_emit_load(e, &op->inputs[1].access, 1, &vector);
	if (op->op == PAWL_OP_RMS_NORM)
		return fmul(e, fmul(e, x, splat16(e, e->rowstat[index][0])), w);
	x = fsub(e, x, splat16(e, e->rowstat[index][1]));
	b = pawl_emit_load(e, &op->inputs[2].access, 1, &vector);
	return fadd(e, fmul(e, fmul(e, x, splat16(e, e->rowstat[index][0])), w), b);
}

/* The row of an op that is wanted whole: into its buffer and its outs. */
struct stored_row {
	int32_t op;
	LLVMValueRef memory;
	LLVMValueRef sum; /* softmax: memory holds e^x, to be divided by it */
};

static void
visit_store(struct pawl_emit *e, const struct pawl_position *at, void *arg)
{
	const struct stored_row *row = arg;
	LLVMValueRef offset, value, zero = LLVMConstNull(e->v16f32);

	offset = imul(e, at->index[e->step->ops[row->op].type.rank - 1], k64(e, 4));
	if (row->sum) {
		value = pawl_emit_read(e, e->v16f32, pawl_emit_at(e, row->memory, offset), 4);
		value = fdiv(e, value, splat16(e, row->sum));
		value = choose(e, splat16(e, fcmp(e, LLVMRealOEQ, row->sum, LLVMConstNull(e->f32))),
			zero, value);
		e->memo[row->op] = value;
	}
	value = pawl_emit_value(e, row->op, at);
	if (row->memory)
		pawl_emit_write(e, value, pawl_emit_at(e, row->memory, offset), 4);
	pawl_emit_outs(e, row->op, at);
}

static void
store_row(struct pawl_emit *e, struct stored_row *row, const LLVMValueRef *index)
{
	const struct pawl_type *type = &e->step->ops[row->op].type;
	struct pawl_position at = {.mask = NULL};
	int j;

	for (j = 0; j + 1 < type->rank; j++)
		at.index[j] = index[j];
	pawl_emit_columns(e, type->dim[type->rank - 1], type->rank, &at, visit_store, row);
	e->buffer[row->op] = row->memory;
}

/* Leaves e^(x - max) in the buffer; returns the sum. */
static LLVMValueRef
softmax_sum(struct pawl_emit *e, const struct pawl_step_op *op, LLVMValueRef memory,
	const LLVMValueRef *index)
{
	struct reduction r = {.x = &op->inputs[0], .memory = memory};
	LLVMValueRef max, least = pawl_emit_real(e, e->f32, minus_infinity());

	reduce(e, &r, index, minus_infinity(), visit_max);
	max = pawl_emit_lanes_max(e, pawl_emit_get(e, r.lanes));
	r.shift = choose(e, fcmp(e, LLVMRealOEQ, max, least), LLVMConstNull(e->f32), max);
	return sum_of(e, &r, index, visit_exp);
}

static void
emit_argmax(struct pawl_emit *e, int32_t index_of_op, const LLVMValueRef *index)
{
	const struct pawl_step_op *op = &e->step->ops[index_of_op];
	struct reduction r = {.x = &op->inputs[0]};
	struct pawl_position at = {.mask = pawl_emit_mask_first(e, 1)};
	LLVMValueRef max, is_max, best, seen_nan;
	int j;

	r.best = pawl_emit_variable(e, e->v16i32);
	r.seen_nan = pawl_emit_variable(e, e->v16i32);
	pawl_emit_set(e, r.best, LLVMBuildTrunc(e->builder, pawl_emit_iota(e), e->v16i32, ""));
	reduce(e, &r, index, minus_infinity(), visit_argmax);
	/* The largest of all lanes, then the lowest column among those that have it. */
	max = pawl_emit_lanes_max(e, pawl_emit_get(e, r.lanes));
	is_max = fcmp(e, LLVMRealOEQ, pawl_emit_get(e, r.lanes), splat16(e, max));
	best = choose(e, is_max, pawl_emit_get(e, r.best), pawl_emit_int(e->v16i32, INT32_MAX));
	best = pawl_emit_intrinsic(e, "llvm.vector.reduce.umin", e->v16i32, &best, 1);
	seen_nan = pawl_emit_get(e, r.seen_nan);
	seen_nan = pawl_emit_intrinsic(e, "llvm.vector.reduce.or", e->v16i32, &seen_nan, 1);
	best = choose(e, icmp(e, LLVMIntNE, seen_nan, k32(e, 0)), k32(e, -1), best);
	for (j = 0; j < op->type.rank; j++)
		at.index[j] = index[j];
	e->fixed[index_of_op] = splat16(e, best);
	pawl_emit_outs(e, index_of_op, &at);
}

static void
emit_row_op(struct pawl_emit *e, struct pawl_rows *rows, int32_t i, const LLVMValueRef *index)
{
	const struct pawl_step_op *op = &e->step->ops[i];
	struct stored_row row = {.op = i, .memory = rows->memory[i]};

	if (op->op == PAWL_OP_QUANTIZE) {
		pawl_emit_quantize(e, i, index, rows->blocks[i]);
		return;
	}
	if (op->op == PAWL_OP_ARGMAX) {
		emit_argmax(e, i, index);
		return;
	}
	if (op->op == PAWL_OP_RMS_NORM || op->op == PAWL_OP_LAYER_NORM)
		norm_scalars(e, i, index);
	if (op->op == PAWL_OP_SOFTMAX)
		row.sum = softmax_sum(e, op, row.memory, index);
	if (row.memory || op->n_outs)
		store_row(e, &row, index);
}

void
pawl_emit_row(struct pawl_emit *e, struct pawl_rows *rows, const LLVMValueRef *index)
{
	int32_t i;

	for (i = 0; i < e->step->n_ops; i++) {
		if (rows->has[i])
			e->buffer[i] = e->fixed[i] = NULL;
	}
	for (i = 0; i < e->step->n_ops; i++) {
		if (rows->has[i])
			emit_row_op(e, rows, i, index);
	}
	pawl_emit_move(e);
}

struct copied_row {
	const struct pawl_operand *operand;
	LLVMValueRef to;
};

static void
visit_copy(struct pawl_emit *e, const struct pawl_position *at, void *arg)
{
	const struct copied_row *row = arg;
	LLVMValueRef column = at->index[row->operand->type.rank - 1];
	LLVMValueRef address = pawl_emit_at(e, row->to, imul(e, column, k64(e, 4)));
	LLVMValueRef value = pawl_emit_operand(e, row->operand, at);

	if (at->mask)
		pawl_emit_masked_write(e, value, address, 4, at->mask);
	else
		pawl_emit_write(e, value, address, 4);
}

void
pawl_emit_copy_row(struct pawl_emit *e, const struct pawl_operand *operand,
	const LLVMValueRef *index, LLVMValueRef to)
{
	const struct pawl_type *type = &operand->type;
	struct copied_row row = {operand, to};
	struct pawl_position at = {.mask = NULL};
	int j;

	for (j = 0; j + 1 < type->rank; j++)
		at.index[j] = index[j];
	pawl_emit_columns(e, type->dim[type->rank - 1], type->rank, &at, visit_copy, &row);
}

void
pawl_emit_rows(struct pawl_emit *e)
{
	const struct pawl_type *type = &e->step->ops[0].inputs[0].type;
	struct pawl_rows rows = {.has = {false}};
	LLVMValueRef index[PAWL_MAX_RANK];
	struct pawl_loop loop = {.n = 0};
	int32_t i;

	pawl_emit_begin(e, "pawl_phase0");
	for (i = 0; i < e->step->n_ops; i++)
		pawl_rows_add(e, &rows, i, false);
	pawl_rows_allocate(e, &rows);
	pawl_loop_begin(e, &loop, e->begin, e->end, 1);
	pawl_emit_split_row(e, type, loop.index, index);
	pawl_emit_row(e, &rows, index);
	pawl_loop_end(e, &loop);
	pawl_emit_end(e);
}

/*
 * Template ATTEND.  Phase 0: chunks of positions, each for itself.  Phase 1: the chunks of a row
 * and head merged, and what follows the attention.
 */
#include "codegen/llvm/emit_attend.h"

#include "codegen/launch.h"
#include "codegen/llvm/emit_scalar.h"
#include "codegen/llvm/machine.h"
#include "codegen/llvm/templates.h"
#include "ir/half.h"
#include "passes/cost.h"

/* The positions that a row sees: first .. end - 1, none when end <= first. */
struct visible {
	LLVMValueRef first, end;
};

static LLVMValueRef
position_of(struct pawl_emit *e, const struct pawl_attend *a, LLVMValueRef row)
{
	if (a->offset)
		return iadd(e, a->offset, row);
	return pawl_emit_load_element(e, &a->op->inputs[3].access, 1, &row);
}

LLVMValueRef
pawl_attend_slot(
	struct pawl_emit *e, const struct pawl_attend *a, LLVMValueRef row, LLVMValueRef p)
{
	const struct pawl_operand *table = &a->op->inputs[4];
	LLVMValueRef block = k64(e, a->op->attrs.block), index[2], number;

	if (a->op->op != PAWL_OP_PAGED_ATTENTION)
		return p;
	index[0] = k64(e, 0);
	if (table->type.dim[0].base > 1)
		index[0] = udiv(
			e, row, k64(e, a->op->type.dim[0].base / table->type.dim[0].base));
	index[1] = udiv(e, p, block);
	number = pawl_emit_load_element(e, &table->access, 2, index);
	number = LLVMBuildZExt(e->builder, number, e->i64, "");
	return iadd(e, imul(e, number, block), urem(e, p, block));
}

static struct visible
visible_of(struct pawl_emit *e, const struct pawl_attend *a, LLVMValueRef row)
{
	const struct pawl_attrs *attrs = &a->op->attrs;
	LLVMValueRef at = position_of(e, a, row);
	struct visible v = {k64(e, 0), a->length};

	if (attrs->causal)
		v.end = imin(e, v.end, iadd(e, at, k64(e, 1)));
	if (attrs->window > 0)
		v.first = imax(e, v.first, isub(e, at, k64(e, attrs->window - 1)));
	return v;
}

LLVMValueRef
pawl_attend_part(struct pawl_emit *e, const struct pawl_attend *a, LLVMValueRef row,
	LLVMValueRef head, LLVMValueRef chunk)
{
	LLVMValueRef number = iadd(e, imul(e, row, k64(e, a->heads)), head);

	number = iadd(e, imul(e, number, a->chunks), chunk);
	return pawl_emit_at(e, a->parts, imul(e, number, k64(e, (a->width + 2) * 4)));
}

/* What both phases know. */
static bool
begin_phase(struct pawl_emit *e, struct pawl_attend *a, const char *name)
{
	const struct pawl_operand *offset;
	int i;

	pawl_emit_begin(e, name);
	a->index = pawl_step_attention(e->step);
	a->op = &e->step->ops[a->index];
	a->heads = a->op->type.dim[1].base;
	a->groups = a->op->inputs[1].type.dim[1].base;
	a->shared = a->heads / a->groups;
	a->d = a->op->inputs[0].type.dim[2].base;
	a->width = a->op->type.dim[2].base;
	offset = &a->op->inputs[3];
	for (i = 1; i < a->op->n_inputs; i++) {
		if (a->op->inputs[i].value >= 0)
			pawl_emit_refuse(
				e, "%s: input %d is a value of its own step", a->op->name, i);
	}
	if (e->step->scratch_arg < 0)
		pawl_emit_refuse(e, "%s: no memory for partial results", a->op->name);
	if (e->status != PAWL_OK)
		return false;
	if (a->op->op == PAWL_OP_ATTENTION)
		a->offset = pawl_emit_load_element(e, &offset->access, offset->type.rank, NULL);
	a->length = a->op->attrs.sym >= 0
			    ? pawl_emit_dim(e, (struct pawl_dim){0, 1, a->op->attrs.sym})
			    : k64(e, pawl_attend_most(a->op));
	a->chunks = udiv(
		e, iadd(e, a->length, k64(e, PAWL_ATTEND_CHUNK - 1)), k64(e, PAWL_ATTEND_CHUNK));
	a->parts = e->args[e->step->scratch_arg];
	return true;
}

/* Whether query heads are read where they lie. */
static bool
reads_query_in_place(const struct pawl_operand *q)
{
	return q->value < 0 && q->access.dtype == PAWL_DTYPE_F32 && q->access.at_dim < 0 &&
	       pawl_access_is_dense(&q->access, 3);
}

/* Memory for the query heads of a key head, and the ops that they are computed by. */
struct query {
	struct pawl_rows rows;
	LLVMValueRef memory;
	int64_t bytes; /* of a head, in memory */
};

static void
plan_query(struct pawl_emit *e, const struct pawl_attend *a, struct query *query)
{
	const struct pawl_operand *q = &a->op->inputs[0];
	int32_t i;

	if (reads_query_in_place(q))
		return;
	query->bytes = (a->d + LANES - 1) / LANES * LANES * 4;
	query->memory = pawl_emit_scratch(e, a->shared * query->bytes);
	if (q->value < 0)
		return;
	pawl_rows_add(e, &query->rows, q->value, true);
	pawl_rows_allocate(e, &query->rows);
	for (i = 0; i < e->step->n_ops; i++) {
		if (query->rows.has[i] && e->step->ops[i].n_outs)
			pawl_emit_refuse(e, "%s: a query that is stored too", e->step->ops[i].name);
	}
}

/* The units of a row and group follow each other: only the first of them computes the query. */
static void
prepare_query(struct pawl_emit *e, const struct pawl_attend *a, struct query *query,
	struct pawl_attend_unit *unit, LLVMValueRef is_first)
{
	const struct pawl_operand *q = &a->op->inputs[0];
	LLVMValueRef head = imul(e, unit->group, k64(e, a->shared)), index[PAWL_MAX_RANK], to, row;
	struct pawl_loop loop = {.n = 0};
	struct pawl_branch branch;

	if (reads_query_in_place(q)) {
		index[0] = unit->row;
		index[1] = head;
		unit->q = pawl_emit_row_address(e, &q->access, 3, index);
		unit->q_bytes = q->access.stride[1] * 4;
		return;
	}
	unit->q = query->memory;
	unit->q_bytes = query->bytes;
	pawl_if_begin(e, &branch, is_first);
	pawl_loop_begin(e, &loop, k64(e, 0), k64(e, a->shared), 1);
	to = pawl_emit_at(e, query->memory, imul(e, loop.index, k64(e, query->bytes)));
	row = iadd(e, imul(e, unit->row, k64(e, a->heads)), iadd(e, head, loop.index));
	if (q->value >= 0) {
		query->rows.memory[q->value] = to;
		pawl_emit_split_row(e, &e->step->ops[q->value].type, row, index);
		pawl_emit_row(e, &query->rows, index);
	} else {
		pawl_emit_split_row(e, &q->type, row, index);
		pawl_emit_copy_row(e, q, index, to);
	}
	pawl_loop_end(e, &loop);
	pawl_if_end(e, &branch);
}

static void
emit_chunks(struct pawl_emit *e)
{
	struct pawl_attend a = {.op = NULL};
	struct query query = {.memory = NULL};
	struct pawl_attend_unit unit;
	struct pawl_loop loop = {.n = 0};
	struct pawl_branch branch;
	struct visible seen;
	LLVMValueRef rest, is_first, chunks;

	if (!begin_phase(e, &a, "pawl_phase0"))
		return;
	a.scores = pawl_emit_scratch(e, a.shared * PAWL_ATTEND_CHUNK * 4);
	plan_query(e, &a, &query);
	chunks = imin(e, a.chunks, k64(e, pawl_attend_window_chunks(a.op)));
	pawl_loop_begin(e, &loop, e->begin, e->end, 1);
	rest = udiv(e, loop.index, chunks);
	unit.group = urem(e, rest, k64(e, a.groups));
	unit.row = udiv(e, rest, k64(e, a.groups));
	seen = visible_of(e, &a, unit.row);
	unit.chunk = iadd(e, udiv(e, seen.first, k64(e, PAWL_ATTEND_CHUNK)),
		urem(e, loop.index, chunks));
	rest = imul(e, unit.chunk, k64(e, PAWL_ATTEND_CHUNK));
	unit.first = imax(e, seen.first, rest);
	unit.end = imin(e, seen.end, iadd(e, rest, k64(e, PAWL_ATTEND_CHUNK)));
	pawl_if_begin(e, &branch, icmp(e, LLVMIntSLT, unit.first, unit.end));
	is_first = LLVMBuildOr(e->builder, icmp(e, LLVMIntEQ, loop.index, e->begin),
		icmp(e, LLVMIntEQ, unit.first, seen.first), "");
	prepare_query(e, &a, &query, &unit, is_first);
	pawl_emit_attend_chunk(e, &a, &unit);
	pawl_if_end(e, &branch);
	pawl_loop_end(e, &loop);
	pawl_emit_end(e);
}

/* What is subtracted before exp: the maximum, but 0 where every score is -inf. */
static LLVMValueRef
shift_of(struct pawl_emit *e, LLVMValueRef max)
{
	LLVMValueRef least = pawl_emit_real(e, e->f32, pawl_f32_from_bits(0xff800000));

	return choose(e, fcmp(e, LLVMRealOEQ, max, least), LLVMConstNull(e->f32), max);
}

/* The chunks of one row and head in ascending order. */
struct merge {
	const struct pawl_attend *a;
	LLVMValueRef row, head, first, end; /* chunks first .. end - 1, at least one */
	LLVMValueRef sum;
};

/*
 * Maximum and sum over all chunks.  In place of each one's own, all but the first get the factors of
 * the total so far and of the chunk; nobody else reads the parts of this row and head.
 */
static void
merge_sums(struct pawl_emit *e, struct merge *m)
{
	LLVMValueRef part = pawl_attend_part(e, m->a, m->row, m->head, m->first), max, shift, a, b;
	struct pawl_loop loop = {.n = 2};

	loop.carried[0] = pawl_emit_read(e, e->f32, part, 4);
	loop.carried[1] = pawl_emit_read(e, e->f32, pawl_emit_at_bytes(e, part, 4), 4);
	pawl_loop_begin(e, &loop, iadd(e, m->first, k64(e, 1)), m->end, 1);
	part = pawl_attend_part(e, m->a, m->row, m->head, loop.index);
	b = pawl_emit_read(e, e->f32, part, 4);
	max = pawl_emit_max(e, loop.carried[0], b);
	shift = shift_of(e, max);
	a = pawl_emit_exp(e, fsub(e, loop.carried[0], shift));
	b = pawl_emit_exp(e, fsub(e, b, shift));
	loop.carried[0] = max;
	loop.carried[1] =
		pawl_machine_fma(e, pawl_emit_read(e, e->f32, pawl_emit_at_bytes(e, part, 4), 4), b,
			fmul(e, loop.carried[1], a));
	pawl_emit_write(e, a, part, 4);
	pawl_emit_write(e, b, pawl_emit_at_bytes(e, part, 4), 4);
	pawl_loop_end(e, &loop);
	m->sum = loop.carried[1];
}

static LLVMValueRef
part_values(struct pawl_emit *e, const struct merge *m, LLVMValueRef chunk,
	const struct pawl_position *at)
{
	LLVMValueRef part = pawl_attend_part(e, m->a, m->row, m->head, chunk);

	part = pawl_emit_at(e, part, iadd(e, imul(e, at->index[2], k64(e, 4)), k64(e, 8)));
	return at->mask ? pawl_emit_masked_read(e, e->v16f32, part, 4, at->mask)
			: pawl_emit_read(e, e->v16f32, part, 4);
}

/* Stores what the step stores, the attention's value at `at` being known. */
static void
store_results(struct pawl_emit *e, const struct pawl_attend *a, const struct pawl_position *at)
{
	int32_t i;

	for (i = a->index; i < e->step->n_ops; i++) {
		const struct pawl_step_op *op = &e->step->ops[i];

		if (!op->n_outs)
			continue;
		if (!pawl_type_same_dims(&op->type, &a->op->type))
			pawl_emit_refuse(e, "%s: other dims than the attention's", op->name);
		pawl_emit_outs(e, i, at);
	}
}

static void
visit_merged(struct pawl_emit *e, const struct pawl_position *at, void *arg)
{
	const struct merge *m = arg;
	struct pawl_loop loop = {.n = 1};
	LLVMValueRef factors, zero = LLVMConstNull(e->v16f32), value, is_zero;

	loop.carried[0] = part_values(e, m, m->first, at);
	pawl_loop_begin(e, &loop, iadd(e, m->first, k64(e, 1)), m->end, 1);
	factors = pawl_attend_part(e, m->a, m->row, m->head, loop.index);
	value = fmul(e, loop.carried[0], splat16(e, pawl_emit_read(e, e->f32, factors, 4)));
	factors = pawl_emit_at_bytes(e, factors, 4);
	loop.carried[0] = pawl_machine_fma(e, part_values(e, m, loop.index, at),
		splat16(e, pawl_emit_read(e, e->f32, factors, 4)), value);
	pawl_loop_end(e, &loop);
	is_zero = fcmp(e, LLVMRealOEQ, m->sum, LLVMConstNull(e->f32));
	value = fdiv(e, loop.carried[0], splat16(e, m->sum));
	e->fixed[m->a->index] = choose(e, splat16(e, is_zero), zero, value);
	store_results(e, m->a, at);
}

static void
visit_nothing(struct pawl_emit *e, const struct pawl_position *at, void *arg)
{
	const struct merge *m = arg;

	e->fixed[m->a->index] = LLVMConstNull(e->v16f32);
	store_results(e, m->a, at);
}

static void
emit_merges(struct pawl_emit *e)
{
	struct pawl_attend a = {.op = NULL};
	struct pawl_position at = {.mask = NULL};
	struct pawl_loop loop = {.n = 0};
	struct pawl_branch branch;
	struct merge m = {.a = &a};
	struct visible seen;
	LLVMValueRef is_seen;

	e->scratch_bytes = 0;
	if (!begin_phase(e, &a, "pawl_phase1"))
		return;
	pawl_loop_begin(e, &loop, e->begin, e->end, 1);
	m.row = at.index[0] = udiv(e, loop.index, k64(e, a.heads));
	m.head = at.index[1] = urem(e, loop.index, k64(e, a.heads));
	seen = visible_of(e, &a, m.row);
	is_seen = icmp(e, LLVMIntSLT, seen.first, seen.end);
	m.first = udiv(e, seen.first, k64(e, PAWL_ATTEND_CHUNK));
	m.end = udiv(
		e, iadd(e, seen.end, k64(e, PAWL_ATTEND_CHUNK - 1)), k64(e, PAWL_ATTEND_CHUNK));
	pawl_if_begin(e, &branch, is_seen);
	merge_sums(e, &m);
	pawl_emit_columns(e, a.op->type.dim[2], 3, &at, visit_merged, &m);
	pawl_if_end(e, &branch);
	pawl_if_begin(e, &branch, LLVMBuildNot(e->builder, is_seen, ""));
	pawl_emit_columns(e, a.op->type.dim[2], 3, &at, visit_nothing, &m);
	pawl_if_end(e, &branch);
	pawl_loop_end(e, &loop);
	pawl_emit_end(e);
}

void
pawl_emit_attend(struct pawl_emit *e)
{
	int64_t bytes;

	emit_chunks(e);
	bytes = e->scratch_bytes;
	if (e->status == PAWL_OK)
		emit_merges(e);
	if (bytes > e->scratch_bytes)
		e->scratch_bytes = bytes;
}

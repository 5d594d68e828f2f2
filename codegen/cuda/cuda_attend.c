/*
 * Template ATTEND, in the order of docs/arithmetic.md, "Attention".  A block takes (row, kv head,
 * chunk of 128 positions) for all query heads that share the kv head; a thread takes a position for
 * the scores, a column for the values.  The block that is the last of a (row, kv head) merges the
 * chunks, a thread a column of a query head, in ascending order whoever was last.
 *
 * Partials lie as passes/cost.h says.
 */
#include "codegen/cuda/cuda_emit.h"

#include <inttypes.h>
#include <stdio.h>

#include "codegen/launch.h"
#include "ir/eval_consts.h"
#include "passes/cost.h"

/* Under way at once in a thread. */
enum { LOADS = 8 };

struct attend {
	int32_t index;
	const struct pawl_step_op *op;
	int64_t heads, kv_heads, shared; /* query heads, kv heads, query heads a kv head */
	int64_t width, value_width;      /* of a key, of a value */
	int offset, length, chunks;      /* variables */
	int t, head, first, end;         /* of a unit: row, query or kv head, visible positions */
};

/* False, having refused. */
static bool
begin(struct pawl_cuda_emit *e, struct attend *a)
{
	const struct pawl_type *k;
	struct pawl_cuda_position none = {.index = {0}};
	int32_t i;

	a->index = pawl_step_attention(e->step);
	a->op = &e->step->ops[a->index];
	k = &a->op->inputs[1].type;
	a->heads = a->op->type.dim[1].base;
	a->kv_heads = k->dim[1].base;
	a->shared = a->heads / a->kv_heads;
	a->width = k->dim[3].base;
	a->value_width = a->op->type.dim[2].base;
	for (i = 1; i < a->op->n_inputs; i++) {
		if (a->op->inputs[i].value >= 0)
			pawl_cuda_refuse(
				e, a->op, "input %" PRId32 " is a value of its own step", i);
	}
	for (i = 0; i < a->index; i++) {
		if (e->step->ops[i].n_outs)
			pawl_cuda_refuse(e, &e->step->ops[i], "stored by a prologue");
	}
	if (a->shared * (a->width + PAWL_ATTEND_CHUNK + PAWL_LANES + 2) > PAWL_CUDA_SHARED_FLOATS)
		pawl_cuda_refuse(e, a->op, "%" PRId64 " heads of %" PRId64 " share a key",
			a->shared, a->width);
	if (a->op->op == PAWL_OP_ATTENTION)
		a->offset = pawl_cuda_load(e, a->op, &a->op->inputs[3], &none);
	if (a->op->attrs.sym >= 0)
		a->length = pawl_cuda_let(e, e->index, "s%" PRId32, a->op->attrs.sym);
	else
		a->length = pawl_cuda_let(e, e->index, "%" PRId64, pawl_attend_most(a->op));
	/* At least one, so that a row over no positions is stored too. */
	a->chunks = pawl_cuda_let(e, e->index,
		"v%d > 0 ? (v%d + PAWL_ATTEND_CHUNK - 1) / PAWL_ATTEND_CHUNK : 1", a->length,
		a->length);
	return e->status == PAWL_OK;
}

static int
position_of(struct pawl_cuda_emit *e, const struct attend *a)
{
	struct pawl_cuda_position row = {.index = {a->t}};

	if (a->op->op == PAWL_OP_PAGED_ATTENTION)
		return pawl_cuda_load(e, a->op, &a->op->inputs[3], &row);
	return pawl_cuda_let(e, e->index, "v%d + v%d", a->offset, a->t);
}

/* Where position v[p] of the sequence of row a->t lies along the positions of k and v. */
static int
slot_of(struct pawl_cuda_emit *e, const struct attend *a, int p)
{
	const struct pawl_operand *table = &a->op->inputs[4];
	int64_t block = a->op->attrs.block, sequences = table->type.dim[0].base;
	struct pawl_cuda_position at = {.index = {0}};
	int number;

	if (a->op->op != PAWL_OP_PAGED_ATTENTION)
		return p;
	if (sequences > 1)
		at.index[0] = pawl_cuda_let(
			e, e->index, "v%d / %" PRId64, a->t, a->op->type.dim[0].base / sequences);
	at.index[1] = pawl_cuda_let(e, e->index, "v%d / %" PRId64, p, block);
	number = pawl_cuda_load(e, a->op, table, &at);
	return pawl_cuda_let(
		e, e->index, "v%d * %" PRId64 " + v%d %% %" PRId64, number, block, p, block);
}

/* Positions that row a->t sees: a->first .. a->end - 1. */
static void
visible(struct pawl_cuda_emit *e, struct attend *a)
{
	int at = position_of(e, a);

	a->first = 0;
	a->end = a->length;
	if (a->op->attrs.causal)
		a->end = pawl_cuda_let(
			e, e->index, "v%d + 1 < v%d ? v%d + 1 : v%d", at, a->end, at, a->end);
	if (a->op->attrs.window > 0)
		a->first = pawl_cuda_let(e, e->index, "v%d > %" PRId64 " ? v%d - %" PRId64 " : 0",
			at, a->op->attrs.window - 1, at, a->op->attrs.window - 1);
}

static struct pawl_cuda_words
times(int64_t a, int64_t b)
{
	struct pawl_cuda_words words;

	snprintf(words.s, sizeof(words.s), "%" PRId64, a * b);
	return words;
}

/* The query rows of the heads of kv head a->head, with the prologue done: q[head][width]. */
static void
stage_query(struct pawl_cuda_emit *e, const struct attend *a)
{
	struct pawl_cuda_position at = {.index = {a->t}};
	int j = pawl_cuda_unrolled(
		e, 1, "PAWL_THREAD", times(a->shared, a->width).s, "PAWL_THREADS");

	at.index[1] = pawl_cuda_let(
		e, e->index, "v%d * %" PRId64 " + v%d / %" PRId64, a->head, a->shared, j, a->width);
	at.index[2] = pawl_cuda_let(e, e->index, "v%d %% %" PRId64, j, a->width);
	pawl_cuda_line(e, "q[v%d] = v%d;", j, pawl_cuda_operand(e, a->op, 0, &at));
	pawl_cuda_close(e);
	pawl_cuda_line(e, "PAWL_SYNC();");
}

/* w[head][place] = the score of a visible position of the chunk that starts at `start`. */
static void
score(struct pawl_cuda_emit *e, const struct attend *a, int start, int low, int high)
{
	const struct pawl_attrs *attrs = &a->op->attrs;
	int j = pawl_cuda_unrolled(
		e, 1, "PAWL_THREAD", times(a->shared, PAWL_ATTEND_CHUNK).s, "PAWL_THREADS");
	int place = pawl_cuda_let(e, e->index, "v%d %% PAWL_ATTEND_CHUNK", j), p, dot, d, k, s,
	    mask;
	struct pawl_cuda_position at = {.index = {0, a->head}}, mask_at = {.index = {a->t}};
	struct pawl_cuda_words width = times(1, a->width);

	pawl_cuda_open(e, "if (v%d >= v%d && v%d < v%d)", place, low, place, high);
	p = mask_at.index[1] = pawl_cuda_let(e, e->index, "v%d + v%d", start, place);
	at.index[2] = slot_of(e, a, p);
	dot = pawl_cuda_var(e, "float", "0.0f");
	at.index[3] = d = pawl_cuda_unrolled(e, LOADS, "0", width.s, "1");
	k = pawl_cuda_load(e, a->op, &a->op->inputs[1], &at);
	pawl_cuda_line(e, "v%d = pawl_fma(v%d, q[v%d / PAWL_ATTEND_CHUNK * %s + v%d], v%d);", dot,
		k, j, width.s, d, dot);
	pawl_cuda_close(e);
	s = pawl_cuda_let(e, "float", "v%d * %s", dot, pawl_cuda_real(attrs->scale).s);
	if ((float)attrs->softcap != 0.0f)
		s = pawl_cuda_let(e, "float", "pawl_attend_softcap(v%d, %s)", s,
			pawl_cuda_real(attrs->softcap).s);
	if (a->op->op == PAWL_OP_ATTENTION && a->op->n_inputs == 5) {
		mask = pawl_cuda_load(e, a->op, &a->op->inputs[4], &mask_at);
		s = pawl_cuda_let(e, "float", "v%d + v%d", s, mask);
	}
	pawl_cuda_line(e, "w[v%d] = v%d;", j, s);
	pawl_cuda_close(e);
	pawl_cuda_close(e);
	pawl_cuda_line(e, "PAWL_SYNC();");
	pawl_cuda_line(e, "pawl_attend_weights(w, lanes, max, sum, %" PRId64 ", v%d, v%d);",
		a->shared, low, high);
	pawl_cuda_line(e, "PAWL_SYNC();");
}

/* Start of the partials of (a->t, query head, chunk), in floats. */
static int
partial(struct pawl_cuda_emit *e, const struct attend *a, int head, int chunk)
{
	return pawl_cuda_let(e, e->index, "((v%d * %" PRId64 " + v%d) * v%d + v%d) * %" PRId64,
		a->t, a->heads, head, a->chunks, chunk, a->value_width + 2);
}

static void
weigh_values(
	struct pawl_cuda_emit *e, const struct attend *a, int chunk, int start, int low, int high)
{
	struct pawl_cuda_words n = times(a->shared, a->value_width);
	struct pawl_cuda_position at = {.index = {0, a->head}};
	char from[32], to[32];
	int j = pawl_cuda_unrolled(e, 1, "PAWL_THREAD", n.s, "PAWL_THREADS"), part, mine, o, p, v;

	mine = pawl_cuda_let(e, e->index, "v%d / %" PRId64, j, a->value_width);
	at.index[3] = pawl_cuda_let(e, e->index, "v%d %% %" PRId64, j, a->value_width);
	part = partial(e, a,
		pawl_cuda_let(e, e->index, "v%d * %" PRId64 " + v%d", a->head, a->shared, mine),
		chunk);
	o = pawl_cuda_var(e, "float", "0.0f");
	snprintf(from, sizeof(from), "v%d", low);
	snprintf(to, sizeof(to), "v%d", high);
	p = pawl_cuda_unrolled(e, LOADS, from, to, "1");
	at.index[2] = slot_of(e, a, pawl_cuda_let(e, e->index, "v%d + v%d", start, p));
	v = pawl_cuda_load(e, a->op, &a->op->inputs[2], &at);
	pawl_cuda_line(
		e, "v%d = pawl_fma(w[v%d * PAWL_ATTEND_CHUNK + v%d], v%d, v%d);", o, mine, p, v, o);
	pawl_cuda_close(e);
	pawl_cuda_line(e, "partials[v%d + v%d] = v%d;", part, at.index[3], o);
	pawl_cuda_open(e, "if (v%d == 0)", at.index[3]);
	pawl_cuda_line(e, "partials[v%d + %" PRId64 "] = max[v%d];", part, a->value_width, mine);
	pawl_cuda_line(
		e, "partials[v%d + %" PRId64 "] = sum[v%d];", part, a->value_width + 1, mine);
	pawl_cuda_close(e);
	pawl_cuda_close(e);
}

/* The value of the attention at (a->t, query head, column), from the partials. */
static int
merge(struct pawl_cuda_emit *e, const struct attend *a, int head, int column)
{
	int max = pawl_cuda_var(e, "float", "-PAWL_INF"), sum = pawl_cuda_var(e, "float", "0.0f");
	int o = pawl_cuda_var(e, "float", "0.0f"), first, chunk, part, next_o, next_max, next_sum;
	char from[32], to[64];

	first = pawl_cuda_let(e, e->index, "v%d / PAWL_ATTEND_CHUNK", a->first);
	snprintf(from, sizeof(from), "v%d", first);
	snprintf(to, sizeof(to), "(v%d + PAWL_ATTEND_CHUNK - 1) / PAWL_ATTEND_CHUNK", a->end);
	pawl_cuda_open(e, "if (v%d < v%d)", a->first, a->end);
	chunk = pawl_cuda_unrolled(e, 1, from, to, "1");
	part = partial(e, a, head, chunk);
	next_o = pawl_cuda_let(e, "float", "pawl_load_fresh(partials + v%d + v%d)", part, column);
	next_max = pawl_cuda_let(
		e, "float", "pawl_load_fresh(partials + v%d + %" PRId64 ")", part, a->value_width);
	next_sum = pawl_cuda_let(e, "float", "pawl_load_fresh(partials + v%d + %" PRId64 ")", part,
		a->value_width + 1);
	pawl_cuda_open(e, "if (v%d == v%d)", chunk, first);
	pawl_cuda_line(e, "v%d = v%d;", max, next_max);
	pawl_cuda_line(e, "v%d = v%d;", sum, next_sum);
	pawl_cuda_line(e, "v%d = v%d;", o, next_o);
	pawl_cuda_close(e);
	pawl_cuda_open(e, "else");
	pawl_cuda_line(e, "pawl_attend_merge(&v%d, &v%d, &v%d, v%d, v%d, v%d);", max, sum, o,
		next_max, next_sum, next_o);
	pawl_cuda_close(e);
	pawl_cuda_close(e);
	pawl_cuda_close(e);
	return pawl_cuda_let(e, "float", "v%d == 0.0f ? 0.0f : v%d / v%d", sum, o, sum);
}

static void
emit_merge(struct pawl_cuda_emit *e, const struct attend *a)
{
	struct pawl_cuda_position at = {.index = {a->t}};
	int j, column;
	int32_t i;

	pawl_cuda_open(e,
		"if (pawl_is_last((u32 *)(symbols + %" PRId32 ") + v%d * %" PRId64
		" + v%d, (u32)v%d))",
		e->program->n_symbols, a->t, a->kv_heads, a->head, a->chunks);
	j = pawl_cuda_unrolled(
		e, 1, "PAWL_THREAD", times(a->shared, a->value_width).s, "PAWL_THREADS");
	at.index[1] = pawl_cuda_let(e, e->index, "v%d * %" PRId64 " + v%d / %" PRId64, a->head,
		a->shared, j, a->value_width);
	column = at.index[2] = pawl_cuda_let(e, e->index, "v%d %% %" PRId64, j, a->value_width);
	e->fixed[a->index] = merge(e, a, at.index[1], column);
	for (i = a->index; i < e->step->n_ops; i++) {
		if (e->step->ops[i].n_outs)
			pawl_cuda_outs(e, i, &at);
	}
	pawl_cuda_close(e);
	pawl_cuda_close(e);
}

static void
emit_units(struct pawl_cuda_emit *e, struct attend *a)
{
	struct pawl_cuda_words rows = pawl_cuda_dim(a->op->type.dim[0]);
	int unit, chunk, start, low, high;
	char n_units[160];

	pawl_cuda_line(e, "PAWL_SHARED float q[%s];", times(a->shared, a->width).s);
	pawl_cuda_line(e, "PAWL_SHARED float w[%s];", times(a->shared, PAWL_ATTEND_CHUNK).s);
	pawl_cuda_line(e, "PAWL_SHARED float lanes[%s];", times(a->shared, PAWL_LANES).s);
	pawl_cuda_line(e, "PAWL_SHARED float max[%s], sum[%s];", times(a->shared, 1).s,
		times(a->shared, 1).s);
	snprintf(
		n_units, sizeof(n_units), "%s * %" PRId64 " * v%d", rows.s, a->kv_heads, a->chunks);
	unit = pawl_cuda_unrolled(e, 1, "PAWL_BLOCK", n_units, "PAWL_BLOCKS");
	chunk = pawl_cuda_let(e, e->index, "v%d %% v%d", unit, a->chunks);
	a->head = pawl_cuda_let(e, e->index, "v%d / v%d %% %" PRId64, unit, a->chunks, a->kv_heads);
	a->t = pawl_cuda_let(e, e->index, "v%d / v%d / %" PRId64, unit, a->chunks, a->kv_heads);
	visible(e, a);
	start = pawl_cuda_let(e, e->index, "v%d * PAWL_ATTEND_CHUNK", chunk);
	low = pawl_cuda_let(
		e, e->index, "v%d > v%d ? v%d - v%d : 0", a->first, start, a->first, start);
	high = pawl_cuda_let(e, e->index,
		"v%d < v%d + PAWL_ATTEND_CHUNK ? v%d - v%d : PAWL_ATTEND_CHUNK", a->end, start,
		a->end, start);
	pawl_cuda_open(e, "if (v%d < v%d)", low, high);
	stage_query(e, a);
	score(e, a, start, low, high);
	weigh_values(e, a, chunk, start, low, high);
	pawl_cuda_close(e);
	emit_merge(e, a);
	pawl_cuda_close(e);
}

void
pawl_cuda_attend(struct pawl_cuda_emit *e)
{
	struct attend a;

	if (!begin(e, &a))
		return;
	pawl_cuda_line(e, "float *const partials = (float *)a%" PRId32 ";", e->step->scratch_arg);
	emit_units(e, &a);
}

int64_t
pawl_cuda_attend_counters(const struct pawl_step *step, const int64_t *symbols)
{
	const struct pawl_step_op *op = &step->ops[pawl_step_attention(step)];

	return pawl_dim_value(op->type.dim[0], symbols) * op->inputs[1].type.dim[1].base;
}

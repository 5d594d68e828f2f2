#include "codegen/llvm/emit_attend.h"

#include "codegen/llvm/emit_attend_dot.h"
#include "codegen/llvm/emit_blocks.h"
#include "codegen/llvm/emit_scalar.h"
#include "codegen/llvm/machine.h"
#include "ir/half.h"
#include "passes/cost.h"

/* Accumulators that a loop may carry without spilling. */
static int64_t
most_accumulators(const struct pawl_emit *e)
{
	switch (e->variant) {
	case PAWL_CPU_AVX512VNNI:
	case PAWL_CPU_AVX512:
		return 16;
	case PAWL_CPU_AVX2:
	case PAWL_CPU_AARCH64:
		return 6;
	case PAWL_CPU_BASELINE:
	case PAWL_N_CPU_VARIANTS:
		break;
	}
	return 2;
}

static int64_t
smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static LLVMValueRef
minus_infinity(struct pawl_emit *e, LLVMTypeRef type)
{
	return pawl_emit_real(e, type, pawl_f32_from_bits(0xff800000));
}

/* Where the scores of 16 positions from `position` on lie. */
static LLVMValueRef
scores_at(struct pawl_emit *e, const struct pawl_heads *h, int i, LLVMValueRef position)
{
	LLVMValueRef in_chunk = isub(e, position, h->chunk_start);

	return pawl_emit_at(e,
		pawl_emit_at_bytes(e, h->a->scores, (h->first + i) * PAWL_ATTEND_CHUNK * 4),
		imul(e, in_chunk, k64(e, 4)));
}

/* The score of 16 positions; seen says which of them are visible. */
static LLVMValueRef
score_of(struct pawl_emit *e, const struct pawl_heads *h, LLVMValueRef position, LLVMValueRef seen,
	LLVMValueRef dot)
{
	const struct pawl_step_op *op = h->a->op;
	struct pawl_position at = {.index = {h->unit->row, position}, .mask = seen};
	LLVMValueRef s, cap;

	s = fmul(e, dot, pawl_emit_real(e, e->v16f32, (float)op->attrs.scale));
	if ((float)op->attrs.softcap != 0.0f) {
		cap = pawl_emit_real(e, e->v16f32, (float)op->attrs.softcap);
		s = fmul(e, cap, pawl_emit_tanh(e, fdiv(e, s, cap)));
	}
	if (op->op == PAWL_OP_ATTENTION && op->n_inputs == 5)
		s = fadd(e, s, pawl_emit_load(e, &op->inputs[4].access, 2, &at));
	return s;
}

/* Scores of n_groups times 16 positions; max[head] takes them in. */
static void
score_groups(struct pawl_emit *e, const struct pawl_heads *h, LLVMValueRef position, int n_groups,
	LLVMValueRef *max)
{
	LLVMValueRef dot[MAX_CARRIED], seen, s, at;
	int g, i;

	pawl_heads_dot(e, h, position, n_groups, dot);
	for (g = 0; g < n_groups; g++) {
		at = iadd(e, position, k64(e, LANES * g));
		seen = pawl_heads_seen(e, h, at);
		for (i = 0; i < h->n; i++) {
			s = score_of(e, h, at, seen, dot[g * h->n + i]);
			max[i] = choose(e, seen, pawl_emit_max(e, max[i], s), max[i]);
			s = choose(e, seen, s, minus_infinity(e, e->v16f32));
			pawl_emit_write(e, s, scores_at(e, h, i, at), 4);
		}
	}
}

/* All scores of the chunk; the lanes of their maxima go to max. */
static void
score_chunk(struct pawl_emit *e, const struct pawl_heads *h, LLVMValueRef start, LLVMValueRef *max)
{
	int64_t at_once = smaller(most_accumulators(e) / h->n, 4), step;
	struct pawl_loop loop = {.n = h->n};
	LLVMValueRef count = isub(e, iadd(e, h->unit->end, k64(e, LANES - 1)), start), whole;
	int i;

	at_once = pawl_heads_keys_are_rows(h) ? 1 : at_once >= 4 ? 4 : at_once >= 2 ? 2 : 1;
	step = at_once * LANES;
	for (i = 0; i < h->n; i++)
		loop.carried[i] = minus_infinity(e, e->v16f32);
	whole = iadd(e, start, iand(e, count, k64(e, -step)));
	pawl_loop_begin(e, &loop, start, whole, step);
	score_groups(e, h, loop.index, (int)at_once, loop.carried);
	pawl_loop_end(e, &loop);
	if (at_once > 1) {
		pawl_loop_begin(e, &loop, whole, h->unit->end, LANES);
		score_groups(e, h, loop.index, 1, loop.carried);
		pawl_loop_end(e, &loop);
	}
	for (i = 0; i < h->n; i++)
		max[i] = loop.carried[i];
}

/* Heads that are weighed together. */
static int64_t
most_weighed(const struct pawl_emit *e, const struct pawl_heads *h)
{
	int64_t n = most_accumulators(e) / 4;

	return smaller(n > 1 ? n : 1, h->n);
}

enum { LINE = 64, FETCHED_WITH_SCORES = 4 * LINE, SMALL_KEYS = 16 << 10 };

/*
 * Bytes of the next chunk's keys that are fetched while a vector of scores of each head is weighed.
 * Where the keys of a chunk are larger they would drive the values out of the first cache.
 */
static int64_t
fetched_with_scores(const struct pawl_emit *e, const struct pawl_heads *h)
{
	int64_t bytes = most_weighed(e, h) * FETCHED_WITH_SCORES;

	return pawl_heads_key_bytes(h) > SMALL_KEYS || pawl_heads_key_bytes(h) < bytes ? 0 : bytes;
}

/* Scores of n heads from head i on to weights, and their sums. */
static void
weigh_heads(struct pawl_emit *e, const struct pawl_heads *h, int i, int n, LLVMValueRef start,
	const LLVMValueRef *max, LLVMValueRef *sum)
{
	LLVMValueRef shift[MAX_CARRIED], is_least, w, at;
	struct pawl_loop loop = {.n = n};
	int64_t bytes = h->first + i == 0 ? fetched_with_scores(e, h) : 0;
	int j;

	for (j = 0; j < n; j++) {
		is_least = fcmp(e, LLVMRealOEQ, max[i + j], minus_infinity(e, e->f32));
		shift[j] = splat16(e, choose(e, is_least, LLVMConstNull(e->f32), max[i + j]));
		loop.carried[j] = LLVMConstNull(e->v16f32);
	}
	pawl_loop_begin(e, &loop, start, h->unit->end, LANES);
	if (bytes)
		pawl_heads_prefetch_keys(e, h,
			imul(e, isub(e, loop.index, h->chunk_start), k64(e, bytes / LANES)), bytes);
	for (j = 0; j < n; j++) {
		at = scores_at(e, h, i + j, loop.index);
		w = pawl_emit_exp(e, fsub(e, pawl_emit_read(e, e->v16f32, at, 4), shift[j]));
		pawl_emit_write(e, w, at, 4);
		loop.carried[j] = fadd(e, loop.carried[j], w);
	}
	pawl_loop_end(e, &loop);
	for (j = 0; j < n; j++)
		sum[i + j] = pawl_emit_lanes_sum(e, loop.carried[j]);
}

/* Columns of the values that are accumulated together: n vectors, the last maybe under a mask. */
struct columns {
	LLVMValueRef first; /* i64 */
	int n;
	LLVMValueRef mask;    /* of all of them; n is 1 then */
	LLVMValueRef fetched; /* bytes of the next chunk's keys that are on their way */
	int64_t to_fetch;     /* bytes that are to follow with each position */
};

static void
sum_values(struct pawl_emit *e, const struct pawl_heads *h, const struct columns *c)
{
	const struct pawl_access *v = &h->a->op->inputs[2].access;
	struct pawl_loop loop = {.n = h->n * c->n};
	struct pawl_position at = {.index = {k64(e, 0), h->unit->group}, .mask = c->mask};
	LLVMValueRef head, part, w, value, slot, bytes;
	int i, j;

	for (i = 0; i < loop.n; i++)
		loop.carried[i] = LLVMConstNull(e->v16f32);
	pawl_loop_begin(e, &loop, h->unit->first, h->unit->end, 1);
	if (c->to_fetch) {
		bytes = imul(e, isub(e, loop.index, h->unit->first), k64(e, c->to_fetch));
		pawl_heads_prefetch_keys(e, h, iadd(e, c->fetched, bytes), c->to_fetch);
	}
	slot = pawl_heads_slot(e, h, loop.index);
	for (j = 0; j < c->n; j++) {
		at.index[2] = slot;
		at.index[3] = iadd(e, c->first, k64(e, LANES * j));
		value = v->dtype == PAWL_DTYPE_Q8_0 ? pawl_emit_load_block(e, v, 4, at.index)
				     : pawl_emit_load(e, v, 4, &at);
		for (i = 0; i < h->n; i++) {
			w = splat16(
				e, pawl_emit_read(e, e->f32, scores_at(e, h, i, loop.index), 4));
			loop.carried[i * c->n + j] =
				pawl_machine_fma(e, w, value, loop.carried[i * c->n + j]);
		}
	}
	pawl_loop_end(e, &loop);
	for (i = 0; i < h->n; i++) {
		head = iadd(e, imul(e, h->unit->group, k64(e, h->a->shared)), k64(e, h->first + i));
		part = pawl_attend_part(e, h->a, h->unit->row, head, h->unit->chunk);
		part = pawl_emit_at(e, part, iadd(e, imul(e, c->first, k64(e, 4)), k64(e, 8)));
		for (j = 0; j < c->n; j++) {
			value = loop.carried[i * c->n + j];
			if (c->mask)
				pawl_emit_masked_write(e, value, part, 4, c->mask);
			else
				pawl_emit_write(e, value, pawl_emit_at_bytes(e, part, 64 * j), 4);
		}
	}
}

static void
sum_all_values(struct pawl_emit *e, const struct pawl_heads *h)
{
	int64_t vectors = h->a->width / LANES,
		at_once = smaller(most_accumulators(e) / h->n, vectors);
	int64_t fetched, n_passes, whole, lines;
	struct pawl_loop loop = {.n = 0};
	struct columns c = {.mask = NULL};

	if (at_once < 1)
		at_once = 1;
	whole = vectors / at_once * at_once;
	n_passes = whole / at_once + (vectors > whole) + (h->a->width % LANES > 0);
	fetched = fetched_with_scores(e, h) * PAWL_ATTEND_CHUNK / LANES;
	lines = n_passes * PAWL_ATTEND_CHUNK * LINE;
	if (h->first == 0 && pawl_heads_key_bytes(h) > fetched)
		c.to_fetch = (pawl_heads_key_bytes(h) - fetched + lines - 1) / lines * LINE;
	if (vectors) {
		c.n = (int)at_once;
		pawl_loop_begin(e, &loop, k64(e, 0), k64(e, whole * LANES), at_once * LANES);
		c.first = loop.index;
		c.fetched = udiv(e, loop.index, k64(e, at_once * LANES));
		c.fetched = iadd(e, k64(e, fetched),
			imul(e, c.fetched, k64(e, PAWL_ATTEND_CHUNK * c.to_fetch)));
		sum_values(e, h, &c);
		pawl_loop_end(e, &loop);
	}
	c.fetched = k64(e, fetched + whole / at_once * PAWL_ATTEND_CHUNK * c.to_fetch);
	if (vectors > whole) {
		c.n = (int)(vectors - whole);
		c.first = k64(e, whole * LANES);
		sum_values(e, h, &c);
	}
	if (h->a->width % LANES) {
		c.n = 1;
		c.first = k64(e, vectors * LANES);
		c.mask = pawl_emit_mask_first(e, (int)(h->a->width % LANES));
		sum_values(e, h, &c);
	}
}

void
pawl_emit_attend_chunk(
	struct pawl_emit *e, const struct pawl_attend *a, const struct pawl_attend_unit *unit)
{
	LLVMValueRef max[8], sum[8], start = iand(e, unit->first, k64(e, -LANES)), part, head;
	struct pawl_heads h = {.a = a, .unit = unit};
	int64_t at_once = smaller(most_accumulators(e), 8);
	int i, n;

	h.chunk_start = imul(e, unit->chunk, k64(e, PAWL_ATTEND_CHUNK));
	pawl_heads_find(e, &h);
	for (h.first = 0; h.first < a->shared; h.first += h.n) {
		h.n = (int)smaller(at_once, a->shared - h.first);
		score_chunk(e, &h, start, max);
		for (i = 0; i < h.n; i++)
			max[i] = pawl_emit_lanes_max(e, max[i]);
		for (i = 0; i < h.n; i += n) {
			n = (int)smaller(most_weighed(e, &h), h.n - i);
			weigh_heads(e, &h, i, n, start, max, sum);
		}
		for (i = 0; i < h.n; i++) {
			head = iadd(
				e, imul(e, unit->group, k64(e, a->shared)), k64(e, h.first + i));
			part = pawl_attend_part(e, a, unit->row, head, unit->chunk);
			pawl_emit_write(e, max[i], part, 4);
			pawl_emit_write(e, sum[i], pawl_emit_at_bytes(e, part, 4), 4);
		}
		sum_all_values(e, &h);
	}
}

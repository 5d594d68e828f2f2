#include "codegen/llvm/emit_attend.h"

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

/* Some query heads of a unit that are computed together. */
struct heads {
	const struct pawl_attend *a;
	const struct pawl_attend_unit *unit;
	int64_t first; /* within those that share the key head */
	int n;
	LLVMValueRef chunk_start; /* position */
};

static LLVMValueRef
minus_infinity(struct pawl_emit *e, LLVMTypeRef type)
{
	return pawl_emit_real(e, type, pawl_f32_from_bits(0xff800000));
}

/* Where the key and value of a position lie; 16 from a multiple of 16 on are neighbours. */
static LLVMValueRef
slot_of(struct pawl_emit *e, const struct heads *h, LLVMValueRef position)
{
	return pawl_attend_slot(e, h->a, h->unit->row, position);
}

/* Where the scores of 16 positions from `position` on lie. */
static LLVMValueRef
scores_at(struct pawl_emit *e, const struct heads *h, int i, LLVMValueRef position)
{
	LLVMValueRef in_chunk = isub(e, position, h->chunk_start);

	return pawl_emit_at(e,
		pawl_emit_at_bytes(e, h->a->scores, (h->first + i) * PAWL_ATTEND_CHUNK * 4),
		imul(e, in_chunk, k64(e, 4)));
}

/* Lanes of a group of 16 positions that are visible. */
static LLVMValueRef
lanes_seen(struct pawl_emit *e, const struct heads *h, LLVMValueRef position)
{
	LLVMValueRef p = iadd(e, splat16(e, position), pawl_emit_iota(e));

	return iand(e, icmp(e, LLVMIntSGE, p, splat16(e, h->unit->first)),
		icmp(e, LLVMIntSLT, p, splat16(e, h->unit->end)));
}

/* Whether 16 positions of a column are 16 neighbours in memory. */
static bool
keys_are_lanes(const struct pawl_access *k)
{
	return k->layout == PAWL_LAYOUT_K16 && k->pos_dim == 2 && k->pos0 % LANES == 0 &&
	       k->at_dim < 0;
}

static bool
is_blocks(const struct pawl_access *access)
{
	return access->dtype == PAWL_DTYPE_Q8_0;
}

/* The keys at 16 positions. */
struct keys {
	LLVMValueRef address; /* of column 0, NULL: gather */
	struct pawl_position at;
};

/* Column first + i; first is a multiple of 8 where keys are blocks, and i below that. */
static LLVMValueRef
load_keys(struct pawl_emit *e, const struct heads *h, struct keys *keys, LLVMValueRef first, int64_t i)
{
	const struct pawl_access *k = &h->a->op->inputs[1].access;
	int64_t bytes = LANES * pawl_dtype_info(k->dtype)->block_bytes;
	LLVMValueRef column = iadd(e, first, k64(e, i));

	if (keys->address && is_blocks(k))
		return pawl_emit_load_woven(e, keys->address, first, i);
	if (keys->address)
		return pawl_emit_load_dense(e, k->dtype,
			pawl_emit_at(e, keys->address, imul(e, column, k64(e, bytes))), NULL);
	keys->at.index[3] = column;
	return pawl_emit_load_lanes(e, k, 4, &keys->at);
}

static void
find_keys(struct pawl_emit *e, const struct heads *h, LLVMValueRef position, struct keys *keys)
{
	const struct pawl_access *k = &h->a->op->inputs[1].access;
	LLVMValueRef index[4] = {k64(e, 0), h->unit->group, slot_of(e, h, position)};

	if (keys_are_lanes(k)) {
		keys->address = pawl_emit_row_address(e, k, 4, index);
		return;
	}
	if (is_blocks(k))
		pawl_emit_refuse(e, "%s: blocks in lanes that are no positions", h->a->op->name);
	keys->address = NULL;
	keys->at.index[0] = index[0];
	keys->at.index[1] = index[1];
	keys->at.index[2] = iadd(e, splat16(e, index[2]), pawl_emit_iota(e));
	keys->at.mask = lanes_seen(e, h, position);
}

static void
prefetch(struct pawl_emit *e, LLVMValueRef address, int64_t bytes)
{
	int64_t at;

	for (at = 0; at < bytes; at += 64)
		pawl_emit_prefetch(e, pawl_emit_at_bytes(e, address, at));
}

/*
 * While keys are multiplied, the values of the same positions come in: for n_columns of the d
 * columns, the same share of the bytes of 16 positions.
 */
static void
prefetch_values(struct pawl_emit *e, const struct heads *h, LLVMValueRef position,
	LLVMValueRef column, int64_t n_columns)
{
	const struct pawl_access *v = &h->a->op->inputs[2].access;
	LLVMValueRef index[4] = {k64(e, 0), h->unit->group, slot_of(e, h, position)};
	int64_t share = pawl_dtype_bytes(v->dtype, LANES * v->stride[2]) / h->a->d;

	if (pawl_access_is_dense(v, 4))
		prefetch(e,
			pawl_emit_at(e, pawl_emit_row_address(e, v, 4, index),
				imul(e, column, k64(e, share))),
			n_columns * share);
}

/* While values are summed, the keys of the next chunk come in. */
static void
prefetch_keys(struct pawl_emit *e, const struct heads *h, LLVMValueRef position)
{
	const struct pawl_access *k = &h->a->op->inputs[1].access;
	LLVMValueRef next = iadd(e, h->chunk_start, k64(e, PAWL_ATTEND_CHUNK));
	LLVMValueRef index[4] = {k64(e, 0), h->unit->group, next}, i;
	int64_t share = pawl_dtype_bytes(k->dtype, h->a->d);

	if (!keys_are_lanes(k))
		return;
	i = isub(e, position, h->chunk_start);
	if (h->a->op->op == PAWL_OP_PAGED_ATTENTION) {
		/* Each 16 positions may lie elsewhere; the table says nothing beyond its end. */
		next = iadd(e, next, iand(e, i, k64(e, -LANES)));
		next = imin(e, next, k64(e, pawl_attend_most(h->a->op) - LANES));
		index[2] = slot_of(e, h, next);
		i = iand(e, i, k64(e, LANES - 1));
	}
	prefetch(e,
		pawl_emit_at(
			e, pawl_emit_row_address(e, k, 4, index), imul(e, i, k64(e, share))),
		share);
}

/* Lane l of result i is lane i of vector l: four rounds of exchanging halves of halves. */
static void
transpose(struct pawl_emit *e, LLVMValueRef *v)
{
	LLVMValueRef low[LANES], high[LANES], a, b;
	int step, i, l;

	for (step = LANES / 2; step; step /= 2) {
		for (l = 0; l < LANES; l++) {
			low[l] = k32(e, l & step ? LANES + l - step : l);
			high[l] = k32(e, l & step ? LANES + l : l + step);
		}
		for (i = 0; i < LANES; i++) {
			if (i & step)
				continue;
			a = v[i];
			b = v[i + step];
			v[i] = LLVMBuildShuffleVector(
				e->builder, a, b, LLVMConstVector(low, LANES), "");
			v[i + step] = LLVMBuildShuffleVector(
				e->builder, a, b, LLVMConstVector(high, LANES), "");
		}
	}
}

/* Rows of keys that lie dense, whose vectors of columns can be turned into vectors of positions. */
static bool
keys_are_rows(const struct heads *h)
{
	const struct pawl_access *k = &h->a->op->inputs[1].access;

	return pawl_access_is_dense(k, 4) && k->at_dim < 0 && h->a->d % LANES == 0;
}

/* 16 columns of 16 rows of keys: keys[j] is column first + j. */
static void
load_key_rows(struct pawl_emit *e, const struct heads *h, const LLVMValueRef *rows,
	LLVMValueRef first, LLVMValueRef *keys)
{
	const struct pawl_dtype_info *info = pawl_dtype_info(h->a->op->inputs[1].access.dtype);
	LLVMValueRef at = imul(e, udiv(e, first, k64(e, info->block)), k64(e, info->block_bytes));
	LLVMValueRef in_block = urem(e, first, k64(e, info->block)), scales, block;
	int i;

	if (!is_blocks(&h->a->op->inputs[1].access)) {
		for (i = 0; i < LANES; i++)
			keys[i] = pawl_emit_load_dense(e, h->a->op->inputs[1].access.dtype,
				pawl_emit_at(e, rows[i], at), NULL);
		transpose(e, keys);
		return;
	}
	scales = LLVMGetPoison(LLVMVectorType(e->i16, LANES));
	for (i = 0; i < LANES; i++) {
		block = pawl_emit_at(e, rows[i], at);
		scales = LLVMBuildInsertElement(e->builder, scales,
			pawl_emit_read(e, e->i16, block, 1), k32(e, i), "");
		block = pawl_emit_at(e, pawl_emit_at_bytes(e, block, 2), in_block);
		keys[i] = pawl_emit_read(e, e->v16i8, block, 1);
	}
	transpose(e, keys);
	for (i = 0; i < LANES; i++)
		keys[i] = pawl_emit_q8_0_value(e, keys[i], scales);
}

/* q . k for 16 positions, from row-major keys. */
static void
dot_rows(struct pawl_emit *e, const struct heads *h, LLVMValueRef position, LLVMValueRef *dot)
{
	const struct pawl_access *k = &h->a->op->inputs[1].access;
	LLVMValueRef rows[LANES], keys[LANES], index[4] = {k64(e, 0), h->unit->group}, at, q;
	struct pawl_loop loop = {.n = h->n};
	int i, j;

	/* Positions that are not visible must not be read: the last one stands in. */
	for (i = 0; i < LANES; i++) {
		index[2] = imin(e, iadd(e, position, k64(e, i)), isub(e, h->unit->end, k64(e, 1)));
		index[2] = slot_of(e, h, index[2]);
		rows[i] = pawl_emit_row_address(e, k, 4, index);
	}
	for (i = 0; i < h->n; i++)
		loop.carried[i] = LLVMConstNull(e->v16f32);
	pawl_loop_begin(e, &loop, k64(e, 0), k64(e, h->a->d), LANES);
	load_key_rows(e, h, rows, loop.index, keys);
	at = imul(e, loop.index, k64(e, 4));
	for (j = 0; j < LANES; j++) {
		for (i = 0; i < h->n; i++) {
			q = pawl_emit_at_bytes(
				e, h->unit->q, (h->first + i) * h->unit->q_bytes + 4 * j);
			q = splat16(e, pawl_emit_read(e, e->f32, pawl_emit_at(e, q, at), 4));
			loop.carried[i] = pawl_machine_fma(e, keys[j], q, loop.carried[i]);
		}
	}
	pawl_loop_end(e, &loop);
	for (i = 0; i < h->n; i++)
		dot[i] = loop.carried[i];
}

/* q . k for n_groups times 16 positions and all heads: dot[group * heads + head]. */
static void
dot_keys(struct pawl_emit *e, const struct heads *h, LLVMValueRef position, int n_groups,
	LLVMValueRef *dot)
{
	bool blocks = is_blocks(&h->a->op->inputs[1].access);
	int64_t unroll = blocks ? 8 : h->a->d % 4 == 0 ? 4 : 1, j;
	struct pawl_loop loop = {.n = n_groups * h->n};
	struct keys keys[8];
	LLVMValueRef column, k, q;
	int g, i;

	for (g = 0; g < n_groups; g++)
		find_keys(e, h, iadd(e, position, k64(e, LANES * g)), &keys[g]);
	for (i = 0; i < loop.n; i++)
		loop.carried[i] = LLVMConstNull(e->v16f32);
	pawl_loop_begin(e, &loop, k64(e, 0), k64(e, h->a->d), unroll);
	for (g = 0; g < n_groups; g++)
		prefetch_values(e, h, iadd(e, position, k64(e, LANES * g)), loop.index, unroll);
	for (j = 0; j < unroll; j++) {
		column = iadd(e, loop.index, k64(e, j));
		for (g = 0; g < n_groups; g++) {
			k = load_keys(e, h, &keys[g], loop.index, j);
			for (i = 0; i < h->n; i++) {
				q = pawl_emit_at_bytes(
					e, h->unit->q, (h->first + i) * h->unit->q_bytes);
				q = pawl_emit_at(e, q, imul(e, column, k64(e, 4)));
				q = splat16(e, pawl_emit_read(e, e->f32, q, 4));
				loop.carried[g * h->n + i] =
					pawl_machine_fma(e, k, q, loop.carried[g * h->n + i]);
			}
		}
	}
	pawl_loop_end(e, &loop);
	for (i = 0; i < loop.n; i++)
		dot[i] = loop.carried[i];
}

/* The score of 16 positions; seen says which of them are visible. */
static LLVMValueRef
score_of(struct pawl_emit *e, const struct heads *h, LLVMValueRef position, LLVMValueRef seen,
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
score_groups(struct pawl_emit *e, const struct heads *h, LLVMValueRef position, int n_groups,
	LLVMValueRef *max)
{
	LLVMValueRef dot[MAX_CARRIED], seen, s, at;
	int g, i;

	if (keys_are_rows(h))
		dot_rows(e, h, position, dot);
	else
		dot_keys(e, h, position, n_groups, dot);
	for (g = 0; g < n_groups; g++) {
		at = iadd(e, position, k64(e, LANES * g));
		seen = lanes_seen(e, h, at);
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
score_chunk(struct pawl_emit *e, const struct heads *h, LLVMValueRef start, LLVMValueRef *max)
{
	int64_t at_once = smaller(most_accumulators(e) / h->n, 4), step;
	struct pawl_loop loop = {.n = h->n};
	LLVMValueRef count = isub(e, iadd(e, h->unit->end, k64(e, LANES - 1)), start), whole;
	int i;

	at_once = keys_are_rows(h) ? 1 : at_once >= 4 ? 4 : at_once >= 2 ? 2 : 1;
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

/* Scores of a head to weights; returns their sum. */
static LLVMValueRef
weigh_chunk(struct pawl_emit *e, const struct heads *h, int i, LLVMValueRef start, LLVMValueRef max)
{
	LLVMValueRef is_least = fcmp(e, LLVMRealOEQ, max, minus_infinity(e, e->f32)), shift, w, at;
	struct pawl_loop loop = {.n = 1};

	shift = splat16(e, choose(e, is_least, LLVMConstNull(e->f32), max));
	loop.carried[0] = LLVMConstNull(e->v16f32);
	pawl_loop_begin(e, &loop, start, h->unit->end, LANES);
	at = scores_at(e, h, i, loop.index);
	w = pawl_emit_exp(e, fsub(e, pawl_emit_read(e, e->v16f32, at, 4), shift));
	pawl_emit_write(e, w, at, 4);
	loop.carried[0] = fadd(e, loop.carried[0], w);
	pawl_loop_end(e, &loop);
	return pawl_emit_lanes_sum(e, loop.carried[0]);
}

/* Columns of the values that are accumulated together: n vectors, the last maybe under a mask. */
struct columns {
	LLVMValueRef first; /* i64 */
	int n;
	LLVMValueRef mask; /* of all of them; n is 1 then */
};

static void
sum_values(struct pawl_emit *e, const struct heads *h, const struct columns *c)
{
	const struct pawl_access *v = &h->a->op->inputs[2].access;
	struct pawl_loop loop = {.n = h->n * c->n};
	struct pawl_position at = {.index = {k64(e, 0), h->unit->group}, .mask = c->mask};
	LLVMValueRef head, part, w, value, slot;
	int i, j;

	for (i = 0; i < loop.n; i++)
		loop.carried[i] = LLVMConstNull(e->v16f32);
	pawl_loop_begin(e, &loop, h->unit->first, h->unit->end, 1);
	prefetch_keys(e, h, loop.index);
	slot = slot_of(e, h, loop.index);
	for (j = 0; j < c->n; j++) {
		at.index[2] = slot;
		at.index[3] = iadd(e, c->first, k64(e, LANES * j));
		value = is_blocks(v) ? pawl_emit_load_block(e, v, 4, at.index)
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
sum_all_values(struct pawl_emit *e, const struct heads *h)
{
	int64_t vectors = h->a->width / LANES,
		at_once = smaller(most_accumulators(e) / h->n, vectors);
	struct pawl_loop loop = {.n = 0};
	struct columns c = {.mask = NULL};
	int64_t whole;

	if (at_once < 1)
		at_once = 1;
	whole = vectors / at_once * at_once;
	if (vectors) {
		c.n = (int)at_once;
		pawl_loop_begin(e, &loop, k64(e, 0), k64(e, whole * LANES), at_once * LANES);
		c.first = loop.index;
		sum_values(e, h, &c);
		pawl_loop_end(e, &loop);
	}
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
	LLVMValueRef max[8], start = iand(e, unit->first, k64(e, -LANES)), sum, part, head, top;
	struct heads h = {.a = a, .unit = unit};
	int64_t at_once = smaller(most_accumulators(e), 8);
	int i;

	h.chunk_start = imul(e, unit->chunk, k64(e, PAWL_ATTEND_CHUNK));
	for (h.first = 0; h.first < a->shared; h.first += h.n) {
		h.n = (int)smaller(at_once, a->shared - h.first);
		score_chunk(e, &h, start, max);
		for (i = 0; i < h.n; i++) {
			top = pawl_emit_lanes_max(e, max[i]);
			sum = weigh_chunk(e, &h, i, start, top);
			head = iadd(
				e, imul(e, unit->group, k64(e, a->shared)), k64(e, h.first + i));
			part = pawl_attend_part(e, a, unit->row, head, unit->chunk);
			pawl_emit_write(e, top, part, 4);
			pawl_emit_write(e, sum, pawl_emit_at_bytes(e, part, 4), 4);
		}
		sum_all_values(e, &h);
	}
}

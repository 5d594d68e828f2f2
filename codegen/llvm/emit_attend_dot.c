#include "codegen/llvm/emit_attend_dot.h"

#include "codegen/llvm/emit_blocks.h"
#include "codegen/llvm/machine.h"
#include "passes/cost.h"

void
pawl_heads_find(struct pawl_emit *e, struct pawl_heads *h)
{
	const struct pawl_step_op *op = h->a->op;
	LLVMValueRef next = iadd(e, h->chunk_start, k64(e, PAWL_ATTEND_CHUNK));

	h->slot = h->next_slot = NULL;
	if (op->op == PAWL_OP_PAGED_ATTENTION && op->attrs.block % PAWL_ATTEND_CHUNK)
		return;
	/* The table of a paged cache says nothing beyond its end. */
	if (op->op == PAWL_OP_PAGED_ATTENTION)
		next = imin(e, next, k64(e, pawl_attend_most(op) - PAWL_ATTEND_CHUNK));
	h->slot = pawl_attend_slot(e, h->a, h->unit->row, h->chunk_start);
	h->next_slot = pawl_attend_slot(e, h->a, h->unit->row, next);
}

LLVMValueRef
pawl_heads_slot(struct pawl_emit *e, const struct pawl_heads *h, LLVMValueRef position)
{
	if (h->slot)
		return iadd(e, h->slot, isub(e, position, h->chunk_start));
	return pawl_attend_slot(e, h->a, h->unit->row, position);
}

LLVMValueRef
pawl_heads_seen(struct pawl_emit *e, const struct pawl_heads *h, LLVMValueRef position)
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
load_keys(struct pawl_emit *e, const struct pawl_heads *h, struct keys *keys, LLVMValueRef first,
	int64_t i)
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
find_keys(struct pawl_emit *e, const struct pawl_heads *h, LLVMValueRef position, struct keys *keys)
{
	const struct pawl_access *k = &h->a->op->inputs[1].access;
	LLVMValueRef index[4] = {k64(e, 0), h->unit->group, pawl_heads_slot(e, h, position)};

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
	keys->at.mask = pawl_heads_seen(e, h, position);
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
prefetch_values(struct pawl_emit *e, const struct pawl_heads *h, LLVMValueRef position,
	LLVMValueRef column, int64_t n_columns)
{
	const struct pawl_access *v = &h->a->op->inputs[2].access;
	LLVMValueRef index[4] = {k64(e, 0), h->unit->group, pawl_heads_slot(e, h, position)};
	int64_t share = pawl_dtype_bytes(v->dtype, LANES * v->stride[2]) / h->a->d;

	if (pawl_access_is_dense(v, 4))
		prefetch(e,
			pawl_emit_at(e, pawl_emit_row_address(e, v, 4, index),
				imul(e, column, k64(e, share))),
			n_columns * share);
}

int64_t
pawl_heads_key_bytes(const struct pawl_heads *h)
{
	const struct pawl_access *k = &h->a->op->inputs[1].access;
	bool are_rows = pawl_heads_keys_are_rows(h) && h->a->op->op == PAWL_OP_ATTENTION;

	return keys_are_lanes(k) || are_rows
		       ? PAWL_ATTEND_CHUNK * pawl_dtype_bytes(k->dtype, h->a->d)
		       : 0;
}

void
pawl_heads_prefetch_keys(
	struct pawl_emit *e, const struct pawl_heads *h, LLVMValueRef at, int64_t n_bytes)
{
	const struct pawl_access *k = &h->a->op->inputs[1].access;
	/* Positions that lie together, whatever lies between them and the next. */
	int64_t n = keys_are_lanes(k) ? LANES : 1, bytes = n * pawl_dtype_bytes(k->dtype, h->a->d);
	LLVMValueRef last = k64(e, pawl_heads_key_bytes(h) - n_bytes), ahead, position;
	LLVMValueRef index[4] = {k64(e, 0), h->unit->group};

	at = imin(e, at, last);
	ahead = imul(e, udiv(e, at, k64(e, bytes)), k64(e, n));
	if (h->next_slot) {
		index[2] = iadd(e, h->next_slot, ahead);
	} else {
		position = iadd(e, h->chunk_start, iadd(e, ahead, k64(e, PAWL_ATTEND_CHUNK)));
		position = imin(e, position, k64(e, pawl_attend_most(h->a->op) - LANES));
		index[2] = pawl_heads_slot(e, h, position);
	}
	prefetch(e, pawl_emit_at(e, pawl_emit_row_address(e, k, 4, index), urem(e, at, k64(e, bytes))),
		n_bytes);
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

bool
pawl_heads_keys_are_rows(const struct pawl_heads *h)
{
	const struct pawl_access *k = &h->a->op->inputs[1].access;

	return pawl_access_is_dense(k, 4) && k->at_dim < 0 && h->a->d % LANES == 0;
}

/* 16 columns of 16 rows of keys: keys[j] is column first + j. */
static void
load_key_rows(struct pawl_emit *e, const struct pawl_heads *h, const LLVMValueRef *rows,
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

/* From row-major keys, 16 positions. */
static void
dot_rows(struct pawl_emit *e, const struct pawl_heads *h, LLVMValueRef position, LLVMValueRef *dot)
{
	const struct pawl_access *k = &h->a->op->inputs[1].access, *v = &h->a->op->inputs[2].access;
	LLVMValueRef rows[LANES], keys[LANES], index[4] = {k64(e, 0), h->unit->group}, at, q;
	struct pawl_loop loop = {.n = h->n};
	int i, j;

	/* Positions that are not visible must not be read: the last one stands in. */
	for (i = 0; i < LANES; i++) {
		index[2] = imin(e, iadd(e, position, k64(e, i)), isub(e, h->unit->end, k64(e, 1)));
		index[2] = pawl_heads_slot(e, h, index[2]);
		rows[i] = pawl_emit_row_address(e, k, 4, index);
		if (pawl_access_is_dense(v, 4))
			prefetch(e, pawl_emit_row_address(e, v, 4, index),
				pawl_dtype_bytes(v->dtype, h->a->width));
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

/* From keys whose lanes are positions, or that are gathered one by one. */
static void
dot_keys(struct pawl_emit *e, const struct pawl_heads *h, LLVMValueRef position, int n_groups,
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

void
pawl_heads_dot(struct pawl_emit *e, const struct pawl_heads *h, LLVMValueRef position, int n_groups,
	LLVMValueRef *dot)
{
	if (pawl_heads_keys_are_rows(h))
		dot_rows(e, h, position, dot);
	else
		dot_keys(e, h, position, n_groups, dot);
}

/*
 * Template MATMUL.  Every call first makes the activations of all rows in its own scratch (unless
 * they lie ready), then goes over its tiles of 16 columns; the rows of a tile are taken a few at
 * a time, so that a weight is unpacked once for several of them.
 */
#include "codegen/llvm/emit_rows.h"
#include "codegen/llvm/emit_tile.h"
#include "codegen/llvm/templates.h"

struct matmul {
	const struct pawl_operand *x; /* that all matmuls share */
	struct pawl_activations activations;
	struct pawl_rows prologue;
	bool has_prologue;
	int tile; /* rows at a time */
};

static bool
is_same_x(const struct pawl_operand *a, const struct pawl_operand *b)
{
	return a->value == b->value && (a->value >= 0 || a->access.arg == b->access.arg);
}

static bool
is_one(struct pawl_dim dim)
{
	return dim.sym < 0 && dim.base == 1;
}

/* Whether the rows of x lie dense at one distance; *row_bytes is that. */
static bool
is_regular(const struct pawl_operand *x, int64_t *row_bytes)
{
	const struct pawl_dtype_info *info = pawl_dtype_info(x->access.dtype);
	int rank = x->type.rank, j;
	int64_t stride = rank > 1 ? x->access.stride[rank - 2] : 0;

	if (x->value >= 0 || !pawl_access_is_dense(&x->access, rank) || x->access.at_dim >= 0)
		return false;
	for (j = rank - 2; j > 0; j--) {
		if (!is_one(x->type.dim[j - 1]) &&
			x->access.stride[j - 1] != x->access.stride[j] * x->type.dim[j].base)
			return false;
	}
	/* A leading dim of 1 says nothing of the distance. */
	for (j = rank - 2; j >= 0; j--) {
		if (!is_one(x->type.dim[j])) {
			stride = x->access.stride[j];
			break;
		}
	}
	*row_bytes = stride / info->block * info->block_bytes;
	return true;
}

/* What x's rows look like to the tiles, and whether they have to be made first. */
static void
plan_activations(struct pawl_emit *e, struct matmul *m)
{
	const struct pawl_operand *x = m->x;
	struct pawl_activations *a = &m->activations;
	int64_t k = pawl_type_row_length(&x->type);
	int32_t i;
	int j;

	a->dtype = x->type.dtype;
	a->rows = k64(e, 1);
	a->most_rows = 1;
	for (j = 0; j + 1 < x->type.rank; j++) {
		a->rows = imul(e, a->rows, pawl_emit_dim(e, x->type.dim[j]));
		a->most_rows *= pawl_emit_dim_max(e, x->type.dim[j]);
	}
	a->k = k;
	if (is_regular(x, &a->row_bytes) && x->access.dtype == a->dtype &&
		(a->dtype == PAWL_DTYPE_F32 || pawl_dtype_is_blocked(a->dtype))) {
		a->base = e->args[x->access.arg];
	} else {
		a->row_bytes = pawl_dtype_bytes(a->dtype, k);
		a->base = pawl_emit_scratch(e, a->most_rows * a->row_bytes);
		m->has_prologue = true;
	}
	for (i = 0; i < e->step->n_ops; i++) {
		if (e->step->ops[i].op == PAWL_OP_MATMUL)
			pawl_activations_need(e, a, e->step->ops[i].inputs[1].access.dtype);
	}
}

static void
emit_prologue(struct pawl_emit *e, struct matmul *m)
{
	const struct pawl_activations *a = &m->activations;
	int32_t value = m->x->value;
	LLVMValueRef index[PAWL_MAX_RANK], to;
	struct pawl_loop loop = {.n = 0};

	/* Every call makes the rows for itself; one of them also stores what others want to read.
	 */
	e->stores_when = icmp(e, LLVMIntEQ, e->begin, k64(e, 0));
	if (value >= 0)
		pawl_rows_add(e, &m->prologue, value, false);
	pawl_rows_allocate(e, &m->prologue);
	pawl_loop_begin(e, &loop, k64(e, 0), a->rows, 1);
	to = pawl_emit_at(e, a->base, imul(e, loop.index, k64(e, a->row_bytes)));
	if (value >= 0) {
		const struct pawl_type *type = &e->step->ops[value].type;

		pawl_emit_split_row(e, type, loop.index, index);
		if (e->step->ops[value].op == PAWL_OP_QUANTIZE)
			m->prologue.blocks[value] = to;
		pawl_emit_row(e, &m->prologue, index);
	}
	if (value < 0 || e->step->ops[value].op != PAWL_OP_QUANTIZE) {
		if (a->dtype != PAWL_DTYPE_F32)
			pawl_emit_refuse(e, "activations of %s in scattered rows",
				pawl_dtype_name(a->dtype));
		pawl_emit_split_row(e, &m->x->type, loop.index, index);
		pawl_emit_copy_row(e, m->x, index, to);
	}
	pawl_loop_end(e, &loop);
	e->stores_when = NULL;
}

/*
 * Stores everything that segment s stores of one row of the result.  Op results may have other
 * dims than the matmul's (a reshape): the element is the same, only its index is written anew.
 */
static void
store_row(struct pawl_emit *e, int s, LLVMValueRef row, LLVMValueRef column, LLVMValueRef mask)
{
	struct pawl_position at = {.mask = mask};
	int64_t n = pawl_type_row_length(&e->step->ops[e->segments.first[s]].type), length;
	LLVMValueRef flat;
	int32_t i;

	pawl_emit_move(e);
	for (i = 0; i < e->step->n_ops; i++) {
		const struct pawl_step_op *op = &e->step->ops[i];

		if (e->segments.of[i] != s || !op->n_outs)
			continue;
		length = pawl_type_row_length(&op->type);
		if (length == n) {
			pawl_emit_split_row(e, &op->type, row, at.index);
			at.index[op->type.rank - 1] = column;
		} else {
			if (length % LANES || n % LANES || mask)
				pawl_emit_refuse(e, "%s: rows of %lld made of columns of %lld",
					op->name, (long long)length, (long long)n);
			flat = iadd(e, imul(e, row, k64(e, n)), column);
			pawl_emit_split_row(e, &op->type, udiv(e, flat, k64(e, length)), at.index);
			at.index[op->type.rank - 1] = urem(e, flat, k64(e, length));
		}
		pawl_emit_outs(e, i, &at);
		/* Values at this op's index are not those at the next one's. */
		pawl_emit_move(e);
	}
}

static bool
is_matmul_of(const struct pawl_emit *e, int32_t op, int s)
{
	return e->segments.of[op] == s && e->step->ops[op].op == PAWL_OP_MATMUL;
}

/* n rows from first_row on of n_units tiles of segment s. */
static void
emit_rows_of_tile(struct pawl_emit *e, const struct matmul *m, int s, LLVMValueRef unit,
	int n_units, LLVMValueRef first_row, int n)
{
	int64_t columns = pawl_type_row_length(&e->step->ops[e->segments.first[s]].type);
	LLVMValueRef acc[PAWL_MAX_BODY_OPS][MAX_TILE];
	LLVMValueRef column, mask = NULL;
	int32_t i;
	int r, u;

	for (i = 0; i < e->step->n_ops; i++) {
		if (is_matmul_of(e, i, s))
			pawl_emit_tile(e, &e->step->ops[i], &m->activations, unit, n_units,
				first_row, n, acc[i]);
	}
	for (u = 0; u < n_units; u++) {
		column = imul(e, iadd(e, unit, k64(e, u)), k64(e, LANES));
		if (columns % LANES)
			mask = pawl_emit_mask_below(e, isub(e, k64(e, columns), column));
		for (r = 0; r < n; r++) {
			for (i = 0; i < e->step->n_ops; i++) {
				if (is_matmul_of(e, i, s))
					e->fixed[i] = acc[i][u * n + r];
			}
			store_row(e, s, iadd(e, first_row, k64(e, r)), column, mask);
		}
	}
}

static void
emit_unit(struct pawl_emit *e, const struct matmul *m, int s, LLVMValueRef unit, int n_units)
{
	LLVMValueRef rows = m->activations.rows, whole, first;
	int64_t n = LLVMIsConstant(rows) ? LLVMConstIntGetSExtValue(rows) : -1;
	struct pawl_loop loop = {.n = 0};
	struct pawl_branch branch;
	int part;

	whole = iand(e, rows, k64(e, -m->tile));
	if (n < 0 || n >= 2 * m->tile) {
		pawl_loop_begin(e, &loop, k64(e, 0), whole, m->tile);
		emit_rows_of_tile(e, m, s, unit, n_units, loop.index, m->tile);
		pawl_loop_end(e, &loop);
	} else if (n >= m->tile) {
		emit_rows_of_tile(e, m, s, unit, n_units, k64(e, 0), m->tile);
	}
	if (n >= 0) {
		if (n % m->tile)
			emit_rows_of_tile(e, m, s, unit, n_units, whole, (int)(n % m->tile));
		return;
	}
	/* A number of rows that is not known: the rest in powers of two. */
	for (part = m->tile / 2; part; part /= 2) {
		first = iand(e, rows, k64(e, -2 * part));
		pawl_if_begin(
			e, &branch, icmp(e, LLVMIntNE, iand(e, rows, k64(e, part)), k64(e, 0)));
		emit_rows_of_tile(e, m, s, unit, n_units, first, part);
		pawl_if_end(e, &branch);
	}
}

/* Rows whose accumulators and operands fit the registers; a power of two. */
static int
rows_at_a_time(const struct pawl_emit *e)
{
	switch (e->variant) {
	case PAWL_CPU_AVX512VNNI:
	case PAWL_CPU_AVX512:
		return 8;
	case PAWL_CPU_AVX2:
		return 4;
	case PAWL_CPU_AARCH64:
		return 4;
	case PAWL_CPU_BASELINE:
	case PAWL_N_CPU_VARIANTS:
		break;
	}
	return 2;
}

static bool
check_matmuls(struct pawl_emit *e, struct matmul *m)
{
	int32_t i;

	for (i = 0; i < e->step->n_ops; i++) {
		const struct pawl_step_op *op = &e->step->ops[i];

		if (op->op != PAWL_OP_MATMUL)
			continue;
		if (!m->x)
			m->x = &op->inputs[0];
		if (!is_same_x(m->x, &op->inputs[0]) || op->inputs[1].value >= 0) {
			pawl_emit_refuse(
				e, "%s: matmuls of different activations in one step", op->name);
			return false;
		}
	}
	return m->x != NULL;
}

/* How many units of segment s are computed at once; all of its matmuls must want it. */
static int
units_at_once(const struct pawl_emit *e, const struct matmul *m, int s)
{
	LLVMValueRef rows = m->activations.rows;
	int most = MAX_TILE, n;
	int32_t i;

	for (i = 0; i < e->step->n_ops; i++) {
		if (!is_matmul_of(e, i, s))
			continue;
		n = LLVMIsConstant(rows)
			    ? pawl_tile_units(&e->step->ops[i], LLVMConstIntGetSExtValue(rows))
			    : 1;
		most = n < most ? n : most;
	}
	return most;
}

/* Units from .. to - 1 of segment s, if any. */
static void
emit_units(struct pawl_emit *e, const struct matmul *m, int s, LLVMValueRef from, LLVMValueRef to)
{
	int n_units = units_at_once(e, m, s);
	struct pawl_loop loop = {.n = 0};
	LLVMValueRef whole = from;

	if (n_units > 1) {
		whole = iadd(
			e, from, iand(e, imax(e, isub(e, to, from), k64(e, 0)), k64(e, -n_units)));
		pawl_loop_begin(e, &loop, from, whole, n_units);
		emit_unit(e, m, s, loop.index, n_units);
		pawl_loop_end(e, &loop);
	}
	pawl_loop_begin(e, &loop, whole, to, 1);
	emit_unit(e, m, s, loop.index, 1);
	pawl_loop_end(e, &loop);
}

void
pawl_emit_matmul(struct pawl_emit *e)
{
	struct matmul m = {.x = NULL};
	int64_t first = 0, tiles;
	int s;

	pawl_emit_begin(e, "pawl_phase0");
	if (!check_matmuls(e, &m))
		return;
	m.tile = rows_at_a_time(e);
	plan_activations(e, &m);
	if (m.has_prologue)
		emit_prologue(e, &m);
	pawl_activations_fill(e, &m.activations);
	for (s = 0; s < e->segments.n; s++) {
		tiles = (pawl_type_row_length(&e->step->ops[e->segments.first[s]].type) + LANES -
				1) /
			LANES;
		emit_units(e, &m, s, imax(e, isub(e, e->begin, k64(e, first)), k64(e, 0)),
			imin(e, isub(e, e->end, k64(e, first)), k64(e, tiles)));
		first += tiles;
	}
	pawl_emit_end(e);
}

/*
 * Template MATMUL with quantized weights, in the order of docs/arithmetic.md, "Quantized matmul".
 *
 * Rows of x, with the prologue done, lie in shared memory as blocks of a16 or a8.  A block of
 * threads takes tiles of 16 columns of the result, one or more at once; half a warp a tile and a
 * slice of the blocks of k, a thread a column.  A thread leaves the terms of a block, D d_x and S
 * (and M), in shared memory, where one thread for each element of the result takes them up in the
 * order of k: the products are spread over threads, the chain of fma is that of the CPU.
 */
#include "codegen/cuda/cuda_emit.h"

#include <inttypes.h>
#include <stdio.h>

#include "codegen/pack.h"

enum {
	HALVES = PAWL_CUDA_THREADS / PAWL_TILE_ROWS,
	MOST_ROWS = 4,              /* of x at once */
	MOST_X_BYTES = 24 << 10,    /* of x, for more than one row */
	MOST_TERM_BYTES = 12 << 10, /* of terms between two barriers */
	FEW_TILES = 264,            /* of a launch: two for each multiprocessor of a large GPU */
	MOST_COLUMNS = 12800        /* of x, whose row is in shared memory as a whole */
};

struct packed {
	const struct pawl_step_op *first; /* of the matmuls, whose x all share */
	int32_t quantize;                 /* op of the prologue that makes x, -1: x is in memory */
	bool is_a16;
	int blocks;        /* of 32 columns of x */
	int words, stored; /* of a block in shared memory, in memory */
	int rows;          /* of x at once */
	int slices, tiles; /* of k, at once */
	int row;           /* number of the first row of x, a variable */
};

static int
segment_columns(const struct pawl_step *step, const struct pawl_segments *segments, int s)
{
	return (int)pawl_type_row_length(&step->ops[segments->first[s]].type);
}

static int
segment_tiles(const struct pawl_step *step, const struct pawl_segments *segments, int s)
{
	return (segment_columns(step, segments, s) + PAWL_TILE_ROWS - 1) / PAWL_TILE_ROWS;
}

/* Slices of k: many for few tiles, to have enough blocks and loads under way. */
static int
count_slices(const struct pawl_step *step, const struct pawl_segments *segments)
{
	const struct pawl_step_op *first = &step->ops[pawl_step_find(step, PAWL_OP_MATMUL)];
	int64_t blocks = pawl_type_row_length(&first->inputs[0].type) / PAWL_TILE_COLUMNS;
	int tiles = 0, slices, s;

	for (s = 0; s < segments->n; s++)
		tiles += segment_tiles(step, segments, s);
	slices = tiles <= FEW_TILES ? HALVES : tiles <= 2 * FEW_TILES ? HALVES / 2 : HALVES / 4;
	while (slices > HALVES / 4 && slices > blocks)
		slices /= 2;
	return slices;
}

static int
segment_units(const struct pawl_step *step, const struct pawl_segments *segments, int s)
{
	int tiles = HALVES / count_slices(step, segments);

	return (segment_tiles(step, segments, s) + tiles - 1) / tiles;
}

int64_t
pawl_cuda_packed_units(const struct pawl_step *step, const struct pawl_segments *segments)
{
	int64_t units = 0;
	int s;

	for (s = 0; s < segments->n; s++)
		units += segment_units(step, segments, s);
	return units;
}

/* Numbers that a block and a column leave: D d_x and S, M or a second pair. */
static int
count_terms(const struct pawl_pack_format *f)
{
	return 2 * f->n_scales + f->has_offset;
}

/* Blocks of k between two barriers, whole rounds of slices. */
static int
section_blocks(const struct packed *m, int n_terms)
{
	int bytes = m->rows * n_terms * m->tiles * PAWL_TILE_ROWS * 4;
	int rounds = MOST_TERM_BYTES / (bytes * m->slices);

	return (rounds > 1 ? rounds : 1) * m->slices;
}

/* False, having refused. */
static bool
check_weights(struct pawl_cuda_emit *e, const struct pawl_step_op *op)
{
	const struct pawl_operand *w = &op->inputs[1];

	if (w->value >= 0)
		pawl_cuda_refuse(e, op, "weights that the step computes");
	else if (w->access.layout != PAWL_LAYOUT_TILE16)
		pawl_cuda_refuse(e, op, "quantized weights of layout %s",
			pawl_layout_name(w->access.layout));
	return e->status == PAWL_OK;
}

static void
begin(struct pawl_cuda_emit *e, struct packed *m)
{
	int32_t i, first = pawl_step_find(e->step, PAWL_OP_MATMUL);
	const struct pawl_operand *x;
	int64_t k;

	m->first = &e->step->ops[first];
	x = &m->first->inputs[0];
	k = pawl_type_row_length(&x->type);
	m->is_a16 = x->type.dtype == PAWL_DTYPE_A16;
	m->quantize = x->value;
	m->stored = m->is_a16 ? 18 : 10;
	m->words = m->stored + 2;
	m->blocks = (int)(k / PAWL_TILE_COLUMNS);
	m->slices = count_slices(e->step, &e->segments);
	m->tiles = HALVES / m->slices;
	m->rows = MOST_ROWS;
	if (pawl_type_is_static(&x->type) && pawl_type_rows(&x->type) < m->rows)
		m->rows = (int)pawl_type_rows(&x->type);
	while (m->rows > 1 && m->rows * m->blocks * m->words * 4 > MOST_X_BYTES)
		m->rows--;
	if (x->type.dtype != PAWL_DTYPE_A16 && x->type.dtype != PAWL_DTYPE_A8)
		pawl_cuda_refuse(
			e, m->first, "activations of type %s", pawl_dtype_name(x->type.dtype));
	if (k > MOST_COLUMNS)
		pawl_cuda_refuse(e, m->first, "rows of more than %d columns", MOST_COLUMNS);
	for (i = 0; i < first; i++) {
		if (e->step->ops[i].n_outs)
			pawl_cuda_refuse(e, &e->step->ops[i], "stored by a prologue");
	}
}

/* Row number `row` of x to x + at. */
static void
stage_row(struct pawl_cuda_emit *e, const struct packed *m, int row, const char *at)
{
	const struct pawl_operand *x = &m->first->inputs[0];
	struct pawl_cuda_position position = {.index = {0}};
	const char *name = m->is_a16 ? "a16" : "a8";
	int j, offset;

	pawl_cuda_split_row(e, &x->type, row, &position);
	if (m->quantize >= 0) {
		const struct pawl_step_op *quantize = &e->step->ops[m->quantize];

		pawl_cuda_row_stats(e, 0, m->quantize, &position);
		j = pawl_cuda_columns(e, &quantize->type);
		position.index[quantize->type.rank - 1] = j;
		pawl_cuda_line(e, "pawl_quantize_%s(v%d, x + %s + v%d / 32 * %d, 4);", name,
			pawl_cuda_operand(e, quantize, 0, &position), at, j, m->words);
	} else {
		char n[32];

		if (x->access.at_rows)
			pawl_cuda_refuse(e, m->first, "a list of rows");
		offset = pawl_cuda_offset(e, m->first, &x->access, x->type.rank, &position);
		snprintf(n, sizeof(n), "%d", m->blocks * m->stored);
		j = pawl_cuda_loop(e, "PAWL_THREAD", n, "PAWL_THREADS");
		pawl_cuda_line(e,
			"x[%s + v%d / %d * %d + (v%d %% %d < 2 ? v%d %% %d : v%d %% %d + 2)] =\n"
			"\t\t\t\t((const u32 *)a%" PRId32 ")[v%d / 32 * %d + v%d];",
			at, j, m->stored, m->words, j, m->stored, j, m->stored, j, m->stored,
			x->access.arg, offset, m->stored, j);
	}
	pawl_cuda_close(e);
}

static void
stage(struct pawl_cuda_emit *e, const struct packed *m)
{
	char n[32], at[48];
	int i, row;

	if (m->rows == 1) {
		stage_row(e, m, m->row, "0");
	} else {
		snprintf(n, sizeof(n), "%d", m->rows);
		i = pawl_cuda_unrolled(e, 1, "0", n, "1");
		row = pawl_cuda_let(e, e->index, "v%d + v%d", m->row, i);
		pawl_cuda_open(
			e, "if (v%d < %s)", row, pawl_cuda_rows(&m->first->inputs[0].type).s);
		snprintf(at, sizeof(at), "v%d * %d", i, m->blocks * m->words);
		stage_row(e, m, row, at);
		pawl_cuda_close(e);
		pawl_cuda_close(e);
	}
	pawl_cuda_line(e, "PAWL_SYNC();");
}

/* The terms of block b of the tile and a row of x: t[0], t[stride], ... */
static void
print_terms(struct pawl_cuda_emit *e, const struct packed *m, const struct pawl_pack_format *f)
{
	const char *dot = m->is_a16 ? "pawl_dot_a16" : "pawl_dot_a8";
	int stride = m->tiles * PAWL_TILE_ROWS;

	pawl_cuda_line(e, "const float dx = pawl_f32_from_bits(xb[0]);");
	pawl_cuda_line(e, "t[0] = d[0] * dx;");
	if (f->n_scales == 2) {
		pawl_cuda_line(e, "t[%d] = (float)%s(q, xb, 0, 4);", stride, dot);
		pawl_cuda_line(e, "t[%d] = d[1] * dx;", 2 * stride);
		pawl_cuda_line(e, "t[%d] = (float)%s(q, xb, 4, 8);", 3 * stride, dot);
	} else if (f->zero && f->planes != 8) {
		pawl_cuda_line(e, "t[%d] = (float)(%s(q, xb, 0, 8) - %d * (int)xb[1]);", stride,
			dot, f->zero);
	} else {
		pawl_cuda_line(e, "t[%d] = (float)%s(q, xb, 0, 8);", stride, dot);
	}
	if (f->has_offset)
		pawl_cuda_line(e, "t[%d] = d[1];", 2 * stride);
}

/* One thread an element goes through the terms of a section in the order of k. */
static void
print_chain(struct pawl_cuda_emit *e, const struct packed *m, const struct pawl_pack_format *f,
	int acc, int section)
{
	int stride = m->tiles * PAWL_TILE_ROWS, n_terms = count_terms(f);

	pawl_cuda_open(e, "if (slice < %d)", m->rows);
	pawl_cuda_open(e, "for (int b = b0; b < %d && b < b0 + %d; b++)", m->blocks, section);
	pawl_cuda_line(e,
		"const float *const t = terms + ((b - b0) * %d + slice) * %d + PAWL_THREAD %% %d;",
		m->rows, n_terms * stride, stride);
	pawl_cuda_line(e, "v%d = pawl_fma(t[0], t[%d], v%d);", acc, stride, acc);
	if (f->n_scales == 2)
		pawl_cuda_line(
			e, "v%d = pawl_fma(t[%d], t[%d], v%d);", acc, 2 * stride, 3 * stride, acc);
	if (f->has_offset) {
		pawl_cuda_line(
			e, "const u32 *const xb = x + (slice * %d + b) * %d;", m->blocks, m->words);
		pawl_cuda_line(e,
			"v%d = pawl_fma(t[%d], pawl_f32_from_bits(xb[0]) * (float)(int)xb[1], "
			"v%d);",
			acc, 2 * stride, acc);
	}
	pawl_cuda_close(e);
	pawl_cuda_close(e);
}

/*
 * The element of the thread with slice < rows, as a variable; of no meaning in the others.  w and
 * n_tiles are what the weights are called and how many tiles they have.
 */
static int
dot(struct pawl_cuda_emit *e, const struct packed *m, const struct pawl_step_op *op, const char *w,
	const char *n_tiles)
{
	enum pawl_dtype dtype = op->inputs[1].access.dtype;
	int acc = pawl_cuda_var(e, "float", "0.0f"), stride = m->tiles * PAWL_TILE_ROWS, section;
	struct pawl_pack_format f;

	pawl_pack_format(dtype, &f);
	section = section_blocks(m, count_terms(&f));
	e->packed |= UINT32_C(1) << dtype;
	pawl_cuda_line(e, "PAWL_UNROLL(1)");
	pawl_cuda_open(e, "for (int b0 = 0; b0 < %d; b0 += %d)", m->blocks, section);
	pawl_cuda_open(e, "if (tile < %s)", n_tiles);
	/* Two blocks under way at once, where taking one apart leaves the registers. */
	pawl_cuda_line(
		e, "PAWL_UNROLL(%d)", m->rows == 1 && (f.planes == 4 || f.planes == 8) ? 2 : 1);
	pawl_cuda_open(e, "for (int b = b0 + slice; b < %d && b < b0 + %d; b += %d)", m->blocks,
		section, m->slices);
	pawl_cuda_line(e, "u32 q[8];");
	pawl_cuda_line(e, "float d[2];");
	pawl_cuda_line(e,
		"pawl_unpack_%s((const unsigned char *)%s + tile * (i64)%" PRId64
		", b, PAWL_THREAD %% 16, q, d);",
		pawl_dtype_name(dtype), w,
		pawl_pack_tile_bytes(&f, (int64_t)m->blocks * PAWL_TILE_COLUMNS));
	if (m->rows > 1)
		pawl_cuda_open(e, "for (int i = 0; i < %d; i++)", m->rows);
	pawl_cuda_line(e, "const u32 *const xb = x + (%s * %d + b) * %d;", m->rows > 1 ? "i" : "0",
		m->blocks, m->words);
	pawl_cuda_line(e, "float *const t = terms + ((b - b0) * %d + %s) * %d + PAWL_THREAD %% %d;",
		m->rows, m->rows > 1 ? "i" : "0", count_terms(&f) * stride, stride);
	print_terms(e, m, &f);
	if (m->rows > 1)
		pawl_cuda_close(e);
	pawl_cuda_close(e);
	pawl_cuda_close(e);
	pawl_cuda_line(e, "PAWL_SYNC();");
	print_chain(e, m, &f, acc, section);
	pawl_cuda_line(e, "PAWL_SYNC();");
	pawl_cuda_close(e);
	return acc;
}

/* Stores what comes of the products of a segment. */
static void
finish_segment(struct pawl_cuda_emit *e, const struct packed *m, int s)
{
	const struct pawl_step *step = e->step;
	const struct pawl_type *type = &step->ops[e->segments.first[s]].type;
	struct pawl_cuda_position at = {.index = {0}};
	int column = pawl_cuda_let(e, e->index, "tile * 16 + PAWL_THREAD %% 16");
	int row = pawl_cuda_let(e, e->index, "v%d + slice", m->row);
	int32_t i;

	pawl_cuda_open(e, "if (slice < %d && v%d < %s && v%d < %d)", m->rows, row,
		pawl_cuda_rows(&m->first->inputs[0].type).s, column,
		segment_columns(step, &e->segments, s));
	pawl_cuda_split_row(e, type, row, &at);
	at.index[type->rank - 1] = column;
	for (i = 0; i < step->n_ops; i++) {
		if (e->segments.of[i] == s && step->ops[i].n_outs)
			pawl_cuda_outs(e, i, &at);
	}
	pawl_cuda_close(e);
}

/* The columns of a segment: its units are first .. first + segment_units - 1. */
static void
emit_segment(struct pawl_cuda_emit *e, const struct packed *m, int s, int unit, int first)
{
	const struct pawl_step *step = e->step;
	char w[16], n_tiles[16];
	int32_t i;

	pawl_cuda_open(e, "if (v%d >= %d && v%d < %d)", unit, first, unit,
		first + segment_units(step, &e->segments, s));
	pawl_cuda_line(e, "const int tile = (v%d - %d) * %d + PAWL_THREAD / 16 %% %d;", unit, first,
		m->tiles, m->tiles);
	snprintf(n_tiles, sizeof(n_tiles), "%d", segment_tiles(step, &e->segments, s));
	for (i = 0; i < step->n_ops; i++) {
		if (e->segments.of[i] != s || step->ops[i].op != PAWL_OP_MATMUL ||
			!check_weights(e, &step->ops[i]))
			continue;
		snprintf(w, sizeof(w), "a%" PRId32, step->ops[i].inputs[1].access.arg);
		e->fixed[i] = dot(e, m, &step->ops[i], w, n_tiles);
	}
	finish_segment(e, m, s);
	pawl_cuda_close(e);
}

/* The matmul of a segment that has one, else -1. */
static int32_t
only_matmul(const struct pawl_cuda_emit *e, int s)
{
	int32_t found = -1, i;

	for (i = 0; i < e->step->n_ops; i++) {
		if (e->segments.of[i] != s || e->step->ops[i].op != PAWL_OP_MATMUL)
			continue;
		if (found >= 0)
			return -1;
		found = i;
	}
	return found;
}

/* Whether segments differ in no more than where their weights are: one text does for all of them.
 */
static bool
are_alike(const struct pawl_cuda_emit *e)
{
	enum pawl_dtype first = PAWL_N_DTYPES;
	int s;

	for (s = 0; s < e->segments.n; s++) {
		int32_t i = only_matmul(e, s);
		enum pawl_dtype dtype;

		if (i < 0 || e->step->ops[i].inputs[1].value >= 0)
			return false;
		dtype = e->step->ops[i].inputs[1].access.dtype;
		if (s && dtype != first)
			return false;
		first = dtype;
	}
	return e->segments.n > 1;
}

/* All segments, by one chain of products. */
static void
emit_alike(struct pawl_cuda_emit *e, const struct packed *m, int unit)
{
	const struct pawl_step *step = e->step;
	int s, first = 0, acc;

	pawl_cuda_line(e, "const char *w = 0;");
	pawl_cuda_line(e, "int part = 0, tile = 0, n_tiles = 0;");
	for (s = 0; s < e->segments.n; s++) {
		int32_t i = only_matmul(e, s);

		if (!check_weights(e, &step->ops[i]))
			return;
		pawl_cuda_open(e, "if (v%d >= %d)", unit, first);
		pawl_cuda_line(e, "w = a%" PRId32 ", part = %d, n_tiles = %d;",
			step->ops[i].inputs[1].access.arg, s, segment_tiles(step, &e->segments, s));
		pawl_cuda_line(e, "tile = (v%d - %d) * %d + PAWL_THREAD / 16 %% %d;", unit, first,
			m->tiles, m->tiles);
		pawl_cuda_close(e);
		first += segment_units(step, &e->segments, s);
	}
	acc = dot(e, m, &step->ops[only_matmul(e, 0)], "w", "n_tiles");
	for (s = 0; s < e->segments.n; s++) {
		e->fixed[only_matmul(e, s)] = acc;
		pawl_cuda_open(e, "if (part == %d)", s);
		finish_segment(e, m, s);
		pawl_cuda_close(e);
	}
}

/* Floats that the terms of a section take, of the segment with the most. */
static int
most_terms(const struct pawl_cuda_emit *e, const struct packed *m)
{
	int most = 0;
	int32_t i;

	for (i = 0; i < e->step->n_ops; i++) {
		const struct pawl_step_op *op = &e->step->ops[i];
		struct pawl_pack_format f;
		int n;

		if (op->op != PAWL_OP_MATMUL || !pawl_pack_format(op->inputs[1].type.dtype, &f) ||
			!f.planes)
			continue;
		n = section_blocks(m, count_terms(&f)) * count_terms(&f) * m->rows * m->tiles *
		    PAWL_TILE_ROWS;
		most = n > most ? n : most;
	}
	return most;
}

void
pawl_cuda_packed(struct pawl_cuda_emit *e)
{
	struct packed m = {.quantize = -1};
	int unit, s, done = 0;
	int64_t words, terms;
	char by[32], n_units[32];

	begin(e, &m);
	if (e->status)
		return;
	words = (int64_t)m.rows * m.blocks * m.words;
	terms = most_terms(e, &m);
	e->shared_bytes += 4 * (words + terms);
	pawl_cuda_line(e, "PAWL_SHARED PAWL_ALIGNED u32 x[%" PRId64 "];", words);
	pawl_cuda_line(e, "PAWL_SHARED float terms[%" PRId64 "];", terms);
	pawl_cuda_line(e, "const int slice = PAWL_THREAD / %d;", m.tiles * PAWL_TILE_ROWS);
	snprintf(by, sizeof(by), "%d", m.rows);
	m.row = pawl_cuda_unrolled(e, 1, "0", pawl_cuda_rows(&m.first->inputs[0].type).s, by);
	stage(e, &m);
	snprintf(n_units, sizeof(n_units), "%" PRId64,
		pawl_cuda_packed_units(e->step, &e->segments));
	unit = pawl_cuda_unrolled(e, 1, "PAWL_BLOCK", n_units, "PAWL_BLOCKS");
	if (are_alike(e))
		emit_alike(e, &m, unit);
	for (s = 0; s < e->segments.n && !are_alike(e); s++) {
		emit_segment(e, &m, s, unit, done);
		done += segment_units(e->step, &e->segments, s);
	}
	pawl_cuda_close(e);
	pawl_cuda_line(e, "PAWL_SYNC();");
	pawl_cuda_close(e);
}

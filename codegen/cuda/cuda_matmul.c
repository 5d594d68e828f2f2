/*
 * Template MATMUL with float weights: a block puts a row of x, with the prologue done, into shared
 * memory; a warp takes a column of the result, and its lane 0 does the epilogue.
 *
 * Order: of 16-byte pieces of a row of w, lane l takes pieces l, l + 32, ... and in them the
 * elements ascending, by fma from +0; single elements where rows of w are no whole pieces.  Then
 * halves of the warp are added, then quarters ...
 */
#include "codegen/cuda/cuda_emit.h"

#include <inttypes.h>
#include <stdio.h>

#include "codegen/cuda/cuda_program.h"

enum { PIECE_BYTES = 16 };

struct matmul {
	const struct pawl_step_op *first; /* of the matmuls, whose x all share */
	int64_t k;
	bool is_staged; /* x is in shared memory */
	int row;        /* number of the row of x */
	struct pawl_cuda_position x_at;
};

/* Elements of w that a lane reads at once. */
static int
piece_of(const struct pawl_step *step, const struct pawl_access *w, int64_t k)
{
	int bytes = pawl_dtype_info(w->dtype)->block_bytes, n = PIECE_BYTES / bytes;

	if (k % n || w->stride[0] % n || step->args[w->arg].offset % PIECE_BYTES)
		return 1;
	return n;
}

static const char *
piece_loader(enum pawl_dtype dtype)
{
	return dtype == PAWL_DTYPE_F32   ? "pawl_load_f32x4"
	       : dtype == PAWL_DTYPE_F16 ? "pawl_load_f16x8"
					 : "pawl_load_bf16x8";
}

/* x[k]: from shared memory, or computed. */
static int
x_value(struct pawl_cuda_emit *e, const struct matmul *m, int k)
{
	struct pawl_cuda_position at = m->x_at;

	if (m->is_staged)
		return pawl_cuda_let(e, "float", "x[v%d]", k);
	at.index[m->first->inputs[0].type.rank - 1] = k;
	return pawl_cuda_operand(e, m->first, 0, &at);
}

/* The dot product of a row of w with x, by the warp: a variable of every lane. */
static int
dot(struct pawl_cuda_emit *e, const struct matmul *m, const struct pawl_step_op *op, int column)
{
	const struct pawl_access *w = &op->inputs[1].access;
	struct pawl_cuda_position row = {.index = {column, 0}}, at = row;
	int piece, offset, sum, k, i, x;
	char from[40], to[32], by[40];

	piece = piece_of(e->step, w, m->k);
	sum = pawl_cuda_var(e, "float", "0.0f");
	snprintf(from, sizeof(from), "PAWL_LANE * %d", piece);
	snprintf(to, sizeof(to), "%" PRId64, m->k);
	snprintf(by, sizeof(by), "PAWL_WARP * %d", piece);
	k = pawl_cuda_loop(e, from, to, by);
	at.index[1] = k;
	if (piece == 1) {
		i = pawl_cuda_load(e, op, &op->inputs[1], &at);
		x = x_value(e, m, k);
		pawl_cuda_line(e, "v%d = pawl_fma(v%d, v%d, v%d);", sum, i, x, sum);
	} else {
		offset = pawl_cuda_offset(e, op, w, 2, &at);
		pawl_cuda_line(e, "float w[%d];", piece);
		pawl_cuda_line(e, "%s((const %s *)a%" PRId32 " + v%d, w);", piece_loader(w->dtype),
			w->dtype == PAWL_DTYPE_F32 ? "float" : "u16", w->arg, offset);
		snprintf(to, sizeof(to), "%d", piece);
		i = pawl_cuda_loop(e, "0", to, "1");
		x = x_value(e, m, pawl_cuda_let(e, e->index, "v%d + v%d", k, i));
		pawl_cuda_line(e, "v%d = pawl_fma(w[v%d], v%d, v%d);", sum, i, x, sum);
		pawl_cuda_close(e);
	}
	pawl_cuda_close(e);
	return pawl_cuda_let(e, "float", "pawl_warp_sum(v%d)", sum);
}

/* False, having refused, for weights that are not dense rows of floats. */
static bool
check_weights(struct pawl_cuda_emit *e, const struct pawl_step_op *op)
{
	const struct pawl_operand *w = &op->inputs[1];

	if (w->value >= 0)
		pawl_cuda_refuse(e, op, "weights that the step computes");
	else if (!pawl_dtype_is_float(w->access.dtype))
		pawl_cuda_refuse(
			e, op, "weights of type %s among floats", pawl_dtype_name(w->access.dtype));
	else if (w->access.layout != PAWL_LAYOUT_ROWS)
		pawl_cuda_refuse(e, op, "weights of layout %s", pawl_layout_name(w->access.layout));
	else if (w->access.stride[1] != 1 || w->access.at_dim >= 0)
		pawl_cuda_refuse(e, op, "the rows of the weights are not dense");
	return e->status == PAWL_OK;
}

static int64_t
segment_units(const struct pawl_step *step, const struct pawl_segments *segments, int s)
{
	int64_t columns = pawl_type_row_length(&step->ops[segments->first[s]].type);

	return (columns + PAWL_CUDA_WARPS - 1) / PAWL_CUDA_WARPS;
}

/* The columns of a segment: its units are first .. first + segment_units - 1. */
static void
emit_segment(struct pawl_cuda_emit *e, const struct matmul *m, int s, int unit, int64_t first)
{
	const struct pawl_step *step = e->step;
	const struct pawl_type *type = &step->ops[e->segments.first[s]].type;
	struct pawl_cuda_position at = {.index = {0}};
	int column;
	int32_t i;

	pawl_cuda_open(e, "if (v%d >= %" PRId64 " && v%d < %" PRId64 ")", unit, first, unit,
		first + segment_units(step, &e->segments, s));
	column = pawl_cuda_let(e, e->index, "(v%d - %" PRId64 ") * %d + PAWL_THREAD / PAWL_WARP",
		unit, first, PAWL_CUDA_WARPS);
	pawl_cuda_open(e, "if (v%d < %" PRId64 ")", column, pawl_type_row_length(type));
	for (i = 0; i < step->n_ops; i++) {
		if (e->segments.of[i] == s && step->ops[i].op == PAWL_OP_MATMUL &&
			check_weights(e, &step->ops[i]))
			e->fixed[i] = dot(e, m, &step->ops[i], column);
	}
	pawl_cuda_open(e, "if (PAWL_LANE == 0)");
	pawl_cuda_split_row(e, type, m->row, &at);
	at.index[type->rank - 1] = column;
	for (i = 0; i < step->n_ops; i++) {
		if (e->segments.of[i] == s && step->ops[i].n_outs)
			pawl_cuda_outs(e, i, &at);
	}
	pawl_cuda_close(e);
	pawl_cuda_close(e);
	pawl_cuda_close(e);
}

/* The row of x into shared memory. */
static void
stage(struct pawl_cuda_emit *e, const struct matmul *m)
{
	struct pawl_cuda_position at = m->x_at;
	char k[32];
	int i;

	snprintf(k, sizeof(k), "%" PRId64, m->k);
	i = pawl_cuda_loop(e, "PAWL_THREAD", k, "PAWL_THREADS");
	at.index[m->first->inputs[0].type.rank - 1] = i;
	pawl_cuda_line(e, "x[v%d] = v%d;", i, pawl_cuda_operand(e, m->first, 0, &at));
	pawl_cuda_close(e);
	pawl_cuda_line(e, "PAWL_SYNC();");
}

bool
pawl_cuda_is_packed(const struct pawl_step *step)
{
	enum pawl_dtype dtype =
		step->ops[pawl_step_find(step, PAWL_OP_MATMUL)].inputs[1].type.dtype;

	return pawl_dtype_info(dtype)->kind == PAWL_KIND_QUANT;
}

enum pawl_layout
pawl_cuda_weight_layout(const struct pawl_type *type)
{
	return pawl_dtype_info(type->dtype)->kind == PAWL_KIND_QUANT ? PAWL_LAYOUT_TILE16
								     : PAWL_LAYOUT_ROWS;
}

void
pawl_cuda_matmul(struct pawl_cuda_emit *e)
{
	int32_t first = pawl_step_find(e->step, PAWL_OP_MATMUL), i;
	struct matmul m = {.first = &e->step->ops[first]};
	const struct pawl_type *type = &m.first->inputs[0].type;
	int64_t units = pawl_cuda_matmul_blocks(e->step, &e->segments), done = 0;
	char n_units[32];
	int unit, s;

	for (i = 0; i < first; i++) {
		if (e->step->ops[i].n_outs)
			pawl_cuda_refuse(e, &e->step->ops[i], "stored by a prologue");
	}
	m.k = pawl_type_row_length(type);
	m.is_staged = m.k <= PAWL_CUDA_SHARED_FLOATS;
	if (m.is_staged) {
		e->shared_bytes += 4 * m.k;
		pawl_cuda_line(e, "PAWL_SHARED float x[%" PRId64 "];", m.k);
	}
	m.row = pawl_cuda_unrolled(e, 1, "0", pawl_cuda_rows(type).s, "1");
	pawl_cuda_split_row(e, type, m.row, &m.x_at);
	pawl_cuda_row_stats(e, 0, first, &m.x_at);
	if (m.is_staged)
		stage(e, &m);
	snprintf(n_units, sizeof(n_units), "%" PRId64, units);
	unit = pawl_cuda_unrolled(e, 1, "PAWL_BLOCK", n_units, "PAWL_BLOCKS");
	for (s = 0; s < e->segments.n; s++) {
		emit_segment(e, &m, s, unit, done);
		done += segment_units(e->step, &e->segments, s);
	}
	pawl_cuda_close(e);
	if (m.is_staged)
		pawl_cuda_line(e, "PAWL_SYNC();");
	pawl_cuda_close(e);
}

int64_t
pawl_cuda_matmul_blocks(const struct pawl_step *step, const struct pawl_segments *segments)
{
	int64_t units = 0;
	int s;

	for (s = 0; s < segments->n; s++)
		units += segment_units(step, segments, s);
	return units;
}

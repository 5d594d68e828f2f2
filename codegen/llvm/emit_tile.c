#include "codegen/llvm/emit_tile.h"

#include <stddef.h>

#include "codegen/llvm/emit_decode.h"
#include "codegen/llvm/emit_unpack.h"
#include "codegen/llvm/machine.h"

enum { BLOCK = 32 };

/* Bytes that a prefetch runs ahead of the weights. */
#define PREFETCH_AHEAD 2048

/* The place of -z * sum among x->bias: of that z, or free. */
static int
bias_of(const struct pawl_activations *x, int zero)
{
	int i;

	for (i = 0; i < MAX_ZEROS - 1; i++) {
		if (!x->bias[i].memory || x->bias[i].zero == zero)
			break;
	}
	return i;
}

void
pawl_activations_need(struct pawl_emit *e, struct pawl_activations *x, enum pawl_dtype w)
{
	int64_t blocks = x->most_rows * (x->k / BLOCK);
	struct pawl_pack_format f;
	int i;

	if (!pawl_dtype_is_blocked(x->dtype) || !pawl_pack_format(w, &f) || !f.planes)
		return;
	if (f.has_offset && !x->scaled_sum)
		x->scaled_sum = pawl_emit_scratch(e, blocks * 4);
	if (f.n_scales == 2 && !x->half_bias)
		x->half_bias = pawl_emit_scratch(e, blocks * 8);
	i = bias_of(x, f.zero);
	if (f.n_scales == 1 && f.zero && !x->bias[i].memory) {
		x->bias[i].memory = pawl_emit_scratch(e, blocks * 4);
		x->bias[i].zero = f.zero;
	}
}

static LLVMValueRef
at_element(struct pawl_emit *e, LLVMValueRef base, LLVMValueRef i, int64_t bytes)
{
	return pawl_emit_at(e, base, imul(e, i, k64(e, bytes)));
}

static LLVMValueRef
row_address(struct pawl_emit *e, const struct pawl_activations *x, LLVMValueRef row)
{
	return at_element(e, x->base, row, x->row_bytes);
}

static LLVMValueRef
block_address(
	struct pawl_emit *e, const struct pawl_activations *x, LLVMValueRef row, LLVMValueRef block)
{
	return at_element(e, row_address(e, x, row), block, pawl_dtype_info(x->dtype)->block_bytes);
}

/* Where the first plane of an activation block starts. */
static int64_t
plane_offset(enum pawl_dtype dtype)
{
	return dtype == PAWL_DTYPE_A8 ? (int64_t)offsetof(struct pawl_block_a8, q)
				      : (int64_t)offsetof(struct pawl_block_a16, hi);
}

/* Integers 16 half .. 16 half + 15 of an activation block. */
static LLVMValueRef
half_block(struct pawl_emit *e, enum pawl_dtype dtype, LLVMValueRef block, int half)
{
	LLVMValueRef at = pawl_emit_at_bytes(e, block, plane_offset(dtype) + 16 * half), low, high;

	high = LLVMBuildSExt(e->builder, pawl_emit_read(e, e->v16i8, at, 1), e->v16i32, "");
	if (dtype == PAWL_DTYPE_A8)
		return high;
	at = pawl_emit_at_bytes(e, at, BLOCK);
	low = LLVMBuildSExt(e->builder, pawl_emit_read(e, e->v16i8, at, 1), e->v16i32, "");
	return iadd(e, ishl(e, high, like(high, 7)), low);
}

static void
fill_block(struct pawl_emit *e, const struct pawl_activations *x, LLVMValueRef block,
	LLVMValueRef number)
{
	LLVMValueRef d = pawl_emit_read(e, e->f32, block, 4), sum;
	struct pawl_pack_format q6_k;
	int i;

	sum = pawl_emit_read(e, e->i32,
		pawl_emit_at_bytes(e, block, (int64_t)offsetof(struct pawl_block_a16, sum)), 4);
	if (x->scaled_sum)
		pawl_emit_write(e, fmul(e, d, LLVMBuildSIToFP(e->builder, sum, e->f32, "")),
			at_element(e, x->scaled_sum, number, 4), 4);
	for (i = 0; i < MAX_ZEROS && x->bias[i].memory; i++)
		pawl_emit_write(e, imul(e, sum, k32(e, -x->bias[i].zero)),
			at_element(e, x->bias[i].memory, number, 4), 4);
	pawl_pack_format(PAWL_DTYPE_Q6_K, &q6_k);
	for (i = 0; x->half_bias && i < 2; i++) {
		sum = pawl_machine_lanes_add(e, half_block(e, x->dtype, block, i));
		pawl_emit_write(e, imul(e, sum, k32(e, -q6_k.zero)),
			pawl_emit_at_bytes(e, at_element(e, x->half_bias, number, 8), 4 * i), 4);
	}
}

void
pawl_activations_fill(struct pawl_emit *e, const struct pawl_activations *x)
{
	struct pawl_loop rows = {.n = 0}, blocks = {.n = 0};
	LLVMValueRef number;

	if (!x->scaled_sum && !x->bias[0].memory && !x->half_bias)
		return;
	pawl_loop_begin(e, &rows, k64(e, 0), x->rows, 1);
	pawl_loop_begin(e, &blocks, k64(e, 0), k64(e, x->k / BLOCK), 1);
	number = iadd(e, imul(e, rows.index, k64(e, x->k / BLOCK)), blocks.index);
	fill_block(e, x, block_address(e, x, rows.index, blocks.index), number);
	pawl_loop_end(e, &blocks);
	pawl_loop_end(e, &rows);
}

/* One tile in the making. */
struct tile {
	const struct pawl_activations *x;
	enum pawl_dtype w_dtype;
	struct pawl_pack_format format;
	LLVMValueRef first_row;
	int n;
	struct pawl_unpacked w; /* the block at hand */
};

/* start + the dot products of vectors first .. first + n - 1 with one plane of activations. */
static LLVMValueRef
dot_plane(struct pawl_emit *e, const struct tile *t, LLVMValueRef plane, int first, int n,
	LLVMValueRef start)
{
	LLVMValueRef x[8];
	int v;

	for (v = 0; v < n; v++)
		x[v] = pawl_emit_read(e, e->i32, pawl_emit_at_bytes(e, plane, 4 * (first + v)), 4);
	if (t->w.is_signed)
		return pawl_machine_signed_dot(e, start, t->w.vectors + first, x, n);
	return pawl_machine_dot(e, start, t->w.vectors + first, t->w.most, x, n);
}

/* The exact integer sums over vectors first .. of (w - z) * q, as <16 x f32>. */
static LLVMValueRef
dot_block(struct pawl_emit *e, const struct tile *t, LLVMValueRef block, int first, int n,
	LLVMValueRef bias)
{
	LLVMValueRef plane = pawl_emit_at_bytes(e, block, plane_offset(t->x->dtype));
	LLVMValueRef start = bias ? splat16(e, bias) : LLVMConstNull(e->v16i32), high, s;

	if (t->x->dtype == PAWL_DTYPE_A8) {
		s = dot_plane(e, t, plane, first, n, start);
	} else {
		high = dot_plane(e, t, plane, first, n, LLVMConstNull(e->v16i32));
		s = dot_plane(e, t, pawl_emit_at_bytes(e, plane, BLOCK), first, n, start);
		s = iadd(e, ishl(e, high, like(high, 7)), s);
	}
	return LLVMBuildSIToFP(e->builder, s, e->v16f32, "");
}

/* acc with block number b (of the tile's row i) added. */
static LLVMValueRef
accumulate(struct pawl_emit *e, const struct tile *t, LLVMValueRef row, LLVMValueRef b,
	LLVMValueRef acc)
{
	const struct pawl_activations *x = t->x;
	LLVMValueRef number = iadd(e, imul(e, row, k64(e, x->k / BLOCK)), b);
	LLVMValueRef block = block_address(e, x, row, b), bias = NULL, s;
	LLVMValueRef d = splat16(e, pawl_emit_read(e, e->f32, block, 4));
	int g;

	for (g = 0; g < t->format.n_scales; g++) {
		if (t->format.n_scales == 2)
			bias = pawl_emit_read(e, e->i32,
				pawl_emit_at_bytes(
					e, at_element(e, x->half_bias, number, 8), 4 * g),
				4);
		else if (t->format.zero && !t->w.is_signed)
			bias = pawl_emit_read(e, e->i32,
				at_element(
					e, x->bias[bias_of(x, t->format.zero)].memory, number, 4),
				4);
		s = dot_block(e, t, block, g * 4, 8 / t->format.n_scales, bias);
		acc = pawl_machine_fma(e, fmul(e, t->w.scale[g], d), s, acc);
	}
	if (t->format.has_offset)
		acc = pawl_machine_fma(e, t->w.offset,
			splat16(e, pawl_emit_read(
					   e, e->f32, at_element(e, x->scaled_sum, number, 4), 4)),
			acc);
	return acc;
}

static void
prefetch(struct pawl_emit *e, LLVMValueRef address, int64_t bytes)
{
	int64_t at;

	for (at = 0; at < bytes; at += 64)
		pawl_emit_prefetch(e, pawl_emit_at_bytes(e, address, PREFETCH_AHEAD + at));
}

static void
begin_loop(
	struct pawl_emit *e, struct pawl_loop *loop, const struct tile *t, int64_t to, int64_t step)
{
	int i;

	*loop = (struct pawl_loop){.n = t->n};
	for (i = 0; i < t->n; i++)
		loop->carried[i] = LLVMConstNull(e->v16f32);
	pawl_loop_begin(e, loop, k64(e, 0), k64(e, to), step);
}

static LLVMValueRef
row_of(struct pawl_emit *e, const struct tile *t, int i)
{
	return iadd(e, t->first_row, k64(e, i));
}

static void
packed_quantized(struct pawl_emit *e, struct tile *t, LLVMValueRef w, LLVMValueRef *acc)
{
	/* A block and its share of the header. */
	int64_t bytes = pawl_pack_header_at(&t->format, t->format.group) / t->format.group;
	struct pawl_loop loop;
	int i;

	begin_loop(e, &loop, t, t->x->k / BLOCK, 1);
	prefetch(e, at_element(e, w, loop.index, bytes), bytes);
	pawl_emit_unpack(e, &t->format, w, loop.index, &t->w);
	for (i = 0; i < t->n; i++)
		loop.carried[i] = accumulate(e, t, row_of(e, t, i), loop.index, loop.carried[i]);
	pawl_loop_end(e, &loop);
	for (i = 0; i < t->n; i++)
		acc[i] = loop.carried[i];
}

/* One column of float weights against all rows. */
static void
step_column(struct pawl_emit *e, const struct tile *t, LLVMValueRef weights, LLVMValueRef column,
	LLVMValueRef *carried)
{
	int i;

	for (i = 0; i < t->n; i++) {
		LLVMValueRef x = pawl_emit_read(e, e->f32,
			at_element(e, row_address(e, t->x, row_of(e, t, i)), column, 4), 4);

		carried[i] = pawl_machine_fma(e, weights, splat16(e, x), carried[i]);
	}
}

/*
 * What to add to where n tiles side by side are prefetched, reading at byte `at` of each: past its
 * end follows its neighbour, which is being read; what is read next is the n-th tile from there.
 */
static LLVMValueRef
skip_neighbours(struct pawl_emit *e, LLVMValueRef at, int64_t tile_bytes, int n)
{
	return choose(e, icmp(e, LLVMIntSLT, at, k64(e, tile_bytes - PREFETCH_AHEAD)), k64(e, 0),
		k64(e, (n - 1) * tile_bytes));
}

/* n_units tiles side by side, so that there are enough chains to hide the latency of fma. */
static void
packed_float(struct pawl_emit *e, struct tile *t, LLVMValueRef w, int n_units, LLVMValueRef *acc)
{
	int64_t unroll = t->x->k % 8 == 0 ? 8 : 1, tile_bytes = t->x->k * t->format.block_bytes, j;
	struct pawl_loop loop = {.n = n_units * t->n};
	LLVMValueRef column, weights, unit, at, skip;
	int i, u;

	for (i = 0; i < loop.n; i++)
		loop.carried[i] = LLVMConstNull(e->v16f32);
	pawl_loop_begin(e, &loop, k64(e, 0), k64(e, t->x->k), unroll);
	at = imul(e, loop.index, k64(e, t->format.block_bytes));
	skip = skip_neighbours(e, at, tile_bytes, n_units);
	for (u = 0; u < n_units; u++) {
		unit = pawl_emit_at(e, pawl_emit_at_bytes(e, w, u * tile_bytes), at);
		prefetch(e, pawl_emit_at(e, unit, skip), unroll * t->format.block_bytes);
	}
	for (j = 0; j < unroll; j++) {
		column = iadd(e, loop.index, k64(e, j));
		for (u = 0; u < n_units; u++) {
			unit = pawl_emit_at_bytes(e, w, u * tile_bytes);
			weights = pawl_emit_load_dense(e, t->w_dtype,
				at_element(e, unit, column, t->format.block_bytes), NULL);
			step_column(e, t, weights, column, loop.carried + u * t->n);
		}
	}
	pawl_loop_end(e, &loop);
	for (i = 0; i < loop.n; i++)
		acc[i] = loop.carried[i];
}

int
pawl_tile_units(const struct pawl_step_op *op, int64_t n)
{
	const struct pawl_access *w = &op->inputs[1].access;
	bool is_chain = w->layout == PAWL_LAYOUT_TILE16 && !pawl_dtype_is_blocked(w->dtype);

	return !is_chain || n > 2 ? 1 : n == 2 ? 2 : 4;
}

/* Row-major float weights: a column of 16 rows is gathered. */
static void
plain_float(struct pawl_emit *e, struct tile *t, const struct pawl_step_op *op, LLVMValueRef unit,
	LLVMValueRef *acc)
{
	const struct pawl_operand *w = &op->inputs[1];
	struct pawl_position at = {.mask = NULL};
	struct pawl_loop loop;
	LLVMValueRef last = pawl_emit_int(e->v16i64, w->type.dim[0].base - 1), rows;
	int i;

	/* Lanes beyond the last row read the last. */
	rows = iadd(e, splat16(e, imul(e, unit, k64(e, LANES))), pawl_emit_iota(e));
	at.index[0] = choose(e, icmp(e, LLVMIntSLT, rows, last), rows, last);
	begin_loop(e, &loop, t, t->x->k, 1);
	at.index[1] = loop.index;
	step_column(e, t, pawl_emit_load_lanes(e, &w->access, 2, &at), loop.index, loop.carried);
	pawl_loop_end(e, &loop);
	for (i = 0; i < t->n; i++)
		acc[i] = loop.carried[i];
}

/* acc (f32) of one row of the result with 32 columns of one row-major weight row added. */
static LLVMValueRef
accumulate_plain(struct pawl_emit *e, const struct tile *t, const struct pawl_decoded *w,
	LLVMValueRef row, LLVMValueRef b, LLVMValueRef acc)
{
	LLVMValueRef block = block_address(e, t->x, row, b),
		     d = pawl_emit_read(e, e->f32, block, 4);
	LLVMValueRef products[2], s, sum;
	int g;

	for (g = 0; g < 2; g++)
		products[g] = imul(e, w[g].q, half_block(e, t->x->dtype, block, g));
	if (t->format.n_scales == 1)
		products[0] = iadd(e, products[0], products[1]);
	for (g = 0; g < t->format.n_scales; g++) {
		s = LLVMBuildSIToFP(e->builder, pawl_machine_lanes_add(e, products[g]), e->f32, "");
		acc = pawl_machine_fma(e, fmul(e, w[g].scale, d), s, acc);
	}
	if (w[0].offset) {
		sum = pawl_emit_read(e, e->i32,
			pawl_emit_at_bytes(e, block, (int64_t)offsetof(struct pawl_block_a16, sum)),
			4);
		sum = fmul(e, d, LLVMBuildSIToFP(e->builder, sum, e->f32, ""));
		acc = pawl_machine_fma(e, w[0].offset, sum, acc);
	}
	return acc;
}

/* Row-major quantized weights: row by row, its results collected in scratch. */
static void
plain_quantized(struct pawl_emit *e, struct tile *t, const struct pawl_step_op *op,
	LLVMValueRef unit, LLVMValueRef *acc)
{
	const struct pawl_operand *w = &op->inputs[1];
	LLVMValueRef results = pawl_emit_scratch(e, (int64_t)t->n * LANES * 4), first, count,
		     address;
	struct pawl_decoded part[2];
	struct pawl_loop rows = {.n = 0}, blocks;
	LLVMValueRef row;
	int i;

	first = imul(e, unit, k64(e, LANES));
	count = imin(e, isub(e, k64(e, w->type.dim[0].base), first), k64(e, LANES));
	pawl_loop_begin(e, &rows, k64(e, 0), count, 1);
	row = iadd(e, first, rows.index);
	address = pawl_emit_row_address(e, &w->access, 2, &row);
	blocks = (struct pawl_loop){.n = t->n};
	for (i = 0; i < t->n; i++)
		blocks.carried[i] = LLVMConstNull(e->f32);
	pawl_loop_begin(e, &blocks, k64(e, 0), k64(e, t->x->k / BLOCK), 1);
	for (i = 0; i < 2; i++)
		pawl_emit_decode(e, t->w_dtype, address,
			iadd(e, imul(e, blocks.index, k64(e, BLOCK)), k64(e, LANES * i)), &part[i]);
	for (i = 0; i < t->n; i++)
		blocks.carried[i] = accumulate_plain(
			e, t, part, row_of(e, t, i), blocks.index, blocks.carried[i]);
	pawl_loop_end(e, &blocks);
	for (i = 0; i < t->n; i++)
		pawl_emit_write(e, blocks.carried[i],
			pawl_emit_at_bytes(e, at_element(e, results, rows.index, 4), 64 * i), 4);
	pawl_loop_end(e, &rows);
	for (i = 0; i < t->n; i++)
		acc[i] = pawl_emit_read(e, e->v16f32, pawl_emit_at_bytes(e, results, 64 * i), 4);
}

void
pawl_emit_tile(struct pawl_emit *e, const struct pawl_step_op *op, const struct pawl_activations *x,
	LLVMValueRef unit, int n_units, LLVMValueRef first_row, int n, LLVMValueRef *acc)
{
	const struct pawl_access *w = &op->inputs[1].access;
	struct tile t = {.x = x, .w_dtype = w->dtype, .first_row = first_row, .n = n};
	LLVMValueRef packed = e->args[w->arg];
	int i;

	if (!pawl_pack_format(w->dtype, &t.format) ||
		(t.format.planes > 0) != pawl_dtype_is_blocked(x->dtype)) {
		pawl_emit_refuse(e, "%s: weights of %s with activations of %s", op->name,
			pawl_dtype_name(w->dtype), pawl_dtype_name(x->dtype));
		for (i = 0; i < n_units * n; i++)
			acc[i] = LLVMConstNull(e->v16f32);
		return;
	}
	if (w->layout == PAWL_LAYOUT_TILE16)
		packed = at_element(e, packed, unit, pawl_pack_tile_bytes(&t.format, x->k));
	if (w->layout == PAWL_LAYOUT_TILE16 && t.format.planes)
		packed_quantized(e, &t, packed, acc);
	else if (w->layout == PAWL_LAYOUT_TILE16)
		packed_float(e, &t, packed, n_units, acc);
	else if (t.format.planes)
		plain_quantized(e, &t, op, unit, acc);
	else
		plain_float(e, &t, op, unit, acc);
}

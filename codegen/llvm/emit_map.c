/* Templates MAP, GATHER and BATCH: every op that stores is a segment; a unit is a row of it. */
#include "codegen/llvm/emit_rows.h"
#include "codegen/llvm/templates.h"

#include "codegen/llvm/emit_blocks.h"
#include "codegen/llvm/emit_decode.h"
#include "codegen/llvm/machine.h"
#include "ir/half.h"

LLVMValueRef
pawl_emit_gather_value(
	struct pawl_emit *e, const struct pawl_step_op *op, const struct pawl_position *at)
{
	const struct pawl_operand *table = &op->inputs[0], *ids = &op->inputs[1];
	LLVMValueRef id, is_row, value, nan;
	struct pawl_decoded part;
	struct pawl_position there = *at;

	if (table->value >= 0 || ids->value >= 0) {
		pawl_emit_refuse(e, "%s: gathers from a value of its own step", op->name);
		return LLVMConstNull(e->v16f32);
	}
	id = pawl_emit_load_element(e, &ids->access, 1, at->index);
	id = LLVMBuildIntCast2(e->builder, id, e->i64, ids->access.dtype != PAWL_DTYPE_U32, "");
	is_row = icmp(e, LLVMIntULT, id, pawl_emit_dim(e, table->type.dim[0]));
	there.index[0] = choose(e, is_row, id, k64(e, 0));
	if (!pawl_dtype_is_blocked(table->access.dtype)) {
		value = pawl_emit_load(e, &table->access, 2, &there);
	} else {
		if (pawl_emit_lanes(at->index[1]) > 1 || !pawl_access_is_dense(&table->access, 2))
			pawl_emit_refuse(e, "%s: gathers single columns of blocks", op->name);
		pawl_emit_decode(e, table->access.dtype,
			pawl_emit_row_address(e, &table->access, 2, there.index), at->index[1],
			&part);
		value = LLVMBuildSIToFP(e->builder, part.q, e->v16f32, "");
		/* Without an offset the product is exact, and -0 has to become +0. */
		value = part.offset ? pawl_machine_fma(e, splat16(e, part.scale), value,
					      splat16(e, part.offset))
				    : fadd(e, fmul(e, splat16(e, part.scale), value),
					      LLVMConstNull(e->v16f32));
	}
	/* An id without a row must not read beyond the table; it shows as NaN. */
	nan = pawl_emit_real(e, e->v16f32, pawl_f32_from_bits(0x7fc00000));
	return choose(e, splat16(e, is_row), value, nan);
}

LLVMValueRef
pawl_emit_batch_value(
	struct pawl_emit *e, const struct pawl_step_op *op, const struct pawl_position *at)
{
	const struct pawl_operand *x = &op->inputs[0], *z = &op->inputs[1];
	struct pawl_loop loop = {.n = 1};
	struct pawl_position z_at = *at;
	LLVMValueRef x_index[3] = {at->index[0], at->index[1]}, x_k, z_k, column = at->index[2];

	/* Rows of z that lie side by side (a transposed view) are read as vectors. */
	bool side_by_side = z->access.layout == PAWL_LAYOUT_ROWS && z->access.stride[1] == 1 &&
			    z->access.at_dim < 0 && pawl_emit_lanes(column) == 1;

	if (x->value >= 0 || z->value >= 0) {
		pawl_emit_refuse(e, "%s: multiplies a value of its own step", op->name);
		return LLVMConstNull(e->v16f32);
	}
	if (pawl_emit_lanes(column) == 1)
		column = iadd(e, splat16(e, column), pawl_emit_iota(e));
	loop.carried[0] = LLVMConstNull(e->v16f32);
	pawl_loop_begin(e, &loop, k64(e, 0), pawl_emit_dim(e, x->type.dim[2]), 1);
	x_index[2] = loop.index;
	x_k = pawl_emit_load_element(e, &x->access, 3, x_index);
	if (side_by_side) {
		struct pawl_access turned = z->access;

		turned.stride[1] = z->access.stride[2];
		turned.stride[2] = 1;
		z_at.index[1] = loop.index;
		z_at.index[2] = at->index[2];
		z_k = pawl_emit_load(e, &turned, 3, &z_at);
	} else {
		z_at.index[1] = column;
		z_at.index[2] = loop.index;
		z_k = pawl_emit_load_lanes(e, &z->access, 3, &z_at);
	}
	loop.carried[0] = pawl_machine_fma(e, z_k, splat16(e, x_k), loop.carried[0]);
	pawl_loop_end(e, &loop);
	return loop.carried[0];
}

static void
visit(struct pawl_emit *e, const struct pawl_position *at, void *arg)
{
	pawl_emit_outs(e, *(const int32_t *)arg, at);
}

static void
emit_row(struct pawl_emit *e, int32_t root, LLVMValueRef row)
{
	const struct pawl_step_op *op = &e->step->ops[root];
	const struct pawl_type *type = &op->type;
	struct pawl_position at = {.mask = NULL};

	if (pawl_dtype_is_blocked(type->dtype)) {
		pawl_emit_split_row(e, type, row, at.index);
		if (op->op == PAWL_OP_QUANTIZE)
			pawl_emit_quantize(e, root, at.index, NULL);
		else
			pawl_emit_block_row(e, op, at.index);
		return;
	}
	if (type->rank == 0) {
		at.mask = pawl_emit_mask_first(e, 1);
		pawl_emit_move(e);
		pawl_emit_outs(e, root, &at);
		return;
	}
	pawl_emit_split_row(e, type, row, at.index);
	pawl_emit_columns(e, type->dim[type->rank - 1], type->rank, &at, visit, &root);
}

/* Number of rows of a value: i64. */
static LLVMValueRef
count_rows(struct pawl_emit *e, const struct pawl_type *type)
{
	LLVMValueRef rows = k64(e, 1);
	int j;

	for (j = 0; j + 1 < type->rank; j++)
		rows = imul(e, rows, pawl_emit_dim(e, type->dim[j]));
	return rows;
}

void
pawl_emit_map(struct pawl_emit *e)
{
	LLVMValueRef first = k64(e, 0), rows;
	struct pawl_loop loop = {.n = 0};
	int s;

	pawl_emit_begin(e, "pawl_phase0");
	for (s = 0; s < e->segments.n; s++) {
		int32_t root = e->segments.first[s];

		rows = count_rows(e, &e->step->ops[root].type);
		pawl_loop_begin(e, &loop, imax(e, isub(e, e->begin, first), k64(e, 0)),
			imin(e, isub(e, e->end, first), rows), 1);
		emit_row(e, root, loop.index);
		pawl_loop_end(e, &loop);
		first = iadd(e, first, rows);
	}
	pawl_emit_end(e);
}

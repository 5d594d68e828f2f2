#include "codegen/llvm/emit_blocks.h"

#include "codegen/llvm/machine.h"
#include "ir/woven_block.h"

static void
write_block(struct pawl_emit *e, const struct pawl_block_place *place, const struct pawl_q8_0 *block)
{
	LLVMValueRef at;

	pawl_emit_write(e, block->scale, place->scale, 1);
	for (int i = 0; i < 2; i++) {
		at = pawl_emit_at_bytes(e, place->q, LANES * i * place->step);
		if (place->step == 1)
			pawl_emit_write(e, block->q[i], at, 1);
		else
			pawl_emit_scatter(e, block->q[i], at,
				pawl_emit_mix_mul(e, pawl_emit_iota(e), place->step), 1, NULL);
	}
}

void
pawl_emit_store_block(struct pawl_emit *e, const struct pawl_step_op *op, const LLVMValueRef *index,
	const struct pawl_q8_0 *block)
{
	struct pawl_block_place place;
	struct pawl_branch branch;

	for (int32_t i = 0; i < op->n_outs; i++) {
		pawl_emit_find_block(e, &op->outs[i], op->type.rank, index, &place);
		if (place.is_row)
			pawl_if_begin(e, &branch, place.is_row);
		write_block(e, &place, block);
		if (place.is_row)
			pawl_if_end(e, &branch);
	}
}

static void
read_block(struct pawl_emit *e, const struct pawl_operand *operand, const LLVMValueRef *index,
	struct pawl_q8_0 *block)
{
	struct pawl_block_place place;

	pawl_emit_find_block(e, &operand->access, operand->type.rank, index, &place);
	if (place.step != 1 || place.is_row)
		pawl_emit_refuse(e, "reads single blocks of layout k16");
	block->scale = pawl_emit_read(e, e->i16, place.scale, 1);
	for (int i = 0; i < 2; i++)
		block->q[i] = pawl_emit_read(
			e, e->v16i8, pawl_emit_at_bytes(e, place.q, LANES * i), 1);
}

void
pawl_emit_block_row(struct pawl_emit *e, const struct pawl_step_op *op, const LLVMValueRef *index)
{
	LLVMValueRef zero = LLVMConstNull(e->v16i8);
	struct pawl_q8_0 block = {LLVMConstNull(e->i16), {zero, zero}};
	int last = op->type.rank - 1;
	struct pawl_loop loop = {.n = 0};
	LLVMValueRef at[PAWL_MAX_RANK];

	for (int i = 0; i < last; i++)
		at[i] = index[i];
	pawl_loop_begin(e, &loop, k64(e, 0), k64(e, pawl_type_row_length(&op->type)), PAWL_Q8_0_BLOCK);
	at[last] = loop.index;
	if (op->op == PAWL_OP_COPY)
		read_block(e, &op->inputs[0], at, &block);
	pawl_emit_store_block(e, op, at, &block);
	pawl_loop_end(e, &loop);
}

static LLVMValueRef
scaled(struct pawl_emit *e, LLVMValueRef q, LLVMValueRef scales)
{
	LLVMValueRef value = LLVMBuildSIToFP(e->builder, q, e->v16f32, "");

	return fadd(e, fmul(e, scales, value), LLVMConstNull(e->v16f32));
}

LLVMValueRef
pawl_emit_q8_0_value(struct pawl_emit *e, LLVMValueRef q, LLVMValueRef scales)
{
	return scaled(e, q, pawl_machine_f32_from_f16(e, scales));
}

LLVMValueRef
pawl_emit_load_block(struct pawl_emit *e, const struct pawl_access *access, int rank,
	const LLVMValueRef *index)
{
	LLVMValueRef block[PAWL_MAX_RANK], column = index[rank - 1], q, scale;
	struct pawl_block_place place;

	for (int i = 0; i < rank; i++)
		block[i] = index[i];
	block[rank - 1] = iand(e, column, k64(e, -PAWL_Q8_0_BLOCK));
	pawl_emit_find_block(e, access, rank, block, &place);
	if (place.step != 1 || place.is_row)
		pawl_emit_refuse(e, "reads single blocks of layout k16");
	q = pawl_emit_at(e, place.q, iand(e, column, k64(e, PAWL_Q8_0_BLOCK - 1)));
	q = pawl_emit_read(e, e->v16i8, q, 1);
	scale = pawl_machine_f32_from_f16(e, pawl_emit_read(e, e->i16, place.scale, 1));
	return scaled(e, q, splat16(e, scale));
}

LLVMValueRef
pawl_emit_load_woven(struct pawl_emit *e, LLVMValueRef blocks, LLVMValueRef first, int64_t i)
{
	LLVMValueRef number = udiv(e, first, k64(e, PAWL_WOVEN_COLUMNS)), column, q, scales;

	blocks = pawl_emit_at(e, blocks, imul(e, number, k64(e, PAWL_WOVEN_BYTES)));
	column = iadd(e, urem(e, first, k64(e, PAWL_WOVEN_COLUMNS)), k64(e, i));
	q = pawl_emit_at(e, pawl_emit_at_bytes(e, blocks, PAWL_WOVEN_SCALES),
		imul(e, column, k64(e, PAWL_WOVEN_LANES)));
	scales = pawl_emit_read(e, LLVMVectorType(e->i16, LANES), blocks, 1);
	return pawl_emit_q8_0_value(e, pawl_emit_read(e, e->v16i8, q, 1), scales);
}

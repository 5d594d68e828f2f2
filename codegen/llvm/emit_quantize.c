/* quantize: 32 values at a time to a block of a16, a8 or q8_0, as ir/quantize.c does. */
#include "codegen/llvm/emit_rows.h"

#include <stddef.h>

#include "codegen/llvm/emit_blocks.h"
#include "codegen/llvm/machine.h"
#include "ir/eval_consts.h"
#include "ir/half.h"

enum { BLOCK = 32 };

/* A block in two vectors. */
struct quantized {
	LLVMValueRef q[2]; /* <16 x i32> */
	LLVMValueRef d, sum;
};

static void
quantize_block(struct pawl_emit *e, LLVMValueRef x[2], float most, struct quantized *out)
{
	LLVMValueRef bits[2], amax, not_finite, is_plain, amax_value, inverse, scale, nan, q;
	int i;

	for (i = 0; i < 2; i++) {
		bits[i] = bits_as(e, x[i], e->v16i32);
		bits[i] = iand(e, bits[i], like(bits[i], INT32_MAX));
	}
	amax = choose(e, icmp(e, LLVMIntUGT, bits[0], bits[1]), bits[0], bits[1]);
	amax = pawl_machine_lanes_umax(e, amax);
	not_finite = icmp(e, LLVMIntUGE, amax, k32(e, 0x7f800000));
	is_plain = icmp(e, LLVMIntUGE, amax, k32(e, (int32_t)pawl_f32_bits(PAWL_ACT_LEAST)));
	is_plain = iand(e, is_plain, icmp(e, LLVMIntULT, amax, k32(e, 0x7f800000)));
	amax_value = bits_as(e, amax, e->f32);
	scale = pawl_emit_real(e, e->f32, most);
	inverse = splat16(e, fdiv(e, scale, amax_value));
	nan = pawl_emit_real(e, e->f32, pawl_f32_from_bits(0x7fc00000));
	out->d = choose(e, is_plain, fdiv(e, amax_value, scale),
		choose(e, not_finite, nan, LLVMConstNull(e->f32)));
	for (i = 0; i < 2; i++) {
		q = pawl_machine_nearest(e, fmul(e, x[i], inverse));
		out->q[i] = choose(e, splat16(e, is_plain), q, LLVMConstNull(e->v16i32));
	}
	out->sum = pawl_machine_lanes_add(e, iadd(e, out->q[0], out->q[1]));
}

static void
write_bytes(struct pawl_emit *e, LLVMValueRef q, LLVMValueRef block, size_t offset)
{
	pawl_emit_write(e, LLVMBuildTrunc(e->builder, q, e->v16i8, ""),
		pawl_emit_at_bytes(e, block, (int64_t)offset), 1);
}

static void
write_block(
	struct pawl_emit *e, enum pawl_dtype dtype, const struct quantized *q, LLVMValueRef block)
{
	LLVMValueRef hi;
	size_t i;

	pawl_emit_write(e, q->d, block, 4);
	pawl_emit_write(e, q->sum,
		pawl_emit_at_bytes(e, block, (int64_t)offsetof(struct pawl_block_a16, sum)), 4);
	for (i = 0; i < 2; i++) {
		if (dtype == PAWL_DTYPE_A8) {
			write_bytes(e, q->q[i], block, offsetof(struct pawl_block_a8, q) + 16 * i);
			continue;
		}
		hi = iashr(e, iadd(e, q->q[i], like(q->q[i], 64)), like(q->q[i], 7));
		write_bytes(e, hi, block, offsetof(struct pawl_block_a16, hi) + 16 * i);
		write_bytes(e, isub(e, q->q[i], ishl(e, hi, like(hi, 7))), block,
			offsetof(struct pawl_block_a16, lo) + 16 * i);
	}
}

/* What a row of a16 or a8 is stored to: addresses of whole rows. */
static void
find_rows(struct pawl_emit *e, const struct pawl_step_op *op, const LLVMValueRef *index,
	LLVMValueRef *rows)
{
	int32_t i;

	for (i = 0; i < op->n_outs; i++) {
		if (!pawl_access_is_dense(&op->outs[i], op->type.rank))
			pawl_emit_refuse(e, "%s: blocks stored one by one", op->name);
		rows[i] = pawl_emit_row_address(e, &op->outs[i], op->type.rank, index);
	}
}

static void
store_q8_0(struct pawl_emit *e, const struct pawl_step_op *op, const LLVMValueRef *index,
	const struct quantized *q)
{
	struct pawl_q8_0 block = {.scale = pawl_machine_f16_from_f32(e, q->d)};
	int i;

	for (i = 0; i < 2; i++)
		block.q[i] = LLVMBuildTrunc(e->builder, q->q[i], e->v16i8, "");
	pawl_emit_store_block(e, op, index, &block);
}

void
pawl_emit_quantize(
	struct pawl_emit *e, int32_t index_of_op, const LLVMValueRef *index, LLVMValueRef blocks)
{
	const struct pawl_step_op *op = &e->step->ops[index_of_op];
	int64_t block_bytes = pawl_dtype_info(op->type.dtype)->block_bytes;
	float most = op->type.dtype == PAWL_DTYPE_A16 ? PAWL_A16_MOST : PAWL_A8_MOST;
	bool is_q8_0 = op->type.dtype == PAWL_DTYPE_Q8_0;
	int rank = op->type.rank;
	struct pawl_position at = {.mask = NULL};
	struct pawl_loop loop = {.n = 0};
	struct pawl_branch branch;
	struct quantized q;
	LLVMValueRef x[2], offset, rows[2] = {NULL, NULL}, column;
	int32_t i;

	for (i = 0; i + 1 < rank; i++)
		at.index[i] = index[i];
	if (!is_q8_0)
		find_rows(e, op, index, rows);
	pawl_loop_begin(e, &loop, k64(e, 0), k64(e, pawl_type_row_length(&op->type) / BLOCK), 1);
	column = imul(e, loop.index, k64(e, BLOCK));
	for (i = 0; i < 2; i++) {
		at.index[rank - 1] = iadd(e, column, k64(e, LANES * i));
		pawl_emit_move(e);
		x[i] = pawl_emit_operand(e, &op->inputs[0], &at);
	}
	quantize_block(e, x, most, &q);
	offset = imul(e, loop.index, k64(e, block_bytes));
	if (blocks)
		write_block(e, op->type.dtype, &q, pawl_emit_at(e, blocks, offset));
	if (op->n_outs && e->stores_when)
		pawl_if_begin(e, &branch, e->stores_when);
	at.index[rank - 1] = column;
	if (is_q8_0)
		store_q8_0(e, op, at.index, &q);
	for (i = 0; i < op->n_outs && !is_q8_0; i++)
		write_block(e, op->type.dtype, &q, pawl_emit_at(e, rows[i], offset));
	if (op->n_outs && e->stores_when)
		pawl_if_end(e, &branch);
	pawl_loop_end(e, &loop);
}

#include "codegen/llvm/emit_decode.h"

#include "codegen/llvm/machine.h"

/* Where 16 columns lie: the address of their block, and the first column within it. */
struct place {
	LLVMValueRef block, first;
};

static LLVMValueRef
f16_at(struct pawl_emit *e, const struct place *p, int64_t offset)
{
	LLVMValueRef bits = pawl_emit_read(e, e->i16, pawl_emit_at_bytes(e, p->block, offset), 1);

	return pawl_machine_f32_from_f16(e, bits);
}

/* Bytes base + offset .. + 15 of the block as unsigned integers. */
static LLVMValueRef
bytes_at(struct pawl_emit *e, const struct place *p, int64_t base, LLVMValueRef offset)
{
	LLVMValueRef at = pawl_emit_at(e, pawl_emit_at_bytes(e, p->block, base), offset);

	return LLVMBuildZExt(e->builder, pawl_emit_read(e, e->v16i8, at, 1), e->v16i32, "");
}

/* One byte as an i32. */
static LLVMValueRef
byte_at(struct pawl_emit *e, const struct place *p, int64_t base, LLVMValueRef offset,
	bool is_signed)
{
	LLVMValueRef at = pawl_emit_at(e, pawl_emit_at_bytes(e, p->block, base), offset);

	return LLVMBuildIntCast2(
		e->builder, pawl_emit_read(e, e->i8, at, 1), e->i32, is_signed, "");
}

/* (v >> shift) & mask; shift is an i64. */
static LLVMValueRef
field(struct pawl_emit *e, LLVMValueRef v, LLVMValueRef shift, int mask)
{
	LLVMValueRef by = splat16(e, LLVMBuildTrunc(e->builder, shift, e->i32, ""));

	return iand(e, ilshr(e, v, by), like(v, mask));
}

/* q4_0 q4_1 q5_0 q5_1: 16 bytes of nibbles, the low ones first; maybe 32 fifth bits before. */
static LLVMValueRef
small_nibbles(struct pawl_emit *e, const struct place *p, int64_t scales, bool has_fifth, int zero)
{
	LLVMValueRef is_high = ilshr(e, p->first, k64(e, 4)), q, bits, lane;

	q = bytes_at(e, p, scales + (has_fifth ? 4 : 0), k64(e, 0));
	q = field(e, q, ishl(e, is_high, k64(e, 2)), 15);
	if (has_fifth) {
		bits = pawl_emit_read(e, e->i32, pawl_emit_at_bytes(e, p->block, scales), 1);
		bits = ilshr(e, bits, LLVMBuildTrunc(e->builder, p->first, e->i32, ""));
		lane = LLVMBuildTrunc(e->builder, pawl_emit_iota(e), e->v16i32, "");
		bits = iand(e, ilshr(e, splat16(e, bits), lane), like(q, 1));
		q = ior(e, q, ishl(e, bits, like(bits, 4)));
	}
	return zero ? isub(e, q, like(q, zero)) : q;
}

/* The six-bit scale and minimum of group g (weight_block.c), times the block's d and m. */
static void
six_bit_scales(struct pawl_emit *e, const struct place *p, LLVMValueRef g, struct pawl_decoded *out)
{
	LLVMValueRef is_low = icmp(e, LLVMIntULT, g, k64(e, 4)), a, b, c, scale, least;

	a = byte_at(e, p, 4, g, false);
	b = byte_at(e, p, 8, g, false);
	c = byte_at(e, p, 4, choose(e, is_low, k64(e, 0), isub(e, g, k64(e, 4))), false);
	scale = ior(e, iand(e, b, k32(e, 15)), ishl(e, ilshr(e, c, k32(e, 6)), k32(e, 4)));
	scale = choose(e, is_low, iand(e, a, k32(e, 63)), scale);
	least = ior(e, ilshr(e, b, k32(e, 4)), ishl(e, ilshr(e, a, k32(e, 6)), k32(e, 4)));
	least = choose(e, is_low, iand(e, b, k32(e, 63)), least);
	out->scale = fmul(e, f16_at(e, p, 0), LLVMBuildSIToFP(e->builder, scale, e->f32, ""));
	out->offset = fmul(e, f16_at(e, p, 2), LLVMBuildSIToFP(e->builder, least, e->f32, ""));
	out->offset = LLVMBuildFNeg(e->builder, out->offset, "");
}

static void
decode_q45_k(struct pawl_emit *e, const struct place *p, bool has_fifth, struct pawl_decoded *out)
{
	LLVMValueRef g = ilshr(e, p->first, k64(e, 5)), in_group = iand(e, p->first, k64(e, 31));
	LLVMValueRef pair = ishl(e, ilshr(e, g, k64(e, 1)), k64(e, 5)), shift, high;

	six_bit_scales(e, p, g, out);
	shift = ishl(e, iand(e, g, k64(e, 1)), k64(e, 2));
	out->q = field(e, bytes_at(e, p, has_fifth ? 48 : 16, iadd(e, pair, in_group)), shift, 15);
	if (has_fifth) {
		high = field(e, bytes_at(e, p, 16, in_group), g, 1);
		out->q = ior(e, out->q, ishl(e, high, like(high, 4)));
	}
}

static void
decode_q6_k(struct pawl_emit *e, const struct place *p, struct pawl_decoded *out)
{
	LLVMValueRef half = ilshr(e, p->first, k64(e, 7)), in_half = iand(e, p->first, k64(e, 127));
	LLVMValueRef low, high, scale, shift, at;

	at = iadd(e, ishl(e, half, k64(e, 6)), iand(e, in_half, k64(e, 63)));
	shift = ishl(e, ilshr(e, in_half, k64(e, 6)), k64(e, 2));
	low = field(e, bytes_at(e, p, 0, at), shift, 15);
	at = iadd(e, ishl(e, half, k64(e, 5)), iand(e, p->first, k64(e, 31)));
	shift = ishl(e, ilshr(e, in_half, k64(e, 5)), k64(e, 1));
	high = field(e, bytes_at(e, p, 128, at), shift, 3);
	out->q = ior(e, low, ishl(e, high, like(high, 4)));
	out->q = isub(e, out->q, like(out->q, 32));
	scale = byte_at(e, p, 192, ilshr(e, p->first, k64(e, 4)), true);
	out->scale = fmul(e, f16_at(e, p, 208), LLVMBuildSIToFP(e->builder, scale, e->f32, ""));
}

void
pawl_emit_decode(struct pawl_emit *e, enum pawl_dtype dtype, LLVMValueRef row, LLVMValueRef column,
	struct pawl_decoded *out)
{
	const struct pawl_dtype_info *info = pawl_dtype_info(dtype);
	LLVMValueRef number = udiv(e, column, k64(e, info->block));
	struct place p = {.first = urem(e, column, k64(e, info->block))};
	p.block = pawl_emit_at(e, row, imul(e, number, k64(e, info->block_bytes)));
	*out = (struct pawl_decoded){.q = NULL};
	switch (dtype) {
	case PAWL_DTYPE_Q4_0:
		out->q = small_nibbles(e, &p, 2, false, 8);
		break;
	case PAWL_DTYPE_Q4_1:
		out->q = small_nibbles(e, &p, 4, false, 0);
		break;
	case PAWL_DTYPE_Q5_0:
		out->q = small_nibbles(e, &p, 2, true, 16);
		break;
	case PAWL_DTYPE_Q5_1:
		out->q = small_nibbles(e, &p, 4, true, 0);
		break;
	case PAWL_DTYPE_Q8_0:
		out->q = LLVMBuildSExt(e->builder,
			pawl_emit_read(e, e->v16i8,
				pawl_emit_at(e, pawl_emit_at_bytes(e, p.block, 2), p.first), 1),
			e->v16i32, "");
		break;
	case PAWL_DTYPE_Q4_K:
	case PAWL_DTYPE_Q5_K:
		decode_q45_k(e, &p, dtype == PAWL_DTYPE_Q5_K, out);
		return;
	case PAWL_DTYPE_Q6_K:
		decode_q6_k(e, &p, out);
		return;
	case PAWL_DTYPE_F32:
	case PAWL_DTYPE_F16:
	case PAWL_DTYPE_BF16:
	case PAWL_DTYPE_I8:
	case PAWL_DTYPE_I32:
	case PAWL_DTYPE_I64:
	case PAWL_DTYPE_U32:
	case PAWL_DTYPE_A16:
	case PAWL_DTYPE_A8:
	case PAWL_N_DTYPES:
		pawl_emit_refuse(e, "%s is no quantized weight type", info->name);
		out->q = LLVMConstNull(e->v16i32);
		out->scale = LLVMConstNull(e->f32);
		return;
	}
	out->scale = f16_at(e, &p, 0);
	if (dtype == PAWL_DTYPE_Q4_1 || dtype == PAWL_DTYPE_Q5_1)
		out->offset = f16_at(e, &p, 2);
}

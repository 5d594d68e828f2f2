#include "codegen/llvm/emit_scalar.h"

#include "codegen/llvm/machine.h"
#include "ir/eval_consts.h"

static LLVMValueRef
real(struct pawl_emit *e, LLVMValueRef model, float x)
{
	return pawl_emit_real(e, LLVMTypeOf(model), x);
}

static LLVMTypeRef
bits_type(struct pawl_emit *e, LLVMValueRef x)
{
	return pawl_emit_vector(e->i32, pawl_emit_lanes(x));
}

LLVMValueRef
pawl_emit_max(struct pawl_emit *e, LLVMValueRef x, LLVMValueRef y)
{
	return choose(e, fcmp(e, LLVMRealOGT, x, y), x, y);
}

static LLVMValueRef
emit_min(struct pawl_emit *e, LLVMValueRef x, LLVMValueRef y)
{
	return choose(e, fcmp(e, LLVMRealOLT, x, y), x, y);
}

static LLVMValueRef
negate(struct pawl_emit *e, LLVMValueRef x)
{
	LLVMValueRef bits = bits_as(e, x, bits_type(e, x));

	return bits_as(e, ixor(e, bits, like(bits, INT32_MIN)), LLVMTypeOf(x));
}

static LLVMValueRef
absolute(struct pawl_emit *e, LLVMValueRef x)
{
	LLVMValueRef bits = bits_as(e, x, bits_type(e, x));

	return bits_as(e, iand(e, bits, like(bits, INT32_MAX)), LLVMTypeOf(x));
}

LLVMValueRef
pawl_emit_sqrt(struct pawl_emit *e, LLVMValueRef x)
{
	return pawl_emit_intrinsic(e, "llvm.sqrt", LLVMTypeOf(x), &x, 1);
}

LLVMValueRef
pawl_emit_exp(struct pawl_emit *e, LLVMValueRef x)
{
	static const float steps[] = {
		PAWL_EXP_C5, PAWL_EXP_C4, PAWL_EXP_C3, PAWL_EXP_C2, 1.0f, 1.0f};
	LLVMValueRef a, n, whole, minus_n, r, p, power;
	size_t i;

	a = emit_min(e, real(e, x, PAWL_EXP_MOST), x);
	a = pawl_emit_max(e, real(e, x, PAWL_EXP_LEAST), a);
	whole = pawl_machine_nearest(e, fmul(e, a, real(e, x, PAWL_EXP_LOG2E)));
	n = LLVMBuildSIToFP(e->builder, whole, LLVMTypeOf(x), "");
	minus_n = negate(e, n);
	r = pawl_machine_fma(e, minus_n, real(e, x, PAWL_EXP_LN2_HI), a);
	r = pawl_machine_fma(e, minus_n, real(e, x, PAWL_EXP_LN2_LO), r);
	p = real(e, x, PAWL_EXP_C6);
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		p = pawl_machine_fma(e, p, r, real(e, x, steps[i]));
	power = ishl(e, iadd(e, whole, like(whole, 127)), like(whole, 23));
	p = fmul(e, p, bits_as(e, power, LLVMTypeOf(x)));
	return choose(e, fcmp(e, LLVMRealOLT, x, real(e, x, PAWL_EXP_LEAST)),
		LLVMConstNull(LLVMTypeOf(x)), p);
}

/* 1 + e^-x */
static LLVMValueRef
one_plus_exp_minus(struct pawl_emit *e, LLVMValueRef x)
{
	return fadd(e, real(e, x, 1.0f), pawl_emit_exp(e, negate(e, x)));
}

LLVMValueRef
pawl_emit_tanh(struct pawl_emit *e, LLVMValueRef x)
{
	LLVMValueRef one = real(e, x, 1.0f);
	LLVMValueRef quotient =
		fdiv(e, real(e, x, 2.0f), fadd(e, pawl_emit_exp(e, fadd(e, x, x)), one));

	return fsub(e, one, quotient);
}

static LLVMValueRef
gelu_tanh(struct pawl_emit *e, LLVMValueRef x)
{
	LLVMValueRef cube = fmul(e, fmul(e, x, x), x), inner;

	inner = pawl_machine_fma(e, real(e, x, PAWL_GELU_CUBIC), cube, x);
	inner = fmul(e, real(e, x, PAWL_GELU_SLOPE), inner);
	return fmul(e, fmul(e, real(e, x, 0.5f), x),
		fadd(e, real(e, x, 1.0f), pawl_emit_tanh(e, inner)));
}

/* By adding and subtracting 2^23, with the sign put back. */
static LLVMValueRef
nearest(struct pawl_emit *e, LLVMValueRef x)
{
	LLVMValueRef shift = real(e, x, 0x1p23f), a = absolute(e, x), bits, sign;

	bits = bits_as(e, fsub(e, fadd(e, a, shift), shift), bits_type(e, x));
	sign = iand(e, bits_as(e, x, bits_type(e, x)), like(bits, INT32_MIN));
	return choose(e, fcmp(e, LLVMRealOLT, a, shift),
		bits_as(e, ior(e, bits, sign), LLVMTypeOf(x)), x);
}

LLVMValueRef
pawl_emit_scalar(struct pawl_emit *e, enum pawl_scalar scalar, const LLVMValueRef *x)
{
	switch (scalar) {
	case PAWL_SCALAR_ADD:
		return fadd(e, x[0], x[1]);
	case PAWL_SCALAR_SUB:
		return fsub(e, x[0], x[1]);
	case PAWL_SCALAR_MUL:
		return fmul(e, x[0], x[1]);
	case PAWL_SCALAR_DIV:
		return fdiv(e, x[0], x[1]);
	case PAWL_SCALAR_MAX:
		return pawl_emit_max(e, x[0], x[1]);
	case PAWL_SCALAR_MIN:
		return emit_min(e, x[0], x[1]);
	case PAWL_SCALAR_FMA:
		return pawl_machine_fma(e, x[0], x[1], x[2]);
	case PAWL_SCALAR_NEG:
		return negate(e, x[0]);
	case PAWL_SCALAR_ABS:
		return absolute(e, x[0]);
	case PAWL_SCALAR_SQRT:
		return pawl_emit_sqrt(e, x[0]);
	case PAWL_SCALAR_SQUARE:
		return fmul(e, x[0], x[0]);
	case PAWL_SCALAR_RELU:
		return pawl_emit_max(e, LLVMConstNull(LLVMTypeOf(x[0])), x[0]);
	case PAWL_SCALAR_RNE:
		return nearest(e, x[0]);
	case PAWL_SCALAR_EXP:
		return pawl_emit_exp(e, x[0]);
	case PAWL_SCALAR_SIGMOID:
		return fdiv(e, real(e, x[0], 1.0f), one_plus_exp_minus(e, x[0]));
	case PAWL_SCALAR_SILU:
		return fdiv(e, x[0], one_plus_exp_minus(e, x[0]));
	case PAWL_SCALAR_TANH:
		return pawl_emit_tanh(e, x[0]);
	case PAWL_SCALAR_GELU_TANH:
		return gelu_tanh(e, x[0]);
	case PAWL_SCALAR_ROUND_F16:
		return pawl_machine_f32_from_f16(e, pawl_machine_f16_from_f32(e, x[0]));
	case PAWL_SCALAR_ROUND_BF16:
		return pawl_machine_f32_from_bf16(e, pawl_machine_bf16_from_f32(e, x[0]));
	case PAWL_N_SCALARS:
		break;
	}
	return x[0];
}

/* Lanes first .. first + n - 1. */
static LLVMValueRef
part_of(struct pawl_emit *e, LLVMValueRef v, unsigned first, unsigned n)
{
	LLVMValueRef lanes[LANES];
	unsigned i;

	for (i = 0; i < n; i++)
		lanes[i] = k32(e, (int32_t)(first + i));
	return LLVMBuildShuffleVector(
		e->builder, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(lanes, n), "");
}

static LLVMValueRef
tree(struct pawl_emit *e, LLVMValueRef v,
	LLVMValueRef (*combine)(struct pawl_emit *e, LLVMValueRef x, LLVMValueRef y))
{
	unsigned width;

	for (width = LANES / 2; width; width /= 2)
		v = combine(e, part_of(e, v, 0, width), part_of(e, v, width, width));
	return LLVMBuildExtractElement(e->builder, v, k32(e, 0), "");
}

LLVMValueRef
pawl_emit_lanes_sum(struct pawl_emit *e, LLVMValueRef lanes)
{
	return tree(e, lanes, fadd);
}

LLVMValueRef
pawl_emit_lanes_max(struct pawl_emit *e, LLVMValueRef lanes)
{
	return tree(e, lanes, pawl_emit_max);
}

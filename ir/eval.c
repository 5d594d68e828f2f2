#include "ir/eval.h"

#include "ir/eval_consts.h"
#include "ir/half.h"

#include <math.h>

static const struct pawl_scalar_info infos[PAWL_N_SCALARS] = {
#define PAWL_SCALAR_ROW(id, name, arity, formula) [PAWL_SCALAR_##id] = {#name, arity, formula},
#include "ir/scalar.def"
};

const struct pawl_scalar_info *
pawl_scalar_info(enum pawl_scalar scalar)
{
	return &infos[scalar];
}

bool
pawl_op_scalar(enum pawl_op op, enum pawl_scalar *out)
{
	/* One more than the primitive. */
	static const int scalars[PAWL_N_OPS] = {
#define PAWL_SCALAR_OP_ROW(id, name, arity, formula) [PAWL_OP_##id] = 1 + PAWL_SCALAR_##id,
#include "ir/scalar.def"
	};

	if (scalars[op] == 0)
		return false;
	*out = (enum pawl_scalar)(scalars[op] - 1);
	return true;
}

#define ARGUMENTS_1 x[0]
#define ARGUMENTS_2 x[0], x[1]
#define ARGUMENTS_3 x[0], x[1], x[2]

float
pawl_scalar_eval(enum pawl_scalar scalar, const float *x)
{
	switch (scalar) {
#define PAWL_SCALAR_ROW(id, name, arity, formula)                                                  \
	case PAWL_SCALAR_##id:                                                                     \
		return pawl_eval_##name(ARGUMENTS_##arity);
#include "ir/scalar.def"
	case PAWL_N_SCALARS:
		break;
	}
	return NAN;
}

float
pawl_eval_add(float x, float y)
{
	return x + y;
}

float
pawl_eval_sub(float x, float y)
{
	return x - y;
}

float
pawl_eval_mul(float x, float y)
{
	return x * y;
}

float
pawl_eval_div(float x, float y)
{
	return x / y;
}

float
pawl_eval_max(float x, float y)
{
	return x > y ? x : y;
}

float
pawl_eval_min(float x, float y)
{
	return x < y ? x : y;
}

float
pawl_eval_fma(float x, float y, float z)
{
	return fmaf(x, y, z);
}

float
pawl_eval_neg(float x)
{
	return pawl_f32_from_bits(pawl_f32_bits(x) ^ 0x80000000);
}

float
pawl_eval_abs(float x)
{
	return pawl_f32_from_bits(pawl_f32_bits(x) & 0x7fffffff);
}

float
pawl_eval_sqrt(float x)
{
	return sqrtf(x);
}

float
pawl_eval_square(float x)
{
	return x * x;
}

float
pawl_eval_relu(float x)
{
	return 0.0f > x ? 0.0f : x;
}

float
pawl_eval_rne(float x)
{
	return rintf(x);
}

float
pawl_eval_exp(float x)
{
	float a, n, r, p;
	uint32_t power;

	a = PAWL_EXP_MOST < x ? PAWL_EXP_MOST : x;
	a = PAWL_EXP_LEAST > a ? PAWL_EXP_LEAST : a;
	if (a != a)
		return a;
	n = rintf(a * PAWL_EXP_LOG2E);
	r = fmaf(-n, PAWL_EXP_LN2_HI, a);
	r = fmaf(-n, PAWL_EXP_LN2_LO, r);
	p = fmaf(PAWL_EXP_C6, r, PAWL_EXP_C5);
	p = fmaf(p, r, PAWL_EXP_C4);
	p = fmaf(p, r, PAWL_EXP_C3);
	p = fmaf(p, r, PAWL_EXP_C2);
	p = fmaf(p, r, 1.0f);
	p = fmaf(p, r, 1.0f);
	power = (uint32_t)((int32_t)n + 127) << 23;
	return x < PAWL_EXP_LEAST ? 0.0f : p * pawl_f32_from_bits(power);
}

float
pawl_eval_sigmoid(float x)
{
	return 1.0f / (1.0f + pawl_eval_exp(-x));
}

float
pawl_eval_silu(float x)
{
	return x / (1.0f + pawl_eval_exp(-x));
}

float
pawl_eval_tanh(float x)
{
	return 1.0f - 2.0f / (pawl_eval_exp(x + x) + 1.0f);
}

float
pawl_eval_gelu_tanh(float x)
{
	float inner = PAWL_GELU_SLOPE * fmaf(PAWL_GELU_CUBIC, x * x * x, x);

	return 0.5f * x * (1.0f + pawl_eval_tanh(inner));
}

float
pawl_eval_round_f16(float x)
{
	return pawl_f32_from_f16(pawl_f16_from_f32(x));
}

float
pawl_eval_round_bf16(float x)
{
	return pawl_f32_from_bf16(pawl_bf16_from_f32(x));
}

bool
pawl_eval_same(float x, float y)
{
	uint32_t a = pawl_f32_bits(x), b = pawl_f32_bits(y);
	bool a_is_nan = (a & 0x7fffffff) > 0x7f800000, b_is_nan = (b & 0x7fffffff) > 0x7f800000;
	bool a_is_small = (a & 0x7f800000) == 0, b_is_small = (b & 0x7f800000) == 0;

	if (a_is_nan || b_is_nan)
		return a_is_nan && b_is_nan;
	if (a_is_small && b_is_small)
		return a >> 31 == b >> 31;
	return a == b;
}

/* Elementwise ops: the primitives of ir/scalar.def, of which the prelude has the functions. */
#include "codegen/cuda/cuda_emit.h"

bool
pawl_cuda_scalar_of(enum pawl_op op, enum pawl_scalar *out)
{
	switch (op) {
#define SCALAR(id)                                                                                 \
	case PAWL_OP_##id:                                                                         \
		*out = PAWL_SCALAR_##id;                                                           \
		return true
	SCALAR(NEG);
	SCALAR(ABS);
	SCALAR(SQRT);
	SCALAR(EXP);
	SCALAR(TANH);
	SCALAR(SIGMOID);
	SCALAR(SILU);
	SCALAR(GELU_TANH);
	SCALAR(RELU);
	SCALAR(ADD);
	SCALAR(SUB);
	SCALAR(MUL);
	SCALAR(DIV);
	SCALAR(MAX);
	SCALAR(MIN);
#undef SCALAR
	case PAWL_OP_CONST:
	case PAWL_OP_ALLOC:
	case PAWL_OP_ZERO_FILL:
	case PAWL_OP_WRITE_SLICE:
	case PAWL_OP_WRITE_SLICE_ROTATING:
	case PAWL_OP_WRITE_ROWS:
	case PAWL_OP_PACK:
	case PAWL_OP_RESHAPE:
	case PAWL_OP_PERMUTE:
	case PAWL_OP_SLICE:
	case PAWL_OP_BROADCAST:
	case PAWL_OP_COPY:
	case PAWL_OP_CAST:
	case PAWL_OP_CONCAT:
	case PAWL_OP_SCALE:
	case PAWL_OP_GATHER:
	case PAWL_OP_MATMUL:
	case PAWL_OP_BATCH_MATMUL:
	case PAWL_OP_RMS_NORM:
	case PAWL_OP_LAYER_NORM:
	case PAWL_OP_SOFTMAX:
	case PAWL_OP_QUANTIZE:
	case PAWL_OP_ROPE:
	case PAWL_OP_ATTENTION:
	case PAWL_OP_ARGMAX:
	case PAWL_N_OPS:
		break;
	}
	return false;
}

static int
call(struct pawl_cuda_emit *e, enum pawl_scalar scalar, const int *x)
{
	const struct pawl_scalar_info *info = pawl_scalar_info(scalar);

	if (info->arity == 1)
		return pawl_cuda_let(e, "float", "pawl_%s(v%d)", info->name, x[0]);
	if (info->arity == 2)
		return pawl_cuda_let(e, "float", "pawl_%s(v%d, v%d)", info->name, x[0], x[1]);
	return pawl_cuda_let(e, "float", "pawl_%s(v%d, v%d, v%d)", info->name, x[0], x[1], x[2]);
}

int
pawl_cuda_scalar(struct pawl_cuda_emit *e, enum pawl_scalar scalar, const int *x)
{
	switch (scalar) {
	case PAWL_SCALAR_ADD:
		return pawl_cuda_let(e, "float", "v%d + v%d", x[0], x[1]);
	case PAWL_SCALAR_SUB:
		return pawl_cuda_let(e, "float", "v%d - v%d", x[0], x[1]);
	case PAWL_SCALAR_MUL:
		return pawl_cuda_let(e, "float", "v%d * v%d", x[0], x[1]);
	case PAWL_SCALAR_DIV:
		return pawl_cuda_let(e, "float", "v%d / v%d", x[0], x[1]);
	case PAWL_SCALAR_MAX:
	case PAWL_SCALAR_MIN:
	case PAWL_SCALAR_FMA:
	case PAWL_SCALAR_NEG:
	case PAWL_SCALAR_ABS:
	case PAWL_SCALAR_SQRT:
	case PAWL_SCALAR_SQUARE:
	case PAWL_SCALAR_RELU:
	case PAWL_SCALAR_RNE:
	case PAWL_SCALAR_EXP:
	case PAWL_SCALAR_SIGMOID:
	case PAWL_SCALAR_SILU:
	case PAWL_SCALAR_TANH:
	case PAWL_SCALAR_GELU_TANH:
	case PAWL_SCALAR_ROUND_F16:
	case PAWL_SCALAR_ROUND_BF16:
		return call(e, scalar, x);
	case PAWL_N_SCALARS:
		break;
	}
	return x[0];
}

int
pawl_cuda_convert(struct pawl_cuda_emit *e, const struct pawl_step_op *op, int value,
	enum pawl_dtype from, enum pawl_dtype to)
{
	if (from == to)
		return value;
	if (pawl_dtype_is_float(from) != pawl_dtype_is_float(to)) {
		if (!pawl_dtype_is_float(to)) {
			pawl_cuda_refuse(
				e, op, "%s to %s", pawl_dtype_name(from), pawl_dtype_name(to));
			return value;
		}
		value = pawl_cuda_let(e, "float", "(float)v%d", value);
	}
	if (to == PAWL_DTYPE_F16)
		return call(e, PAWL_SCALAR_ROUND_F16, &value);
	if (to == PAWL_DTYPE_BF16)
		return call(e, PAWL_SCALAR_ROUND_BF16, &value);
	if (!pawl_dtype_is_float(to))
		pawl_cuda_refuse(e, op, "%s to %s", pawl_dtype_name(from), pawl_dtype_name(to));
	return value;
}

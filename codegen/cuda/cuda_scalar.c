/* Elementwise ops: the primitives of ir/scalar.def, of which the prelude has the functions. */
#include "codegen/cuda/cuda_emit.h"

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
	static const char operators[PAWL_N_SCALARS] = {
		[PAWL_SCALAR_ADD] = '+',
		[PAWL_SCALAR_SUB] = '-',
		[PAWL_SCALAR_MUL] = '*',
		[PAWL_SCALAR_DIV] = '/',
	};

	if (operators[scalar])
		return pawl_cuda_let(e, "float", "v%d %c v%d", x[0], operators[scalar], x[1]);
	return call(e, scalar, x);
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

#include "passes/cost.h"

#include "ir/eval_consts.h"

static int64_t
elems(const struct pawl_type *type)
{
	return pawl_type_elems(type);
}

static int64_t
op_flops(const struct pawl_step_op *op)
{
	const struct pawl_type *k;

	if (op->op == PAWL_OP_MATMUL || op->op == PAWL_OP_BATCH_MATMUL)
		return 2 * elems(&op->type) * pawl_type_row_length(&op->inputs[0].type);
	if (op->op != PAWL_OP_ATTENTION)
		return elems(&op->type);
	k = &op->inputs[1].type;
	return 2 * op->type.dim[0].base * op->type.dim[1].base * k->dim[2].base *
		(k->dim[3].base + op->type.dim[2].base);
}

/* Bytes of the distinct elements that a window over dims of `type` touches. */
static int64_t
window_bytes(const struct pawl_access *access, const struct pawl_type *type)
{
	int64_t n = 1;
	int i;

	for (i = 0; i < type->rank; i++) {
		if (access->stride[i])
			n *= type->dim[i].base;
	}
	return pawl_dtype_bytes(access->dtype, n);
}

void
pawl_step_cost(const struct pawl_step *step, int64_t *flops, int64_t *bytes)
{
	int32_t i, j;

	*flops = 0;
	*bytes = 0;
	for (i = 0; i < step->n_ops; i++) {
		const struct pawl_step_op *op = &step->ops[i];

		*flops += op_flops(op);
		for (j = 0; j < op->n_inputs; j++) {
			if (op->inputs[j].value < 0 && op->op != PAWL_OP_GATHER)
				*bytes += window_bytes(&op->inputs[j].access, &op->inputs[j].type);
		}
		for (j = 0; j < op->n_outs; j++)
			*bytes += window_bytes(&op->outs[j], &op->type);
		if (op->op == PAWL_OP_GATHER)
			*bytes += pawl_dtype_bytes(op->inputs[0].access.dtype, elems(&op->type)) +
				pawl_dtype_bytes(op->inputs[1].access.dtype, elems(&op->inputs[1].type));
	}
}

int64_t
pawl_attend_partials_bytes(const struct pawl_step_op *ops, int32_t n_ops)
{
	int32_t i;

	for (i = 0; i < n_ops; i++) {
		const struct pawl_type *type = &ops[i].type;
		int64_t m;

		if (ops[i].op != PAWL_OP_ATTENTION)
			continue;
		m = ops[i].inputs[1].type.dim[2].base;
		return type->dim[0].base * type->dim[1].base *
			((m + PAWL_ATTEND_CHUNK - 1) / PAWL_ATTEND_CHUNK) * (type->dim[2].base + 2) *
			(int64_t)sizeof(float);
	}
	return 0;
}

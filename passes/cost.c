#include "passes/cost.h"

#include "ir/eval_consts.h"

static int64_t
times(int64_t a, int64_t b)
{
	int64_t product;

	return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static void
add(int64_t *sum, int64_t x)
{
	if (__builtin_add_overflow(*sum, x, sum))
		*sum = INT64_MAX;
}

static int64_t
extent(const struct pawl_program *program, struct pawl_dim dim)
{
	return dim.sym < 0 ? dim.base : dim.base + dim.factor * program->symbols[dim.sym].max;
}

static int64_t
elems(const struct pawl_program *program, const struct pawl_type *type)
{
	int64_t n = 1;
	int i;

	for (i = 0; i < type->rank; i++)
		n = times(n, extent(program, type->dim[i]));
	return n;
}

static int64_t
op_flops(const struct pawl_program *program, const struct pawl_step_op *op)
{
	int64_t n = elems(program, &op->type);
	const struct pawl_type *k;

	if (op->op == PAWL_OP_MATMUL || op->op == PAWL_OP_BATCH_MATMUL)
		return times(2 * n, pawl_type_row_length(&op->inputs[0].type));
	if (!pawl_op_attends(op->op))
		return n;
	k = &op->inputs[1].type;
	return times(2 * (n / op->type.dim[2].base),
		times(pawl_attend_most(op), k->dim[3].base + op->type.dim[2].base));
}

int64_t
pawl_attend_most(const struct pawl_step_op *attention)
{
	if (attention->op == PAWL_OP_PAGED_ATTENTION)
		return times(attention->inputs[4].type.dim[1].base, attention->attrs.block);
	return attention->inputs[1].type.dim[2].base;
}

/* Bytes of the distinct elements that a window over dims of `type` touches. */
static int64_t
window_bytes(const struct pawl_program *program, const struct pawl_access *access,
	const struct pawl_type *type)
{
	int64_t n = 1;
	int i;

	for (i = 0; i < type->rank; i++) {
		if (access->stride[i])
			n = times(n, extent(program, type->dim[i]));
	}
	return pawl_dtype_bytes(access->dtype, n);
}

void
pawl_step_cost(const struct pawl_program *program, const struct pawl_step *step, int64_t *flops,
	int64_t *bytes)
{
	int32_t i, j;

	*flops = 0;
	*bytes = 0;
	for (i = 0; i < step->n_ops; i++) {
		const struct pawl_step_op *op = &step->ops[i];
		bool is_gather = op->op == PAWL_OP_GATHER;

		add(flops, op_flops(program, op));
		/* Of a table only the rows that are gathered. */
		if (is_gather)
			add(bytes, pawl_dtype_bytes(op->inputs[0].type.dtype, elems(program, &op->type)));
		for (j = is_gather; j < op->n_inputs; j++) {
			if (op->inputs[j].value < 0)
				add(bytes, window_bytes(program, &op->inputs[j].access,
						   &op->inputs[j].type));
		}
		for (j = 0; j < op->n_outs; j++)
			add(bytes, window_bytes(program, &op->outs[j], &op->type));
	}
}

int64_t
pawl_attend_partials_bytes(const struct pawl_program *program, const struct pawl_step_op *attention)
{
	const struct pawl_type *type = &attention->type;
	int64_t m = pawl_attend_most(attention);
	int64_t rows = times(extent(program, type->dim[0]), type->dim[1].base);
	int64_t chunks = (m + PAWL_ATTEND_CHUNK - 1) / PAWL_ATTEND_CHUNK;

	return times(times(rows, chunks), (type->dim[2].base + 2) * (int64_t)sizeof(float));
}

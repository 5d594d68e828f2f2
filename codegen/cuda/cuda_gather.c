/* Values that read elsewhere than at their own position: gather, batch_matmul. */
#include "codegen/cuda/cuda_emit.h"

#include <inttypes.h>

int
pawl_cuda_gather_value(struct pawl_cuda_emit *e, const struct pawl_step_op *op,
	const struct pawl_cuda_position *at)
{
	const struct pawl_operand *table = &op->inputs[0], *ids = &op->inputs[1];
	struct pawl_cuda_position row = {.index = {at->index[0]}}, there = *at;
	int id, is_row, value;

	if (table->value >= 0 || ids->value >= 0) {
		pawl_cuda_refuse(e, op, "from a value of its own step");
		return 0;
	}
	id = pawl_cuda_load(e, op, ids, &row);
	is_row = pawl_cuda_let(
		e, e->index, "v%d >= 0 && v%d < %s", id, id, pawl_cuda_dim(table->type.dim[0]).s);
	there.index[0] = pawl_cuda_let(e, e->index, "v%d ? v%d : 0", is_row, id);
	value = pawl_cuda_load(e, op, table, &there);
	/* An id without a row must not read beyond the table; it shows as NaN. */
	return pawl_cuda_let(e, "float", "v%d ? v%d : PAWL_NAN", is_row, value);
}

int
pawl_cuda_batch_value(struct pawl_cuda_emit *e, const struct pawl_step_op *op,
	const struct pawl_cuda_position *at)
{
	struct pawl_cuda_position x_at = *at, z_at = {.index = {at->index[0], at->index[2]}};
	int sum, x, z;

	if (op->inputs[0].value >= 0 || op->inputs[1].value >= 0) {
		pawl_cuda_refuse(e, op, "of a value of its own step");
		return 0;
	}
	sum = pawl_cuda_var(e, "float", "0.0f");
	x_at.index[2] = z_at.index[2] =
		pawl_cuda_loop(e, "0", pawl_cuda_dim(op->inputs[0].type.dim[2]).s, "1");
	x = pawl_cuda_load(e, op, &op->inputs[0], &x_at);
	z = pawl_cuda_load(e, op, &op->inputs[1], &z_at);
	pawl_cuda_line(e, "v%d = pawl_fma(v%d, v%d, v%d);", sum, z, x, sum);
	pawl_cuda_close(e);
	return sum;
}

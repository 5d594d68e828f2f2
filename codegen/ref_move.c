/* Reference of the ops that only move elements. */
#include "codegen/ref_ops.h"

#include <math.h>

/* The layout is how storage lies, not what the value is. */
enum pawl_status
pawl_ref_PACK(const struct pawl_ref_call *call, struct pawl_error *err)
{
	(void)err;
	pawl_tensor_copy(&call->inputs[0], call->out);
	return PAWL_OK;
}

enum pawl_status
pawl_ref_RESHAPE(const struct pawl_ref_call *call, struct pawl_error *err)
{
	const struct pawl_tensor *x = &call->inputs[0];
	struct pawl_tensor same;
	enum pawl_status status;
	int64_t bytes;

	status = pawl_tensor_init(
		&same, x->dtype, PAWL_LAYOUT_ROWS, call->out->wide, x->rank, x->dim, &bytes, err);
	if (status)
		return status;
	same.data = call->out->data;
	pawl_tensor_copy(x, &same);
	return PAWL_OK;
}

enum pawl_status
pawl_ref_PERMUTE(const struct pawl_ref_call *call, struct pawl_error *err)
{
	struct pawl_tensor view;

	(void)err;
	pawl_tensor_permute(&call->inputs[0], call->attrs->perm, &view);
	pawl_tensor_copy(&view, call->out);
	return PAWL_OK;
}

enum pawl_status
pawl_ref_SLICE(const struct pawl_ref_call *call, struct pawl_error *err)
{
	int64_t stop[PAWL_MAX_RANK] = {0};
	struct pawl_tensor view;
	int i;

	(void)err;
	/* A symbolic axis stays whole, whatever its stop says. */
	for (i = 0; i < call->out->rank; i++)
		stop[i] = call->attrs->start[i] + call->out->dim[i];
	pawl_tensor_slice(&call->inputs[0], call->attrs->start, stop, &view);
	pawl_tensor_copy(&view, call->out);
	return PAWL_OK;
}

enum pawl_status
pawl_ref_BROADCAST(const struct pawl_ref_call *call, struct pawl_error *err)
{
	struct pawl_tensor view;

	(void)err;
	pawl_tensor_broadcast(&call->inputs[0], call->out->rank, call->out->dim, &view);
	pawl_tensor_copy(&view, call->out);
	return PAWL_OK;
}

enum pawl_status
pawl_ref_COPY(const struct pawl_ref_call *call, struct pawl_error *err)
{
	(void)err;
	pawl_tensor_copy(&call->inputs[0], call->out);
	return PAWL_OK;
}

enum pawl_status
pawl_ref_CAST(const struct pawl_ref_call *call, struct pawl_error *err)
{
	(void)err;
	pawl_tensor_copy(&call->inputs[0], call->out);
	return PAWL_OK;
}

enum pawl_status
pawl_ref_CONCAT(const struct pawl_ref_call *call, struct pawl_error *err)
{
	int64_t axis = call->attrs->axis;
	int64_t start[PAWL_MAX_RANK] = {0}, stop[PAWL_MAX_RANK];
	int i, j;

	(void)err;
	for (i = 0; i < call->n_inputs; i++) {
		struct pawl_tensor part;

		for (j = 0; j < call->out->rank; j++)
			stop[j] = start[j] + call->inputs[i].dim[j];
		pawl_tensor_slice(call->out, start, stop, &part);
		pawl_tensor_copy(&call->inputs[i], &part);
		start[axis] = stop[axis];
	}
	return PAWL_OK;
}

static void
fill_nan(const struct pawl_tensor *t, int64_t row)
{
	const double nan = NAN;
	int64_t i;

	for (i = 0; i < pawl_tensor_row_length(t); i++)
		pawl_tensor_store_f64(t, row, i, 1, &nan);
}

enum pawl_status
pawl_ref_GATHER(const struct pawl_ref_call *call, struct pawl_error *err)
{
	const struct pawl_tensor *table = &call->inputs[0];
	int64_t t;

	(void)err;
	for (t = 0; t < call->out->dim[0]; t++) {
		int64_t id = pawl_tensor_load_i64(&call->inputs[1], t);
		struct pawl_tensor from, to;

		if (id < 0 || id >= table->dim[0]) {
			fill_nan(call->out, t);
			continue;
		}
		pawl_tensor_slice(
			table, (int64_t[]){id, 0}, (int64_t[]){id + 1, table->dim[1]}, &from);
		pawl_tensor_slice(
			call->out, (int64_t[]){t, 0}, (int64_t[]){t + 1, table->dim[1]}, &to);
		pawl_tensor_copy(&from, &to);
	}
	return PAWL_OK;
}

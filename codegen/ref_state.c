/* Reference of the leaves and of the ops with state: a write makes a new value. */
#include "codegen/ref_ops.h"

#include <inttypes.h>
#include <string.h>

static void
fill_bytes(const struct pawl_tensor *out, int byte)
{
	int64_t rows = pawl_tensor_rows(out), length = pawl_tensor_row_length(out), row;
	int64_t bytes =
		out->wide ? length * (int64_t)sizeof(double) : pawl_dtype_bytes(out->dtype, length);

	for (row = 0; row < rows; row++)
		memset(pawl_tensor_row(out, row), byte, (size_t)bytes);
}

/* A literal; other roles have storage that whoever runs the graph binds. */
enum pawl_status
pawl_ref_CONST(const struct pawl_ref_call *call, struct pawl_error *err)
{
	const struct pawl_attrs *attrs = call->attrs;
	int64_t length = pawl_tensor_row_length(call->out), n = pawl_tensor_elems(call->out), i;
	bool is_int = pawl_dtype_info(call->out->dtype)->kind == PAWL_KIND_INT;

	if (attrs->role != PAWL_ROLE_LITERAL)
		return pawl_fail(err, PAWL_INTERNAL, "a const with storage is no literal");
	for (i = 0; i < n; i++) {
		double value = attrs->values[attrs->n_values == 1 ? 0 : i];

		if (is_int)
			pawl_tensor_store_i64(call->out, i, (int64_t)value);
		else
			pawl_tensor_store_f64(call->out, i / length, i % length, 1, &value);
	}
	return PAWL_OK;
}

/* Unspecified content is all bits set: NaN, or -1. */
enum pawl_status
pawl_ref_ALLOC(const struct pawl_ref_call *call, struct pawl_error *err)
{
	(void)err;
	fill_bytes(call->out, call->attrs->fill == PAWL_FILL_ZERO ? 0 : 0xff);
	return PAWL_OK;
}

enum pawl_status
pawl_ref_ZERO_FILL(const struct pawl_ref_call *call, struct pawl_error *err)
{
	(void)err;
	fill_bytes(call->out, 0);
	return PAWL_OK;
}

/* out = input 0, and *window is the part of it that input 1 goes to, starts yet to be added. */
static void
begin_write(const struct pawl_ref_call *call, struct pawl_tensor *window)
{
	const struct pawl_tensor *slab = &call->inputs[1];
	int64_t stop[PAWL_MAX_RANK];
	int i;

	pawl_tensor_copy(&call->inputs[0], call->out);
	for (i = 0; i < slab->rank; i++)
		stop[i] = call->attrs->start[i] + slab->dim[i];
	pawl_tensor_slice(call->out, call->attrs->start, stop, window);
}

enum pawl_status
pawl_ref_WRITE_SLICE(const struct pawl_ref_call *call, struct pawl_error *err)
{
	int64_t axis = call->attrs->axis;
	struct pawl_tensor window;

	begin_write(call, &window);
	if (axis >= 0) {
		int64_t start =
			call->n_inputs == 3 ? pawl_tensor_load_i64(&call->inputs[2], 0) : call->sym;

		if (start < 0)
			return pawl_fail(
				err, PAWL_INVALID_ARGUMENT, "start %" PRId64 " is negative", start);
		if (start > call->out->dim[axis] - window.dim[axis])
			return pawl_fail(err, PAWL_CAPACITY,
				"start %" PRId64 " + %" PRId64 " exceeds dim %" PRId64
				" of %" PRId64,
				start, window.dim[axis], axis, call->out->dim[axis]);
		window.at_dim = (int32_t)axis;
		window.start = start;
	}
	pawl_tensor_copy(&call->inputs[1], &window);
	return PAWL_OK;
}

enum pawl_status
pawl_ref_WRITE_SLICE_ROTATING(const struct pawl_ref_call *call, struct pawl_error *err)
{
	int64_t start = pawl_tensor_load_i64(&call->inputs[2], 0);
	struct pawl_tensor window;

	begin_write(call, &window);
	if (start < 0)
		return pawl_fail(
			err, PAWL_INVALID_ARGUMENT, "start %" PRId64 " is negative", start);
	window.at_dim = (int32_t)call->attrs->axis;
	window.modulus = call->attrs->modulus;
	window.start = start % window.modulus;
	pawl_tensor_copy(&call->inputs[1], &window);
	return PAWL_OK;
}

/* Rows go one by one, in order: of two with one index the later stays. */
enum pawl_status
pawl_ref_WRITE_ROWS(const struct pawl_ref_call *call, struct pawl_error *err)
{
	const struct pawl_tensor *rows = &call->inputs[1];
	int axis = pawl_write_rows_axis(call->attrs);
	int64_t t;
	int64_t start[PAWL_MAX_RANK] = {0}, stop[PAWL_MAX_RANK];

	pawl_tensor_copy(&call->inputs[0], call->out);
	memcpy(stop, rows->dim, sizeof(stop));
	for (t = 0; t < rows->dim[axis]; t++) {
		int64_t index = pawl_tensor_load_i64(&call->inputs[2], t);
		struct pawl_tensor from, to;

		if (index < 0)
			continue;
		if (index >= call->out->dim[axis])
			return pawl_fail(err, PAWL_CAPACITY,
				"row %" PRId64 " goes to %" PRId64 " of %" PRId64, t, index,
				call->out->dim[axis]);
		start[axis] = t;
		stop[axis] = t + 1;
		pawl_tensor_slice(rows, start, stop, &from);
		start[axis] = index;
		stop[axis] = index + 1;
		pawl_tensor_slice(call->out, start, stop, &to);
		pawl_tensor_copy(&from, &to);
	}
	return PAWL_OK;
}

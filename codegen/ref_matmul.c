/* Reference of matmul and batch_matmul. */
#include "codegen/ref_ops.h"

#include "codegen/ref_packed.h"
#include "ir/dots.h"

/* Row i of w with x: k activations of the given form. */
static float
dot(const struct pawl_tensor *w, int64_t i, enum pawl_dtype x_dtype, const void *x)
{
	int64_t k = pawl_tensor_row_length(w);

	if (w->layout == PAWL_LAYOUT_TILE16)
		return pawl_packed_dot(w->dtype, w->data, k, i, x_dtype, x);
	if (x_dtype == PAWL_DTYPE_A16)
		return pawl_dot_a16(w->dtype, pawl_tensor_row(w, i), x, k);
	if (x_dtype == PAWL_DTYPE_A8)
		return pawl_dot_a8(w->dtype, pawl_tensor_row(w, i), x, k);
	return pawl_dot_float(w->dtype, pawl_tensor_row(w, i), x, k);
}

enum pawl_status
pawl_ref_MATMUL(const struct pawl_ref_call *call, struct pawl_error *err)
{
	const struct pawl_tensor *x = &call->inputs[0], *w = &call->inputs[1];
	int64_t n = w->dim[0], k = w->dim[1], row, i;
	float *piece = call->scratch, *y = piece + k;

	if (w->layout == PAWL_LAYOUT_ROWS && w->stride[1] != 1)
		return pawl_fail(
			err, PAWL_UNSUPPORTED, "matmul: the rows of the weights are not dense");
	for (row = 0; row < pawl_tensor_rows(x); row++) {
		const void *x_row = piece;

		if (x->dtype == PAWL_DTYPE_F32)
			pawl_tensor_load_f32(x, row, 0, k, piece);
		else
			x_row = pawl_tensor_row(x, row);
		for (i = 0; i < n; i++)
			y[i] = dot(w, i, x->dtype, x_row);
		pawl_tensor_store_f32(call->out, row, 0, n, y);
	}
	return PAWL_OK;
}

enum pawl_status
pawl_ref_BATCH_MATMUL(const struct pawl_ref_call *call, struct pawl_error *err)
{
	const struct pawl_tensor *x = &call->inputs[0], *z = &call->inputs[1];
	int64_t m = x->dim[1], k = x->dim[2], n = z->dim[1], b, i, j;
	float *x_row = call->scratch, *z_row = x_row + k, *y = z_row + k;

	(void)err;
	for (b = 0; b < x->dim[0]; b++) {
		for (i = 0; i < m; i++) {
			pawl_tensor_load_f32(x, b * m + i, 0, k, x_row);
			for (j = 0; j < n; j++) {
				pawl_tensor_load_f32(z, b * n + j, 0, k, z_row);
				y[j] = pawl_dot_float(PAWL_DTYPE_F32, z_row, x_row, k);
			}
			pawl_tensor_store_f32(call->out, b * m + i, 0, n, y);
		}
	}
	return PAWL_OK;
}

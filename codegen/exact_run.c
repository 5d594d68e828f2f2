/* The exact mode's products and its table of ops. */
#include "codegen/exact_ops.h"

#include "codegen/ref_attend.h"

#include <math.h>

/* Independent partial sums, so that the additions overlap. */
enum { SUMS = 8 };

static double
dot(const double *x, const double *y, int64_t n)
{
	double sums[SUMS] = {0}, total = 0.0;
	int64_t i;
	int j;

	for (i = 0; i + SUMS <= n; i += SUMS) {
		for (j = 0; j < SUMS; j++)
			sums[j] += x[i + j] * y[i + j];
	}
	for (; i < n; i++)
		total += x[i] * y[i];
	for (j = 0; j < SUMS; j++)
		total += sums[j];
	return total;
}

/* A row as doubles: in place when it lies so, else loaded to scratch. */
static const double *
row_of(const struct pawl_tensor *t, int64_t row, double *scratch)
{
	char *at = t->wide ? pawl_tensor_row(t, row) : NULL;

	if (at)
		return (const double *)(const void *)at;
	pawl_tensor_load_f64(t, row, 0, pawl_tensor_row_length(t), scratch);
	return scratch;
}

/* A row of weights is decoded once for all rows of x. */
enum pawl_status
pawl_exact_matmul(const struct pawl_ref_call *call)
{
	const struct pawl_tensor *x = &call->inputs[0], *w = &call->inputs[1];
	int64_t rows = pawl_tensor_rows(x), k = w->dim[1], row, i;
	double *w_scratch = call->scratch, *x_scratch = w_scratch + k;

	for (i = 0; i < w->dim[0]; i++) {
		const double *w_row = row_of(w, i, w_scratch);

		for (row = 0; row < rows; row++) {
			double y = dot(row_of(x, row, x_scratch), w_row, k);

			pawl_tensor_store_f64(call->out, row, i, 1, &y);
		}
	}
	return PAWL_OK;
}

enum pawl_status
pawl_exact_batch_matmul(const struct pawl_ref_call *call)
{
	const struct pawl_tensor *x = &call->inputs[0], *z = &call->inputs[1];
	int64_t m = x->dim[1], k = x->dim[2], n = z->dim[1], row, j;
	double *x_scratch = call->scratch, *z_scratch = x_scratch + k;

	for (row = 0; row < x->dim[0] * m; row++) {
		const double *x_row = row_of(x, row, x_scratch);

		for (j = 0; j < n; j++) {
			double y = dot(x_row, row_of(z, row / m * n + j, z_scratch), k);

			pawl_tensor_store_f64(call->out, row, j, 1, &y);
		}
	}
	return PAWL_OK;
}

static double
score(const struct pawl_ref_call *call, int64_t t, int64_t position, double product)
{
	const struct pawl_attrs *attrs = call->attrs;
	double s = product * attrs->scale, mask;

	if (attrs->softcap > 0.0)
		s = attrs->softcap * tanh(s / attrs->softcap);
	if (!pawl_ref_attend_has_mask(call))
		return s;
	pawl_tensor_load_f64(&call->inputs[4], t, position, 1, &mask);
	return s + mask;
}

/*
 * One pass with a running maximum: whenever a larger score comes, what was summed so far is
 * scaled down to it.
 */
static void
attend_row(const struct pawl_ref_call *call, int64_t t, int64_t head, struct pawl_visible seen)
{
	const struct pawl_tensor *k = &call->inputs[1], *v = &call->inputs[2];
	int64_t heads = call->out->dim[1], width = call->out->dim[2], d = k->dim[3];
	int64_t g = head / (heads / k->dim[1]), m = k->dim[2], p, i;
	double *q = call->scratch, *row = q + d, *values = row + d, *o = values + width;
	double max = -INFINITY, sum = 0.0;

	pawl_tensor_load_f64(&call->inputs[0], t * heads + head, 0, d, q);
	for (i = 0; i < width; i++)
		o[i] = 0.0;
	for (p = seen.first; p < seen.end; p++) {
		int64_t slot = g * m + pawl_ref_attend_slot(call, t, p);
		double s = score(call, t, p, dot(q, row_of(k, slot, row), d));
		const double *value = row_of(v, slot, values);
		double weight;

		if (s > max) {
			for (i = 0; i < width; i++)
				o[i] *= exp(max - s);
			sum *= exp(max - s);
			max = s;
		}
		weight = s == -INFINITY ? 0.0 : exp(s - max);
		sum += weight;
		for (i = 0; i < width; i++)
			o[i] += weight * value[i];
	}
	for (i = 0; i < width; i++)
		o[i] = sum == 0.0 ? 0.0 : o[i] / sum;
	pawl_tensor_store_f64(call->out, t * heads + head, 0, width, o);
}

enum pawl_status
pawl_exact_attention(const struct pawl_ref_call *call, struct pawl_error *err)
{
	int64_t length, t, head;
	enum pawl_status status;

	status = pawl_ref_attend_length(call, &length, err);
	if (status)
		return status;
	for (t = 0; t < call->out->dim[0]; t++) {
		struct pawl_visible seen =
			pawl_visible(call->attrs, pawl_ref_attend_position(call, t), length);

		for (head = 0; head < call->out->dim[1]; head++)
			attend_row(call, t, head, seen);
	}
	return PAWL_OK;
}

enum pawl_status
pawl_exact_run(enum pawl_op op, const struct pawl_ref_call *call, struct pawl_error *err)
{
	switch (op) {
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
	case PAWL_OP_CONCAT:
	case PAWL_OP_GATHER:
		return pawl_ref_run(op, call, err);
	case PAWL_OP_CAST:
		return pawl_exact_cast(call);
#define PAWL_SCALAR_OP_ROW(id, name, arity, formula) case PAWL_OP_##id:
#include "ir/scalar.def"
	case PAWL_OP_SCALE:
		return pawl_exact_map(op, call);
	case PAWL_OP_MATMUL:
		return pawl_exact_matmul(call);
	case PAWL_OP_BATCH_MATMUL:
		return pawl_exact_batch_matmul(call);
	case PAWL_OP_RMS_NORM:
	case PAWL_OP_LAYER_NORM:
		return pawl_exact_norm(call);
	case PAWL_OP_SOFTMAX:
		return pawl_exact_softmax(call);
	case PAWL_OP_QUANTIZE:
		/* What a cache holds is a value of the graph, like that of a quantized weight. */
		if (call->out->dtype == PAWL_DTYPE_Q8_0)
			return pawl_ref_run(op, call, err);
		return pawl_fail(err, PAWL_UNSUPPORTED,
			"quantize: a graph with quantized activations has no exact value");
	case PAWL_OP_ROPE:
		return pawl_exact_rope(call);
	case PAWL_OP_ATTENTION:
	case PAWL_OP_PAGED_ATTENTION:
		return pawl_exact_attention(call, err);
	case PAWL_OP_ARGMAX:
		return pawl_exact_argmax(call);
	case PAWL_N_OPS:
		break;
	}
	return pawl_fail(err, PAWL_INTERNAL, "unknown op %d", (int)op);
}

/* What the ops mean, in f64: the oracle that measures what a plan's arithmetic costs. */
#include "codegen/exact_ops.h"

#include "ir/eval.h"
#include "ir/half.h"

#include <math.h>

/* Elements handled at once: a multiple of every block size. */
enum { PIECE = 256 };

/* sqrt(2 / pi) and the cubic coefficient of the tanh form of gelu. */
#define GELU_SLOPE 0.79788456080286535588
#define GELU_CUBIC 0.044715

static double
evaluate(enum pawl_scalar scalar, double x, double y)
{
	switch (scalar) {
	case PAWL_SCALAR_ADD:
		return x + y;
	case PAWL_SCALAR_SUB:
		return x - y;
	case PAWL_SCALAR_MUL:
		return x * y;
	case PAWL_SCALAR_DIV:
		return x / y;
	case PAWL_SCALAR_MAX:
		return x > y ? x : y;
	case PAWL_SCALAR_MIN:
		return x < y ? x : y;
	case PAWL_SCALAR_NEG:
		return -x;
	case PAWL_SCALAR_ABS:
		return fabs(x);
	case PAWL_SCALAR_SQRT:
		return sqrt(x);
	case PAWL_SCALAR_RELU:
		return 0.0 > x ? 0.0 : x;
	case PAWL_SCALAR_EXP:
		return exp(x);
	case PAWL_SCALAR_SIGMOID:
		return 1.0 / (1.0 + exp(-x));
	case PAWL_SCALAR_SILU:
		return x / (1.0 + exp(-x));
	case PAWL_SCALAR_TANH:
		return tanh(x);
	case PAWL_SCALAR_GELU_TANH:
		return 0.5 * x * (1.0 + tanh(GELU_SLOPE * (x + GELU_CUBIC * x * x * x)));
	/* No op's meaning. */
	case PAWL_SCALAR_FMA:
	case PAWL_SCALAR_SQUARE:
	case PAWL_SCALAR_RNE:
	case PAWL_SCALAR_ROUND_F16:
	case PAWL_SCALAR_ROUND_BF16:
	case PAWL_N_SCALARS:
		break;
	}
	return NAN;
}

enum pawl_status
pawl_exact_map(enum pawl_op op, const struct pawl_ref_call *call)
{
	int64_t rows = pawl_tensor_rows(call->out), length = pawl_tensor_row_length(call->out);
	enum pawl_scalar scalar = PAWL_SCALAR_MUL;
	double x[2][PIECE], z[PIECE], other = 0.0;
	int64_t row, first, n, i;
	int j;

	if (!pawl_op_scalar(op, &scalar))
		other = call->attrs->scale; /* of op scale, a product with it */
	for (i = 0; i < PIECE; i++)
		x[1][i] = other;
	for (row = 0; row < rows; row++) {
		for (first = 0; first < length; first += n) {
			n = length - first < PIECE ? length - first : PIECE;
			for (j = 0; j < call->n_inputs; j++)
				pawl_tensor_load_f64(&call->inputs[j], row, first, n, x[j]);
			for (i = 0; i < n; i++)
				z[i] = evaluate(scalar, x[0][i], x[1][i]);
			pawl_tensor_store_f64(call->out, row, first, n, z);
		}
	}
	return PAWL_OK;
}

enum pawl_status
pawl_exact_cast(const struct pawl_ref_call *call)
{
	int64_t rows = pawl_tensor_rows(call->out), length = pawl_tensor_row_length(call->out);
	enum pawl_dtype dtype = call->attrs->dtype;
	double x[PIECE];
	int64_t row, first, n, i;

	for (row = 0; row < rows; row++) {
		for (first = 0; first < length; first += n) {
			n = length - first < PIECE ? length - first : PIECE;
			pawl_tensor_load_f64(&call->inputs[0], row, first, n, x);
			for (i = 0; i < n && dtype == PAWL_DTYPE_F16; i++)
				x[i] = pawl_f32_from_f16(pawl_f16_from_f32((float)x[i]));
			for (i = 0; i < n && dtype == PAWL_DTYPE_BF16; i++)
				x[i] = pawl_f32_from_bf16(pawl_bf16_from_f32((float)x[i]));
			pawl_tensor_store_f64(call->out, row, first, n, x);
		}
	}
	return PAWL_OK;
}

enum pawl_status
pawl_exact_norm(const struct pawl_ref_call *call)
{
	int64_t rows = pawl_tensor_rows(call->out), n = pawl_tensor_row_length(call->out);
	bool is_layer_norm = call->n_inputs == 3;
	double *x = call->scratch, *w = x + n, *b = w + n;
	int64_t row, i;

	pawl_tensor_load_f64(&call->inputs[1], 0, 0, n, w);
	if (is_layer_norm)
		pawl_tensor_load_f64(&call->inputs[2], 0, 0, n, b);
	for (row = 0; row < rows; row++) {
		double mean = 0.0, sum = 0.0, scale;

		pawl_tensor_load_f64(&call->inputs[0], row, 0, n, x);
		for (i = 0; is_layer_norm && i < n; i++)
			mean += x[i] / (double)n;
		for (i = 0; i < n; i++)
			sum += (x[i] - mean) * (x[i] - mean);
		scale = 1.0 / sqrt(sum / (double)n + call->attrs->eps);
		for (i = 0; i < n; i++)
			x[i] = (x[i] - mean) * scale * w[i] + (is_layer_norm ? b[i] : 0.0);
		pawl_tensor_store_f64(call->out, row, 0, n, x);
	}
	return PAWL_OK;
}

enum pawl_status
pawl_exact_softmax(const struct pawl_ref_call *call)
{
	int64_t rows = pawl_tensor_rows(call->out), n = pawl_tensor_row_length(call->out);
	double *x = call->scratch;
	int64_t row;

	for (row = 0; row < rows; row++) {
		pawl_tensor_load_f64(&call->inputs[0], row, 0, n, x);
		pawl_exact_softmax_row(x, n);
		pawl_tensor_store_f64(call->out, row, 0, n, x);
	}
	return PAWL_OK;
}

void
pawl_exact_softmax_row(double *x, int64_t n)
{
	double max = -INFINITY, sum = 0.0;
	int64_t i;

	for (i = 0; i < n; i++)
		max = x[i] > max ? x[i] : max;
	if (max == -INFINITY)
		max = 0.0;
	for (i = 0; i < n; i++) {
		x[i] = exp(x[i] - max);
		sum += x[i];
	}
	for (i = 0; i < n; i++)
		x[i] = sum == 0.0 ? 0.0 : x[i] / sum;
}

enum pawl_status
pawl_exact_argmax(const struct pawl_ref_call *call)
{
	int64_t rows = pawl_tensor_rows(&call->inputs[0]);
	int64_t n = pawl_tensor_row_length(&call->inputs[0]);
	double *x = call->scratch;
	int64_t row, i;

	for (row = 0; row < rows; row++) {
		int64_t best = 0;

		pawl_tensor_load_f64(&call->inputs[0], row, 0, n, x);
		for (i = 0; i < n && best >= 0; i++) {
			if (isnan(x[i]))
				best = -1;
			else if (x[i] > x[best])
				best = i;
		}
		pawl_tensor_store_i64(call->out, row, best);
	}
	return PAWL_OK;
}

enum pawl_status
pawl_exact_rope(const struct pawl_ref_call *call)
{
	const struct pawl_tensor *in = call->inputs;
	int64_t heads = in[0].dim[1], d = in[0].dim[2], width = in[1].dim[1];
	bool adjacent = call->attrs->pairs == PAWL_PAIRS_ADJACENT;
	double *x = call->scratch, *c = x + d, *s = c + width;
	int64_t row, i;

	for (row = 0; row < in[0].dim[0] * heads; row++) {
		pawl_tensor_load_f64(&in[1], row / heads, 0, width, c);
		pawl_tensor_load_f64(&in[2], row / heads, 0, width, s);
		pawl_tensor_load_f64(&in[0], row, 0, d, x);
		for (i = 0; i < width / 2; i++) {
			int64_t a = adjacent ? 2 * i : i;
			int64_t b = adjacent ? 2 * i + 1 : i + width / 2;
			double y = x[a] * c[a] - x[b] * s[a];

			x[b] = x[b] * c[b] + x[a] * s[b];
			x[a] = y;
		}
		pawl_tensor_store_f64(call->out, row, 0, d, x);
	}
	return PAWL_OK;
}

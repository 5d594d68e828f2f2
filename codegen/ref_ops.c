#include "codegen/ref_ops.h"

#include "ir/eval.h"
#include "ir/rowops.h"

/* Elements handled at once: a multiple of every block size. */
enum { PIECE = 256 };

/* Rows of doubles that the greediest op keeps at once. */
enum { SCRATCH_ROWS = 4 };

enum pawl_status
pawl_ref_run(enum pawl_op op, const struct pawl_ref_call *call, struct pawl_error *err)
{
	switch (op) {
#define PAWL_OP_ROW(id, name, min, max, infer, flags, attrs, doc)                                  \
	case PAWL_OP_##id:                                                                         \
		return pawl_ref_##id(call, err);
#include "ir/ops.def"
	case PAWL_N_OPS:
		break;
	}
	return pawl_fail(err, PAWL_INTERNAL, "unknown op %d", (int)op);
}

int64_t
pawl_ref_scratch_bytes(enum pawl_op op, const struct pawl_tensor *inputs, int n_inputs,
	const struct pawl_tensor *out)
{
	bool attends = pawl_op_attends(op);
	int64_t rows = SCRATCH_ROWS + (attends ? PAWL_ATTEND_CHUNK : 0);
	int64_t longest = pawl_tensor_row_length(out);
	int i;

	/* A mask, whose rows are as long as the cache, is read by elements. */
	for (i = 0; i < (attends ? 3 : n_inputs); i++) {
		if (pawl_tensor_row_length(&inputs[i]) > longest)
			longest = pawl_tensor_row_length(&inputs[i]);
	}
	return rows * longest * (int64_t)sizeof(double);
}

static enum pawl_status
map(const struct pawl_ref_call *call, enum pawl_scalar scalar)
{
	int64_t rows = pawl_tensor_rows(call->out), length = pawl_tensor_row_length(call->out);
	float x[2][PIECE], y[PIECE], operands[PAWL_SCALAR_MAX_ARITY];
	int64_t row, first, n, i;
	int j;

	for (row = 0; row < rows; row++) {
		for (first = 0; first < length; first += n) {
			n = length - first < PIECE ? length - first : PIECE;
			for (j = 0; j < call->n_inputs; j++)
				pawl_tensor_load_f32(&call->inputs[j], row, first, n, x[j]);
			for (i = 0; i < n; i++) {
				for (j = 0; j < call->n_inputs; j++)
					operands[j] = x[j][i];
				y[i] = pawl_scalar_eval(scalar, operands);
			}
			pawl_tensor_store_f32(call->out, row, first, n, y);
		}
	}
	return PAWL_OK;
}

#define PAWL_SCALAR_OP_ROW(id, name, arity, formula)                                               \
	enum pawl_status pawl_ref_##id(const struct pawl_ref_call *call, struct pawl_error *err)   \
	{                                                                                          \
		(void)err;                                                                         \
		return map(call, PAWL_SCALAR_##id);                                                \
	}
#include "ir/scalar.def"

enum pawl_status
pawl_ref_SCALE(const struct pawl_ref_call *call, struct pawl_error *err)
{
	float scale = (float)call->attrs->scale;
	struct pawl_tensor splat = {
		.data = (char *)&scale, .dtype = PAWL_DTYPE_F32, .pos_dim = -1, .at_dim = -1};
	struct pawl_tensor operands[2] = {call->inputs[0]};
	struct pawl_ref_call product = *call;

	(void)err;
	pawl_tensor_broadcast(&splat, call->out->rank, call->out->dim, &operands[1]);
	product.inputs = operands;
	product.n_inputs = 2;
	return map(&product, PAWL_SCALAR_MUL);
}

enum pawl_status
pawl_ref_RMS_NORM(const struct pawl_ref_call *call, struct pawl_error *err)
{
	int64_t n = pawl_tensor_row_length(call->out), row;
	float *w = call->scratch, *x = w + n;

	(void)err;
	pawl_tensor_load_f32(&call->inputs[1], 0, 0, n, w);
	for (row = 0; row < pawl_tensor_rows(call->out); row++) {
		pawl_tensor_load_f32(&call->inputs[0], row, 0, n, x);
		pawl_row_rms_norm(x, w, n, (float)call->attrs->eps, x);
		pawl_tensor_store_f32(call->out, row, 0, n, x);
	}
	return PAWL_OK;
}

enum pawl_status
pawl_ref_LAYER_NORM(const struct pawl_ref_call *call, struct pawl_error *err)
{
	int64_t n = pawl_tensor_row_length(call->out), row;
	float *w = call->scratch, *b = w + n, *x = b + n;

	(void)err;
	pawl_tensor_load_f32(&call->inputs[1], 0, 0, n, w);
	pawl_tensor_load_f32(&call->inputs[2], 0, 0, n, b);
	for (row = 0; row < pawl_tensor_rows(call->out); row++) {
		pawl_tensor_load_f32(&call->inputs[0], row, 0, n, x);
		pawl_row_layer_norm(x, w, b, n, (float)call->attrs->eps, x);
		pawl_tensor_store_f32(call->out, row, 0, n, x);
	}
	return PAWL_OK;
}

enum pawl_status
pawl_ref_SOFTMAX(const struct pawl_ref_call *call, struct pawl_error *err)
{
	int64_t n = pawl_tensor_row_length(call->out), row;
	float *x = call->scratch;

	(void)err;
	for (row = 0; row < pawl_tensor_rows(call->out); row++) {
		pawl_tensor_load_f32(&call->inputs[0], row, 0, n, x);
		pawl_row_softmax(x, n, x);
		pawl_tensor_store_f32(call->out, row, 0, n, x);
	}
	return PAWL_OK;
}

enum pawl_status
pawl_ref_QUANTIZE(const struct pawl_ref_call *call, struct pawl_error *err)
{
	(void)err;
	pawl_tensor_copy(&call->inputs[0], call->out);
	return PAWL_OK;
}

enum pawl_status
pawl_ref_ARGMAX(const struct pawl_ref_call *call, struct pawl_error *err)
{
	int64_t n = pawl_tensor_row_length(&call->inputs[0]), row;
	float *x = call->scratch;

	(void)err;
	for (row = 0; row < pawl_tensor_rows(&call->inputs[0]); row++) {
		pawl_tensor_load_f32(&call->inputs[0], row, 0, n, x);
		pawl_tensor_store_i64(call->out, row, pawl_row_argmax(x, n));
	}
	return PAWL_OK;
}

enum pawl_status
pawl_ref_ROPE(const struct pawl_ref_call *call, struct pawl_error *err)
{
	const struct pawl_tensor *in = call->inputs;
	int64_t heads = in[0].dim[1], d = in[0].dim[2], width = in[1].dim[1];
	bool adjacent = call->attrs->pairs == PAWL_PAIRS_ADJACENT;
	float *x = call->scratch, *c = x + d, *s = c + width;
	int64_t t, head;

	(void)err;
	for (t = 0; t < in[0].dim[0]; t++) {
		pawl_tensor_load_f32(&in[1], t, 0, width, c);
		pawl_tensor_load_f32(&in[2], t, 0, width, s);
		for (head = 0; head < heads; head++) {
			pawl_tensor_load_f32(&in[0], t * heads + head, 0, d, x);
			pawl_rope_vector(adjacent, width, c, s, x);
			pawl_tensor_store_f32(call->out, t * heads + head, 0, d, x);
		}
	}
	return PAWL_OK;
}

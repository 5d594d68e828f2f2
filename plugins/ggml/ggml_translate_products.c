/* Matrix products and softmax; those of keys and queries wait for the values. */
#include "plugins/ggml/ggml_attend.h"

static bool
waits(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *x, enum pawl_ggml_pending what)
{
	struct pawl_ggml_value *value = pawl_ggml_value_find(t, x);

	return value && value->pending == what;
}

static bool
is_cache(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *x, enum pawl_ggml_form form)
{
	struct pawl_ggml_state *state = pawl_ggml_state_find(t, pawl_ggml_root(x));

	return state && state->form == form;
}

/* [streams, heads, rows, columns] as [streams * heads, rows, columns]. */
static struct pawl_node *
as_batch(struct pawl_ggml_translator *t, struct pawl_node *x)
{
	struct pawl_type type;

	if (!x)
		return NULL;
	type = x->type;
	type.rank = 3;
	type.dim[0] = pawl_dim_const(x->type.dim[0].base * x->type.dim[1].base);
	type.dim[1] = x->type.dim[2];
	type.dim[2] = x->type.dim[3];
	return pawl_build(t->graph, PAWL_OP_RESHAPE, NULL, &x, 1, NULL, &type);
}

/* The cells of a stream that x looks at: [heads, rows, columns]. */
static struct pawl_node *
stream_matrices(struct pawl_ggml_translator *t, const struct pawl_ggml_source *s,
	const struct pawl_ggml_state *state, int64_t stream)
{
	static const int swap[] = {0, 2, 1};
	const struct pawl_ggml_tensor *x = pawl_ggml_source_of(s);
	bool turns = state->form == PAWL_GGML_COLUMNS;
	struct pawl_node *node = as_batch(t, pawl_ggml_cache_of(t, s, stream));

	if (node)
		node = pawl_build_slice(t->graph, node, (int64_t[]){0, 0, 0},
			(int64_t[]){state->heads, turns ? x->ne[0] : x->ne[1], state->d});
	return turns && node ? pawl_build_permute(t->graph, node, swap) : node;
}

/* The matrices of a source, [batch, rows, columns]. */
static struct pawl_node *
matrices(struct pawl_ggml_translator *t, const struct pawl_ggml_source *s)
{
	static const int natural[] = {3, 2, 1, 0};
	const struct pawl_ggml_state *state =
		pawl_ggml_state_find(t, pawl_ggml_root(pawl_ggml_source_of(s)));
	struct pawl_node *parts[PAWL_GGML_MAX_STREAMS];
	int64_t i;

	if (!state)
		return as_batch(t, pawl_ggml_read_source(t, s, 4, natural));
	for (i = 0; i < state->streams; i++) {
		parts[i] = stream_matrices(t, s, state, i);
		if (!parts[i])
			return NULL;
	}
	return pawl_ggml_join(t, parts, state->streams);
}

/* Each matrix for as many others as share it. */
static struct pawl_node *
repeat(struct pawl_ggml_translator *t, struct pawl_node *z, int64_t times)
{
	const int64_t n = z->type.dim[0].base, rows = z->type.dim[1].base;
	const int64_t columns = z->type.dim[2].base, wide[] = {n, times, rows, columns};
	struct pawl_type type = pawl_type_make(z->type.dtype, 4, wide);

	if (times == 1)
		return z;
	z = pawl_build_reshape(t->graph, z, 4, (int64_t[]){n, 1, rows, columns});
	if (z)
		z = pawl_build(t->graph, PAWL_OP_BROADCAST, NULL, &z, 1, NULL, &type);
	return z ? pawl_build_reshape(t->graph, z, 3, (int64_t[]){n * times, rows, columns}) : NULL;
}

static enum pawl_status
batch_product(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
{
	static const int natural[] = {3, 2, 1, 0};
	const struct pawl_ggml_tensor *w = op->src[0], *x = op->src[1];
	struct pawl_ggml_source s = {op, 0};
	struct pawl_node *in[2];

	if (w->ne[3] != x->ne[3] || x->ne[2] % w->ne[2] || (w->type != 0 && w->type != 1))
		return pawl_ggml_decline(t, op, "matrices of another kind");
	in[0] = as_batch(t, pawl_ggml_read_in_order(t, op, 1, 4, natural));
	in[1] = in[0] ? matrices(t, &s) : NULL;
	if (in[1])
		in[1] = repeat(t, in[1], x->ne[2] / w->ne[2]);
	if (!in[1])
		return pawl_ggml_failure(t, op);
	in[0] = pawl_build(t->graph, PAWL_OP_BATCH_MATMUL, NULL, in, 2, NULL, NULL);
	if (!in[0])
		return pawl_ggml_failure(t, op);
	pawl_ggml_set(t, op, in[0]);
	return PAWL_OK;
}

/* One matrix in rows without gaps. */
static enum pawl_status
product(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
{
	static const int natural[] = {1, 0};
	const struct pawl_ggml_tensor *x = op->src[1];
	struct pawl_ggml_value *value = pawl_ggml_leaf(t, op, 0);
	struct pawl_node *rows, *w;

	if (!value)
		return t->err->status;
	rows = pawl_ggml_read(t, op, 1, pawl_ggml_value_rank(x));
	if (!rows)
		return pawl_ggml_failure(t, op);
	w = value->node && value->node->type.rank == 2
		    ? value->node
		    : pawl_ggml_read_as(t, op, 0, op->src[0], 2, natural);
	w = w ? pawl_build_matmul(t->graph, rows, w) : NULL;
	if (!w)
		return pawl_ggml_failure(t, op);
	pawl_ggml_set(t, op, w);
	return PAWL_OK;
}

enum pawl_status
pawl_ggml_mul_mat(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
{
	const struct pawl_ggml_tensor *w = op->src[0], *x = op->src[1];

	/* A precision, and a hint of what the matrix is. */
	if (!x || x->type != 0 || pawl_ggml_has_params_beyond(op, 2))
		return pawl_ggml_decline(t, op, "a parameter or a type that is not known");
	if (is_cache(t, w, PAWL_GGML_ROWS)) {
		pawl_ggml_value_find(t, op)->pending = PAWL_GGML_SCORES;
		return PAWL_OK;
	}
	if (is_cache(t, w, PAWL_GGML_COLUMNS) && waits(t, pawl_ggml_root(x), PAWL_GGML_WEIGHED))
		return pawl_ggml_attention_of_products(t, op);
	if (!w->view_src && pawl_ggml_is_leaf(t, w) && w->ne[2] == 1 && w->ne[3] == 1 &&
		pawl_ggml_is_contiguous(w))
		return product(t, op);
	return batch_product(t, op);
}

enum pawl_status
pawl_ggml_soft_max(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
{
	struct pawl_ggml_value *value = pawl_ggml_value_find(t, op);

	if (op->src[2] || pawl_ggml_param_f32(op, 1) != 0.0f || pawl_ggml_has_params_beyond(op, 2))
		return pawl_ggml_decline(t, op, "biases or sinks");
	value->pending = PAWL_GGML_WEIGHED;
	return waits(t, op->src[0], PAWL_GGML_SCORES) ? PAWL_OK : pawl_ggml_force(t, value);
}

static enum pawl_status
force_soft_max(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
{
	const struct pawl_ggml_tensor *mask = op->src[1];
	int rank = pawl_ggml_value_rank(op->src[0]);
	struct pawl_node *x = pawl_ggml_read(t, op, 0, rank), *m;

	if (!x)
		return pawl_ggml_failure(t, op);
	x = pawl_build_scale(t->graph, x, pawl_ggml_param_f32(op, 0));
	if (mask) {
		if (mask->ne[1] != op->src[0]->ne[1])
			return pawl_ggml_decline(t, op, "a mask of more rows");
		m = pawl_ggml_read(t, op, 1, rank);
		x = m ? pawl_build_binary(t->graph, PAWL_OP_ADD, x, m) : NULL;
	}
	x = x ? pawl_build_unary(t->graph, PAWL_OP_SOFTMAX, x) : NULL;
	if (!x)
		return pawl_ggml_failure(t, op);
	pawl_ggml_set(t, op, x);
	return PAWL_OK;
}

static enum pawl_status
force_norm(struct pawl_ggml_translator *t, struct pawl_ggml_value *value)
{
	struct pawl_type type = {.dtype = PAWL_DTYPE_F32, .rank = 1};
	struct pawl_node *y;

	type.dim[0] = pawl_dim_const(value->tensor->ne[0]);
	y = pawl_build_splat(t->graph, &type, 1);
	y = y ? pawl_build_rms_norm(t->graph, value->node, y, pawl_ggml_param_f32(value->tensor, 0)) : NULL;
	if (!y)
		return pawl_ggml_failure(t, value->tensor);
	pawl_ggml_set(t, value->tensor, y);
	return PAWL_OK;
}

enum pawl_status
pawl_ggml_force(struct pawl_ggml_translator *t, struct pawl_ggml_value *value)
{
	enum pawl_status status = PAWL_UNSUPPORTED;
	int32_t at = t->at;

	t->at = value->place.node;
	switch (value->pending) {
	case PAWL_GGML_READY:
		status = PAWL_OK;
		break;
	case PAWL_GGML_EMPTY:
		status = pawl_ggml_decline(t, value->tensor, "a value that nothing computes");
		break;
	case PAWL_GGML_NORM:
		status = force_norm(t, value);
		break;
	case PAWL_GGML_SCORES:
		status = batch_product(t, value->tensor);
		break;
	case PAWL_GGML_WEIGHED:
		status = force_soft_max(t, value->tensor);
		break;
	}
	t->at = at;
	return status;
}

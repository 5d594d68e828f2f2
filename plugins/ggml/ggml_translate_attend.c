/*
 * Matrix products and attention: as one op of the host, or as the product of keys and queries, its
 * softmax, and the product with the values, which become one attention too.
 */
#include "passes/step.h"
#include "plugins/ggml/ggml_values.h"

#include <stdio.h>
#include <string.h>

static float
param_f32(const struct pawl_ggml_tensor *op, int i)
{
	float x;

	memcpy(&x, &op->params[i], sizeof(x));
	return x;
}

static bool
has_params_beyond(const struct pawl_ggml_tensor *op, int n)
{
	for (; n < PAWL_GGML_PARAMS; n++)
		if (op->params[n])
			return true;
	return false;
}

/* An op of the host and which of its sources; reading one stands where the op does. */
struct source {
	const struct pawl_ggml_tensor *op;
	int i;
};

static const struct pawl_ggml_tensor *
tensor_of(const struct source *s)
{
	return s->op->src[s->i];
}

struct attend {
	struct source q, k, v, mask; /* mask.op NULL: none */
	double scale, softcap;
	int64_t streams, rows, heads; /* rows of a stream */
};

static struct pawl_node *
read_source(struct pawl_ggml_translator *t, const struct source *s, int rank, const int *order)
{
	int32_t at = t->at;
	struct pawl_node *node;

	t->at = pawl_ggml_value_find(t, s->op)->place.node;
	node = pawl_ggml_read_as(t, s->op, s->i, tensor_of(s), rank, order);
	t->at = at;
	return node;
}

/* Part `stream` of x, whose axis 0 has one for each; that axis stays, with one element. */
static struct pawl_node *
part_of(struct pawl_ggml_translator *t, struct pawl_node *x, int64_t stream)
{
	int64_t start[PAWL_MAX_RANK] = {stream}, stop[PAWL_MAX_RANK];
	int i;

	if (!x || x->type.dim[0].base == 1)
		return x;
	for (i = 0; i < x->type.rank; i++)
		stop[i] = x->type.dim[i].base;
	stop[0] = stream + 1;
	return pawl_build_slice(t->graph, x, start, stop);
}

/* Queries of a stream [rows, heads, d]. */
static struct pawl_node *
queries(struct pawl_ggml_translator *t, const struct attend *a, int64_t stream)
{
	static const int rows_first[] = {1, 2, 0}, streams_first[] = {3, 1, 2, 0};
	struct pawl_node *q;

	if (a->streams == 1)
		return read_source(t, &a->q, 3, rows_first);
	q = part_of(t, read_source(t, &a->q, 4, streams_first), stream);
	return q ? pawl_build_reshape(t->graph, q, 3,
			   (int64_t[]){a->rows, q->type.dim[2].base, q->type.dim[3].base})
		 : NULL;
}

/* Keys or values of a stream: [1, heads, positions, d]. */
static struct pawl_node *
cache_of(struct pawl_ggml_translator *t, const struct source *s, int64_t stream)
{
	static const int natural[] = {3, 2, 1, 0}, heads_first[] = {1, 0, 2}, turned[] = {0, 2, 1};
	const struct pawl_ggml_tensor *x = tensor_of(s);
	struct pawl_ggml_state *state = pawl_ggml_state_find(t, pawl_ggml_root(x));
	struct pawl_node *node;

	if (!state)
		return part_of(t, read_source(t, s, 4, natural), stream);
	node = pawl_ggml_state_node(t, state, stream);
	if (!node)
		return NULL;
	if (state->form == PAWL_GGML_COLUMNS) {
		node = pawl_build_reshape(t->graph, node, 3,
			(int64_t[]){state->heads, state->d, state->cells});
		node = pawl_build_permute(t->graph, node, turned);
	} else {
		node = pawl_build_permute(t->graph, node, heads_first);
	}
	return pawl_build_reshape(
		t->graph, node, 4, (int64_t[]){1, state->heads, state->cells, state->d});
}

static struct pawl_node *
find_data(struct pawl_ggml_translator *t, int32_t number)
{
	char name[16];

	snprintf(name, sizeof(name), "d%d", (int)number);
	return pawl_graph_find(t->graph, name);
}

/*
 * What says the cells that the rows of a stream see: the mask as f32 [rows, cells], the last cell of
 * row 0 where each row sees one more than that before it or less, and a symbol for all.
 */
static const struct pawl_ggml_bind *
mask_of(struct pawl_ggml_translator *t, const struct attend *a, int64_t stream, int64_t cells)
{
	const struct pawl_ggml_tensor *x = tensor_of(&a->mask);
	int64_t streams = x->ne[3] > 1 ? a->streams : 1, part = streams > 1 ? stream : 0;
	struct pawl_type type = {.dtype = PAWL_DTYPE_F32, .rank = 2};
	const struct pawl_type number = pawl_type_make(PAWL_DTYPE_I64, 0, NULL);
	struct pawl_ggml_place place = {pawl_ggml_value_find(t, a->mask.op)->place.node, a->mask.i, 0};
	struct pawl_ggml_bind *bind;
	char name[24];
	int32_t i;

	type.dim[0] = a->streams == 1 ? pawl_ggml_token_dim(t, a->rows) : pawl_dim_const(a->rows);
	type.dim[1] = pawl_dim_const(cells);
	for (i = 0; i < t->out->n_binds; i++) {
		bind = &t->out->binds[i];
		if (bind->kind == PAWL_GGML_BIND_MASK && bind->cells == cells &&
			bind->streams == streams && bind->stream == part &&
			pawl_ggml_at(t->source, &bind->tensor) == x)
			return bind;
	}
	bind = pawl_ggml_bind_add(t, PAWL_GGML_BIND_MASK, place);
	if (!bind)
		return NULL;
	snprintf(name, sizeof(name), "seen%d", (int)bind->number);
	bind->streams = streams;
	bind->stream = part;
	bind->cells = cells;
	bind->symbol = pawl_graph_add_symbol(t->graph, name, 1, cells, 1);
	snprintf(name, sizeof(name), "d%d", (int)t->out->n_numbers++);
	return pawl_ggml_const(t, bind, PAWL_ROLE_DATA, &type) &&
			       pawl_build_const(t->graph, PAWL_ROLE_DATA, name, &number)
		       ? bind
		       : NULL;
}

static bool
is_mask(struct pawl_ggml_translator *t, const struct attend *a)
{
	const struct pawl_ggml_tensor *x = tensor_of(&a->mask), *k = tensor_of(&a->k);

	return !x->view_src && pawl_ggml_is_leaf(t, x) && (x->type == 0 || x->type == 1) &&
	       pawl_ggml_is_contiguous(x) && x->ne[0] == k->ne[1] && x->ne[1] >= a->rows &&
	       x->ne[2] == 1 && (x->ne[3] == 1 || x->ne[3] == a->streams);
}

/* Attention of one stream: [rows, heads, d]. */
static struct pawl_node *
attend_stream(struct pawl_ggml_translator *t, const struct attend *a, int64_t stream)
{
	const struct pawl_ggml_tensor *k = tensor_of(&a->k);
	struct pawl_type number = pawl_type_make(PAWL_DTYPE_I64, 0, NULL);
	struct pawl_attrs attrs = pawl_attrs_default();
	const struct pawl_ggml_bind *mask;
	struct pawl_node *in[5];
	int n = 4;

	in[0] = queries(t, a, stream);
	in[1] = in[0] ? cache_of(t, &a->k, stream) : NULL;
	in[2] = in[1] ? cache_of(t, &a->v, stream) : NULL;
	if (!in[2])
		return NULL;
	attrs.scale = a->scale;
	attrs.softcap = a->softcap;
	if (a->mask.op) {
		mask = mask_of(t, a, stream, in[1]->type.dim[2].base);
		if (!mask)
			return NULL;
		in[3] = find_data(t, mask->number + 1);
		in[4] = find_data(t, mask->number);
		attrs.sym = mask->symbol;
		n = 5;
	} else if (in[1]->type.dim[2].base != k->ne[1]) {
		pawl_ggml_decline(t, a->k.op, "part of a cache without a mask");
		return NULL;
	} else {
		in[3] = pawl_build_splat(t->graph, &number, 0);
		attrs.causal = false;
	}
	return pawl_build(t->graph, PAWL_OP_ATTENTION, NULL, in, n, &attrs, NULL);
}

/* [rows of all streams, heads, d]; NULL: err or graph->error. */
static struct pawl_node *
attend(struct pawl_ggml_translator *t, const struct attend *a)
{
	struct pawl_node *parts[PAWL_GGML_MAX_STREAMS], *whole = NULL;
	struct pawl_attrs attrs = pawl_attrs_default();
	int64_t s, n;

	if (a->streams > PAWL_GGML_MAX_STREAMS || (a->mask.op && !is_mask(t, a))) {
		pawl_ggml_decline(t, a->q.op, "a mask or streams of another kind");
		return NULL;
	}
	for (s = 0; s < a->streams; s++) {
		parts[s] = attend_stream(t, a, s);
		if (!parts[s])
			return NULL;
	}
	/* A concat takes few inputs at once. */
	attrs.axis = 0;
	for (s = 0; s < a->streams; s += n) {
		struct pawl_node *in[PAWL_MAX_INPUTS];
		int k = 0;

		if (whole)
			in[k++] = whole;
		for (n = 0; k < PAWL_MAX_INPUTS && s + n < a->streams; n++)
			in[k++] = parts[s + n];
		whole = k == 1 ? in[0]
			       : pawl_build(t->graph, PAWL_OP_CONCAT, NULL, in, k, &attrs, NULL);
	}
	return whole;
}

static enum pawl_status
failure(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
{
	return t->graph->error.status != PAWL_OK
		       ? pawl_ggml_decline(t, op, "%s", t->graph->error.text)
		       : t->err->status;
}

enum pawl_status
pawl_ggml_attention(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
{
	const struct pawl_ggml_tensor *q = op->src[0], *k = op->src[1], *v = op->src[2];
	struct attend a = {.q = {op, 0}, .k = {op, 1}, .v = {op, 2}};
	struct pawl_node *y;

	/* Param 3 is a precision, 4 bounds what a mask shows and may be ignored. */
	if (!k || !v || op->src[4] || param_f32(op, 1) != 0.0f || has_params_beyond(op, 5) ||
		q->type != 0 || k->ne[3] != q->ne[3] || v->ne[3] != q->ne[3] ||
		k->ne[2] != v->ne[2] || k->ne[1] != v->ne[1])
		return pawl_ggml_decline(t, op, "biases, sinks or shapes that are not known");
	if (op->src[3])
		a.mask = (struct source){op, 3};
	a.scale = param_f32(op, 0);
	a.softcap = param_f32(op, 2);
	a.streams = q->ne[3];
	a.rows = q->ne[1];
	a.heads = q->ne[2];
	y = attend(t, &a);
	if (!y)
		return failure(t, op);
	pawl_ggml_set(t, op, y);
	return PAWL_OK;
}

/* Values times weighed scores: attention, when all that it is made of is known. */
static enum pawl_status
attention_of_products(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
{
	const struct pawl_ggml_tensor *weighed = pawl_ggml_root(op->src[1]);
	const struct pawl_ggml_tensor *scores = pawl_ggml_root(weighed->src[0]);
	struct attend a = {.q = {scores, 1}, .k = {scores, 0}, .v = {op, 0}};
	struct pawl_ggml_value *value = pawl_ggml_value_find(t, op);

	if (weighed->src[1])
		a.mask = (struct source){weighed, 1};
	a.scale = param_f32(weighed, 0);
	a.streams = op->ne[3];
	a.rows = op->ne[1];
	a.heads = op->ne[2];
	value->turned = attend(t, &a);
	if (!value->turned)
		return failure(t, op);
	value->pending = PAWL_GGML_READY;
	return PAWL_OK;
}

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

/* The matrices of source 0, [batch, rows, columns]. */
static struct pawl_node *
matrices(struct pawl_ggml_translator *t, const struct source *s)
{
	static const int natural[] = {2, 1, 0}, swap[] = {0, 2, 1};
	const struct pawl_ggml_tensor *x = tensor_of(s);
	struct pawl_ggml_state *state = pawl_ggml_state_find(t, pawl_ggml_root(x));
	struct pawl_node *node;

	if (!state)
		return read_source(t, s, 3, natural);
	node = cache_of(t, s, 0);
	if (!node || x->ne[3] != 1)
		return NULL;
	node = pawl_build_reshape(
		t->graph, node, 3, (int64_t[]){state->heads, state->cells, state->d});
	node = pawl_build_slice(t->graph, node, (int64_t[]){0, 0, 0},
		(int64_t[]){state->heads,
			state->form == PAWL_GGML_COLUMNS ? x->ne[0] : x->ne[1], state->d});
	return state->form == PAWL_GGML_COLUMNS && node
		       ? pawl_build_permute(t->graph, node, swap)
		       : node;
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
	static const int natural[] = {2, 1, 0};
	const struct pawl_ggml_tensor *w = op->src[0], *x = op->src[1];
	struct source s = {op, 0};
	struct pawl_node *in[2];

	if (w->ne[3] != 1 || x->ne[3] != 1 || x->ne[2] % w->ne[2] || (w->type != 0 && w->type != 1))
		return pawl_ggml_decline(t, op, "matrices of another kind");
	in[0] = pawl_ggml_read_in_order(t, op, 1, 3, natural);
	in[1] = in[0] ? matrices(t, &s) : NULL;
	if (in[1])
		in[1] = repeat(t, in[1], x->ne[2] / w->ne[2]);
	if (!in[1])
		return failure(t, op);
	in[0] = pawl_build(t->graph, PAWL_OP_BATCH_MATMUL, NULL, in, 2, NULL, NULL);
	if (!in[0])
		return failure(t, op);
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
		return failure(t, op);
	w = value->node && value->node->type.rank == 2
		    ? value->node
		    : pawl_ggml_read_as(t, op, 0, op->src[0], 2, natural);
	w = w ? pawl_build_matmul(t->graph, rows, w) : NULL;
	if (!w)
		return failure(t, op);
	pawl_ggml_set(t, op, w);
	return PAWL_OK;
}

enum pawl_status
pawl_ggml_mul_mat(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
{
	const struct pawl_ggml_tensor *w = op->src[0], *x = op->src[1];

	/* A precision, and a hint of what the matrix is. */
	if (!x || x->type != 0 || has_params_beyond(op, 2))
		return pawl_ggml_decline(t, op, "a parameter or a type that is not known");
	if (is_cache(t, w, PAWL_GGML_ROWS)) {
		pawl_ggml_value_find(t, op)->pending = PAWL_GGML_SCORES;
		return PAWL_OK;
	}
	if (is_cache(t, w, PAWL_GGML_COLUMNS) && waits(t, pawl_ggml_root(x), PAWL_GGML_WEIGHED))
		return attention_of_products(t, op);
	if (!w->view_src && pawl_ggml_is_leaf(t, w) && w->ne[2] == 1 && w->ne[3] == 1 &&
		pawl_ggml_is_contiguous(w))
		return product(t, op);
	return batch_product(t, op);
}

enum pawl_status
pawl_ggml_soft_max(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
{
	struct pawl_ggml_value *value = pawl_ggml_value_find(t, op);

	if (op->src[2] || param_f32(op, 1) != 0.0f || has_params_beyond(op, 2))
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
		return failure(t, op);
	x = pawl_build_scale(t->graph, x, param_f32(op, 0));
	if (mask) {
		if (mask->ne[1] != op->src[0]->ne[1])
			return pawl_ggml_decline(t, op, "a mask of more rows");
		m = pawl_ggml_read(t, op, 1, rank);
		x = m ? pawl_build_binary(t->graph, PAWL_OP_ADD, x, m) : NULL;
	}
	x = x ? pawl_build_unary(t->graph, PAWL_OP_SOFTMAX, x) : NULL;
	if (!x)
		return failure(t, op);
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
	y = y ? pawl_build_rms_norm(t->graph, value->node, y, param_f32(value->tensor, 0)) : NULL;
	if (!y)
		return failure(t, value->tensor);
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

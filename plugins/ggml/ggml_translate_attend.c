/*
 * Attention: as one op of the host, or as the product of keys and queries, its softmax, and the product
 * with the values, which become one attention too.
 */
#include "plugins/ggml/ggml_attend.h"

#include "passes/step.h"

#include <stdio.h>
#include <string.h>

float
pawl_ggml_param_f32(const struct pawl_ggml_tensor *op, int i)
{
	float x;

	memcpy(&x, &op->params[i], sizeof(x));
	return x;
}

bool
pawl_ggml_has_params_beyond(const struct pawl_ggml_tensor *op, int n)
{
	for (; n < PAWL_GGML_PARAMS; n++)
		if (op->params[n])
			return true;
	return false;
}

struct attend {
	struct pawl_ggml_source q, k, v, mask; /* mask.op NULL: none */
	double scale, softcap;
	int64_t streams, rows, heads; /* rows of a stream */
};

struct pawl_node *
pawl_ggml_read_source(struct pawl_ggml_translator *t, const struct pawl_ggml_source *s, int rank, const int *order)
{
	int32_t at = t->at;
	struct pawl_node *node;

	t->at = pawl_ggml_value_find(t, s->op)->place.node;
	node = pawl_ggml_read_as(t, s->op, s->i, pawl_ggml_source_of(s), rank, order);
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
		return pawl_ggml_read_source(t, &a->q, 3, rows_first);
	if (pawl_ggml_takes_turns(t))
		return pawl_ggml_take_turn(t, &a->q, stream);
	q = part_of(t, pawl_ggml_read_source(t, &a->q, 4, streams_first), stream);
	return q ? pawl_build_reshape(t->graph, q, 3,
			   (int64_t[]){a->rows, q->type.dim[2].base, q->type.dim[3].base})
		 : NULL;
}

/* Keys or values of a stream: [1, heads, positions, d]. */
struct pawl_node *
pawl_ggml_cache_of(struct pawl_ggml_translator *t, const struct pawl_ggml_source *s, int64_t stream)
{
	static const int natural[] = {3, 2, 1, 0}, heads_first[] = {1, 0, 2}, turned[] = {0, 2, 1};
	const struct pawl_ggml_tensor *x = pawl_ggml_source_of(s);
	struct pawl_ggml_state *state = pawl_ggml_state_find(t, pawl_ggml_root(x));
	struct pawl_node *node;

	if (!state)
		return part_of(t, pawl_ggml_read_source(t, s, 4, natural), stream);
	if (!pawl_ggml_state_shows(t, state, x)) {
		pawl_ggml_decline(t, s->op, "source %d is another part of a cache", s->i);
		return NULL;
	}
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
	const struct pawl_ggml_tensor *x = pawl_ggml_source_of(&a->mask);
	int64_t streams = x->ne[3] > 1 ? a->streams : 1, part = streams > 1 ? stream : 0;
	struct pawl_type type = {.dtype = PAWL_DTYPE_F32, .rank = 2};
	const struct pawl_type number = pawl_type_make(PAWL_DTYPE_I64, 0, NULL);
	struct pawl_ggml_place place = {pawl_ggml_value_find(t, a->mask.op)->place.node, a->mask.i, 0};
	struct pawl_ggml_bind *bind;
	char name[24];
	int32_t i;

	type.dim[0] = pawl_ggml_stream_dim(t, a->rows);
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
	const struct pawl_ggml_tensor *x = pawl_ggml_source_of(&a->mask), *k = pawl_ggml_source_of(&a->k);

	return !x->view_src && pawl_ggml_is_leaf(t, x) && (x->type == 0 || x->type == 1) &&
	       pawl_ggml_is_contiguous(x) && x->ne[0] == k->ne[1] && x->ne[1] >= a->rows &&
	       x->ne[2] == 1 && (x->ne[3] == 1 || x->ne[3] == a->streams);
}

/* Attention of one stream: [rows, heads, d]. */
static struct pawl_node *
attend_stream(struct pawl_ggml_translator *t, const struct attend *a, int64_t stream)
{
	const struct pawl_ggml_tensor *k = pawl_ggml_source_of(&a->k);
	struct pawl_type number = pawl_type_make(PAWL_DTYPE_I64, 0, NULL);
	struct pawl_attrs attrs = pawl_attrs_default();
	const struct pawl_ggml_bind *mask;
	struct pawl_node *in[5];
	int n = 4;

	in[0] = queries(t, a, stream);
	in[1] = in[0] ? pawl_ggml_cache_of(t, &a->k, stream) : NULL;
	in[2] = in[1] ? pawl_ggml_cache_of(t, &a->v, stream) : NULL;
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

/* The parts one after the other along axis 0.  A concat takes few inputs at once. */
struct pawl_node *
pawl_ggml_join(struct pawl_ggml_translator *t, struct pawl_node *const *parts, int64_t n_parts)
{
	struct pawl_attrs attrs = pawl_attrs_default();
	struct pawl_node *whole = NULL;
	int64_t i, n;

	attrs.axis = 0;
	for (i = 0; i < n_parts; i += n) {
		struct pawl_node *in[PAWL_MAX_INPUTS];
		int k = 0;

		if (whole)
			in[k++] = whole;
		for (n = 0; k < PAWL_MAX_INPUTS && i + n < n_parts; n++)
			in[k++] = parts[i + n];
		whole = k == 1 ? in[0]
			       : pawl_build(t->graph, PAWL_OP_CONCAT, NULL, in, k, &attrs, NULL);
	}
	return whole;
}

/* [rows of all streams, heads, d]; NULL: err or graph->error. */
static struct pawl_node *
attend(struct pawl_ggml_translator *t, const struct attend *a)
{
	struct pawl_node *parts[PAWL_GGML_MAX_STREAMS];
	int64_t s;

	if (a->streams > PAWL_GGML_MAX_STREAMS || (a->mask.op && !is_mask(t, a))) {
		pawl_ggml_decline(t, a->q.op, "a mask or streams of another kind");
		return NULL;
	}
	for (s = 0; s < a->streams; s++) {
		parts[s] = attend_stream(t, a, s);
		if (!parts[s])
			return NULL;
	}
	return a->streams > 1 && pawl_ggml_takes_turns(t)
		       ? pawl_ggml_put_turns(t, &a->q, parts, a->streams)
		       : pawl_ggml_join(t, parts, a->streams);
}

enum pawl_status
pawl_ggml_failure(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
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
	if (!k || !v || op->src[4] || pawl_ggml_param_f32(op, 1) != 0.0f || pawl_ggml_has_params_beyond(op, 5) ||
		q->type != 0 || k->ne[3] != q->ne[3] || v->ne[3] != q->ne[3] ||
		k->ne[2] != v->ne[2] || k->ne[1] != v->ne[1])
		return pawl_ggml_decline(t, op, "biases, sinks or shapes that are not known");
	if (op->src[3])
		a.mask = (struct pawl_ggml_source){op, 3};
	a.scale = pawl_ggml_param_f32(op, 0);
	a.softcap = pawl_ggml_param_f32(op, 2);
	a.streams = q->ne[3];
	a.rows = q->ne[1];
	a.heads = q->ne[2];
	y = attend(t, &a);
	if (!y)
		return pawl_ggml_failure(t, op);
	pawl_ggml_set(t, op, y);
	return PAWL_OK;
}

enum pawl_status
pawl_ggml_attention_of_products(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
{
	const struct pawl_ggml_tensor *weighed = pawl_ggml_root(op->src[1]);
	const struct pawl_ggml_tensor *scores = pawl_ggml_root(weighed->src[0]);
	struct attend a = {.q = {scores, 1}, .k = {scores, 0}, .v = {op, 0}};
	struct pawl_ggml_value *value = pawl_ggml_value_find(t, op);

	if (weighed->src[1])
		a.mask = (struct pawl_ggml_source){weighed, 1};
	a.scale = pawl_ggml_param_f32(weighed, 0);
	a.streams = op->ne[3];
	a.rows = op->ne[1];
	a.heads = op->ne[2];
	value->turned = attend(t, &a);
	if (!value->turned)
		return pawl_ggml_failure(t, op);
	value->pending = PAWL_GGML_READY;
	return PAWL_OK;
}

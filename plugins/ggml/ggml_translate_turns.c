/*
 * Rows of streams whose number is a symbol.  Where the rows of one begin is told by no view then: they are
 * taken and put by lists, which a run fills in.
 */
#include "plugins/ggml/ggml_attend.h"

#include <stdio.h>

/* The lists of a stream: the number of the first const, -1: err or graph->error. */
static int32_t
lists_of(struct pawl_ggml_translator *t, const struct pawl_ggml_source *s, int64_t stream)
{
	const struct pawl_ggml_place place = {
		pawl_ggml_value_find(t, s->op)->place.node, s->i, false};
	struct pawl_type type = {.dtype = PAWL_DTYPE_I32, .rank = 1};
	struct pawl_ggml_bind *bind;
	char name[16];
	int32_t i;

	for (i = 0; i < t->out->n_binds; i++) {
		bind = &t->out->binds[i];
		if (bind->kind == PAWL_GGML_BIND_TURN && bind->stream == stream)
			return bind->number;
	}
	bind = pawl_ggml_bind_add(t, PAWL_GGML_BIND_TURN, place);
	if (!bind)
		return -1;
	bind->stream = stream;
	type.dim[0] = pawl_ggml_stream_dim(t, pawl_ggml_source_of(s)->ne[1]);
	if (!pawl_ggml_const(t, bind, PAWL_ROLE_DATA, &type))
		return -1;
	type.dtype = PAWL_DTYPE_I64;
	snprintf(name, sizeof(name), "d%d", (int)t->out->n_numbers++);
	return pawl_build_const(t->graph, PAWL_ROLE_DATA, name, &type) ? bind->number : -1;
}

static struct pawl_node *
list(struct pawl_ggml_translator *t, int32_t number)
{
	char name[16];

	snprintf(name, sizeof(name), "d%d", (int)number);
	return pawl_graph_find(t->graph, name);
}

/* What x is a view of, as rows one after the other: false where it is another view. */
static bool
rows_of(const struct pawl_ggml_tensor *x, struct pawl_ggml_tensor *rows)
{
	const size_t d_bytes = 4 * (size_t)x->ne[0], row_bytes = d_bytes * (size_t)x->ne[2];

	*rows = *x;
	rows->ne[0] = x->ne[0] * x->ne[2];
	rows->ne[1] = x->ne[1] * x->ne[3];
	rows->ne[2] = rows->ne[3] = 1;
	rows->nb[1] = row_bytes;
	rows->nb[2] = rows->nb[3] = row_bytes * (size_t)rows->ne[1];
	return x->type == 0 && x->nb[0] == 4 && (x->ne[2] == 1 || x->nb[2] == d_bytes) &&
	       (x->ne[1] == 1 || x->nb[1] == row_bytes) &&
	       (x->ne[3] == 1 || x->nb[3] == row_bytes * (size_t)x->ne[1]);
}

struct pawl_node *
pawl_ggml_take_turn(struct pawl_ggml_translator *t, const struct pawl_ggml_source *s, int64_t stream)
{
	static const int natural[] = {1, 0};
	const struct pawl_ggml_tensor *x = pawl_ggml_source_of(s);
	struct pawl_ggml_tensor rows;
	int32_t at = t->at, number;
	struct pawl_node *node;

	if (!rows_of(x, &rows)) {
		pawl_ggml_decline(t, s->op, "rows of streams that do not follow each other");
		return NULL;
	}
	t->at = pawl_ggml_value_find(t, s->op)->place.node;
	node = pawl_ggml_read_as(t, s->op, s->i, &rows, 2, natural);
	t->at = at;
	number = node ? lists_of(t, s, stream) : -1;
	if (number < 0)
		return NULL;
	node = pawl_build_gather(t->graph, node, list(t, number));
	return node ? pawl_build_reshape(
			      t->graph, node, 3, (int64_t[]){-1, x->ne[2], x->ne[0]})
		    : NULL;
}

struct pawl_node *
pawl_ggml_put_turns(struct pawl_ggml_translator *t, const struct pawl_ggml_source *s,
	struct pawl_node *const *parts, int64_t n_parts)
{
	struct pawl_type type = parts[0]->type;
	struct pawl_node *in[3];
	int64_t i;

	type.dim[0] = pawl_ggml_token_dim(t, t->out->symbols.n_tokens);
	in[0] = pawl_build(t->graph, PAWL_OP_ALLOC, NULL, NULL, 0, NULL, &type);
	for (i = 0; i < n_parts && in[0]; i++) {
		int32_t number = lists_of(t, s, i);

		if (number < 0)
			return NULL;
		in[1] = parts[i];
		in[2] = list(t, number + 1);
		in[0] = pawl_build(t->graph, PAWL_OP_WRITE_ROWS, NULL, in, 3, NULL, NULL);
	}
	return in[0];
}

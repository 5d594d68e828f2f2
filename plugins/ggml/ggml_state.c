/* Caches: tensors that rows are written to and that attention reads. */
#include "plugins/ggml/ggml_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pawl_ggml_state *
pawl_ggml_state_find(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *root)
{
	int32_t i;

	for (i = 0; i < t->n_states; i++)
		if (t->states[i].root == root)
			return &t->states[i];
	return NULL;
}

static struct pawl_ggml_state *
state_add(struct pawl_ggml_translator *t, const struct pawl_ggml_state *state)
{
	struct pawl_ggml_state *grown;

	if (t->n_states == t->cap_states) {
		grown = realloc(t->states, (size_t)(t->cap_states * 2 + 64) * sizeof(*grown));
		if (!grown) {
			pawl_fail(t->err, PAWL_OUT_OF_MEMORY, "no memory for the caches");
			return NULL;
		}
		t->states = grown;
		t->cap_states = t->cap_states * 2 + 64;
	}
	t->states[t->n_states] = *state;
	return &t->states[t->n_states++];
}

static bool
shows_rows(const struct pawl_ggml_tensor *x, const struct pawl_dtype_info *info,
	struct pawl_ggml_state *state)
{
	const struct pawl_ggml_tensor *root = state->root;
	size_t d_bytes = (size_t)(x->ne[0] / info->block * info->block_bytes);

	state->form = PAWL_GGML_ROWS;
	state->d = x->ne[0];
	return x->ne[0] % info->block == 0 && x->ne[0] * x->ne[2] == root->ne[0] &&
	       x->ne[1] <= state->cells && (x->ne[1] == 1 || x->nb[1] == root->nb[1]) &&
	       (x->ne[2] == 1 || x->nb[2] == d_bytes);
}

static bool
shows_columns(const struct pawl_ggml_tensor *x, const struct pawl_dtype_info *info,
	struct pawl_ggml_state *state)
{
	const struct pawl_ggml_tensor *root = state->root;
	size_t column_bytes = (size_t)root->ne[1] * (size_t)info->block_bytes;

	state->form = PAWL_GGML_COLUMNS;
	state->d = x->ne[1];
	return info->block == 1 && x->ne[1] * x->ne[2] == root->ne[0] &&
	       x->ne[0] <= state->cells && x->nb[1] == column_bytes &&
	       (x->ne[2] == 1 || x->nb[2] == column_bytes * (size_t)x->ne[1]);
}

/* Whether the graph writes to the cache element by element. */
static bool
takes_elements(const struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *root)
{
	int32_t i;

	for (i = 0; i < t->source->n_nodes; i++) {
		const struct pawl_ggml_tensor *node = t->source->nodes[i];

		if (pawl_ggml_op_of(t->host, node) == PAWL_GGML_OP_SET_ROWS &&
			pawl_ggml_root(node) == root)
			return node->ne[0] == 1;
	}
	return false;
}

/*
 * x [d, n, heads, streams] or, of columns, [n, d, heads, streams]: a window on a cache of cells.  With as
 * many cells as elements in each, and one head, it could be either.
 */
static bool
is_window(const struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *x,
	struct pawl_ggml_state *state)
{
	const struct pawl_ggml_tensor *root = x->view_src;
	const struct pawl_dtype_info *info;
	enum pawl_dtype dtype;

	if (!root || !pawl_dtype_from_ggml((uint32_t)root->type, &dtype) || root->ne[3] != 1 ||
		x->type != root->type || !root->nb[2])
		return false;
	info = pawl_dtype_info(dtype);
	*state = (struct pawl_ggml_state){.root = root,
		.streams = x->ne[3],
		.cells = root->ne[1],
		.stream_bytes = (int64_t)root->nb[2],
		.heads = x->ne[2]};
	if (x->ne[3] > PAWL_GGML_MAX_STREAMS || x->nb[0] != (size_t)info->block_bytes ||
		x->view_offs % root->nb[2] || root->nb[0] != (size_t)info->block_bytes ||
		root->nb[2] != root->nb[1] * (size_t)root->ne[1] ||
		(x->ne[3] > 1 && x->nb[3] != root->nb[2]) ||
		x->view_offs / root->nb[2] + (size_t)x->ne[3] > (size_t)root->ne[2])
		return false;
	if (takes_elements(t, root) && shows_columns(x, info, state))
		return true;
	return shows_rows(x, info, state) || shows_columns(x, info, state);
}

bool
pawl_ggml_state_shows(struct pawl_ggml_translator *t, const struct pawl_ggml_state *state,
	const struct pawl_ggml_tensor *x)
{
	struct pawl_ggml_state other;

	return is_window(t, x, &other) && other.root == state->root && other.form == state->form &&
	       other.streams == state->streams && other.heads == state->heads &&
	       other.d == state->d &&
	       pawl_ggml_at(t->source, &state->window)->view_offs == x->view_offs;
}

static enum pawl_status
consider(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op, int i)
{
	const struct pawl_ggml_tensor *x = op->src[i];
	struct pawl_ggml_state state, *other;

	if (!x || !is_window(t, x, &state) || !pawl_ggml_is_leaf(t, state.root) ||
		pawl_ggml_is_weight(t, state.root))
		return PAWL_OK;
	state.place = pawl_ggml_source_place(t, i, true);
	state.window = pawl_ggml_source_place(t, i, false);
	other = pawl_ggml_state_find(t, state.root);
	if (!other)
		return state_add(t, &state) ? PAWL_OK : t->err->status;
	if (!pawl_ggml_state_shows(t, other, x))
		return pawl_ggml_decline(t, op, "a cache that is read in two ways");
	return PAWL_OK;
}

enum pawl_status
pawl_ggml_find_states(struct pawl_ggml_translator *t)
{
	enum pawl_status status = PAWL_OK;

	for (t->at = 0; t->at < t->source->n_nodes && !status; t->at++) {
		const struct pawl_ggml_tensor *op = t->source->nodes[t->at];

		if (pawl_ggml_op_of(t->host, op) == PAWL_GGML_OP_MUL_MAT)
			status = consider(t, op, 0);
		if (pawl_ggml_op_of(t->host, op) != PAWL_GGML_OP_ATTENTION)
			continue;
		status = consider(t, op, 1);
		if (!status)
			status = consider(t, op, 2);
	}
	return status;
}

static struct pawl_type
type_of(const struct pawl_ggml_state *state)
{
	const int64_t rows[] = {state->cells, state->heads, state->d};
	const int64_t columns[] = {state->heads * state->d, state->cells, 1};
	enum pawl_dtype dtype = PAWL_DTYPE_F32;

	pawl_dtype_from_ggml((uint32_t)state->root->type, &dtype);
	switch (state->form) {
	case PAWL_GGML_ROWS:
		return pawl_type_make(dtype, 3, rows);
	case PAWL_GGML_COLUMNS:
		return pawl_type_make(dtype, 3, columns);
	case PAWL_GGML_WHOLE:
		break;
	}
	return pawl_type_make(dtype, state->d == 1 ? 1 : 2, (int64_t[]){state->cells, state->d});
}

struct pawl_node *
pawl_ggml_state_node(struct pawl_ggml_translator *t, struct pawl_ggml_state *state, int64_t stream)
{
	struct pawl_type type = type_of(state);
	struct pawl_ggml_bind *bind;

	if (state->nodes[stream])
		return state->nodes[stream];
	bind = pawl_ggml_bind_add(t, PAWL_GGML_BIND_STATE, state->place);
	if (!bind)
		return NULL;
	bind->window = state->window;
	bind->stream = stream;
	bind->stream_bytes = state->stream_bytes;
	state->nodes[stream] = pawl_ggml_const(t, bind, PAWL_ROLE_KV, &type);
	return state->nodes[stream];
}

/* The list of the cells that rows go to, of one stream. */
static struct pawl_node *
index_list(struct pawl_ggml_translator *t, const struct pawl_ggml_state *state, int64_t stream,
	const struct pawl_ggml_bind *wanted, int64_t n_rows)
{
	bool is_whole = pawl_ggml_takes_turns(t);
	struct pawl_type type = {.dtype = PAWL_DTYPE_I64, .rank = 1};
	const struct pawl_ggml_tensor *list = pawl_ggml_at(t->source, &wanted->tensor);
	struct pawl_ggml_bind *bind;
	char name[16];
	int32_t i;

	for (i = 0; i < t->out->n_binds; i++) {
		bind = &t->out->binds[i];
		if (bind->kind == PAWL_GGML_BIND_INDEX &&
			pawl_ggml_at(t->source, &bind->tensor) == list && bind->stream == stream &&
			bind->streams == wanted->streams && bind->step == wanted->step &&
			bind->pitch == wanted->pitch && bind->unit_bytes == wanted->unit_bytes &&
			bind->cells == wanted->cells && bind->stream_bytes == state->stream_bytes &&
			(bind->window.node < 0) == (state->window.node < 0) &&
			(bind->window.node < 0 ||
				pawl_ggml_at(t->source, &bind->window)->view_offs ==
					pawl_ggml_at(t->source, &state->window)->view_offs)) {
			snprintf(name, sizeof(name), "d%d", (int)bind->number);
			return pawl_graph_find(t->graph, name);
		}
	}
	bind = pawl_ggml_bind_add(t, PAWL_GGML_BIND_INDEX, wanted->tensor);
	if (!bind)
		return NULL;
	bind->window = state->window;
	bind->stream = stream;
	bind->stream_bytes = state->stream_bytes;
	bind->streams = wanted->streams;
	bind->step = wanted->step;
	bind->pitch = wanted->pitch;
	bind->unit_bytes = wanted->unit_bytes;
	bind->cells = wanted->cells;
	bind->is_whole = is_whole;
	type.dim[0] = is_whole ? pawl_ggml_token_dim(t, n_rows * state->streams)
			       : pawl_ggml_stream_dim(t, n_rows);
	return pawl_ggml_const(t, bind, PAWL_ROLE_DATA, &type);
}

static struct pawl_node *
store_as(struct pawl_ggml_translator *t, struct pawl_node *x, enum pawl_dtype dtype)
{
	struct pawl_attrs attrs = pawl_attrs_default();

	if (!x || x->type.dtype == dtype)
		return x;
	if (!pawl_dtype_is_blocked(dtype))
		return pawl_build_cast(t->graph, x, dtype);
	attrs.dtype = dtype;
	return pawl_build(t->graph, PAWL_OP_QUANTIZE, NULL, &x, 1, &attrs, NULL);
}

/* Rows of a stream, or of all where streams take turns, in the shape of the cells that they become. */
static struct pawl_node *
rows_of(struct pawl_ggml_translator *t, const struct pawl_ggml_state *state, struct pawl_node *x,
	int64_t stream, int64_t n_rows)
{
	static const int turn[] = {1, 0};
	int64_t start[2] = {stream * n_rows, 0}, stop[2] = {start[0] + n_rows, state->heads * state->d};
	struct pawl_type type = type_of(state);
	struct pawl_dim dim;

	if (state->streams > 1 && !pawl_ggml_takes_turns(t))
		x = pawl_build_slice(t->graph, x, start, stop);
	if (!x)
		return NULL;
	dim = x->type.dim[0];
	if (state->form == PAWL_GGML_COLUMNS) {
		x = pawl_build_permute(t->graph, store_as(t, x, type.dtype), turn);
		type.dim[1] = dim;
		return x ? pawl_build(t->graph, PAWL_OP_RESHAPE, NULL, &x, 1, NULL, &type) : NULL;
	}
	type.dim[0] = dim;
	type.dtype = PAWL_DTYPE_F32;
	if (!pawl_type_same_dims(&x->type, &type))
		x = pawl_build(t->graph, PAWL_OP_RESHAPE, NULL, &x, 1, NULL, &type);
	return store_as(t, x, type_of(state).dtype);
}

static struct pawl_ggml_state *
whole_state(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *dest)
{
	const struct pawl_ggml_tensor *root = pawl_ggml_root(dest);
	const struct pawl_ggml_state state = {.root = root,
		.form = PAWL_GGML_WHOLE,
		.place = {t->at, -1, true},
		.window = {-1, -1, 0},
		.streams = 1,
		.cells = dest->ne[1] * dest->ne[2] * dest->ne[3],
		.heads = 1,
		.d = dest->ne[0]};

	return state_add(t, &state);
}

static bool
fills_its_root(const struct pawl_ggml_tensor *dest)
{
	const struct pawl_ggml_tensor *root = pawl_ggml_root(dest);
	int64_t n = 1, m = 1;
	int i;

	for (i = 0; i < PAWL_GGML_DIMS; i++) {
		n *= dest->ne[i];
		m *= root->ne[i];
	}
	return n == m && (!dest->view_src || dest->view_offs == 0) &&
	       pawl_ggml_is_contiguous(dest) && pawl_ggml_is_contiguous(root);
}

enum pawl_status
pawl_ggml_set_rows(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
{
	static const int natural[] = {1, 0};
	/* The result is a view of what is written to, which source 2 is as well. */
	const struct pawl_ggml_tensor *x = op->src[0], *list = op->src[1], *dest = op;
	const struct pawl_ggml_tensor *root = pawl_ggml_root(dest);
	struct pawl_ggml_bind wanted = {.tensor = pawl_ggml_source_place(t, 1, false), .step = 1};
	struct pawl_attrs attrs = pawl_attrs_default();
	struct pawl_ggml_state *state;
	struct pawl_ggml_tensor rows;
	struct pawl_node *in[3];
	enum pawl_dtype dtype;
	int64_t n, s;

	if (!list || x->type != 0 || (list->type != 26 && list->type != 27) ||
		list->view_src || !pawl_ggml_is_leaf(t, list) || pawl_ggml_rank(list) != 1 ||
		x->ne[2] != 1 || x->ne[3] != 1 || !fills_its_root(dest) ||
		(root != op && pawl_ggml_value_find(t, root)) ||
		!pawl_dtype_from_ggml((uint32_t)dest->type, &dtype) ||
		!(pawl_dtype_is_float(dtype) || dtype == PAWL_DTYPE_Q8_0))
		return pawl_ggml_decline(t, op, "rows, lists or a destination of another kind");
	state = pawl_ggml_state_find(t, root);
	if (!state)
		state = whole_state(t, dest);
	if (!state)
		return t->err->status;
	rows = *x;
	n = list->ne[0];
	if (state->form == PAWL_GGML_COLUMNS) {
		wanted.step = state->heads * state->d;
		wanted.pitch = state->cells;
		if (dest->ne[0] != 1 || n % wanted.step ||
			x->nb[1] != x->nb[0] * (size_t)x->ne[0])
			return pawl_ggml_decline(t, op, "columns of another kind");
		n /= wanted.step;
		rows.ne[0] = wanted.step;
		rows.ne[1] = n;
		rows.nb[1] = rows.nb[2] = rows.nb[0] * (size_t)rows.ne[0];
	} else if (dest->ne[0] != (state->form == PAWL_GGML_ROWS ? state->heads : 1) * state->d) {
		return pawl_ggml_decline(t, op, "cells of another width");
	}
	if (n % state->streams)
		return pawl_ggml_decline(t, op, "streams of unequal lengths");
	wanted.streams = state->streams;
	wanted.cells = state->cells;
	wanted.unit_bytes = state->form == PAWL_GGML_COLUMNS
				    ? pawl_dtype_info(dtype)->block_bytes
				    : pawl_dtype_bytes(dtype, dest->ne[0]);
	in[0] = NULL;
	x = &rows;
	for (s = 0; s < state->streams; s++) {
		struct pawl_node *all = pawl_ggml_read_as(t, op, 0, x, 2, natural);

		if (!all)
			return t->err->status;
		in[0] = pawl_ggml_state_node(t, state, s);
		in[1] = rows_of(t, state, all, s, n / state->streams);
		in[2] = index_list(t, state, s, &wanted, n / state->streams);
		attrs.axis = state->form == PAWL_GGML_COLUMNS ? 1 : 0;
		state->nodes[s] = in[1] && in[2] ? pawl_build(t->graph, PAWL_OP_WRITE_ROWS, NULL,
							   in, 3, &attrs, NULL)
						 : NULL;
	}
	return in[0] ? PAWL_OK : t->err->status;
}

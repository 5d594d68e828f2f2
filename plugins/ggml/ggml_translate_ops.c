/* Ops that compute elements or rows; a switch by op. */
#include "plugins/ggml/ggml_attend.h"
#include "runtime/kv_block_bytes.h"

#include <stdio.h>

/* Params that are not read must be 0: a host may know what they mean. */
static bool
has_other_params(const struct pawl_ggml_tensor *op, unsigned known)
{
	int i;

	for (i = 0; i < PAWL_GGML_PARAMS; i++)
		if (!(known >> i & 1) && op->params[i])
			return true;
	return false;
}

static enum pawl_status
set(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op, struct pawl_node *node)
{
	if (!node)
		return t->graph->error.status != PAWL_OK
			       ? pawl_ggml_decline(t, op, "%s", t->graph->error.text)
			       : t->err->status;
	pawl_ggml_set(t, op, node);
	return PAWL_OK;
}

/* A norm that waits for its weight, once both are read. */
static enum pawl_status
multiply(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
{
	int rank = pawl_ggml_value_rank(op), i;
	struct pawl_node *x, *y;

	for (i = 0; i < 2; i++) {
		const struct pawl_ggml_tensor *norm = op->src[i], *w = op->src[1 - i];
		struct pawl_ggml_value *value = pawl_ggml_value_find(t, norm);

		if (!value || value->pending != PAWL_GGML_NORM || value->n_uses != 1 ||
			!pawl_ggml_is_leaf(t, w) || !pawl_ggml_is_weight(t, w) ||
			w->ne[0] != norm->ne[0] || pawl_ggml_rank(w) != 1)
			continue;
		x = pawl_ggml_read(t, op, 1 - i, 1);
		y = value->node;
		if (!x || !y)
			return set(t, op, NULL);
		return set(t, op, pawl_build_rms_norm(t->graph, y, x, pawl_ggml_param_f32(norm, 0)));
	}
	x = pawl_ggml_read(t, op, 0, rank);
	y = x ? pawl_ggml_read(t, op, 1, rank) : NULL;
	return set(t, op, y ? pawl_build_binary(t->graph, PAWL_OP_MUL, x, y) : NULL);
}

static enum pawl_status
binary(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op, enum pawl_op pawl_op)
{
	int rank = pawl_ggml_value_rank(op);
	struct pawl_node *x = pawl_ggml_read(t, op, 0, rank);
	struct pawl_node *y = x ? pawl_ggml_read(t, op, 1, rank) : NULL;

	return set(t, op, y ? pawl_build_binary(t->graph, pawl_op, x, y) : NULL);
}

static enum pawl_status
scale(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
{
	struct pawl_node *x = pawl_ggml_read(t, op, 0, pawl_ggml_value_rank(op));
	float bias = pawl_ggml_param_f32(op, 1);
	struct pawl_type one;

	if (has_other_params(op, 3))
		return pawl_ggml_decline(t, op, "a parameter that is not known");
	if (!x)
		return set(t, op, NULL);
	x = pawl_build_scale(t->graph, x, pawl_ggml_param_f32(op, 0));
	if (bias != 0.0f && x) {
		one = pawl_type_make(PAWL_DTYPE_F32, 0, NULL);
		x = pawl_build_binary(
			t->graph, PAWL_OP_ADD, x, pawl_build_splat(t->graph, &one, bias));
	}
	return set(t, op, x);
}

static enum pawl_status
unary(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
{
	static const enum pawl_op ops[PAWL_GGML_UNARY_OTHER] = {
		[PAWL_GGML_UNARY_TANH] = PAWL_OP_TANH,
		[PAWL_GGML_UNARY_RELU] = PAWL_OP_RELU,
		[PAWL_GGML_UNARY_SIGMOID] = PAWL_OP_SIGMOID,
		[PAWL_GGML_UNARY_GELU] = PAWL_OP_GELU_TANH,
		[PAWL_GGML_UNARY_SILU] = PAWL_OP_SILU,
	};
	int32_t kind = op->params[0];
	struct pawl_node *x;

	if (kind < 0 || kind >= 64 || t->host->unary[kind] == PAWL_GGML_UNARY_OTHER ||
		has_other_params(op, 1))
		return pawl_ggml_decline(t, op, "function %d", kind);
	x = pawl_ggml_read(t, op, 0, pawl_ggml_value_rank(op));
	return set(
		t, op, x ? pawl_build_unary(t->graph, ops[t->host->unary[kind]], x) : NULL);
}

static enum pawl_status
glu(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
{
	int32_t kind = op->params[0];
	int rank = pawl_ggml_value_rank(op);
	enum pawl_op function;
	struct pawl_node *gate, *up;

	if (kind < 0 || kind >= 16 || t->host->glu[kind] == PAWL_GGML_GLU_OTHER ||
		!op->src[1] || has_other_params(op, 1))
		return pawl_ggml_decline(t, op, "kind %d, or one source", kind);
	function = t->host->glu[kind] == PAWL_GGML_GLU_GEGLU ? PAWL_OP_GELU_TANH : PAWL_OP_SILU;
	gate = pawl_ggml_read(t, op, 0, rank);
	up = gate ? pawl_ggml_read(t, op, 1, rank) : NULL;
	if (!up)
		return set(t, op, NULL);
	gate = pawl_build_unary(t->graph, function, gate);
	return set(t, op, pawl_build_binary(t->graph, PAWL_OP_MUL, gate, up));
}

/* Rows of a computed value that somebody asks for: as many as the host likes. */
static struct pawl_node *
row_list(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
{
	struct pawl_ggml_symbols *symbols = &t->out->symbols;
	const struct pawl_ggml_tensor *ids = op->src[1];
	struct pawl_ggml_value *value = pawl_ggml_value_find(t, ids);
	struct pawl_ggml_bind *bind;
	struct pawl_type type;
	int64_t most = 8;

	if (value || ids->view_src || symbols->tokens < 0 || ids->ne[0] <= 1 ||
		ids->ne[0] == symbols->n_tokens || (symbols->rows >= 0 && symbols->n_rows != ids->ne[0]))
		return pawl_ggml_read(t, op, 1, 1);
	if (symbols->rows < 0) {
		while (most < ids->ne[0])
			most *= 8;
		symbols->rows = pawl_graph_add_symbol(t->graph, "rows", 1, most, 1);
		symbols->n_rows = ids->ne[0];
	}
	bind = pawl_ggml_bind_add(
		t, PAWL_GGML_BIND_DATA, pawl_ggml_source_place(t, 1, true));
	if (!bind)
		return NULL;
	type = (struct pawl_type){.dtype = PAWL_DTYPE_I32,
		.rank = 1,
		.dim = {{0, 1, symbols->rows}}};
	value = pawl_ggml_value_add(t, ids, bind->tensor);
	value->node = pawl_ggml_const(t, bind, PAWL_ROLE_DATA, &type);
	return value->node;
}

static enum pawl_status
get_rows(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
{
	const struct pawl_ggml_tensor *table = op->src[0], *ids = op->src[1];
	struct pawl_ggml_value *value;
	struct pawl_node *rows, *list;

	if (table->ne[2] != 1 || table->ne[3] != 1 || pawl_ggml_rank(ids) != 1 || ids->type != 26)
		return pawl_ggml_decline(t, op, "more than one table or list");
	value = pawl_ggml_leaf(t, op, 0);
	if (!value)
		return t->err->status;
	if (value->node && value->node->type.rank == 2 && !table->view_src &&
		pawl_ggml_is_leaf(t, table))
		rows = value->node; /* decoded row by row */
	else
		rows = pawl_ggml_read(t, op, 0, 2);
	list = rows ? row_list(t, op) : NULL;
	return set(t, op, list ? pawl_build_gather(t->graph, rows, list) : NULL);
}

static enum pawl_status
rms_norm(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
{
	struct pawl_ggml_value *value = pawl_ggml_value_find(t, op);

	if (has_other_params(op, 1))
		return pawl_ggml_decline(t, op, "a parameter that is not known");
	value->node = pawl_ggml_read(t, op, 0, pawl_ggml_value_rank(op));
	if (!value->node)
		return set(t, op, NULL);
	value->pending = PAWL_GGML_NORM;
	return PAWL_OK;
}

static enum pawl_status
contiguous(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
{
	const struct pawl_ggml_tensor *x = op->src[0];
	struct pawl_ggml_value *value = x ? pawl_ggml_leaf(t, op, 0) : NULL;
	struct pawl_node *node;

	if (value && value->turned)
		node = pawl_ggml_read(t, op, 0, 3);
	else
		node = pawl_ggml_read(t, op, 0, pawl_ggml_value_rank(x));
	if (node && pawl_node_storage(node)->op == PAWL_OP_CONST)
		node = pawl_build_unary(t->graph, PAWL_OP_COPY, node);
	return set(t, op, node);
}

enum pawl_status
pawl_ggml_rope(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
{
	/* dims, mode, base, scale, ext, attn; the rest does nothing without ext. */
	enum { KNOWN = 0x7fe };
	const struct pawl_ggml_tensor *x = op->src[0], *at = op->src[1];
	int64_t width = op->params[1], n_tokens = x->ne[2];
	struct pawl_node *in[3];
	struct pawl_ggml_bind *bind = NULL;
	struct pawl_type type = {.dtype = PAWL_DTYPE_F32, .rank = 2};
	char name[16];
	int32_t i;

	if (has_other_params(op, KNOWN) || (op->params[2] != 0 && op->params[2] != 2) ||
		pawl_ggml_param_f32(op, 7) != 0.0f || x->ne[3] != 1 || at->ne[0] != n_tokens ||
		at->type != 26 || at->view_src || !pawl_ggml_is_leaf(t, at) || width < 2 ||
		width > PAWL_MAX_ROPE_WIDTH ||
		(op->src[2] && (op->src[2]->view_src || op->src[2]->type != 0 ||
				       op->src[2]->ne[0] < width / 2)))
		return pawl_ggml_decline(t, op, "a kind of rotation that is not known");
	in[0] = pawl_ggml_read(t, op, 0, 3);
	if (!in[0])
		return set(t, op, NULL);
	for (i = 0; i < t->out->n_binds; i++) {
		struct pawl_ggml_bind *other = &t->out->binds[i];

		if (other->kind == PAWL_GGML_BIND_ROPE &&
			pawl_ggml_at(t->source, &other->tensor) == at &&
			other->width == width && other->base == pawl_ggml_param_f32(op, 5) &&
			other->scale == pawl_ggml_param_f32(op, 6) &&
			other->magnitude == pawl_ggml_param_f32(op, 8) &&
			other->adjacent == (op->params[2] == 0) &&
			(other->factors.node < 0 ? NULL : pawl_ggml_at(t->source, &other->factors)) ==
				op->src[2])
			bind = other;
	}
	type.dim[0] = pawl_ggml_token_dim(t, n_tokens);
	type.dim[1] = pawl_dim_const(width);
	if (!bind) {
		bind = pawl_ggml_bind_add(
			t, PAWL_GGML_BIND_ROPE, pawl_ggml_source_place(t, 1, false));
		if (!bind)
			return set(t, op, NULL);
		t->out->n_numbers++;
		bind->width = width;
		bind->base = pawl_ggml_param_f32(op, 5);
		bind->scale = pawl_ggml_param_f32(op, 6);
		bind->magnitude = pawl_ggml_param_f32(op, 8);
		bind->adjacent = op->params[2] == 0;
		if (op->src[2])
			bind->factors = pawl_ggml_source_place(t, 2, false);
		in[1] = pawl_ggml_const(t, bind, PAWL_ROLE_DATA, &type);
		snprintf(name, sizeof(name), "d%d", (int)bind->number + 1);
		in[2] = pawl_build_const(t->graph, PAWL_ROLE_DATA, name, &type);
	} else {
		snprintf(name, sizeof(name), "d%d", (int)bind->number);
		in[1] = pawl_graph_find(t->graph, name);
		snprintf(name, sizeof(name), "d%d", (int)bind->number + 1);
		in[2] = pawl_graph_find(t->graph, name);
	}
	return set(t, op,
		pawl_build_rope(t->graph, in[0], in[1], in[2],
			op->params[2] == 0 ? PAWL_PAIRS_ADJACENT : PAWL_PAIRS_HALVES));
}

enum pawl_status
pawl_ggml_translate_op(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op)
{
	enum pawl_ggml_op kind = pawl_ggml_op_of(t->host, op);

	/* What is computed in the place of a source is nothing that is known here. */
	if (op->type != 0 && kind != PAWL_GGML_OP_SET_ROWS)
		return pawl_ggml_decline(t, op, "a result of type %d", op->type);
	if (op->view_src && kind != PAWL_GGML_OP_SET_ROWS)
		return pawl_ggml_decline(t, op, "in place");
	if (!op->view_src && !pawl_ggml_is_contiguous(op))
		return pawl_ggml_decline(t, op, "a result with gaps");
	if (!op->src[0])
		return pawl_ggml_decline(t, op, "no source");
	switch (kind) {
	case PAWL_GGML_OP_ADD:
		return binary(t, op, PAWL_OP_ADD);
	case PAWL_GGML_OP_SUB:
		return binary(t, op, PAWL_OP_SUB);
	case PAWL_GGML_OP_DIV:
		return binary(t, op, PAWL_OP_DIV);
	case PAWL_GGML_OP_MUL:
		return multiply(t, op);
	case PAWL_GGML_OP_SCALE:
		return scale(t, op);
	case PAWL_GGML_OP_CONT:
		return contiguous(t, op);
	case PAWL_GGML_OP_GET_ROWS:
		return get_rows(t, op);
	case PAWL_GGML_OP_RMS_NORM:
		return rms_norm(t, op);
	case PAWL_GGML_OP_UNARY:
		return unary(t, op);
	case PAWL_GGML_OP_GLU:
		return glu(t, op);
	case PAWL_GGML_OP_ROPE:
		return pawl_ggml_rope(t, op);
	case PAWL_GGML_OP_SET_ROWS:
		return pawl_ggml_set_rows(t, op);
	case PAWL_GGML_OP_MUL_MAT:
		return pawl_ggml_mul_mat(t, op);
	case PAWL_GGML_OP_SOFT_MAX:
		return pawl_ggml_soft_max(t, op);
	case PAWL_GGML_OP_ATTENTION:
		return pawl_ggml_attention(t, op);
	case PAWL_GGML_OP_NONE:
	case PAWL_GGML_OP_RESHAPE:
	case PAWL_GGML_OP_VIEW:
	case PAWL_GGML_OP_PERMUTE:
	case PAWL_GGML_OP_TRANSPOSE:
		return PAWL_OK;
	case PAWL_GGML_OP_OTHER:
	case PAWL_GGML_N_OPS:
		break;
	}
	return pawl_ggml_decline(t, op, "not known");
}

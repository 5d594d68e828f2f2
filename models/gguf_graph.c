#include "models/gguf_graph.h"

#include <stdio.h>

static struct pawl_node *
weight(struct pawl_gguf_builder *b, const char *name)
{
	const struct pawl_gguf_tensor *t = pawl_gguf_find_tensor(b->gguf, name);
	struct pawl_type type;
	int64_t dims[2];

	if (!t) {
		pawl_fail(&b->graph->error, PAWL_INVALID_FILE, "%s: tensor %s is missing",
			b->gguf->name, name);
		return NULL;
	}
	dims[0] = t->rank == 2 ? t->dims[1] : t->dims[0];
	dims[1] = t->dims[0];
	type = pawl_type_make(t->dtype, t->rank, dims);
	return pawl_build_const(b->graph, PAWL_ROLE_WEIGHT, name, &type);
}

static struct pawl_node *
layer_weight(struct pawl_gguf_builder *b, int64_t layer, const char *what)
{
	char name[64];

	snprintf(name, sizeof(name), "blk.%lld.%s.weight", (long long)layer, what);
	return weight(b, name);
}

static void
bias_name(char room[64], int64_t layer, const char *what)
{
	snprintf(room, 64, "blk.%lld.%s.bias", (long long)layer, what);
}

bool
pawl_gguf_has_bias(const struct pawl_gguf *gguf, int64_t layer, const char *what)
{
	char name[64];

	bias_name(name, layer, what);
	return pawl_gguf_find_tensor(gguf, name) != NULL;
}

enum pawl_status
pawl_gguf_builder_init(struct pawl_gguf_builder *b, const char *name, const struct pawl_gguf *gguf,
	const struct pawl_model_config *config, const struct pawl_graph_request *request,
	struct pawl_error *err)
{
	*b = (struct pawl_gguf_builder){.gguf = gguf, .config = config};
	b->graph = pawl_graph_new(name);
	if (!b->graph)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a graph");
	pawl_decode_add_inputs(b->graph, request, config->n_rot, &b->in);
	if (config->window_rope_base != 0.0)
		pawl_decode_add_window_rope(b->graph, config->n_rot, &b->in);
	return PAWL_OK;
}

struct pawl_node *
pawl_gguf_embed(struct pawl_gguf_builder *b)
{
	struct pawl_node *x =
		pawl_build_gather(b->graph, weight(b, "token_embd.weight"), b->in.ids);
	double scale = b->config->embedding_scale;

	return scale == 1.0 ? x : pawl_build_scale(b->graph, x, scale);
}

static struct pawl_node *
norm(struct pawl_gguf_builder *b, struct pawl_node *x, struct pawl_node *w)
{
	return pawl_build_rms_norm(b->graph, x, w, b->config->eps);
}

struct pawl_node *
pawl_gguf_norm(struct pawl_gguf_builder *b, int64_t layer, const char *what, struct pawl_node *x)
{
	return norm(b, x, layer_weight(b, layer, what));
}

struct pawl_node *
pawl_gguf_project(struct pawl_gguf_builder *b, int64_t layer, const char *what, struct pawl_node *x)
{
	struct pawl_node *y = pawl_build_matmul(b->graph, x, layer_weight(b, layer, what));
	char name[64];

	if (!pawl_gguf_has_bias(b->gguf, layer, what))
		return y;
	bias_name(name, layer, what);
	return pawl_build_binary(b->graph, PAWL_OP_ADD, y, weight(b, name));
}

struct pawl_node *
pawl_gguf_project_heads(struct pawl_gguf_builder *b, int64_t layer, const char *what,
	int64_t n_heads, struct pawl_node *x)
{
	const int64_t dims[] = {b->in.request->n_tokens, n_heads, b->config->head_dim};

	return pawl_build_reshape(b->graph, pawl_gguf_project(b, layer, what, x), 3, dims);
}

static struct pawl_node *
turn(struct pawl_gguf_builder *b, bool has_window, struct pawl_node *x)
{
	bool own = has_window && b->in.window_cos;

	return pawl_build_rope(b->graph, x, own ? b->in.window_cos : b->in.cos,
		own ? b->in.window_sin : b->in.sin, b->config->rope_pairs);
}

static struct pawl_node *
append(struct pawl_gguf_builder *b, const char *which, int64_t layer, enum pawl_layout layout,
	int64_t window, struct pawl_node *x)
{
	const struct pawl_decode_cache_spec spec = {
		which, layer, b->config->n_kv_heads, b->config->head_dim, layout, window};

	return pawl_decode_append(b->graph, &b->in, pawl_decode_cache(b->graph, &b->in, &spec), x);
}

struct pawl_node *
pawl_gguf_attend(struct pawl_gguf_builder *b, int64_t layer, struct pawl_node *q,
	struct pawl_node *k, struct pawl_node *v)
{
	const struct pawl_model_config *c = b->config;
	const int64_t flat[] = {b->in.request->n_tokens, c->n_heads * c->head_dim};
	bool has_window = pawl_layer_set_has(&c->window_layers, layer);
	struct pawl_attrs attrs = pawl_attrs_default();
	struct pawl_node **kv = &b->kv[2 * layer], *y;

	attrs.scale = c->attention_scale;
	attrs.window = has_window ? c->window : 0;
	q = turn(b, has_window, q);
	kv[0] = append(b, "k", layer, PAWL_LAYOUT_K16, attrs.window, turn(b, has_window, k));
	kv[1] = append(b, "v", layer, PAWL_LAYOUT_ROWS, attrs.window, v);
	y = pawl_decode_attend(b->graph, &b->in, q, kv[0], kv[1], &attrs);
	return pawl_gguf_project(b, layer, "attn_output", pawl_build_reshape(b->graph, y, 2, flat));
}

struct pawl_node *
pawl_gguf_feed_forward(
	struct pawl_gguf_builder *b, int64_t layer, enum pawl_op activation, struct pawl_node *x)
{
	struct pawl_node *gate = pawl_gguf_project(b, layer, "ffn_gate", x);
	struct pawl_node *up = pawl_gguf_project(b, layer, "ffn_up", x);

	gate = pawl_build_unary(b->graph, activation, gate);
	return pawl_gguf_project(
		b, layer, "ffn_down", pawl_build_binary(b->graph, PAWL_OP_MUL, gate, up));
}

static struct pawl_node *
head(struct pawl_gguf_builder *b, struct pawl_node *x)
{
	x = pawl_decode_wanted_rows(b->graph, &b->in, x);
	x = norm(b, x, weight(b, "output_norm.weight"));
	x = pawl_build_matmul(b->graph, x,
		b->config->has_head ? weight(b, "output.weight")
				    : pawl_graph_find(b->graph, "token_embd.weight"));
	return b->in.request->logits == PAWL_LOGITS_GREEDY
		       ? pawl_build_unary(b->graph, PAWL_OP_ARGMAX, x)
		       : x;
}

enum pawl_status
pawl_gguf_builder_finish(struct pawl_gguf_builder *b, struct pawl_node *x, struct pawl_graph **out,
	struct pawl_error *err)
{
	struct pawl_graph *graph = b->graph;

	if (b->in.request->logits != PAWL_LOGITS_NONE)
		pawl_graph_add_output(graph, head(b, x));
	for (int64_t i = 0; i < 2 * b->config->n_layers; i++)
		pawl_graph_add_output(graph, b->kv[i]);
	if (graph->error.status != PAWL_OK) {
		enum pawl_status status =
			pawl_fail(err, graph->error.status, "%s", graph->error.text);

		pawl_graph_free(graph);
		return status;
	}
	*out = graph;
	return PAWL_OK;
}

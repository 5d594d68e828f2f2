#include "models/llama_graph.h"

#include <math.h>
#include <stdio.h>

#include "models/decode_graph.h"

struct builder {
	struct pawl_graph *g;
	const struct pawl_gguf *gguf;
	const struct pawl_llama_config *c;
	struct pawl_decode_inputs in;
};

static struct pawl_node *
weight(struct builder *b, const char *name)
{
	const struct pawl_gguf_tensor *t = pawl_gguf_find_tensor(b->gguf, name);
	struct pawl_type type;
	int64_t dims[2];

	if (!t) {
		pawl_fail(&b->g->error, PAWL_INVALID_FILE, "%s: tensor %s is missing", b->gguf->name, name);
		return NULL;
	}
	dims[0] = t->rank == 2 ? t->dims[1] : t->dims[0];
	dims[1] = t->dims[0];
	type = pawl_type_make(t->dtype, t->rank, dims);
	return pawl_build_const(b->g, PAWL_ROLE_WEIGHT, name, &type);
}

static struct pawl_node *
layer_weight(struct builder *b, int64_t layer, const char *what)
{
	char name[64];

	snprintf(name, sizeof(name), "blk.%lld.%s.weight", (long long)layer, what);
	return weight(b, name);
}

/* x times a weight of the layer, plus its bias where the file has one. */
static struct pawl_node *
project(struct builder *b, int64_t layer, const char *what, struct pawl_node *x)
{
	struct pawl_node *y = pawl_build_matmul(b->g, x, layer_weight(b, layer, what));
	char name[64];

	if (!pawl_llama_has_bias(b->gguf, layer, what))
		return y;
	snprintf(name, sizeof(name), "blk.%lld.%s.bias", (long long)layer, what);
	return pawl_build_binary(b->g, PAWL_OP_ADD, y, weight(b, name));
}

static struct pawl_node *
split_heads(struct builder *b, struct pawl_node *x, int64_t n_heads)
{
	int64_t dims[3] = {b->in.request->n_tokens, n_heads, b->c->head_dim};

	return pawl_build_reshape(b->g, x, 3, dims);
}

static struct pawl_node *
append(struct builder *b, const char *which, int64_t layer, enum pawl_layout layout,
	struct pawl_node *x)
{
	const struct pawl_decode_cache_spec spec = {
		which, layer, b->c->n_kv_heads, b->c->head_dim, layout, 0};
	struct pawl_node *cache = pawl_decode_cache(b->g, &b->in, &spec);

	return pawl_decode_append(b->g, &b->in, cache, x);
}

static struct pawl_node *
attention(struct builder *b, int64_t layer, struct pawl_node *x, struct pawl_node **kv)
{
	const struct pawl_llama_config *c = b->c;
	struct pawl_attrs attrs = pawl_attrs_default();
	int64_t flat[2] = {b->in.request->n_tokens, c->n_heads * c->head_dim};
	struct pawl_node *q, *k, *v, *y;

	q = split_heads(b, project(b, layer, "attn_q", x), c->n_heads);
	k = split_heads(b, project(b, layer, "attn_k", x), c->n_kv_heads);
	v = split_heads(b, project(b, layer, "attn_v", x), c->n_kv_heads);
	q = pawl_build_rope(b->g, q, b->in.cos, b->in.sin, PAWL_PAIRS_ADJACENT);
	k = pawl_build_rope(b->g, k, b->in.cos, b->in.sin, PAWL_PAIRS_ADJACENT);
	kv[0] = append(b, "k", layer, PAWL_LAYOUT_K16, k);
	kv[1] = append(b, "v", layer, PAWL_LAYOUT_ROWS, v);
	attrs.scale = 1.0 / sqrt((double)c->head_dim);
	y = pawl_decode_attend(b->g, &b->in, q, kv[0], kv[1], &attrs);
	return project(b, layer, "attn_output", pawl_build_reshape(b->g, y, 2, flat));
}

static struct pawl_node *
feed_forward(struct builder *b, int64_t layer, struct pawl_node *x)
{
	struct pawl_node *gate = project(b, layer, "ffn_gate", x);
	struct pawl_node *up = project(b, layer, "ffn_up", x);

	gate = pawl_build_unary(b->g, PAWL_OP_SILU, gate);
	return project(b, layer, "ffn_down", pawl_build_binary(b->g, PAWL_OP_MUL, gate, up));
}

static struct pawl_node *
norm(struct builder *b, struct pawl_node *x, struct pawl_node *w)
{
	return pawl_build_rms_norm(b->g, x, w, b->c->eps);
}

static struct pawl_node *
head(struct builder *b, struct pawl_node *x, struct pawl_node *embedding)
{
	x = pawl_decode_wanted_rows(b->g, &b->in, x);
	x = norm(b, x, weight(b, "output_norm.weight"));
	return pawl_build_matmul(b->g, x, b->c->has_head ? weight(b, "output.weight") : embedding);
}

enum pawl_status
pawl_llama_graph(const struct pawl_gguf *gguf, const struct pawl_llama_config *config,
	const struct pawl_graph_request *request, struct pawl_graph **out, struct pawl_error *err)
{
	struct builder b = {.gguf = gguf, .c = config};
	struct pawl_node *kv[2 * PAWL_LLAMA_MAX_LAYERS], *x, *embedding;
	int64_t i;

	b.g = pawl_graph_new("llama");
	if (!b.g)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a graph");
	pawl_decode_add_inputs(b.g, request, config->n_rot, &b.in);
	embedding = weight(&b, "token_embd.weight");
	x = pawl_build_gather(b.g, embedding, b.in.ids);
	for (i = 0; i < config->n_layers; i++) {
		struct pawl_node *y = norm(&b, x, layer_weight(&b, i, "attn_norm"));

		x = pawl_build_binary(b.g, PAWL_OP_ADD, attention(&b, i, y, &kv[2 * i]), x);
		y = norm(&b, x, layer_weight(&b, i, "ffn_norm"));
		x = pawl_build_binary(b.g, PAWL_OP_ADD, feed_forward(&b, i, y), x);
	}
	if (request->logits != PAWL_LOGITS_NONE)
		pawl_graph_add_output(b.g, head(&b, x, embedding));
	for (i = 0; i < 2 * config->n_layers; i++)
		pawl_graph_add_output(b.g, kv[i]);
	if (b.g->error.status != PAWL_OK) {
		enum pawl_status status = pawl_fail(err, b.g->error.status, "%s", b.g->error.text);

		pawl_graph_free(b.g);
		return status;
	}
	*out = b.g;
	return PAWL_OK;
}

#include "models/gemma_graph.h"

#include "models/gguf_graph.h"

static struct pawl_node *
attention(struct pawl_gguf_builder *b, int64_t layer, struct pawl_node *x)
{
	const struct pawl_model_config *c = b->config;
	struct pawl_node *q = pawl_gguf_project_heads(b, layer, "attn_q", c->n_heads, x);
	struct pawl_node *k = pawl_gguf_project_heads(b, layer, "attn_k", c->n_kv_heads, x);
	struct pawl_node *v = pawl_gguf_project_heads(b, layer, "attn_v", c->n_kv_heads, x);

	q = pawl_gguf_norm(b, layer, "attn_q_norm", q);
	k = pawl_gguf_norm(b, layer, "attn_k_norm", k);
	return pawl_gguf_attend(b, layer, q, k, v);
}

enum pawl_status
pawl_gemma_graph(const struct pawl_gguf *gguf, const struct pawl_model_config *config,
	const struct pawl_graph_request *request, struct pawl_graph **out, struct pawl_error *err)
{
	struct pawl_gguf_builder b;
	enum pawl_status status = pawl_gguf_builder_init(&b, "gemma3", gguf, config, request, err);
	struct pawl_node *x, *y;

	if (status != PAWL_OK)
		return status;
	x = pawl_gguf_embed(&b);
	for (int64_t i = 0; i < config->n_layers; i++) {
		y = attention(&b, i, pawl_gguf_norm(&b, i, "attn_norm", x));
		y = pawl_gguf_norm(&b, i, "post_attention_norm", y);
		x = pawl_build_binary(b.graph, PAWL_OP_ADD, y, x);
		y = pawl_gguf_norm(&b, i, "ffn_norm", x);
		y = pawl_gguf_feed_forward(&b, i, PAWL_OP_GELU_TANH, y);
		y = pawl_gguf_norm(&b, i, "post_ffw_norm", y);
		x = pawl_build_binary(b.graph, PAWL_OP_ADD, y, x);
	}
	return pawl_gguf_builder_finish(&b, x, out, err);
}

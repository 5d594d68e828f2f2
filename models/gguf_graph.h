/*
 * Building the step graph of a decoder from a GGUF file: what the families share.  Private to
 *models/.
 *
 * Bind points: token data as models/decode_graph.h names them, the weights by their GGUF names, and
 * for a cache of M positions (fewer in a ring)
 *	cache.k.<layer>	kv	[1, n_kv_heads, M, head_dim]@k16
 *	cache.v.<layer>	kv	[1, n_kv_heads, M, head_dim]
 * Outputs: logits f32[T or 1, n_vocab] unless none are asked for, then the written caches, k and v
 *of layer 0 first.
 */
#ifndef PAWL_MODELS_GGUF_GRAPH_H
#define PAWL_MODELS_GGUF_GRAPH_H

#include "models/decode_graph.h"
#include "models/model_config.h"

struct pawl_gguf_builder {
	struct pawl_graph *graph;
	const struct pawl_gguf *gguf;
	const struct pawl_model_config *config;
	struct pawl_decode_inputs in;
	struct pawl_node *kv[2 * PAWL_MAX_MODEL_LAYERS]; /* the written caches */
};

/* Whether layer i has a bias named blk.<i>.<what>.bias. */
bool pawl_gguf_has_bias(const struct pawl_gguf *gguf, int64_t layer, const char *what);

/* The graph and its token data.  Errors of all others stay in graph->error. */
enum pawl_status pawl_gguf_builder_init(struct pawl_gguf_builder *b, const char *name,
	const struct pawl_gguf *gguf, const struct pawl_model_config *config,
	const struct pawl_graph_request *request, struct pawl_error *err);

/* The rows of the embedding, scaled as the config says. */
struct pawl_node *pawl_gguf_embed(struct pawl_gguf_builder *b);
/* blk.<layer>.<what>.weight applied to x: rms_norm over the last axis; a projection with the bias
 * there is. */
struct pawl_node *pawl_gguf_norm(
	struct pawl_gguf_builder *b, int64_t layer, const char *what, struct pawl_node *x);
struct pawl_node *pawl_gguf_project(
	struct pawl_gguf_builder *b, int64_t layer, const char *what, struct pawl_node *x);
/* The projection as f32[T, n_heads, head_dim]. */
struct pawl_node *pawl_gguf_project_heads(struct pawl_gguf_builder *b, int64_t layer,
	const char *what, int64_t n_heads, struct pawl_node *x);
/* q f32[T, heads, head_dim], k and v f32[T, n_kv_heads, head_dim] before rope: the attention's
 * projection. */
struct pawl_node *pawl_gguf_attend(struct pawl_gguf_builder *b, int64_t layer, struct pawl_node *q,
	struct pawl_node *k, struct pawl_node *v);
/* down(activation(gate(x)) * up(x)) */
struct pawl_node *pawl_gguf_feed_forward(
	struct pawl_gguf_builder *b, int64_t layer, enum pawl_op activation, struct pawl_node *x);

/* Adds the outputs for the last layer's x and hands over the graph, or frees it. */
enum pawl_status pawl_gguf_builder_finish(struct pawl_gguf_builder *b, struct pawl_node *x,
	struct pawl_graph **out, struct pawl_error *err);

#endif

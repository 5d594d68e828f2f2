/*
 * The step graph of a model of family `llama`.
 *
 * Bind points: token data as models/decode_graph.h names them, the weights by their GGUF names, and
 * for a cache of M positions
 *	cache.k.<layer>	kv	[1, n_kv_heads, M, head_dim]@k16
 *	cache.v.<layer>	kv	[1, n_kv_heads, M, head_dim]
 * Outputs: logits f32[T or 1, n_vocab] unless none are asked for, then the written caches, k and v of
 * layer 0 first.
 */
#ifndef PAWL_MODELS_LLAMA_GRAPH_H
#define PAWL_MODELS_LLAMA_GRAPH_H

#include "models/llama_config.h"
#include "runtime/model_source.h"

/* gguf gives the weights' types. */
enum pawl_status pawl_llama_graph(const struct pawl_gguf *gguf, const struct pawl_llama_config *config,
	const struct pawl_graph_request *request, struct pawl_graph **out, struct pawl_error *err);

#endif

/*
 * The step graph of a model of family `gemma3`, as models/gguf_graph.h describes it: norms before
 * and after attention and feed-forward, queries and keys normed per head, gelu in its tanh form.
 */
#ifndef PAWL_MODELS_GEMMA_GRAPH_H
#define PAWL_MODELS_GEMMA_GRAPH_H

#include "models/gemma_config.h"

enum pawl_status pawl_gemma_graph(const struct pawl_gguf *gguf,
	const struct pawl_model_config *config, const struct pawl_graph_request *request,
	struct pawl_graph **out, struct pawl_error *err);

#endif

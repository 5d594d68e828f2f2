/* The step graph of a model of family `llama`, as models/gguf_graph.h describes it. */
#ifndef PAWL_MODELS_LLAMA_GRAPH_H
#define PAWL_MODELS_LLAMA_GRAPH_H

#include "models/llama_config.h"

enum pawl_status pawl_llama_graph(const struct pawl_gguf *gguf,
	const struct pawl_model_config *config, const struct pawl_graph_request *request,
	struct pawl_graph **out, struct pawl_error *err);

#endif

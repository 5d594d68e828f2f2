#include "runtime/kv_alloc.h"

#include <stdio.h>

#include "ir/build.h"

/* An output for each type: an alloc that is zero-filled. */
static struct pawl_graph *
alloc_graph(int32_t n, const struct pawl_type *types)
{
	struct pawl_graph *graph = pawl_graph_new("kv_cache");

	for (int32_t i = 0; graph && i < n; i++) {
		struct pawl_node *node;
		char name[32];

		snprintf(name, sizeof(name), "cache.%d", i);
		node = pawl_build(graph, PAWL_OP_ALLOC, name, NULL, 0, NULL, &types[i]);
		node = pawl_build(graph, PAWL_OP_ZERO_FILL, NULL, &node, 1, NULL, NULL);
		if (node)
			pawl_graph_add_output(graph, node);
	}
	return graph;
}

enum pawl_status
pawl_kv_alloc(struct pawl_inference_context *context, int32_t n, const struct pawl_type *types,
	struct pawl_storage **out, struct pawl_error *err)
{
	struct pawl_graph *graph = alloc_graph(n, types);
	enum pawl_status status;

	if (!graph)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for the graph of a cache");
	if (graph->error.status)
		status = pawl_fail(err,
			graph->error.status == PAWL_OUT_OF_MEMORY ? PAWL_OUT_OF_MEMORY
								  : PAWL_INVALID_ARGUMENT,
			"%s", graph->error.text);
	else if (graph->n_outputs != n)
		status = pawl_fail(err, PAWL_INTERNAL, "a cache of %d tensors came out as %d", n,
			graph->n_outputs);
	else
		status = pawl_realize_many(context, graph, NULL, out, err);
	pawl_graph_free(graph);
	return status;
}

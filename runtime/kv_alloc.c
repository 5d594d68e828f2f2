#include "runtime/kv_alloc.h"

#include "ir/build.h"

/* An output for each type: an alloc that is zero-filled. */
static struct pawl_graph *
alloc_graph(int32_t n, const struct pawl_type *types)
{
	struct pawl_graph *graph = pawl_graph_new("kv_cache");

	for (int32_t i = 0; graph && i < n; i++) {
		/* Without a name, which is looked for among all others. */
		struct pawl_node *node =
			pawl_build(graph, PAWL_OP_ALLOC, NULL, NULL, 0, NULL, &types[i]);

		node = pawl_build(graph, PAWL_OP_ZERO_FILL, NULL, &node, 1, NULL, NULL);
		if (node)
			pawl_graph_add_output(graph, node);
	}
	return graph;
}

/* Memory of a device is had zeroed, with nothing to compile. */
static enum pawl_status
alloc_on(struct pawl_device *device, int32_t n, const struct pawl_type *types,
	struct pawl_storage **out, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;
	int32_t i;

	for (i = 0; i < n && !status; i++)
		status = pawl_storage_new_on(device, NULL, &types[i], &out[i], err);
	while (status && --i > 0)
		pawl_storage_unref(out[i - 1]);
	return status;
}

enum pawl_status
pawl_kv_alloc(struct pawl_inference_context *context, int32_t n, const struct pawl_type *types,
	struct pawl_storage **out, struct pawl_error *err)
{
	struct pawl_device *device = pawl_inference_context_device(context);
	struct pawl_graph *graph;
	enum pawl_status status;

	if (device->api->memory)
		return alloc_on(device, n, types, out, err);
	graph = alloc_graph(n, types);
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

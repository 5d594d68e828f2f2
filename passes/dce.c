/*
 * dce: removes nodes that reach neither an output nor state that outlives the run: a write into a kv
 * const is kept for its effect.  A const that nothing reads goes too, and is no bind point then.
 */
#include "passes/pass.h"

static bool
is_effect(const struct pawl_node *node)
{
	const struct pawl_node *storage;

	if (!pawl_op_has(node->op, PAWL_OPF_INPLACE))
		return false;
	storage = pawl_node_storage(node);
	return storage->op == PAWL_OP_CONST && storage->attrs.role == PAWL_ROLE_KV;
}

enum pawl_status
pawl_pass_dce(struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	struct pawl_node *node, *prev;

	(void)err;
	for (node = graph->last; node; node = prev) {
		prev = node->prev;
		if (pawl_node_is_used(node) || is_effect(node))
			continue;
		pawl_graph_remove(graph, node);
		ctx->n_changes++;
	}
	return PAWL_OK;
}

/*
 * form-groups: every node that runs becomes a group of its own, numbered in list order.  The fuse
 * passes that follow merge groups; what they leave alone runs as a step by itself.
 */
#include "passes/group.h"
#include "passes/pass.h"

enum pawl_status
pawl_pass_form_groups(struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	struct pawl_node *node;

	(void)err;
	graph->n_groups = 0;
	pawl_foreach_node(node, graph) {
		node->group = pawl_node_runs(node) ? graph->n_groups++ : -1;
		ctx->n_changes += node->group >= 0;
	}
	return PAWL_OK;
}

/*
 * fuse-query: rope and elementwise ops that only make the query of an attention join its group; they
 * are computed where a query row is first used.
 *
 *	%r = rope %q, %cos, %sin : f32[1, 9, 64] #5
 *	%y = attention %r, %k, %v, %offset : f32[1, 9, 64] #6
 * becomes all of #5.
 */
#include "passes/group.h"
#include "passes/pass.h"

enum pawl_status
pawl_pass_fuse_query(struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	struct pawl_node *node, *q;

	(void)err;
	pawl_foreach_node(node, graph) {
		if (!pawl_op_attends(node->op))
			continue;
		q = node->inputs[0].def;
		if (q->group >= 0 && q->group != node->group && pawl_group_merge(graph, q, node))
			ctx->n_changes++;
	}
	return PAWL_OK;
}

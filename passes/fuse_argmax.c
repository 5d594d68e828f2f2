/*
 * fuse-argmax: elementwise ops that stand between logits and the argmax that reads them join its
 * group, so that a row is read once.
 *
 *	%s = scale %l {scale = 0.5} : f32[1, 100] #7
 *	%a = argmax %s : i32[1] #8
 * becomes all of #7.
 */
#include "passes/group.h"
#include "passes/pass.h"

enum pawl_status
pawl_pass_fuse_argmax(struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	struct pawl_node *node, *x;

	(void)err;
	pawl_foreach_node(node, graph) {
		if (node->op != PAWL_OP_ARGMAX)
			continue;
		x = node->inputs[0].def;
		if (x->group >= 0 && pawl_group_merge(graph, x, node))
			ctx->n_changes++;
	}
	return PAWL_OK;
}

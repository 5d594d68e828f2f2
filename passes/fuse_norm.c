/*
 * fuse-norm: row ops that feed row ops over the same rows share a group, so that a row stays in
 * cache from norm to quantized blocks.
 *
 *	%n = rms_norm %x, %w {eps = 1e-05} : f32[8, 64] #0
 *	%q = quantize %n {dtype = a16} : a16[8, 64] #1
 * becomes
 *	%n = rms_norm %x, %w {eps = 1e-05} : f32[8, 64] #0
 *	%q = quantize %n {dtype = a16} : a16[8, 64] #0
 *
 * An elementwise op joins in front of a row op too.  Both must be over equal dims and linked
 * directly, since a unit is one row.
 */
#include "passes/group.h"
#include "passes/pass.h"

enum pawl_status
pawl_pass_fuse_norm(struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	struct pawl_node *node, *x;

	(void)err;
	pawl_foreach_node(node, graph) {
		if (!pawl_op_has(node->op, PAWL_OPF_ROW))
			continue;
		x = node->inputs[0].def;
		if (x->group >= 0 && x->group != node->group && pawl_group_merge(graph, x, node))
			ctx->n_changes++;
	}
	return PAWL_OK;
}

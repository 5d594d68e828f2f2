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
 * An elementwise op joins in front of a row op too, and in front of that a row op which only it
 * reads: a norm after a block, the sum, the norm before the next.  All must be over equal dims and
 * linked directly, since a unit is one row.
 */
#include "passes/group.h"
#include "passes/pass.h"

/* What an elementwise op of a group of row ops reads of a row op that nothing else reads. */
static bool
join_norm_before(struct pawl_graph *graph, struct pawl_node *node)
{
	struct pawl_group group;

	if (!pawl_op_has(node->op, PAWL_OPF_ELEM) || node->group < 0)
		return false;
	pawl_group_of(node, &group);
	if (pawl_group_template(&group) != PAWL_TEMPLATE_ROWS)
		return false;
	for (int i = 0; i < node->n_inputs; i++) {
		struct pawl_node *x = node->inputs[i].def;

		if (x->group >= 0 && x->group != node->group && pawl_op_has(x->op, PAWL_OPF_ROW) &&
			pawl_node_only_user(x) == node && pawl_group_merge(graph, x, node))
			return true;
	}
	return false;
}

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
	pawl_foreach_node(node, graph) {
		if (join_norm_before(graph, node))
			ctx->n_changes++;
	}
	return PAWL_OK;
}

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

static bool
is_row_group(const struct pawl_group *group)
{
	enum pawl_template t = pawl_group_template(group);
	int i;

	if (t != PAWL_TEMPLATE_ROWS && t != PAWL_TEMPLATE_MAP)
		return false;
	for (i = 0; i < group->n; i++) {
		if (!pawl_op_has(group->nodes[i]->op, PAWL_OPF_ROW | PAWL_OPF_ELEM) &&
			group->nodes[i]->op != PAWL_OP_ARGMAX)
			return false;
	}
	return true;
}

/* The group that feeds input 0 of `node` and may be computed with it, row by row. */
static struct pawl_node *
row_producer(const struct pawl_node *node)
{
	struct pawl_node *x = node->inputs[0].def;
	struct pawl_group group;

	if (x->group < 0 || x->group == node->group || !pawl_type_same_dims(&x->type, &node->type))
		return NULL;
	pawl_group_of(x, &group);
	return is_row_group(&group) ? x : NULL;
}

enum pawl_status
pawl_pass_fuse_norm(struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	struct pawl_node *node, *x;

	(void)err;
	pawl_foreach_node(node, graph) {
		if (!pawl_op_has(node->op, PAWL_OPF_ROW))
			continue;
		x = row_producer(node);
		if (x && pawl_group_merge(graph, x, node))
			ctx->n_changes++;
	}
	return PAWL_OK;
}

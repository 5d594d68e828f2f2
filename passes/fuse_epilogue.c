/*
 * fuse-epilogue: an elementwise node over the result of a matmul, gather or attention joins its
 * group and is computed while the result is still in registers.
 *
 *	%g = matmul %x, %wg : f32[1, 64] #3
 *	%u = matmul %x, %wu : f32[1, 64] #3
 *	%s = silu %g : f32[1, 64] #4
 *	%m = mul %s, %u : f32[1, 64] #5
 * becomes all of #3.
 *
 * Every operand is a result in that group, read without a view between, or comes from outside.
 */
#include "passes/group.h"
#include "passes/pass.h"

static bool
takes_epilogue(struct pawl_node *value)
{
	struct pawl_group group;
	enum pawl_template t;

	if (value->group < 0)
		return false;
	pawl_group_of(value, &group);
	t = pawl_group_template(&group);
	return t == PAWL_TEMPLATE_MATMUL || t == PAWL_TEMPLATE_GATHER || t == PAWL_TEMPLATE_ATTEND;
}

/* Joins the group of an operand, the last one first: a residual comes from far above. */
static bool
join_host(struct pawl_graph *graph, struct pawl_node *node)
{
	int i;

	for (i = node->n_inputs - 1; i >= 0; i--) {
		struct pawl_node *x = node->inputs[i].def;

		if (x->group != node->group && takes_epilogue(x) && pawl_group_merge(graph, x, node))
			return true;
	}
	return false;
}

enum pawl_status
pawl_pass_fuse_epilogue(struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	struct pawl_node *node, *next;

	(void)err;
	for (node = graph->first; node; node = next) {
		next = node->next;
		if (node->group >= 0 && pawl_op_has(node->op, PAWL_OPF_ELEM) && join_host(graph, node))
			ctx->n_changes++;
	}
	return PAWL_OK;
}

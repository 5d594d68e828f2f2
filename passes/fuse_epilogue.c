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
 * Every operand is a value of the group over the same dims, read without a view between, or comes
 * from outside.  The matmuls that one epilogue joins must have equally many rows.
 */
#include "passes/group.h"
#include "passes/pass.h"
#include "passes/view.h"

static bool
takes_epilogue(const struct pawl_node *value)
{
	struct pawl_group group;
	enum pawl_template t;

	pawl_group_of((struct pawl_node *)value, &group);
	t = pawl_group_template(&group);
	return t == PAWL_TEMPLATE_MATMUL || t == PAWL_TEMPLATE_GATHER || t == PAWL_TEMPLATE_ATTEND;
}

/* Whether value is made in its group at or behind the matmul, gather or attention. */
static bool
is_result(const struct pawl_node *value)
{
	struct pawl_group group;
	int i;

	pawl_group_of((struct pawl_node *)value, &group);
	for (i = 0; i < group.n; i++) {
		enum pawl_op op = group.nodes[i]->op;

		if (op == PAWL_OP_MATMUL || op == PAWL_OP_GATHER || op == PAWL_OP_ATTENTION)
			return true;
		if (group.nodes[i] == value)
			return false;
	}
	return false;
}

/* Whether x, an operand of node, is a result that node may be computed from in registers. */
static bool
is_host(const struct pawl_node *node, const struct pawl_node *x)
{
	int i;

	if (x->group < 0 || x->group == node->group || !takes_epilogue(x) || !is_result(x))
		return false;
	for (i = 0; i < node->n_inputs; i++) {
		const struct pawl_node *other = node->inputs[i].def;

		if (pawl_node_base(other)->group != x->group)
			continue;
		if (other != pawl_node_base(other) || !is_result(other) ||
			!pawl_type_same_dims(&other->type, &node->type))
			return false;
	}
	return true;
}

/* Joins the group of an operand, the latest one first: a residual comes from far above. */
static bool
join_host(struct pawl_graph *graph, struct pawl_node *node)
{
	int i;

	for (i = node->n_inputs - 1; i >= 0; i--) {
		if (is_host(node, node->inputs[i].def) &&
			pawl_group_merge(graph, node->inputs[i].def, node))
			return true;
	}
	return false;
}

/* A group that another pass made part of a row computation must not become an epilogue. */
static bool
is_elementwise(struct pawl_node *node)
{
	struct pawl_group group;
	int i;

	pawl_group_of(node, &group);
	for (i = 0; i < group.n; i++) {
		if (!pawl_op_has(group.nodes[i]->op, PAWL_OPF_ELEM))
			return false;
	}
	return true;
}

enum pawl_status
pawl_pass_fuse_epilogue(struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	struct pawl_node *node, *next;

	(void)err;
	for (node = graph->first; node; node = next) {
		next = node->next;
		if (node->group < 0 || !pawl_op_has(node->op, PAWL_OPF_ELEM))
			continue;
		if (is_elementwise(node) && join_host(graph, node))
			ctx->n_changes++;
	}
	return PAWL_OK;
}

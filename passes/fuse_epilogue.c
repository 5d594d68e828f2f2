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

/* The one group that node's operands come out of as results; NULL when it cannot join any. */
static struct pawl_node *
host_of(const struct pawl_node *node)
{
	struct pawl_node *host = NULL;
	int i;

	for (i = 0; i < node->n_inputs; i++) {
		struct pawl_node *x = node->inputs[i].def;
		struct pawl_node *base = (struct pawl_node *)pawl_node_base(x);

		if (base->group < 0 || !takes_epilogue(base))
			continue;
		if (x == base && is_result(x) && pawl_type_same_dims(&x->type, &node->type) &&
			!host)
			host = x;
	}
	for (i = 0; host && i < node->n_inputs; i++) {
		struct pawl_node *x = node->inputs[i].def;

		if (pawl_node_base(x)->group != host->group)
			continue;
		if (x != pawl_node_base(x) || !is_result(x) ||
			!pawl_type_same_dims(&x->type, &node->type))
			return NULL;
	}
	return host;
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
	struct pawl_node *node, *next, *host;

	(void)err;
	for (node = graph->first; node; node = next) {
		next = node->next;
		if (node->group < 0 || !pawl_op_has(node->op, PAWL_OPF_ELEM))
			continue;
		host = host_of(node);
		if (host && host->group != node->group && is_elementwise(node) &&
			pawl_group_merge(graph, host, node))
			ctx->n_changes++;
	}
	return PAWL_OK;
}

/*
 * pack-matmuls: matmuls over one input share a group, so that it is read (and its prologue
 * computed) once and their rows are spread over the threads together: q, k, v; gate, up.
 *
 *	%q = matmul %x, %wq : f32[1, 64] #3
 *	%k = matmul %x, %wk : f32[1, 32] #4
 * becomes
 *	%q = matmul %x, %wq : f32[1, 64] #3
 *	%k = matmul %x, %wk : f32[1, 32] #3
 */
#include "passes/group.h"
#include "passes/pass.h"

static struct pawl_node *
first_matmul_of(const struct pawl_node *x, const struct pawl_node *before)
{
	const struct pawl_node *node;

	for (node = x->next; node && node != before; node = node->next) {
		if (node->op == PAWL_OP_MATMUL && node->inputs[0].def == x)
			return (struct pawl_node *)node;
	}
	return NULL;
}

enum pawl_status
pawl_pass_pack_matmuls(struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	struct pawl_node *node, *first;

	(void)err;
	pawl_foreach_node(node, graph) {
		if (node->op != PAWL_OP_MATMUL)
			continue;
		first = first_matmul_of(node->inputs[0].def, node);
		if (first && first->group != node->group && pawl_group_merge(graph, first, node))
			ctx->n_changes++;
	}
	return PAWL_OK;
}

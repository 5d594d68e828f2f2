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

enum pawl_status
pawl_pass_pack_matmuls(struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	/* By id of the input: its first matmul. */
	struct pawl_node **first =
		pawl_arena_alloc(&ctx->scratch, (size_t)graph->n_ids + 1, sizeof(*first));
	struct pawl_node *node, *x;

	if (!first)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory");
	pawl_foreach_node(node, graph) {
		if (node->op != PAWL_OP_MATMUL)
			continue;
		x = node->inputs[0].def;
		if (!first[x->id])
			first[x->id] = node;
		else if (first[x->id]->group != node->group &&
			pawl_group_merge(graph, first[x->id], node))
			ctx->n_changes++;
	}
	return PAWL_OK;
}

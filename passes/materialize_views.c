/*
 * materialize-views: after this pass every view is a strided window on the storage underneath, and
 * every output owns its storage.
 *
 *	%p = permute %x {perm = [1, 0]} : f32[3, 2]
 *	%r = reshape %p : f32[6]
 * becomes
 *	%p = permute %x {perm = [1, 0]} : f32[3, 2]
 *	%c = copy %p : f32[3, 2]
 *	%r = reshape %c : f32[6]
 *
 * An output that is a view, a weight, a data const or a literal is copied too: the host may read
 * outputs until the next run, whatever is rebound meanwhile.
 */
#include "ir/build.h"
#include "passes/pass.h"
#include "passes/view.h"

static struct pawl_node *
copy_before(struct pawl_graph *graph, struct pawl_node *value, struct pawl_node *before)
{
	struct pawl_node *copy;

	graph->cursor = before;
	copy = pawl_build_unary(graph, PAWL_OP_COPY, value);
	graph->cursor = NULL;
	return copy;
}

static bool
needs_copy(const struct pawl_node *output)
{
	return pawl_op_has(output->op, PAWL_OPF_VIEW) || output->op == PAWL_OP_PACK ||
		(output->op == PAWL_OP_CONST && output->attrs.role != PAWL_ROLE_KV);
}

enum pawl_status
pawl_pass_materialize_views(
	struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	const struct pawl_node *base;
	struct pawl_access access;
	struct pawl_node *node, *copy;
	int64_t offset;
	int32_t i;

	(void)err;
	pawl_foreach_node(node, graph) {
		if (!pawl_op_has(node->op, PAWL_OPF_VIEW) ||
			pawl_access_of(graph, node, &base, &access, &offset))
			continue;
		copy = copy_before(graph, node->inputs[0].def, node);
		if (!copy)
			return PAWL_OK; /* the runner reports graph->error */
		pawl_graph_set_input(node, 0, copy);
		ctx->n_changes++;
	}
	for (i = 0; i < graph->n_outputs; i++) {
		node = graph->outputs[i];
		if (!needs_copy(node))
			continue;
		copy = copy_before(graph, node, NULL);
		if (!copy)
			return PAWL_OK;
		pawl_graph_set_output(graph, i, copy);
		ctx->n_changes++;
	}
	return PAWL_OK;
}

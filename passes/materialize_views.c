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
 * The index of a write_rows becomes a list without gaps, the weight of a matmul one whose rows have
 * none.  An output that is a view, a weight, a data const or a literal is copied too: the host may read
 * outputs until the next run, whatever is rebound meanwhile.
 */
#include "passes/copy.h"
#include "passes/pass.h"
#include "passes/view.h"

static bool
is_window(const struct pawl_graph *graph, const struct pawl_node *value, struct pawl_access *access)
{
	const struct pawl_node *base;
	int64_t offset;

	return pawl_access_of(graph, value, &base, access, &offset);
}

/* The operand of node that has to be copied, -1: none. */
static int
operand_to_copy(const struct pawl_graph *graph, const struct pawl_node *node)
{
	struct pawl_access access;

	if (pawl_op_has(node->op, PAWL_OPF_VIEW))
		return is_window(graph, node, &access) ? -1 : 0;
	if (node->op == PAWL_OP_WRITE_ROWS && is_window(graph, node->inputs[2].def, &access) &&
		access.stride[0] != 1)
		return 2;
	if (node->op == PAWL_OP_MATMUL && is_window(graph, node->inputs[1].def, &access) &&
		access.layout == PAWL_LAYOUT_ROWS && access.stride[1] != 1)
		return 1;
	return -1;
}

static bool
is_unowned(const struct pawl_node *output)
{
	return pawl_op_has(output->op, PAWL_OPF_VIEW) || output->op == PAWL_OP_PACK ||
		(output->op == PAWL_OP_CONST && output->attrs.role != PAWL_ROLE_KV);
}

enum pawl_status
pawl_pass_materialize_views(
	struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	struct pawl_node *node, *copy;
	int32_t i;

	pawl_foreach_node(node, graph) {
		int operand = operand_to_copy(graph, node);

		if (operand < 0)
			continue;
		copy = pawl_copy_before(graph, node->inputs[operand].def, node, err);
		if (!copy)
			return err->status;
		pawl_graph_set_input(node, operand, copy);
		ctx->n_changes++;
	}
	for (i = 0; i < graph->n_outputs; i++) {
		if (!is_unowned(graph->outputs[i]))
			continue;
		copy = pawl_copy_before(graph, graph->outputs[i], NULL, err);
		if (!copy)
			return err->status;
		pawl_graph_set_output(graph, i, copy);
		ctx->n_changes++;
	}
	return PAWL_OK;
}

/*
 * fuse-prologue: norm and quantize of few rows join the matmul group that reads them.  Each thread
 * then computes the rows for itself, which costs less than a barrier; with many rows it would
 * cost more, so the target states the limit (max_prologue_rows).
 *
 *	%q = quantize %x {dtype = a16} : a16[1, 64] #0
 *	%y = matmul %q, %w : f32[1, 64] #1
 * becomes all of #0.
 *
 * No value of the prologue may be needed elsewhere, since no thread is the one to store it.
 */
#include "passes/group.h"
#include "passes/pass.h"

static bool
is_private_to(const struct pawl_group *rows, const struct pawl_node *x, int32_t group)
{
	const struct pawl_use *use;
	int i;

	for (i = 0; i < rows->n; i++) {
		if (rows->nodes[i] != x && pawl_node_escapes(rows->nodes[i]))
			return false;
	}
	if (x->n_outputs)
		return false;
	pawl_foreach_use(use, x) {
		if (use->user->group != group && use->user->group != x->group)
			return false;
	}
	return true;
}

static bool
is_prologue(const struct pawl_group *rows)
{
	int i;

	if (pawl_group_template(rows) != PAWL_TEMPLATE_ROWS)
		return false;
	for (i = 0; i < rows->n; i++) {
		if (!pawl_op_has(rows->nodes[i]->op, PAWL_OPF_ROW | PAWL_OPF_ELEM))
			return false;
	}
	return true;
}

enum pawl_status
pawl_pass_fuse_prologue(struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	struct pawl_node *node, *x;
	struct pawl_group rows;

	(void)err;
	pawl_foreach_node(node, graph) {
		if (node->op != PAWL_OP_MATMUL)
			continue;
		x = node->inputs[0].def;
		if (x->group < 0 || x->group == node->group || !pawl_type_is_static(&x->type) ||
			pawl_type_rows(&x->type) > ctx->facts->max_prologue_rows)
			continue;
		pawl_group_of(x, &rows);
		if (is_prologue(&rows) && is_private_to(&rows, x, node->group) &&
			pawl_group_merge(graph, x, node))
			ctx->n_changes++;
	}
	return PAWL_OK;
}

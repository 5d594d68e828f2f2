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
is_few_rows(const struct pawl_pass_ctx *ctx, const struct pawl_node *x)
{
	return pawl_type_is_static(&x->type) &&
		pawl_type_rows(&x->type) <= ctx->facts->max_prologue_rows;
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
		if (x->group < 0 || x->group == node->group || !is_few_rows(ctx, x))
			continue;
		pawl_group_of(x, &rows);
		if (pawl_group_template(&rows) == PAWL_TEMPLATE_ROWS && pawl_group_merge(graph, x, node))
			ctx->n_changes++;
	}
	return PAWL_OK;
}

/*
 * choose-layouts: the weight of a matmul goes through a pack to the layout that the target wants.
 * The const itself stays row-major, so that a tied embedding may be gathered from it too.
 */
#include "ir/build.h"
#include "passes/pass.h"

enum pawl_status
pawl_pass_choose_layouts(struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	const struct pawl_pass_facts *facts = ctx->facts;
	struct pawl_node *node, *w, *packed;

	(void)err;
	if (!facts->weight_layout)
		return PAWL_OK;
	pawl_foreach_node(node, graph) {
		struct pawl_type type;

		if (node->op != PAWL_OP_MATMUL)
			continue;
		w = node->inputs[1].def;
		if (w->op != PAWL_OP_CONST || w->attrs.role != PAWL_ROLE_WEIGHT ||
			w->type.layout != PAWL_LAYOUT_ROWS)
			continue;
		type = w->type;
		type.layout = facts->weight_layout(facts->target, &w->type);
		if (type.layout == w->type.layout)
			continue;
		graph->cursor = node;
		packed = pawl_build(graph, PAWL_OP_PACK, NULL, &w, 1, NULL, &type);
		graph->cursor = NULL;
		if (!packed)
			return PAWL_OK; /* the runner reports graph->error */
		pawl_graph_set_input(node, 1, packed);
		ctx->n_changes++;
	}
	return PAWL_OK;
}

/*
 * quantize-activations: a matmul whose weight is quantized takes its input in blocks of 32
 * integers (docs/arithmetic.md, "Quantizing activations").
 *
 *	%y = matmul %x, %w : f32[1, 64]
 * becomes
 *	%q = quantize %x {dtype = a16} : a16[1, 32]
 *	%y = matmul %q, %w : f32[1, 64]
 *
 * Rounds: each element of x moves by at most amax / 32512 (a16) or amax / 254 (a8), amax being
 * the largest magnitude of its block.
 */
#include "ir/build.h"
#include "passes/pass.h"

static bool
wants_quantize(const struct pawl_node *node)
{
	return node->op == PAWL_OP_MATMUL &&
		pawl_dtype_info(node->inputs[1].def->type.dtype)->kind == PAWL_KIND_QUANT &&
		node->inputs[0].def->type.dtype == PAWL_DTYPE_F32;
}

enum pawl_status
pawl_pass_quantize_activations(
	struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	struct pawl_attrs attrs = pawl_attrs_default();
	struct pawl_node *node, *x, *q;

	(void)err;
	attrs.dtype = ctx->facts->precision == PAWL_PRECISION_A8 ? PAWL_DTYPE_A8 : PAWL_DTYPE_A16;
	pawl_foreach_node(node, graph) {
		if (!wants_quantize(node))
			continue;
		x = node->inputs[0].def;
		graph->cursor = node;
		q = pawl_build(graph, PAWL_OP_QUANTIZE, NULL, &x, 1, &attrs, NULL);
		graph->cursor = NULL;
		if (!q)
			return PAWL_OK; /* the runner reports graph->error */
		pawl_graph_set_input(node, 0, q);
		ctx->n_changes++;
	}
	return PAWL_OK;
}

/*
 * fold: an elementwise op whose operands are all literals is computed now, with the functions that
 * define it (ir/eval.h) in the environment that kernels run in.
 *
 *	%a = const : f32[] {role = literal, values = [2]}
 *	%b = exp %a : f32[]
 * becomes
 *	%b = const : f32[] {role = literal, values = [7.389056]}
 *
 * Views of a splat are splats.  Results of more than MAX_VALUES elements are left to run time.
 */
#include "ir/build.h"
#include "ir/eval.h"
#include "ir/fpenv.h"
#include "passes/pass.h"

enum { MAX_VALUES = 64 };

static bool
is_small_literal(const struct pawl_node *node)
{
	return node->op == PAWL_OP_CONST && node->attrs.role == PAWL_ROLE_LITERAL &&
		node->type.dtype == PAWL_DTYPE_F32 && node->attrs.n_values <= MAX_VALUES;
}

static bool
has_literal_operands(const struct pawl_node *node)
{
	int i;

	for (i = 0; i < node->n_inputs; i++) {
		if (!is_small_literal(node->inputs[i].def))
			return false;
	}
	return node->n_inputs > 0;
}

static double
value_at(const struct pawl_node *literal, uint32_t i)
{
	return literal->attrs.values[literal->attrs.n_values == 1 ? 0 : i];
}

/* How many values the result needs; 0 when it is better left alone. */
static uint32_t
n_results(const struct pawl_node *node)
{
	uint32_t n = 1;
	int i;

	for (i = 0; i < node->n_inputs; i++) {
		if (node->inputs[i].def->attrs.n_values > n)
			n = node->inputs[i].def->attrs.n_values;
	}
	return n;
}

static bool
compute(const struct pawl_node *node, uint32_t n, double *values)
{
	enum pawl_scalar scalar = PAWL_SCALAR_MUL;
	float x[PAWL_SCALAR_MAX_ARITY];
	uint32_t saved, i;
	int j;

	if (pawl_op_has(node->op, PAWL_OPF_VIEW)) {
		if (n != 1)
			return false;
		values[0] = value_at(node->inputs[0].def, 0);
		return true;
	}
	if (!pawl_op_scalar(node->op, &scalar) && node->op != PAWL_OP_SCALE)
		return false;
	saved = pawl_fpenv_enter();
	for (i = 0; i < n; i++) {
		for (j = 0; j < node->n_inputs; j++)
			x[j] = (float)value_at(node->inputs[j].def, i);
		if (node->op == PAWL_OP_SCALE)
			x[1] = (float)node->attrs.scale;
		values[i] = pawl_scalar_eval(scalar, x);
	}
	pawl_fpenv_leave(saved);
	return true;
}

enum pawl_status
pawl_pass_fold(struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	struct pawl_node *node, *next, *literal;

	for (node = graph->first; node; node = next) {
		struct pawl_attrs attrs = pawl_attrs_default();
		double *values;
		uint32_t n;

		next = node->next;
		if (!has_literal_operands(node) || !pawl_type_is_static(&node->type))
			continue;
		n = n_results(node);
		values = pawl_arena_alloc(&graph->arena, n, sizeof(double));
		if (!values)
			return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory");
		if (!compute(node, n, values))
			continue;
		attrs.role = PAWL_ROLE_LITERAL;
		attrs.values = values;
		attrs.n_values = n;
		graph->cursor = node;
		literal = pawl_build(graph, PAWL_OP_CONST, NULL, NULL, 0, &attrs, &node->type);
		graph->cursor = NULL;
		if (!literal)
			return PAWL_OK; /* the runner reports graph->error */
		pawl_graph_replace_uses(graph, node, literal);
		pawl_graph_remove(graph, node);
		ctx->n_changes++;
	}
	return PAWL_OK;
}

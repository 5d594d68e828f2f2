/*
 * canonicalize: one way to say a thing.
 *
 *	reshape, permute, slice, broadcast, cast, scale that change nothing go;
 *	reshape of reshape, permute of permute, slice of slice, broadcast of broadcast compose;
 *	a copy goes, unless it gives a view storage of its own, as hosts ask for before a kernel;
 *	the operands of a commutative op stand in list order, a literal last;
 *	x - x and x + 0 stay: they are not exact for NaN, infinities and -0.
 *
 * Every rule removes a node, shortens a chain or moves towards the order, so the walk ends; it runs
 * once from front to back, each operand being canonical by then.
 */
#include "passes/pass.h"

static bool
is_identity_perm(const struct pawl_node *node)
{
	int i;

	for (i = 0; i < node->type.rank; i++) {
		if (node->attrs.perm[i] != i)
			return false;
	}
	return true;
}

static bool
is_literal(const struct pawl_node *node)
{
	return node->op == PAWL_OP_CONST && node->attrs.role == PAWL_ROLE_LITERAL;
}

static bool
is_identity(const struct pawl_node *node)
{
	const struct pawl_node *x = node->n_inputs ? node->inputs[0].def : NULL;

	if (!x || !pawl_type_equal(&x->type, &node->type))
		return false;
	if (node->op == PAWL_OP_RESHAPE || node->op == PAWL_OP_SLICE ||
		node->op == PAWL_OP_BROADCAST || node->op == PAWL_OP_CAST)
		return true;
	if (node->op == PAWL_OP_PERMUTE)
		return is_identity_perm(node);
	if (node->op == PAWL_OP_SCALE)
		return node->attrs.scale == 1.0;
	return node->op == PAWL_OP_COPY && !pawl_op_has(x->op, PAWL_OPF_VIEW);
}

/* Reads node's input through its own producer; attributes are composed. */
static bool
compose(struct pawl_node *node)
{
	struct pawl_node *x = node->n_inputs ? node->inputs[0].def : NULL;
	int64_t perm[PAWL_MAX_RANK];
	int i;

	if (!x || x->op != node->op || !pawl_op_has(node->op, PAWL_OPF_VIEW))
		return false;
	for (i = 0; i < node->type.rank; i++) {
		if (node->op == PAWL_OP_PERMUTE)
			perm[i] = x->attrs.perm[node->attrs.perm[i]];
		if (node->op == PAWL_OP_SLICE) {
			node->attrs.stop[i] += x->attrs.start[i];
			node->attrs.start[i] += x->attrs.start[i];
		}
	}
	for (i = 0; node->op == PAWL_OP_PERMUTE && i < node->type.rank; i++)
		node->attrs.perm[i] = perm[i];
	pawl_graph_set_input(node, 0, x->inputs[0].def);
	return true;
}

/* place: by id, in list order. */
static bool
swap_operands(struct pawl_node *node, const int32_t *place)
{
	struct pawl_node *x, *y;

	if (!pawl_op_has(node->op, PAWL_OPF_COMM))
		return false;
	x = node->inputs[0].def;
	y = node->inputs[1].def;
	if (x == y || is_literal(y) || (!is_literal(x) && place[x->id] < place[y->id]))
		return false;
	pawl_graph_set_input(node, 0, y);
	pawl_graph_set_input(node, 1, x);
	return true;
}

enum pawl_status
pawl_pass_canonicalize(struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	int32_t *place = pawl_arena_alloc(&ctx->scratch, (size_t)graph->n_ids + 1, sizeof(*place)), n = 0;
	struct pawl_node *node, *next;

	if (!place)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory");
	for (node = graph->first; node; node = next) {
		next = node->next;
		place[node->id] = n++;
		while (compose(node))
			ctx->n_changes++;
		if (is_identity(node)) {
			pawl_graph_replace_uses(graph, node, node->inputs[0].def);
			pawl_graph_remove(graph, node);
			ctx->n_changes++;
		} else if (swap_operands(node, place)) {
			ctx->n_changes++;
		}
	}
	return PAWL_OK;
}

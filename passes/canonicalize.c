/*
 * canonicalize: one way to say a thing.
 *
 *	reshape, permute, slice, broadcast, cast, scale that change nothing go;
 *	reshape of reshape, permute of permute, slice of slice, broadcast of broadcast compose;
 *	a copy whose source nobody writes to goes;
 *	the operands of a commutative op stand in list order, a literal last;
 *	x - x and x + 0 stay: they are not exact for NaN, infinities and -0.
 *
 * Every rule removes a node, shortens a chain or moves towards the order, so the walk ends; it runs
 * once from front to back, each operand being canonical by then.
 */
#include "ir/build.h"
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

/* Whether some node writes in place into the storage that value lives in. */
static bool
is_written(const struct pawl_node *value)
{
	const struct pawl_use *use;

	pawl_foreach_use(use, value) {
		if (pawl_op_has(use->user->op, PAWL_OPF_INPLACE) && use == &use->user->inputs[0])
			return true;
		if (pawl_op_has(use->user->op, PAWL_OPF_VIEW) && is_written(use->user))
			return true;
	}
	return false;
}

/* Storage that a write may reach makes copies meaningful; elsewhere they say nothing. */
static bool
is_private_value(const struct pawl_node *value)
{
	const struct pawl_node *storage = pawl_node_storage(value);

	return !pawl_op_has(storage->op, PAWL_OPF_LEAF) && storage == value;
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
	return node->op == PAWL_OP_COPY && is_private_value(x) && !is_written(x) && !is_written(node);
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

static bool
comes_after(const struct pawl_node *a, const struct pawl_node *b)
{
	for (b = b->next; b; b = b->next) {
		if (b == a)
			return true;
	}
	return false;
}

static bool
swap_operands(struct pawl_node *node)
{
	struct pawl_node *x, *y;

	if (!pawl_op_has(node->op, PAWL_OPF_COMM))
		return false;
	x = node->inputs[0].def;
	y = node->inputs[1].def;
	if (x == y || is_literal(y) || (!is_literal(x) && !comes_after(x, y)))
		return false;
	pawl_graph_set_input(node, 0, y);
	pawl_graph_set_input(node, 1, x);
	return true;
}

enum pawl_status
pawl_pass_canonicalize(struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	struct pawl_node *node, *next;

	(void)err;
	for (node = graph->first; node; node = next) {
		next = node->next;
		while (compose(node))
			ctx->n_changes++;
		if (is_identity(node)) {
			pawl_graph_replace_uses(graph, node, node->inputs[0].def);
			pawl_graph_remove(graph, node);
			ctx->n_changes++;
		} else if (swap_operands(node)) {
			ctx->n_changes++;
		}
	}
	return PAWL_OK;
}

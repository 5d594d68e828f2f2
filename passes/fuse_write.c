/*
 * fuse-write: what is computed only to be written into a cache is written by the step that computes
 * it, and the writes of k and v share a step.
 *
 *	%r = rope %k, %cos, %sin : f32[1, 3, 64] #5
 *	%c = cast %r {dtype = f16} : f16[1, 3, 64] #6
 *	%p = permute %c {perm = [1, 0, 2]} : f16[3, 1, 64]
 *	%s = reshape %p : f16[1, 3, 1, 64]
 *	%w = write_slice %kc, %s, %offset {axis = 2} : f16[1, 3, 2048, 64] #7
 * becomes all of #5.
 *
 * The views between become part of the address that is stored to.  MAP groups only: elementwise
 * ops, rope, quantize to the blocks of a cache, and writes.
 */
#include "passes/group.h"
#include "passes/pass.h"
#include "passes/view.h"

static bool
is_write(const struct pawl_node *node)
{
	return node->op == PAWL_OP_WRITE_SLICE || node->op == PAWL_OP_WRITE_SLICE_ROTATING ||
		node->op == PAWL_OP_WRITE_ROWS;
}

static bool
is_map(struct pawl_node *node)
{
	struct pawl_group group;

	if (node->group < 0)
		return false;
	pawl_group_of(node, &group);
	return pawl_group_template(&group) == PAWL_TEMPLATE_MAP;
}

static bool
join_source(struct pawl_graph *graph, struct pawl_node *write)
{
	struct pawl_node *value = (struct pawl_node *)pawl_node_base(write->inputs[1].def);

	return is_map(value) && value->group != write->group && pawl_group_merge(graph, value, write);
}

/* The producer of an elementwise node or rope that nothing else reads, without views between. */
static bool
join_producer(struct pawl_graph *graph, struct pawl_node *node)
{
	struct pawl_node *x;

	if (node->op != PAWL_OP_ROPE && !pawl_op_has(node->op, PAWL_OPF_ELEM) &&
		!pawl_node_makes_cache_blocks(node))
		return false;
	x = node->inputs[0].def;
	return x->group != node->group && is_map(x) && pawl_node_only_user(x) == node &&
		pawl_group_merge(graph, x, node);
}

/* The nearest write before this one that is in another group. */
static bool
join_neighbour(struct pawl_graph *graph, struct pawl_node *write)
{
	struct pawl_node *node;
	int steps = 0;

	for (node = write->prev; node && steps < 64; node = node->prev, steps++) {
		if (is_write(node) && node->group != write->group)
			return is_map(node) && pawl_group_merge(graph, node, write);
	}
	return false;
}

enum pawl_status
pawl_pass_fuse_write(struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	struct pawl_node *node;

	(void)err;
	pawl_foreach_node(node, graph) {
		if (is_map(node) && join_producer(graph, node))
			ctx->n_changes++;
	}
	pawl_foreach_node(node, graph) {
		if (is_write(node) && is_map(node) && join_source(graph, node))
			ctx->n_changes++;
	}
	pawl_foreach_node(node, graph) {
		if (is_write(node) && is_map(node) && join_neighbour(graph, node))
			ctx->n_changes++;
	}
	return PAWL_OK;
}

/*
 * merge-writes: storage is set up and written with as few steps as possible.
 *
 *	%a = alloc : f32[4]
 *	%z = zero_fill %a : f32[4]                      -> %z = alloc : f32[4] {fill = zero}
 *
 *	%w = write_slice %x, %s {start = [0]} : f32[4]
 *	%v = write_slice %w, %t {start = [0]} : f32[4]   ; covers all that %s wrote
 *	                                                -> %v = write_slice %x, %t {start = [0]}
 *
 *	%w = write_slice %x, %s {start = [0]} : f32[4]   ; 2 elements
 *	%v = write_slice %w, %t {start = [2]} : f32[4]   ; the 2 behind them
 *	                                                -> %c = concat %s, %t {axis = 0}
 *	                                                   %v = write_slice %x, %c {start = [0]}
 *
 * Only when nobody else reads the value between, and for static starts and shapes.
 */
#include "ir/build.h"
#include "passes/pass.h"

static bool
merge_zero(struct pawl_graph *graph, struct pawl_node *zero)
{
	struct pawl_node *alloc = zero->inputs[0].def, *made;
	struct pawl_attrs attrs;

	if (alloc->op != PAWL_OP_ALLOC || pawl_node_only_user(alloc) != zero)
		return false;
	attrs = alloc->attrs;
	attrs.fill = PAWL_FILL_ZERO;
	graph->cursor = zero;
	made = pawl_build(graph, PAWL_OP_ALLOC, NULL, NULL, 0, &attrs, &alloc->type);
	graph->cursor = NULL;
	if (!made)
		return false;
	pawl_graph_add_origin(graph, made, alloc);
	pawl_graph_replace_uses(graph, zero, made);
	pawl_graph_remove(graph, zero);
	pawl_graph_remove(graph, alloc);
	return true;
}

static bool
is_static_write(const struct pawl_node *node)
{
	return node->op == PAWL_OP_WRITE_SLICE && node->attrs.axis < 0 &&
		pawl_type_is_static(&node->inputs[1].def->type);
}

static int64_t
width(const struct pawl_node *write, int i)
{
	return write->inputs[1].def->type.dim[i].base;
}

/* Whether b writes every element that a wrote. */
static bool
covers(const struct pawl_node *b, const struct pawl_node *a)
{
	int i;

	for (i = 0; i < a->type.rank; i++) {
		if (b->attrs.start[i] > a->attrs.start[i] ||
			b->attrs.start[i] + width(b, i) < a->attrs.start[i] + width(a, i))
			return false;
	}
	return true;
}

/* The one axis along which b starts where a ends, all else being equal; -1: none. */
static int
seam(const struct pawl_node *a, const struct pawl_node *b)
{
	int axis = -1, i;

	for (i = 0; i < a->type.rank; i++) {
		if (a->attrs.start[i] == b->attrs.start[i] && width(a, i) == width(b, i))
			continue;
		if (axis >= 0 || a->attrs.start[i] + width(a, i) != b->attrs.start[i])
			return -1;
		axis = i;
	}
	return axis;
}

static bool
join_at_seam(struct pawl_graph *graph, struct pawl_node *a, struct pawl_node *b, int axis)
{
	struct pawl_node *parts[2] = {a->inputs[1].def, b->inputs[1].def}, *joined, *made;
	struct pawl_attrs attrs = pawl_attrs_default();

	attrs.axis = axis;
	graph->cursor = b;
	joined = pawl_build(graph, PAWL_OP_CONCAT, NULL, parts, 2, &attrs, NULL);
	made = pawl_build_write_slice(graph, a->inputs[0].def, joined, a->attrs.start, -1, NULL);
	graph->cursor = NULL;
	if (!made)
		return false;
	pawl_graph_replace_uses(graph, b, made);
	pawl_graph_remove(graph, b);
	pawl_graph_remove(graph, a);
	return true;
}

static bool
merge_write(struct pawl_graph *graph, struct pawl_node *b)
{
	struct pawl_node *a = b->inputs[0].def;
	int axis;

	if (!is_static_write(a) || pawl_node_only_user(a) != b)
		return false;
	if (covers(b, a)) {
		pawl_graph_set_input(b, 0, a->inputs[0].def);
		pawl_graph_add_origin(graph, b, a);
		pawl_graph_remove(graph, a);
		return true;
	}
	axis = seam(a, b);
	/* There is no concat of blocks. */
	return axis >= 0 && !pawl_dtype_is_blocked(b->type.dtype) && join_at_seam(graph, a, b, axis);
}

enum pawl_status
pawl_pass_merge_writes(struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	struct pawl_node *node, *next;

	(void)err;
	for (node = graph->first; node; node = next) {
		next = node->next;
		if (node->op == PAWL_OP_ZERO_FILL && merge_zero(graph, node))
			ctx->n_changes++;
		else if (is_static_write(node) && merge_write(graph, node))
			ctx->n_changes++;
	}
	return PAWL_OK;
}

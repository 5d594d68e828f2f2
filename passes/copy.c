#include "passes/copy.h"

#include "ir/build.h"

static const char *
reason_against(const struct pawl_type *type)
{
	int i;

	if (pawl_dtype_is_blocked(type->dtype))
		return "blocks";
	if (type->layout == PAWL_LAYOUT_TILE16)
		return "a packed weight";
	for (i = 1; i < type->rank; i++) {
		if (type->dim[i].sym >= 0)
			return "a view whose symbolic axis is not the first";
	}
	return NULL;
}

struct pawl_node *
pawl_copy_before(struct pawl_graph *graph, struct pawl_node *value, struct pawl_node *before,
	struct pawl_error *err)
{
	const char *reason = reason_against(&value->type);
	struct pawl_node *copy;

	if (reason) {
		pawl_fail(err, PAWL_UNSUPPORTED, "%s%s would have to be copied, which is not done for %s",
			value->name ? "%" : "a nameless ",
			value->name ? value->name : pawl_op_name(value->op), reason);
		return NULL;
	}
	graph->cursor = before;
	copy = pawl_build_unary(graph, PAWL_OP_COPY, value);
	graph->cursor = NULL;
	if (!copy)
		*err = graph->error;
	return copy;
}

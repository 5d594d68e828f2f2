#include "passes/group.h"
#include "passes/view.h"

/* The place in the group of the value under the views of x; -1: it comes from outside. */
static int
place_of(const struct pawl_group *group, const struct pawl_node *x)
{
	int i;

	x = pawl_node_base(x);
	for (i = 0; i < group->n; i++) {
		if (group->nodes[i] == x)
			return i;
	}
	return -1;
}

/* Whether a write can store its source, made in the same step, through the views between. */
static bool
can_write_inside(const struct pawl_graph *graph, const struct pawl_node *write)
{
	const struct pawl_node *src = write->inputs[1].def;
	struct pawl_access dest = pawl_access_whole(graph, &write->type);

	if (write->op != PAWL_OP_WRITE_ROWS) {
		dest.at_dim = (int32_t)write->attrs.axis;
		return pawl_access_invert(graph, src, pawl_node_base(src), &dest);
	}
	/* An index is looked up once for each row. */
	dest.at_dim = pawl_write_rows_axis(&write->attrs);
	return pawl_access_invert(graph, src, pawl_node_base(src), &dest) &&
		dest.at_dim < pawl_node_base(src)->type.rank - 1;
}

/* Whether node can take operand i, a value of its own group, without a trip through memory. */
static bool
can_read_inside(const struct pawl_graph *graph, const struct pawl_node *node, int i)
{
	const struct pawl_node *value = node->inputs[i].def, *base = pawl_node_base(value);

	/* These are no value until they are in memory, part by part. */
	if (pawl_op_has(base->op, PAWL_OPF_INPLACE) || base->op == PAWL_OP_ALLOC ||
		base->op == PAWL_OP_CONCAT)
		return false;
	if (pawl_op_has(node->op, PAWL_OPF_INPLACE))
		return i == 1 && can_write_inside(graph, node);
	return value == base && (i == 0 || pawl_op_has(node->op, PAWL_OPF_ELEM));
}

static bool
reads_fit(const struct pawl_graph *graph, const struct pawl_group *group)
{
	int i, j;

	for (i = 0; i < group->n; i++) {
		const struct pawl_node *node = group->nodes[i];

		for (j = 0; j < node->n_inputs; j++) {
			if (place_of(group, node->inputs[j].def) >= 0 && !can_read_inside(graph, node, j))
				return false;
		}
	}
	return true;
}

static bool
stores_fit(const struct pawl_group *group)
{
	int n_stores[PAWL_MAX_GROUP_NODES] = {0}, i, place;

	for (i = 0; i < group->n; i++) {
		const struct pawl_node *node = group->nodes[i];

		n_stores[i] += pawl_node_escapes(node);
		if (!pawl_op_has(node->op, PAWL_OPF_INPLACE) || node->op == PAWL_OP_ZERO_FILL)
			continue;
		place = place_of(group, node->inputs[1].def);
		if (place >= 0 && ++n_stores[place] > 2)
			return false;
	}
	return true;
}

/* The op that a template with a prologue and an epilogue is built around. */
static bool
is_core(enum pawl_op op)
{
	return op == PAWL_OP_MATMUL || pawl_op_attends(op) || op == PAWL_OP_GATHER ||
		op == PAWL_OP_BATCH_MATMUL;
}

static bool
is_prologue(const struct pawl_node *node, enum pawl_template template)
{
	if (template == PAWL_TEMPLATE_MATMUL && !pawl_op_has(node->op, PAWL_OPF_ROW | PAWL_OPF_ELEM))
		return false;
	if (template == PAWL_TEMPLATE_ATTEND && node->op != PAWL_OP_ROPE &&
		!pawl_op_has(node->op, PAWL_OPF_ELEM))
		return false;
	return (template == PAWL_TEMPLATE_MATMUL || template == PAWL_TEMPLATE_ATTEND) &&
		!pawl_node_escapes(node);
}

static bool
core_fits(const struct pawl_group *group, enum pawl_template template)
{
	bool is_result[PAWL_MAX_GROUP_NODES];
	const struct pawl_node *core = NULL;
	int i, j;

	for (i = 0; i < group->n; i++) {
		const struct pawl_node *node = group->nodes[i];
		bool reads_result = false, reads_prologue = false;

		for (j = 0; j < node->n_inputs; j++) {
			int place = place_of(group, node->inputs[j].def);

			reads_result = reads_result || (place >= 0 && is_result[place]);
			reads_prologue = reads_prologue || (place >= 0 && !is_result[place]);
		}
		is_result[i] = is_core(node->op) || reads_result;
		if (is_core(node->op)) {
			if (reads_result || (core && (template != PAWL_TEMPLATE_MATMUL ||
							     core->inputs[0].def != node->inputs[0].def)))
				return false;
			core = node;
		} else if (reads_result) {
			if (reads_prologue || !pawl_op_has(node->op, PAWL_OPF_ELEM))
				return false;
		} else if (!is_prologue(node, template)) {
			return false;
		}
	}
	return true;
}

static bool
rows_fit(const struct pawl_group *group)
{
	const struct pawl_type *rows = NULL, *type;
	int i;

	for (i = 0; i < group->n; i++) {
		const struct pawl_node *node = group->nodes[i];

		if (!pawl_op_has(node->op, PAWL_OPF_ROW | PAWL_OPF_ELEM) && node->op != PAWL_OP_ARGMAX)
			return false;
		type = &node->inputs[0].def->type;
		if (rows && !pawl_type_same_dims(type, rows))
			return false;
		rows = type;
	}
	return true;
}

static bool
map_fits(const struct pawl_group *group)
{
	int i;

	for (i = 0; i < group->n; i++) {
		const struct pawl_node *node = group->nodes[i];

		if (!pawl_op_has(node->op, PAWL_OPF_ELEM | PAWL_OPF_INPLACE) && node->op != PAWL_OP_ROPE &&
			node->op != PAWL_OP_ALLOC && !pawl_node_makes_cache_blocks(node) &&
			(node->op != PAWL_OP_CONCAT || group->n > 1))
			return false;
	}
	return true;
}

static bool
members_fit(const struct pawl_group *group)
{
	enum pawl_template template = pawl_group_template(group);

	switch (template) {
	case PAWL_TEMPLATE_MATMUL:
	case PAWL_TEMPLATE_ATTEND:
	case PAWL_TEMPLATE_GATHER:
		return core_fits(group, template);
	case PAWL_TEMPLATE_BATCH:
		return group->n == 1;
	case PAWL_TEMPLATE_ROWS:
		return rows_fit(group);
	case PAWL_TEMPLATE_MAP:
		return map_fits(group);
	case PAWL_N_TEMPLATES:
		break;
	}
	return false;
}

static bool
effects_fit(const struct pawl_group *group)
{
	int i, j;

	for (i = 0; i < group->n; i++) {
		for (j = 0; j < i; j++) {
			if (pawl_nodes_conflict(group->nodes[i], group->nodes[j]))
				return false;
		}
	}
	return true;
}

bool
pawl_group_fits(const struct pawl_graph *graph, const struct pawl_group *group)
{
	return members_fit(group) && reads_fit(graph, group) && stores_fit(group) &&
		effects_fit(group);
}

#include "passes/group.h"

#include "passes/view.h"

bool
pawl_group_of(struct pawl_node *member, struct pawl_group *out)
{
	struct pawl_node *node = member, *p;

	for (p = member; p && (p->group < 0 || p->group == member->group); p = p->prev) {
		if (p->group >= 0)
			node = p;
	}
	out->id = member->group;
	out->n = 0;
	for (; node && (node->group < 0 || node->group == member->group); node = node->next) {
		if (node->group >= 0 && out->n == PAWL_MAX_GROUP_NODES)
			return false;
		if (node->group >= 0)
			out->nodes[out->n++] = node;
	}
	return true;
}

bool
pawl_group_has(const struct pawl_group *group, enum pawl_op op)
{
	int i;

	for (i = 0; i < group->n; i++) {
		if (group->nodes[i]->op == op)
			return true;
	}
	return false;
}

bool
pawl_node_makes_cache_blocks(const struct pawl_node *node)
{
	return node->op == PAWL_OP_QUANTIZE && node->type.dtype == PAWL_DTYPE_Q8_0;
}

enum pawl_template
pawl_group_template(const struct pawl_group *group)
{
	int i;

	if (pawl_group_has(group, PAWL_OP_MATMUL))
		return PAWL_TEMPLATE_MATMUL;
	if (pawl_group_has(group, PAWL_OP_ATTENTION) ||
		pawl_group_has(group, PAWL_OP_PAGED_ATTENTION))
		return PAWL_TEMPLATE_ATTEND;
	if (pawl_group_has(group, PAWL_OP_GATHER))
		return PAWL_TEMPLATE_GATHER;
	if (pawl_group_has(group, PAWL_OP_BATCH_MATMUL))
		return PAWL_TEMPLATE_BATCH;
	for (i = 0; i < group->n; i++) {
		if (pawl_op_has(group->nodes[i]->op, PAWL_OPF_ROW | PAWL_OPF_REDUCE) &&
			!pawl_node_makes_cache_blocks(group->nodes[i]))
			return PAWL_TEMPLATE_ROWS;
	}
	return PAWL_TEMPLATE_MAP;
}

bool
pawl_node_escapes(const struct pawl_node *node)
{
	const struct pawl_use *use;

	if (node->n_outputs)
		return true;
	pawl_foreach_use_through(use, node) {
		const struct pawl_node *user = use->user;

		if (pawl_op_has(user->op, PAWL_OPF_VIEW) ? user->n_outputs > 0 :
							   user->group != node->group)
			return true;
	}
	return false;
}

static bool
depends_directly(const struct pawl_node *node, struct pawl_node *const *set, int n)
{
	int i, j;

	for (i = 0; i < node->n_inputs; i++) {
		for (j = 0; j < n; j++) {
			if (node->inputs[i].def == set[j])
				return true;
		}
	}
	return false;
}

/* Whether writer destroys storage that node reads. */
static bool
destroys_operand(const struct pawl_node *writer, const struct pawl_node *node)
{
	const struct pawl_node *storage;
	int i;

	if (!pawl_op_has(writer->op, PAWL_OPF_INPLACE))
		return false;
	storage = pawl_node_storage(writer);
	for (i = 0; i < node->n_inputs; i++) {
		if (pawl_node_storage(node->inputs[i].def) == storage)
			return true;
	}
	return false;
}

bool
pawl_nodes_conflict(const struct pawl_node *a, const struct pawl_node *b)
{
	return destroys_operand(a, b) || destroys_operand(b, a);
}

static bool
has_conflict(const struct pawl_node *node, struct pawl_node *const *set, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		if (pawl_nodes_conflict(node, set[i]))
			return true;
	}
	return false;
}

enum { MAX_MOVED = 64 };

/*
 * Moves a's members, and the views of them in between, to just before b's first member.  The members
 * of b have a's id by now.
 */
static bool
sink(struct pawl_graph *graph, const struct pawl_group *a, const struct pawl_group *b)
{
	struct pawl_node *moved[MAX_MOVED], *first = b->nodes[0], *node;
	int n = 0, i;

	for (node = a->nodes[0]; node != first; node = node->next) {
		bool member = node->group == a->id;

		if (!member && depends_directly(node, moved, n)) {
			if (!pawl_op_has(node->op, PAWL_OPF_VIEW))
				return false;
			member = true;
		}
		if (member && n == MAX_MOVED)
			return false;
		if (member)
			moved[n++] = node;
		else if (has_conflict(node, moved, n))
			return false;
	}
	for (i = 0; i < n; i++)
		pawl_graph_move(graph, moved[i], first);
	return true;
}

/* Moves b's members, and what only feeds them as views in between, to just behind a's last member. */
static bool
hoist(struct pawl_graph *graph, const struct pawl_group *a, const struct pawl_group *b)
{
	struct pawl_node *moved[MAX_MOVED], *stay[MAX_MOVED], *last = a->nodes[a->n - 1];
	struct pawl_node *end = b->nodes[b->n - 1]->next, *node, *after = last->next;
	int n = 0, n_stay = 0, i;

	for (node = last->next; node != end; node = node->next) {
		/* Views, consts and allocs go up where their operands allow. */
		bool can_move = node->group == a->id || node->group < 0;

		if (can_move && depends_directly(node, stay, n_stay)) {
			if (node->group == a->id)
				return false;
			can_move = false;
		}
		if (can_move && has_conflict(node, stay, n_stay))
			return false;
		if (n == MAX_MOVED || n_stay == MAX_MOVED)
			return false;
		if (can_move)
			moved[n++] = node;
		else
			stay[n_stay++] = node;
	}
	if (!n_stay)
		return true;
	for (i = 0; i < n; i++) {
		if (moved[i] == after)
			after = after->next;
		else
			pawl_graph_move(graph, moved[i], after);
	}
	return true;
}

bool
pawl_group_merge(struct pawl_graph *graph, struct pawl_node *a, struct pawl_node *b)
{
	struct pawl_group ga, gb, both;
	int i;

	if (!pawl_group_of(a, &ga) || !pawl_group_of(b, &gb) || ga.n + gb.n > PAWL_MAX_GROUP_NODES)
		return false;
	both = ga;
	for (i = 0; i < gb.n; i++) {
		gb.nodes[i]->group = ga.id;
		both.nodes[both.n++] = gb.nodes[i];
	}
	if (pawl_group_fits(graph, &both) && (sink(graph, &ga, &gb) || hoist(graph, &ga, &gb)))
		return true;
	for (i = 0; i < gb.n; i++)
		gb.nodes[i]->group = gb.id;
	return false;
}

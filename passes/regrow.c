#include "passes/regrow.h"

#include <string.h>

#include "ir/infer.h"
#include "ir/verify.h"

static bool
is_dim(struct pawl_dim dim, int64_t n)
{
	return pawl_dim_equal(dim, pawl_dim_const(n));
}

/* Dims of 1 come and go, the others stay in order. */
static bool
is_same_but_for_ones(const struct pawl_type *a, const struct pawl_type *b)
{
	int i, j = 0;

	for (i = 0; i < a->rank; i++) {
		if (is_dim(a->dim[i], 1))
			continue;
		while (j < b->rank && is_dim(b->dim[j], 1))
			j++;
		if (j == b->rank || !pawl_dim_equal(a->dim[i], b->dim[j++]))
			return false;
	}
	while (j < b->rank && is_dim(b->dim[j], 1))
		j++;
	return j == b->rank;
}

/* Rows may lose their ends. */
static bool
keeps_all_rows(const struct pawl_node *slice)
{
	const struct pawl_type *whole = &slice->inputs[0].def->type;
	int i;

	for (i = 0; i < whole->rank - 1; i++) {
		if (slice->attrs.start[i] || !is_dim(whole->dim[i], slice->attrs.stop[i]))
			return false;
	}
	return true;
}

/* A view that is an output is a copy of the whole cache. */
static bool
carries_capacity(const struct pawl_node *view)
{
	if (view->n_outputs)
		return false;
	if (view->op == PAWL_OP_RESHAPE)
		return is_same_but_for_ones(&view->inputs[0].def->type, &view->type);
	return view->op == PAWL_OP_SLICE && keeps_all_rows(view);
}

static bool
is_blind_to_capacity(const struct pawl_use *use)
{
	const struct pawl_node *user = use->user;

	if (user->op == PAWL_OP_WRITE_SLICE)
		return use == &user->inputs[0] && user->attrs.axis >= 0;
	if (user->op == PAWL_OP_WRITE_ROWS)
		return use == &user->inputs[0];
	if (pawl_op_has(user->op, PAWL_OPF_VIEW))
		return carries_capacity(user);
	return user->op == PAWL_OP_ATTENTION && user->attrs.sym >= 0 &&
	       (use == &user->inputs[1] || use == &user->inputs[2]);
}

static bool
is_in_cache(const struct pawl_node *node)
{
	const struct pawl_node *storage = pawl_node_storage(node);

	return storage->op == PAWL_OP_CONST && storage->attrs.role == PAWL_ROLE_KV;
}

bool
pawl_graph_can_regrow(const struct pawl_graph *graph)
{
	const struct pawl_node *node;
	const struct pawl_use *use;

	pawl_foreach_node(node, graph) {
		pawl_foreach_use(use, node) {
			if (!is_blind_to_capacity(use) && is_in_cache(node))
				return false;
		}
	}
	return true;
}

static enum pawl_status
restate_symbols(struct pawl_graph *graph, const struct pawl_graph *like, struct pawl_error *err)
{
	int32_t i;

	if (graph->n_symbols != like->n_symbols)
		return pawl_fail(err, PAWL_UNSUPPORTED, "%d symbols became %d", like->n_symbols,
			graph->n_symbols);
	for (i = 0; i < like->n_symbols; i++) {
		const struct pawl_symbol *s = &like->symbols[i];

		pawl_graph_set_range(graph, i, s->min, s->max, s->multiple);
	}
	return PAWL_OK;
}

/* What the view of a cache states of its capacity, from the input. */
static enum pawl_status
restate_view(struct pawl_node *view, struct pawl_type *type, struct pawl_error *err)
{
	const struct pawl_type *whole = &view->inputs[0].def->type;
	int i, j = 0;

	if (view->op == PAWL_OP_SLICE) {
		for (i = 0; i < whole->rank - 1; i++)
			view->attrs.stop[i] = whole->dim[i].base;
		return PAWL_OK;
	}
	for (i = 0; i < type->rank; i++) {
		if (is_dim(type->dim[i], 1))
			continue;
		while (j < whole->rank && is_dim(whole->dim[j], 1))
			j++;
		if (j == whole->rank)
			return pawl_fail(err, PAWL_UNSUPPORTED, "a cache of one position");
		type->dim[i] = whole->dim[j++];
	}
	return PAWL_OK;
}

/* The type of a node that is not computed: of a cache from `like`, otherwise what it is. */
static enum pawl_status
restate_leaf(struct pawl_node *node, const struct pawl_graph *like, struct pawl_error *err)
{
	const struct pawl_node *other;

	if (node->op != PAWL_OP_CONST || node->attrs.role != PAWL_ROLE_KV)
		return PAWL_OK;
	other = pawl_graph_find(like, node->name);
	if (!other)
		return pawl_fail(err, PAWL_UNSUPPORTED, "kv const %s is gone", node->name);
	pawl_graph_set_type(node, &other->type);
	return PAWL_OK;
}

/* Gives graph the capacity that `like` has. */
static enum pawl_status
restate(struct pawl_graph *graph, const struct pawl_graph *like, struct pawl_error *err)
{
	struct pawl_node *node, *inputs[PAWL_MAX_INPUTS];
	enum pawl_status status = restate_symbols(graph, like, err);
	int32_t i;

	pawl_foreach_node(node, graph) {
		struct pawl_type type = node->type;

		if (status != PAWL_OK)
			break;
		if (!node->n_inputs) {
			status = restate_leaf(node, like, err);
			continue;
		}
		if (node->n_inputs > PAWL_MAX_INPUTS)
			continue;
		for (i = 0; i < node->n_inputs; i++)
			inputs[i] = node->inputs[i].def;
		if (pawl_op_has(node->op, PAWL_OPF_VIEW) && is_in_cache(node))
			status = restate_view(node, &type, err);
		if (status == PAWL_OK)
			status = pawl_infer(graph, node->op, inputs, node->n_inputs, &node->attrs,
				&type, err);
		if (status == PAWL_OK)
			pawl_graph_set_type(node, &type);
	}
	return status;
}

/* Whether `fresh`, were it of the capacity of optimized, is what that was made from. */
static enum pawl_status
compare(const struct pawl_graph *optimized, uint64_t hash, const struct pawl_graph *fresh,
	struct pawl_error *err)
{
	struct pawl_graph *graph;
	enum pawl_status status = pawl_graph_clone(fresh, &graph, err);
	bool is_same;

	if (status != PAWL_OK)
		return status;
	status = restate(graph, optimized, err);
	is_same = status == PAWL_OK && hash && pawl_graph_hash(graph) == hash;
	pawl_graph_free(graph);
	if (is_same || status == PAWL_OUT_OF_MEMORY)
		return status;
	return pawl_fail(err, PAWL_UNSUPPORTED,
		"graph '%s' differs in more than the capacity of its caches", fresh->name);
}

enum pawl_status
pawl_regrow(const struct pawl_graph *optimized, uint64_t hash, const struct pawl_graph *fresh,
	const struct pawl_optimize_options *options, struct pawl_graph **kept,
	struct pawl_program **out, struct pawl_error *err)
{
	struct pawl_graph *graph;
	enum pawl_status status = pawl_verify(fresh, NULL, err);

	if (status == PAWL_OK &&
		!(pawl_graph_can_regrow(fresh) && pawl_graph_can_regrow(optimized)))
		status = pawl_fail(err, PAWL_UNSUPPORTED,
			"graph '%s' sees the capacity of its caches", fresh->name);
	if (status == PAWL_OK)
		status = compare(optimized, hash, fresh, err);
	if (status == PAWL_OK)
		status = pawl_graph_clone(optimized, &graph, err);
	if (status != PAWL_OK)
		return status;
	status = restate(graph, fresh, err);
	if (status == PAWL_OK)
		status = pawl_optimized_to_program(graph, options, out, err);
	if (status != PAWL_OK) {
		pawl_graph_free(graph);
		return status;
	}
	(*out)->hash = pawl_graph_hash(fresh);
	*kept = graph;
	return PAWL_OK;
}

#include "passes/regrow.h"

#include <string.h>

#include "ir/infer.h"
#include "ir/verify.h"

static bool
is_blind_to_capacity(const struct pawl_use *use)
{
	const struct pawl_node *user = use->user;

	if (user->op == PAWL_OP_WRITE_SLICE)
		return use == &user->inputs[0] && user->attrs.axis >= 0;
	if (user->op == PAWL_OP_WRITE_ROWS)
		return use == &user->inputs[0];
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
restate_symbols(struct pawl_graph *graph, const struct pawl_graph *fresh, struct pawl_error *err)
{
	int32_t i;

	if (graph->n_symbols != fresh->n_symbols)
		return pawl_fail(err, PAWL_INTERNAL, "%d symbols became %d", fresh->n_symbols,
			graph->n_symbols);
	for (i = 0; i < fresh->n_symbols; i++) {
		const struct pawl_symbol *s = &fresh->symbols[i];

		pawl_graph_set_range(graph, i, s->min, s->max, s->multiple);
	}
	return PAWL_OK;
}

static enum pawl_status
restate_caches(struct pawl_graph *graph, const struct pawl_graph *fresh, struct pawl_error *err)
{
	struct pawl_node *node;

	pawl_foreach_node(node, graph) {
		const struct pawl_node *like;

		if (node->op != PAWL_OP_CONST || node->attrs.role != PAWL_ROLE_KV)
			continue;
		like = pawl_graph_find(fresh, node->name);
		if (!like)
			return pawl_fail(err, PAWL_INTERNAL, "kv const %s is gone", node->name);
		pawl_graph_set_type(node, &like->type);
	}
	return PAWL_OK;
}

static enum pawl_status
infer_types(struct pawl_graph *graph, struct pawl_error *err)
{
	struct pawl_node *node, *inputs[PAWL_MAX_INPUTS];
	int32_t i;

	pawl_foreach_node(node, graph) {
		struct pawl_type type = node->type;
		enum pawl_status status;

		if (!node->n_inputs || node->n_inputs > PAWL_MAX_INPUTS)
			continue;
		for (i = 0; i < node->n_inputs; i++)
			inputs[i] = node->inputs[i].def;
		status = pawl_infer(
			graph, node->op, inputs, node->n_inputs, &node->attrs, &type, err);
		if (status != PAWL_OK)
			return status;
		pawl_graph_set_type(node, &type);
	}
	return PAWL_OK;
}

enum pawl_status
pawl_regrow(const struct pawl_graph *optimized, uint64_t form, const struct pawl_graph *fresh,
	const struct pawl_optimize_options *options, struct pawl_graph **kept,
	struct pawl_program **out, struct pawl_error *err)
{
	struct pawl_graph *graph;
	enum pawl_status status = pawl_verify(fresh, NULL, err);

	if (status != PAWL_OK)
		return status;
	if (!form || pawl_graph_form_hash(fresh) != form || !pawl_graph_can_regrow(fresh))
		return pawl_fail(err, PAWL_UNSUPPORTED,
			"graph '%s' differs in more than the capacity of its caches", fresh->name);
	status = pawl_graph_clone(optimized, &graph, err);
	if (status != PAWL_OK)
		return status;
	status = restate_symbols(graph, fresh, err);
	if (status == PAWL_OK)
		status = restate_caches(graph, fresh, err);
	if (status == PAWL_OK)
		status = infer_types(graph, err);
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

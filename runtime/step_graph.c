#include "runtime/step_graph.h"

#include "ir/print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TYPE_BYTES = 128 };

/* A graph with what it was asked for. */
struct step {
	const struct pawl_graph *graph;
	const struct pawl_model_source *source;
	const struct pawl_graph_request *request;
	const struct pawl_kv_shape *shape;
};

static enum pawl_status
check_type(const struct step *s, const char *what, const struct pawl_type *found,
	const struct pawl_type *wanted, struct pawl_error *err)
{
	char here[TYPE_BYTES], there[TYPE_BYTES];

	if (pawl_type_equal(found, wanted))
		return PAWL_OK;
	pawl_print_type(here, sizeof(here), s->graph, found);
	pawl_print_type(there, sizeof(there), s->graph, wanted);
	return pawl_fail(err, PAWL_INVALID_GRAPH, "%s is %s, asked for is %s", what, here, there);
}

/* Logits, or the choice of one; of a request for either. */
static struct pawl_type
wanted_output(const struct step *s)
{
	const struct pawl_graph_request *request = s->request;
	bool is_last = request->logits == PAWL_LOGITS_LAST && request->n_sequences <= 1;
	const int64_t dims[] = {is_last ? 1 : request->n_tokens, s->source->n_vocab};

	return request->logits == PAWL_LOGITS_GREEDY
		       ? pawl_type_make(PAWL_DTYPE_I32, 1, (const int64_t[]){1})
		       : pawl_type_make(PAWL_DTYPE_F32, 2, dims);
}

static enum pawl_status
check_output(const struct step *s, struct pawl_error *err)
{
	const struct pawl_type wanted = wanted_output(s);
	char text[TYPE_BYTES];

	if (s->request->logits == PAWL_LOGITS_NONE)
		return PAWL_OK;
	if (s->graph->n_outputs)
		return check_type(s, "output 0", &s->graph->outputs[0]->type, &wanted, err);
	pawl_print_type(text, sizeof(text), s->graph, &wanted);
	return pawl_fail(err, PAWL_INVALID_GRAPH, "the graph has no output, asked for is %s", text);
}

/* The layer of cache.k.<layer> or cache.v.<layer>, -1: of another name or out of range. */
static int64_t
layer_of(const struct step *s, const struct pawl_node *kv)
{
	const char *name = kv->name;
	char *end;
	long layer;

	if (!name || (strncmp(name, "cache.k.", 8) && strncmp(name, "cache.v.", 8)))
		return -1;
	layer = strtol(name + 8, &end, 10);
	return *end || layer < 0 || layer >= s->source->n_layers ? -1 : layer;
}

static bool
is_written(const struct step *s, const struct pawl_node *kv)
{
	const struct pawl_node *node;

	pawl_foreach_node(node, s->graph)
		if (pawl_op_has(node->op, PAWL_OPF_INPLACE) && pawl_node_storage(node) == kv)
			return true;
	return false;
}

/* Whoever runs the step says afterwards that its positions are in every cache. */
static enum pawl_status
check_cache(const struct step *s, const struct pawl_node *kv, struct pawl_error *err)
{
	int64_t layer = layer_of(s, kv);
	struct pawl_type wanted;
	enum pawl_status status;

	if (layer < 0)
		return PAWL_OK;
	wanted = pawl_kv_shape_type(
		s->shape, (int32_t)layer, kv->name[6] == 'k' ? PAWL_KV_K : PAWL_KV_V);
	status = check_type(s, kv->name, &kv->type, &wanted, err);
	if (!status && !is_written(s, kv))
		status = pawl_fail(err, PAWL_INVALID_GRAPH, "nothing is written to %s", kv->name);
	return status;
}

/* Rows of the tables are written by the source, all of its own width. */
static enum pawl_status
check_table(const struct step *s, const struct pawl_node *data, struct pawl_error *err)
{
	bool is_window = data->name && !strncmp(data->name, "window_", 7);
	int64_t width = pawl_type_row_length(&data->type);

	if (!data->name || (strcmp(data->name, "rope_cos") && strcmp(data->name, "rope_sin") &&
				   strcmp(data->name, "window_cos") &&
				   strcmp(data->name, "window_sin")))
		return PAWL_OK;
	if (is_window ? !s->source->window_rope : !s->source->rope)
		return pawl_fail(err, PAWL_INVALID_GRAPH,
			"the graph has the table %s, the model no function for it", data->name);
	if (width != s->source->rope_width)
		return pawl_fail(err, PAWL_INVALID_GRAPH,
			"%s has rows of %" PRId64 " elements, the model says %" PRId64, data->name,
			width, s->source->rope_width);
	return PAWL_OK;
}

static enum pawl_status
check_const(const struct step *s, const struct pawl_node *node, struct pawl_error *err)
{
	switch (node->attrs.role) {
	case PAWL_ROLE_KV:
		return check_cache(s, node, err);
	case PAWL_ROLE_DATA:
		return check_table(s, node, err);
	case PAWL_ROLE_WEIGHT:
	case PAWL_ROLE_LITERAL:
	case PAWL_N_ROLES:
		break;
	}
	return PAWL_OK;
}

/* Keys that are copied to another position are turned as the source says. */
static enum pawl_status
check_pairs(const struct step *s, const struct pawl_node *rope, struct pawl_error *err)
{
	static const char *const words[PAWL_N_PAIRS] = {
		[PAWL_PAIRS_ADJACENT] = "adjacent elements", [PAWL_PAIRS_HALVES] = "halves"};
	const struct pawl_node *cos = pawl_node_input(rope, 1);

	if (cos->op != PAWL_OP_CONST || cos->attrs.role != PAWL_ROLE_DATA ||
		rope->attrs.pairs == s->source->rope_pairs)
		return PAWL_OK;
	return pawl_fail(err, PAWL_INVALID_GRAPH, "a rope by %s turns %s, the model says %s",
		cos->name, words[rope->attrs.pairs], words[s->source->rope_pairs]);
}

static enum pawl_status
check_window(const struct step *s, const struct pawl_node *attention, struct pawl_error *err)
{
	const struct pawl_kv_rings *rings = &s->shape->rings;
	const struct pawl_node *kv = pawl_node_storage(pawl_node_input(attention, 1));
	int64_t window = attention->attrs.window;

	if (!rings->positions || !pawl_layer_set_has(&rings->layers, layer_of(s, kv)) ||
		(window > 0 && window <= rings->window))
		return PAWL_OK;
	return pawl_fail(err, PAWL_INVALID_GRAPH,
		"attention sees a window of %" PRId64 " in the ring %s, which is for %" PRId64,
		window, kv->name, rings->window);
}

static enum pawl_status
check_node(const struct step *s, const struct pawl_node *node, struct pawl_error *err)
{
	if (node->op == PAWL_OP_CONST)
		return check_const(s, node, err);
	if (node->op == PAWL_OP_ROPE)
		return check_pairs(s, node, err);
	return pawl_op_attends(node->op) ? check_window(s, node, err) : PAWL_OK;
}

/* Every value that runs at some position of the cache may give it. */
static enum pawl_status
check_symbol(const struct step *s, const struct pawl_symbol *symbol, struct pawl_error *err)
{
	const struct pawl_graph_request *request = s->request;
	bool is_paged = request->n_sequences > 0;
	int64_t min = is_paged ? 1 : request->n_tokens;
	int64_t max = is_paged ? request->max_blocks * request->block_size : request->capacity;

	if (!strcmp(symbol->name, "cached_len") && !is_paged) {
		max -= min;
		min = 0;
	} else if (strcmp(symbol->name, "attended_len")) {
		return pawl_fail(err, PAWL_INVALID_GRAPH,
			"symbol $%s is none that this step binds", symbol->name);
	}
	if (symbol->min <= min && symbol->max >= max && symbol->multiple == 1)
		return PAWL_OK;
	return pawl_fail(err, PAWL_INVALID_GRAPH,
		"symbol $%s is a multiple of %" PRId64 " from %" PRId64 " to %" PRId64
		", it may be anything from %" PRId64 " to %" PRId64,
		symbol->name, symbol->multiple, symbol->min, symbol->max, min, max);
}

enum pawl_status
pawl_step_graph_check(const struct pawl_graph *graph, const struct pawl_model_source *source,
	const struct pawl_graph_request *request, const struct pawl_kv_shape *shape,
	struct pawl_error *err)
{
	const struct step s = {graph, source, request, shape};
	enum pawl_status status = check_output(&s, err);
	const struct pawl_node *node;

	pawl_foreach_node(node, graph)
		if (!status)
			status = check_node(&s, node, err);
	for (int32_t i = 0; i < graph->n_symbols && !status; i++)
		status = check_symbol(&s, &graph->symbols[i], err);
	return status;
}

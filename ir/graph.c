#include "ir/graph.h"

#include <stdlib.h>
#include <string.h>

struct pawl_graph *
pawl_graph_new(const char *name)
{
	struct pawl_graph *graph = calloc(1, sizeof(*graph));

	if (!graph)
		return NULL;
	pawl_arena_init(&graph->arena);
	graph->name = pawl_arena_strdup(&graph->arena, name);
	if (!graph->name) {
		pawl_graph_free(graph);
		return NULL;
	}
	return graph;
}

void
pawl_graph_free(struct pawl_graph *graph)
{
	if (!graph)
		return;
	pawl_arena_release(&graph->arena);
	free(graph);
}

static void
out_of_memory(struct pawl_graph *graph)
{
	if (graph->error.status == PAWL_OK)
		pawl_fail(&graph->error, PAWL_OUT_OF_MEMORY, "no memory for graph '%s'", graph->name);
}

/* Room for one more entry in an arena array that doubles; NULL when memory is exhausted. */
static void *
grow(struct pawl_graph *graph, void *items, int32_t n, int32_t *cap, size_t size)
{
	int32_t wanted = *cap ? 2 * *cap : 8;
	void *copy;

	if (n < *cap)
		return items;
	copy = pawl_arena_alloc(&graph->arena, (size_t)wanted, size);
	if (!copy) {
		out_of_memory(graph);
		return NULL;
	}
	if (n)
		memcpy(copy, items, (size_t)n * size);
	*cap = wanted;
	return copy;
}

int32_t
pawl_graph_add_symbol(
	struct pawl_graph *graph, const char *name, int64_t min, int64_t max, int64_t multiple)
{
	struct pawl_symbol *symbols = grow(graph, graph->symbols, graph->n_symbols,
		&graph->cap_symbols, sizeof(*symbols));
	const char *copy = pawl_arena_strdup(&graph->arena, name);

	if (!symbols || !copy) {
		out_of_memory(graph);
		return -1;
	}
	graph->symbols = symbols;
	symbols[graph->n_symbols] = (struct pawl_symbol){copy, min, max, multiple};
	return graph->n_symbols++;
}

int32_t
pawl_graph_find_symbol(const struct pawl_graph *graph, const char *name, size_t n)
{
	int32_t i;

	for (i = 0; i < graph->n_symbols; i++) {
		if (strlen(graph->symbols[i].name) == n && !memcmp(graph->symbols[i].name, name, n))
			return i;
	}
	return -1;
}

static void
link_use(struct pawl_use *use, struct pawl_node *user, struct pawl_node *def)
{
	use->user = user;
	use->def = def;
	use->prev = NULL;
	use->next = def->uses;
	if (def->uses)
		def->uses->prev = use;
	def->uses = use;
}

static void
unlink_use(struct pawl_use *use)
{
	if (use->prev)
		use->prev->next = use->next;
	else
		use->def->uses = use->next;
	if (use->next)
		use->next->prev = use->prev;
	use->def = NULL;
}

static void
list_insert(struct pawl_graph *graph, struct pawl_node *node, struct pawl_node *before)
{
	node->next = before;
	node->prev = before ? before->prev : graph->last;
	if (node->prev)
		node->prev->next = node;
	else
		graph->first = node;
	if (before)
		before->prev = node;
	else
		graph->last = node;
}

static void
list_remove(struct pawl_graph *graph, struct pawl_node *node)
{
	if (node->prev)
		node->prev->next = node->next;
	else
		graph->first = node->next;
	if (node->next)
		node->next->prev = node->prev;
	else
		graph->last = node->prev;
}

struct pawl_node *
pawl_graph_add(struct pawl_graph *graph, enum pawl_op op, const char *name,
	struct pawl_node *const *inputs, int n_inputs, const struct pawl_attrs *attrs,
	const struct pawl_type *type)
{
	struct pawl_node *node;
	int i;

	if (graph->error.status != PAWL_OK)
		return NULL;
	node = pawl_arena_alloc(&graph->arena, 1, sizeof(*node));
	if (node)
		node->inputs = pawl_arena_alloc(&graph->arena, (size_t)n_inputs, sizeof(*node->inputs));
	if (node && name)
		node->name = pawl_arena_strdup(&graph->arena, name);
	if (!node || !node->inputs || (name && !node->name)) {
		out_of_memory(graph);
		return NULL;
	}
	node->op = op;
	node->id = graph->n_ids++;
	node->group = -1;
	node->type = *type;
	node->attrs = attrs ? *attrs : pawl_attrs_default();
	node->n_inputs = n_inputs;
	for (i = 0; i < n_inputs; i++)
		link_use(&node->inputs[i], node, inputs[i]);
	list_insert(graph, node, graph->cursor);
	graph->n_nodes++;
	return node;
}

void
pawl_graph_add_output(struct pawl_graph *graph, struct pawl_node *node)
{
	struct pawl_node **outputs;

	if (!node || graph->error.status != PAWL_OK)
		return;
	outputs = grow(graph, graph->outputs, graph->n_outputs, &graph->cap_outputs, sizeof(*outputs));
	if (!outputs)
		return;
	graph->outputs = outputs;
	outputs[graph->n_outputs++] = node;
	node->n_outputs++;
}

void
pawl_graph_set_output(struct pawl_graph *graph, int32_t i, struct pawl_node *node)
{
	graph->outputs[i]->n_outputs--;
	graph->outputs[i] = node;
	node->n_outputs++;
}

struct pawl_node *
pawl_node_input(const struct pawl_node *node, int i)
{
	return node->inputs[i].def;
}

bool
pawl_node_is_used(const struct pawl_node *node)
{
	return node->uses || node->n_outputs;
}

int
pawl_node_n_uses(const struct pawl_node *node)
{
	const struct pawl_use *use;
	int n = node->n_outputs;

	pawl_foreach_use(use, node)
		n++;
	return n;
}

struct pawl_node *
pawl_node_only_user(const struct pawl_node *node)
{
	if (node->n_outputs || !node->uses || node->uses->next)
		return NULL;
	return node->uses->user;
}

void
pawl_graph_set_input(struct pawl_node *node, int i, struct pawl_node *def)
{
	unlink_use(&node->inputs[i]);
	link_use(&node->inputs[i], node, def);
}

static void
push_origin(struct pawl_graph *graph, struct pawl_node *node, const char *name)
{
	struct pawl_origin *origin, **end = &node->origins;

	if (node->name && !strcmp(node->name, name))
		return;
	for (; *end; end = &(*end)->next) {
		if (!strcmp((*end)->name, name))
			return;
	}
	origin = pawl_arena_alloc(&graph->arena, 1, sizeof(*origin));
	if (!origin) {
		out_of_memory(graph);
		return;
	}
	origin->name = name;
	*end = origin;
}

void
pawl_graph_add_origin(struct pawl_graph *graph, struct pawl_node *node, const struct pawl_node *def)
{
	const struct pawl_origin *origin;

	if (def->name)
		push_origin(graph, node, def->name);
	for (origin = def->origins; origin; origin = origin->next)
		push_origin(graph, node, origin->name);
}

void
pawl_graph_replace_uses(struct pawl_graph *graph, struct pawl_node *old, struct pawl_node *def)
{
	struct pawl_use *use;
	int32_t i;

	while ((use = old->uses)) {
		struct pawl_node *user = use->user;

		unlink_use(use);
		link_use(use, user, def);
	}
	for (i = 0; old->n_outputs && i < graph->n_outputs; i++) {
		if (graph->outputs[i] == old) {
			graph->outputs[i] = def;
			old->n_outputs--;
			def->n_outputs++;
		}
	}
	pawl_graph_add_origin(graph, def, old);
}

void
pawl_graph_remove(struct pawl_graph *graph, struct pawl_node *node)
{
	int i;

	for (i = 0; i < node->n_inputs; i++)
		unlink_use(&node->inputs[i]);
	if (graph->cursor == node)
		graph->cursor = node->next;
	list_remove(graph, node);
	graph->n_nodes--;
}

void
pawl_graph_move(struct pawl_graph *graph, struct pawl_node *node, struct pawl_node *before)
{
	if (node == before || node->next == before)
		return;
	list_remove(graph, node);
	list_insert(graph, node, before);
}

struct pawl_node *
pawl_graph_find(const struct pawl_graph *graph, const char *name)
{
	struct pawl_node *node;

	pawl_foreach_node(node, graph) {
		if (node->name && !strcmp(node->name, name))
			return node;
	}
	return NULL;
}

bool
pawl_node_runs(const struct pawl_node *node)
{
	if (node->op == PAWL_OP_ALLOC)
		return node->attrs.fill != PAWL_FILL_NONE;
	return !pawl_op_has(node->op, PAWL_OPF_VIEW | PAWL_OPF_LEAF) && node->op != PAWL_OP_PACK;
}

struct pawl_node *
pawl_node_storage(const struct pawl_node *node)
{
	while (pawl_op_has(node->op, PAWL_OPF_VIEW | PAWL_OPF_INPLACE))
		node = node->inputs[0].def;
	return (struct pawl_node *)node;
}

static enum pawl_status
clone_nodes(const struct pawl_graph *graph, struct pawl_graph *copy, struct pawl_node **map)
{
	const struct pawl_node *node;
	struct pawl_node *inputs[16], *made;
	int i;

	pawl_foreach_node(node, graph) {
		struct pawl_attrs attrs = node->attrs;

		for (i = 0; i < node->n_inputs; i++)
			inputs[i] = map[node->inputs[i].def->id];
		if (attrs.n_values) {
			double *values = pawl_arena_alloc(&copy->arena, attrs.n_values, sizeof(double));

			if (!values)
				return PAWL_OUT_OF_MEMORY;
			memcpy(values, attrs.values, attrs.n_values * sizeof(double));
			attrs.values = values;
		}
		made = pawl_graph_add(copy, node->op, node->name, inputs, node->n_inputs, &attrs, &node->type);
		if (!made)
			return PAWL_OUT_OF_MEMORY;
		made->group = node->group;
		made->line = node->line;
		made->column = node->column;
		map[node->id] = made;
	}
	return PAWL_OK;
}

static enum pawl_status
clone_rest(const struct pawl_graph *graph, struct pawl_graph *copy, struct pawl_node **map)
{
	const struct pawl_node *node;
	const struct pawl_origin *origin;
	int32_t i;

	for (i = 0; i < graph->n_symbols; i++) {
		const struct pawl_symbol *s = &graph->symbols[i];

		pawl_graph_add_symbol(copy, s->name, s->min, s->max, s->multiple);
	}
	for (i = 0; i < graph->n_outputs; i++)
		pawl_graph_add_output(copy, map[graph->outputs[i]->id]);
	pawl_foreach_node(node, graph) {
		for (origin = node->origins; origin; origin = origin->next) {
			char *name = pawl_arena_strdup(&copy->arena, origin->name);

			if (!name)
				return PAWL_OUT_OF_MEMORY;
			push_origin(copy, map[node->id], name);
		}
	}
	copy->stage = graph->stage;
	copy->n_groups = graph->n_groups;
	return copy->error.status;
}

void
pawl_graph_set_type(struct pawl_node *node, const struct pawl_type *type)
{
	node->type = *type;
}

void
pawl_graph_set_range(
	struct pawl_graph *graph, int32_t symbol, int64_t min, int64_t max, int64_t multiple)
{
	struct pawl_symbol *s = &graph->symbols[symbol];

	s->min = min;
	s->max = max;
	s->multiple = multiple;
}

enum pawl_status
pawl_graph_clone(const struct pawl_graph *graph, struct pawl_graph **out, struct pawl_error *err)
{
	struct pawl_graph *copy = pawl_graph_new(graph->name);
	struct pawl_node **map = calloc((size_t)graph->n_ids + 1, sizeof(struct pawl_node *));

	if (!copy || !map || clone_nodes(graph, copy, map) || clone_rest(graph, copy, map)) {
		pawl_graph_free(copy);
		free(map);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory to copy graph '%s'", graph->name);
	}
	free(map);
	*out = copy;
	return PAWL_OK;
}

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/build.h"
#include "ir/parse.h"
#include "plugins/host_api.h"

enum { MAX_TEXT = 16 << 20 };

static struct pawl_status_object *
append(struct pawl_host_graph *graph, const char *text, size_t n)
{
	if (n > MAX_TEXT - graph->n)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "a graph of more than %d bytes of text", MAX_TEXT);
	if (graph->n + n + 1 > graph->cap) {
		size_t cap = 2 * (graph->n + n + 1);
		char *bigger = realloc(graph->text, cap);

		if (!bigger)
			return pawl_host_refuse(PAWL_OUT_OF_MEMORY, "no memory for a graph");
		graph->text = bigger;
		graph->cap = cap;
	}
	memcpy(graph->text + graph->n, text, n);
	graph->n += n;
	graph->text[graph->n] = 0;
	return NULL;
}

static struct pawl_host_graph *
new_graph(struct pawl_context *context)
{
	struct pawl_host_graph *graph = calloc(1, sizeof(*graph));

	if (graph) {
		graph->context = context;
		atomic_fetch_add(&context->n_children, 1);
	}
	return graph;
}

static struct pawl_status_object *
check_text(const char *text, size_t n)
{
	struct pawl_error err;
	struct pawl_graph *graph;
	enum pawl_status status = pawl_parse(text, n, "graph", &graph, NULL, &err);

	if (status == PAWL_OK)
		pawl_graph_free(graph);
	return pawl_host_status(status, &err);
}

struct pawl_status_object *
pawl_host_graph_from_text(
	struct pawl_context *context, const char *text, size_t n, struct pawl_host_graph **out)
{
	struct pawl_status_object *status;
	struct pawl_host_graph *graph;

	if (!context || !text || !out)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "graph_from_text: a pointer is NULL");
	status = check_text(text, n);
	if (status)
		return status;
	graph = new_graph(context);
	if (!graph)
		return pawl_host_refuse(PAWL_OUT_OF_MEMORY, "no memory for a graph");
	status = append(graph, text, n);
	if (status)
		pawl_host_graph_destroy(graph);
	else
		*out = graph;
	return status;
}

struct pawl_status_object *
pawl_host_graph_create(struct pawl_context *context, const char *name, struct pawl_host_graph **out)
{
	struct pawl_status_object *status;
	struct pawl_host_graph *graph;
	char head[320];

	if (!context || !name || !out)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "graph_create: a pointer is NULL");
	if (!pawl_name_is_valid(name))
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "graph_create: '%.64s' is no name", name);
	graph = new_graph(context);
	if (!graph)
		return pawl_host_refuse(PAWL_OUT_OF_MEMORY, "no memory for a graph");
	graph->is_open = 1;
	snprintf(head, sizeof(head), "pawl 1\ngraph @%s stage values {\n", name);
	status = append(graph, head, strlen(head));
	if (status)
		pawl_host_graph_destroy(graph);
	else
		*out = graph;
	return status;
}

/*
 * Adds one statement and checks the whole graph with it, so that the error comes from the call that
 * made it.  Quadratic in the number of nodes, which is what a host builds once.
 */
static struct pawl_status_object *
add_statement(struct pawl_host_graph *graph, const char *text)
{
	size_t before = graph->n;
	struct pawl_status_object *status;

	if (!graph->is_open)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "a graph made from text takes no more nodes");
	status = append(graph, text, strlen(text));
	if (!status)
		status = append(graph, "}\n", 2);
	if (!status)
		status = check_text(graph->text, graph->n);
	graph->n = status ? before : graph->n - 2;
	if (graph->text)
		graph->text[graph->n] = 0;
	return status;
}

static int
is_one_line(const char *text)
{
	return !strpbrk(text, "\n\r;");
}

struct pawl_status_object *
pawl_host_graph_symbol(
	struct pawl_host_graph *graph, const char *name, int64_t min, int64_t max, int64_t multiple)
{
	char text[512];

	if (!graph || !name || !pawl_name_is_valid(name))
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "graph_symbol: no graph or no name");
	snprintf(text, sizeof(text), "sym $%s : %" PRId64 "..%" PRId64 " %% %" PRId64 "\n", name, min, max,
		multiple);
	return add_statement(graph, text);
}

struct pawl_status_object *
pawl_host_graph_add(struct pawl_host_graph *graph, const char *name, const char *op,
	const char *const *inputs, int32_t n_inputs, const char *attrs, const char *type)
{
	char text[8192];
	size_t n;
	int32_t i;

	if (!graph || !name || !op || !type || n_inputs < 0 || (n_inputs && !inputs))
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "graph_add: a pointer is NULL");
	if (!pawl_name_is_valid(name) || !pawl_name_is_valid(op) || n_inputs > 16 ||
		!is_one_line(type) || (attrs && !is_one_line(attrs)))
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "graph_add: node '%.64s' is not well-formed", name);
	n = (size_t)snprintf(text, sizeof(text), "%%%s = %s", name, op);
	for (i = 0; i < n_inputs; i++) {
		if (!inputs[i] || !pawl_name_is_valid(inputs[i]))
			return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
				"graph_add: node '%.64s': input %d is no name", name, i);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s %%%s", i ? "," : "", inputs[i]);
	}
	if (strlen(type) + (attrs ? strlen(attrs) : 0) + 16 > sizeof(text) - n)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "graph_add: node '%.64s' is too long", name);
	snprintf(text + n, sizeof(text) - n, " %s : %s\n", attrs ? attrs : "", type);
	return add_statement(graph, text);
}

struct pawl_status_object *
pawl_host_graph_output(struct pawl_host_graph *graph, const char *name)
{
	char text[512];

	if (!graph || !name || !pawl_name_is_valid(name))
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "graph_output: no graph or no name");
	snprintf(text, sizeof(text), "output %%%s\n", name);
	return add_statement(graph, text);
}

void
pawl_host_graph_destroy(struct pawl_host_graph *graph)
{
	if (!graph)
		return;
	atomic_fetch_sub(&graph->context->n_children, 1);
	free(graph->text);
	free(graph);
}

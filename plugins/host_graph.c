#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/build.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "plugins/host_api.h"

enum { MAX_STATEMENT = 16384, MAX_INPUTS = 64 };

const struct pawl_graph *
pawl_host_graph_graph(const struct pawl_host_graph *graph)
{
	return graph->text ? pawl_text_graph_graph(graph->text) : graph->whole;
}

static struct pawl_host_status *
wrap(struct pawl_host_context *context, struct pawl_text_graph *text, struct pawl_graph *whole,
	struct pawl_host_graph **out)
{
	struct pawl_host_graph *graph =
		pawl_host_object_new(PAWL_HOST_GRAPH, context, sizeof(*graph));

	if (!graph) {
		pawl_text_graph_free(text);
		pawl_graph_free(whole);
		return pawl_host_refuse(PAWL_OUT_OF_MEMORY, "no memory for a graph");
	}
	graph->text = text;
	graph->whole = whole;
	*out = graph;
	return NULL;
}

struct pawl_host_status *
pawl_host_graph_from_text(
	struct pawl_host_context *context, const char *text, size_t n, struct pawl_host_graph **out)
{
	enum pawl_status status;
	struct pawl_graph *graph;
	struct pawl_error err;

	if (!pawl_host_is(context, PAWL_HOST_CONTEXT) || !text || !out)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "graph_from_text: no context or a pointer is NULL");
	status = pawl_parse(text, n, "graph", &graph, NULL, &err);
	return status ? pawl_host_status(status, &err) : wrap(context, NULL, graph, out);
}

struct pawl_host_status *
pawl_host_graph_create(
	struct pawl_host_context *context, const char *name, struct pawl_host_graph **out)
{
	struct pawl_text_graph *text;
	enum pawl_status status;
	struct pawl_error err;

	if (!pawl_host_is(context, PAWL_HOST_CONTEXT) || !name || !out)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "graph_create: no context or a pointer is NULL");
	status = pawl_text_graph_new(name, &text, &err);
	return status ? pawl_host_status(status, &err) : wrap(context, text, NULL, out);
}

/* NULL, or why a graph takes no statement that defines that name. */
static struct pawl_host_status *
check_open(const struct pawl_host_graph *graph, const char *name, const char *call)
{
	if (!pawl_host_is(graph, PAWL_HOST_GRAPH))
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "%s: no graph", call);
	if (!name || !pawl_name_is_valid(name))
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "%s: '%.64s' is no name", call, name ? name : "");
	if (!graph->text)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "%s: a graph made from text takes no more", call);
	return NULL;
}

static struct pawl_host_status *
add(struct pawl_host_graph *graph, const char *name, const char *statement)
{
	struct pawl_error err;

	return pawl_host_status(pawl_text_graph_add(graph->text, name, statement, &err), &err);
}

struct pawl_host_status *
pawl_host_graph_symbol(
	struct pawl_host_graph *graph, const char *name, int64_t min, int64_t max, int64_t multiple)
{
	struct pawl_host_status *status = check_open(graph, name, "graph_symbol");
	char text[512];

	if (status)
		return status;
	snprintf(text, sizeof(text), "sym $%s : %" PRId64 "..%" PRId64 " %% %" PRId64, name, min,
		max, multiple);
	return add(graph, name, text);
}

/* Text of one statement as it grows; n is beyond the end when it does not fit. */
struct statement {
	char text[MAX_STATEMENT];
	size_t n;
};

static void
append(struct statement *s, const char *before, const char *text)
{
	size_t room = s->n < sizeof(s->text) ? sizeof(s->text) - s->n : 0;

	s->n += (size_t)snprintf(room ? s->text + s->n : NULL, room, "%s%s", before, text);
}

static bool
is_one_statement(const char *text)
{
	return !strpbrk(text, "\n\r;#");
}

struct pawl_host_status *
pawl_host_graph_add(struct pawl_host_graph *graph, const char *name, const char *op,
	const char *const *inputs, int64_t n_inputs, const char *attrs, const char *type)
{
	struct pawl_host_status *status = check_open(graph, name, "graph_add");
	struct statement s = {.n = 0};

	if (status)
		return status;
	if (!op || !type || n_inputs < 0 || n_inputs > MAX_INPUTS || (n_inputs && !inputs))
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"graph_add: %s: no op, no type or %lld inputs", name, (long long)n_inputs);
	if (!pawl_name_is_valid(op) || !is_one_statement(type) ||
		(attrs && !is_one_statement(attrs)))
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"graph_add: %s: op, type or attrs are not one", name);
	append(&s, "%", name);
	append(&s, " = ", op);
	for (int64_t i = 0; i < n_inputs; i++) {
		if (!inputs[i] || !pawl_name_is_valid(inputs[i]))
			return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
				"graph_add: %s: input %lld is no name", name, (long long)i);
		append(&s, i ? ", %" : " %", inputs[i]);
	}
	append(&s, " ", attrs ? attrs : "");
	append(&s, " : ", type);
	if (s.n >= sizeof(s.text))
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "graph_add: %s: %zu bytes of text", name, s.n);
	return add(graph, name, s.text);
}

struct pawl_host_status *
pawl_host_graph_add_text(struct pawl_host_graph *graph, const char *text, size_t n)
{
	struct pawl_host_status *status = check_open(graph, "text", "graph_add_text");
	int line = 1;

	if (!status && !text)
		status = pawl_host_refuse(PAWL_INVALID_ARGUMENT, "graph_add_text: no text");
	for (size_t at = 0; at < n && !status; line++) {
		const char *end = memchr(text + at, '\n', n - at);
		size_t length = end ? (size_t)(end - (text + at)) : n - at, blank;
		char statement[MAX_STATEMENT], where[24];

		snprintf(where, sizeof(where), "line %d", line);
		if (length >= sizeof(statement))
			return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
				"graph_add_text: %s has %zu bytes", where, length);
		memcpy(statement, text + at, length);
		statement[length] = 0;
		blank = strspn(statement, " \t\r");
		if (statement[blank] && statement[blank] != ';')
			status = add(graph, where, statement);
		at += length + 1;
	}
	return status;
}

struct pawl_host_status *
pawl_host_graph_output(struct pawl_host_graph *graph, const char *name)
{
	struct pawl_host_status *status = check_open(graph, name, "graph_output");
	char text[512];

	if (status)
		return status;
	snprintf(text, sizeof(text), "output %%%s", name);
	return add(graph, name, text);
}

struct pawl_host_status *
pawl_host_graph_add_all(struct pawl_host_graph *graph,
	int (*node)(void *user, int64_t i, struct pawl_host_node *out), void *user)
{
	struct pawl_host_status *status = NULL;

	if (!pawl_host_is(graph, PAWL_HOST_GRAPH) || !node)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "graph_add_all: no graph or no callback");
	for (int64_t i = 0; !status; i++) {
		struct pawl_host_node given = {.struct_size = sizeof(given)};
		int more = node(user, i, &given);

		if (more < 0)
			return pawl_host_refuse(PAWL_ENVIRONMENT,
				"graph_add_all: the host failed at node %lld", (long long)i);
		if (!more)
			break;
		status = pawl_host_graph_add(graph, given.name, given.op, given.inputs,
			given.n_inputs, given.attrs, given.type);
		if (!status && given.is_output)
			status = pawl_host_graph_output(graph, given.name);
	}
	return status;
}

struct pawl_host_status *
pawl_host_graph_to_text(const struct pawl_host_graph *graph, pawl_sink *sink, void *user)
{
	char *text;
	int stopped;

	if (!pawl_host_is(graph, PAWL_HOST_GRAPH) || !sink)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "graph_to_text: no graph or no sink");
	text = pawl_print(pawl_host_graph_graph(graph), NULL);
	if (!text)
		return pawl_host_refuse(PAWL_OUT_OF_MEMORY, "no memory for the text of a graph");
	stopped = sink(user, text, strlen(text));
	free(text);
	return stopped ? pawl_host_refuse(PAWL_ENVIRONMENT, "graph_to_text: the sink refused")
		       : NULL;
}

void
pawl_host_graph_release(struct pawl_host_graph *graph)
{
	if (!pawl_host_drop(graph, PAWL_HOST_GRAPH))
		return;
	pawl_text_graph_free(graph->text);
	pawl_graph_free(graph->whole);
	pawl_host_object_free(graph);
}

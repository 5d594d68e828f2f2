#include "ir/text_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/build.h"
#include "ir/parser.h"

struct pawl_text_graph {
	struct pawl_parser parser;
};

enum pawl_status
pawl_text_graph_new(const char *name, struct pawl_text_graph **out, struct pawl_error *err)
{
	struct pawl_text_graph *text;

	if (!pawl_name_is_valid(name))
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "'%.64s' is no name", name);
	text = calloc(1, sizeof(*text));
	if (text)
		text->parser.graph = pawl_graph_new(name);
	if (!text || !text->parser.graph) {
		free(text);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a graph");
	}
	*out = text;
	return PAWL_OK;
}

void
pawl_text_graph_free(struct pawl_text_graph *text)
{
	if (!text)
		return;
	pawl_graph_free(text->parser.graph);
	free(text->parser.names);
	free(text->parser.values);
	free(text->parser.errors);
	free(text);
}

/*
 * What a statement in error has left: a name without a node, which is the last entry made, so that
 * none lies behind it; a symbol or an output before something else that is wrong.
 */
static void
forget(struct pawl_parser *p, int32_t n_symbols, int32_t n_outputs)
{
	p->graph->n_symbols = n_symbols;
	while (p->graph->n_outputs > n_outputs)
		p->graph->outputs[--p->graph->n_outputs]->n_outputs--;
	for (size_t i = 0; i < p->cap_names; i++) {
		if (!p->names[i].name || p->names[i].node)
			continue;
		p->names[i] = (struct pawl_name_entry){0};
		p->n_names--;
	}
	free(p->errors);
	p->errors = NULL;
	p->errors_length = 0;
	p->n_errors = 0;
	p->first = (struct pawl_error){.status = PAWL_OK};
	p->is_dead = false;
}

enum pawl_status
pawl_text_graph_add(struct pawl_text_graph *text, const char *where, const char *statement,
	struct pawl_error *err)
{
	struct pawl_parser *p = &text->parser;
	/* Names of values point into it. */
	char *kept = pawl_arena_strdup(&p->graph->arena, statement);
	int32_t n_symbols = p->graph->n_symbols, n_outputs = p->graph->n_outputs;
	enum pawl_status status = PAWL_OK;

	if (!kept)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a graph");
	p->file = where;
	pawl_lexer_init(&p->lexer, kept, strlen(kept));
	p->token = pawl_lexer_next(&p->lexer);
	if (pawl_parse_statement(p) && p->token.kind != PAWL_TOKEN_END)
		pawl_parser_expected(p, "the end of the statement");
	if (p->first.status)
		status = pawl_fail(err, p->first.status, "%s", p->first.text);
	if (status)
		forget(p, n_symbols, n_outputs);
	return status;
}

const struct pawl_graph *
pawl_text_graph_graph(const struct pawl_text_graph *text)
{
	return text->parser.graph;
}

struct pawl_graph *
pawl_text_graph_take(struct pawl_text_graph *text)
{
	struct pawl_graph *graph = text->parser.graph;

	text->parser.graph = NULL;
	pawl_text_graph_free(text);
	return graph;
}

enum pawl_status
pawl_parse_type(const char *where, const char *type, struct pawl_type *out, struct pawl_error *err)
{
	struct pawl_text_graph *text;
	char statement[256];
	int n = snprintf(statement, sizeof(statement), "%%x = const : %s", type);
	enum pawl_status status;

	if (n < 0 || (size_t)n >= sizeof(statement) || strpbrk(type, "\n;#{"))
		return pawl_fail(err, PAWL_INVALID_TEXT, "%.64s: '%.64s' is no type", where, type);
	status = pawl_text_graph_new("type", &text, err);
	if (status)
		return status;
	status = pawl_text_graph_add(text, where, statement, err);
	if (!status)
		*out = text->parser.graph->first->type;
	pawl_text_graph_free(text);
	return status;
}

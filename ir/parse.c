/*
 * Text form, version 1.  A statement ends with its line; a comment runs from ; to the end of the
 * line; blank lines are skipped.
 *
 *   text      = "pawl" "1" NL "graph" "@" word "stage" stage "{" NL { statement NL } "}"
 *   stage     = "values" | "ordered" | "fused"
 *   statement = symbol | node | output
 *   symbol    = "sym" "$" word ":" int ".." int [ "%" int ]             min, max, divisor
 *   node      = value "=" op [ value { "," value } ] [ attrs ] ":" type [ attrs ] [ "#" int ]
 *   attrs     = "{" attr { "," attr } "}"               in one of the two places
 *   output    = "output" value
 *   value     = "%" word | "%" digits
 *   attr      = word "=" ( number | word | "$" word | "[" number { "," number } "]" )
 *   type      = dtype "[" [ dim { "," dim } ] "]" [ "@" layout ]        rows when absent
 *   dim       = int | [ int "*" ] "$" word [ "+" int ]
 *   word      = [A-Za-z_][A-Za-z0-9_.]*
 *   number    = -?[0-9]+(.[0-9]+)?(e[+-]?[0-9]+)? | inf | -inf | nan
 *
 * The number after # is the group.  A value stands in a line above its users.  "%" digits names
 * a value that has no name of its own; the digits mean nothing but themselves.
 *
 * Canonical text (ir/print.h) has the symbols first and the outputs last, two spaces before a
 * statement, attributes before the type, in the order of ir/attrs.def and without those at
 * their default (ir/ops.def says which an op has), nameless values numbered from 0 in list
 * order, and no comments.
 */
#include "ir/parse.h"

#include "ir/build.h"
#include "ir/parser.h"
#include "ir/print.h"
#include "ir/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ERRORS = 20, MAX_SYMBOLS = 256 };

static bool
append_error(struct pawl_parser *p, const char *text)
{
	size_t n = strlen(text);
	char *errors = realloc(p->errors, p->errors_length + n + 2);

	if (!errors)
		return false;
	memcpy(errors + p->errors_length, text, n);
	memcpy(errors + p->errors_length + n, "\n", 2);
	p->errors = errors;
	p->errors_length += n + 1;
	return true;
}

bool
pawl_parser_fail(struct pawl_parser *p, enum pawl_status status, int32_t line, int32_t column,
	const char *format, ...)
{
	struct pawl_error error;
	va_list args;

	if (p->is_dead)
		return false;
	va_start(args, format);
	pawl_vfail(&error, status, format, args);
	va_end(args);
	pawl_error_prefix(&error, "%.300s:%" PRId32 ":%" PRId32, p->file, line, column);
	if (p->first.status == PAWL_OK)
		p->first = error;
	if (!append_error(p, error.text))
		return pawl_parser_no_memory(p);
	if (++p->n_errors == MAX_ERRORS)
		p->is_dead = true;
	return false;
}

bool
pawl_parser_no_memory(struct pawl_parser *p)
{
	pawl_fail(&p->first, PAWL_OUT_OF_MEMORY, "%.300s: no memory to read it", p->file);
	p->is_dead = true;
	return false;
}

static void
describe(const struct pawl_token *token, char *out, size_t n)
{
	switch (token->kind) {
	case PAWL_TOKEN_END:
		snprintf(out, n, "the end of the text");
		return;
	case PAWL_TOKEN_NEWLINE:
		snprintf(out, n, "the end of the line");
		return;
	case PAWL_TOKEN_VALUE:
		snprintf(out, n, "'%%%.*s'", token->n > 64 ? 64 : (int)token->n, token->text);
		return;
	case PAWL_TOKEN_SYMBOL:
		snprintf(out, n, "'$%.*s'", token->n > 64 ? 64 : (int)token->n, token->text);
		return;
	case PAWL_TOKEN_WORD:
	case PAWL_TOKEN_NUMBER:
	case PAWL_TOKEN_RANGE:
	case PAWL_TOKEN_PUNCT:
		snprintf(out, n, "'%.*s'", token->n > 64 ? 64 : (int)token->n, token->text);
		return;
	case PAWL_TOKEN_WRONG:
		if (*token->text > ' ' && *token->text <= '~')
			snprintf(out, n, "'%c'", *token->text);
		else
			snprintf(out, n, "byte 0x%02x", (unsigned char)*token->text);
		return;
	}
}

bool
pawl_parser_expected(struct pawl_parser *p, const char *wanted)
{
	char found[80];

	describe(&p->token, found, sizeof(found));
	return pawl_parser_fail(p, PAWL_INVALID_TEXT, p->token.line, p->token.column,
		"expected %s, found %s", wanted, found);
}

struct pawl_token
pawl_parser_take(struct pawl_parser *p)
{
	struct pawl_token token = p->token;

	p->token = pawl_lexer_next(&p->lexer);
	return token;
}

bool
pawl_parser_at(const struct pawl_parser *p, char punct)
{
	return p->token.kind == PAWL_TOKEN_PUNCT && *p->token.text == punct;
}

bool
pawl_parser_accept(struct pawl_parser *p, char punct)
{
	if (!pawl_parser_at(p, punct))
		return false;
	pawl_parser_take(p);
	return true;
}

bool
pawl_parser_want(struct pawl_parser *p, char punct)
{
	const char wanted[] = {'\'', punct, '\'', '\0'};

	return pawl_parser_accept(p, punct) || pawl_parser_expected(p, wanted);
}

bool
pawl_parser_want_kind(struct pawl_parser *p, enum pawl_token_kind kind, const char *wanted,
	struct pawl_token *out)
{
	*out = p->token;
	if (p->token.kind != kind)
		return pawl_parser_expected(p, wanted);
	pawl_parser_take(p);
	if (kind != PAWL_TOKEN_NUMBER && out->n > PAWL_MAX_NAME)
		return pawl_parser_fail(p, PAWL_INVALID_TEXT, out->line, out->column,
			"a name of more than %d characters", PAWL_MAX_NAME);
	return true;
}

bool
pawl_parser_want_int(
	struct pawl_parser *p, int64_t low, int64_t high, const char *wanted, int64_t *out)
{
	struct pawl_token token;

	if (!pawl_parser_want_kind(p, PAWL_TOKEN_NUMBER, wanted, &token))
		return false;
	if (!pawl_parse_int(token.text, token.n, out) || *out < low || *out > high) {
		if (low == high)
			return pawl_parser_fail(p, PAWL_INVALID_TEXT, token.line, token.column,
				"%s is %" PRId64, wanted, low);
		return pawl_parser_fail(p, PAWL_INVALID_TEXT, token.line, token.column,
			"%s is an integer of %" PRId64 " .. %" PRId64, wanted, low, high);
	}
	return true;
}

bool
pawl_parser_want_symbol(struct pawl_parser *p, int32_t *out)
{
	struct pawl_token token;

	if (!pawl_parser_want_kind(p, PAWL_TOKEN_SYMBOL, "a symbol", &token))
		return false;
	*out = pawl_graph_find_symbol(p->graph, token.text, token.n);
	if (*out < 0)
		return pawl_parser_fail(p, PAWL_INVALID_TEXT, token.line, token.column,
			"symbol $%.*s is not declared", (int)token.n, token.text);
	return true;
}

bool
pawl_parser_want_line_end(struct pawl_parser *p)
{
	if (p->token.kind == PAWL_TOKEN_END)
		return true;
	if (p->token.kind != PAWL_TOKEN_NEWLINE)
		return pawl_parser_expected(p, "the end of the line");
	pawl_parser_take(p);
	return true;
}

/* The place of the name, or the free one where it belongs. */
static struct pawl_name_entry *
name_place(struct pawl_name_entry *names, size_t cap, const char *name, size_t n)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	size_t i;

	for (i = 0; i < n; i++)
		hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
	for (i = (size_t)(hash ^ hash >> 32) & (cap - 1); names[i].name; i = (i + 1) & (cap - 1)) {
		if (names[i].n == n && !memcmp(names[i].name, name, n))
			break;
	}
	return &names[i];
}

struct pawl_name_entry *
pawl_parser_find(const struct pawl_parser *p, struct pawl_token name)
{
	struct pawl_name_entry *entry;

	if (!p->cap_names)
		return NULL;
	entry = name_place(p->names, p->cap_names, name.text, name.n);
	return entry->name ? entry : NULL;
}

static bool
grow_names(struct pawl_parser *p)
{
	size_t cap = p->cap_names ? 2 * p->cap_names : 256, i;
	struct pawl_name_entry *names = calloc(cap, sizeof(*names));

	if (!names)
		return pawl_parser_no_memory(p);
	for (i = 0; i < p->cap_names; i++) {
		if (p->names[i].name)
			*name_place(names, cap, p->names[i].name, p->names[i].n) = p->names[i];
	}
	free(p->names);
	p->names = names;
	p->cap_names = cap;
	return true;
}

bool
pawl_parser_define(struct pawl_parser *p, struct pawl_token name, struct pawl_node *node)
{
	if (2 * p->n_names >= p->cap_names && !grow_names(p))
		return false;
	*name_place(p->names, p->cap_names, name.text, name.n) =
		(struct pawl_name_entry){name.text, name.n, node};
	p->n_names++;
	return true;
}

static bool
at_word(const struct pawl_parser *p, const char *word)
{
	return p->token.kind == PAWL_TOKEN_WORD && p->token.n == strlen(word) &&
	       !memcmp(p->token.text, word, p->token.n);
}

static bool
want_word(struct pawl_parser *p, const char *word, const char *wanted)
{
	if (!at_word(p, word))
		return pawl_parser_expected(p, wanted);
	pawl_parser_take(p);
	return true;
}

static bool
parse_symbol(struct pawl_parser *p)
{
	char name[PAWL_MAX_NAME + 1];
	const char *fault;
	struct pawl_token token, range;
	int64_t min, max, multiple = 1;

	pawl_parser_take(p);
	if (!pawl_parser_want_kind(p, PAWL_TOKEN_SYMBOL, "a symbol", &token) ||
		!pawl_parser_want(p, ':') ||
		!pawl_parser_want_int(p, 0, INT64_MAX, "the least value", &min) ||
		!pawl_parser_want_kind(p, PAWL_TOKEN_RANGE, "'..'", &range) ||
		!pawl_parser_want_int(p, 0, INT64_MAX, "the largest value", &max))
		return false;
	if (pawl_parser_accept(p, '%') &&
		!pawl_parser_want_int(p, 1, INT64_MAX, "the divisor", &multiple))
		return false;
	if (pawl_graph_find_symbol(p->graph, token.text, token.n) >= 0)
		return pawl_parser_fail(p, PAWL_INVALID_TEXT, token.line, token.column,
			"symbol $%.*s is declared twice", (int)token.n, token.text);
	if (p->graph->n_symbols == MAX_SYMBOLS)
		return pawl_parser_fail(p, PAWL_INVALID_TEXT, token.line, token.column,
			"more than %d symbols", MAX_SYMBOLS);
	memcpy(name, token.text, token.n);
	name[token.n] = '\0';
	if (pawl_graph_add_symbol(p->graph, name, min, max, multiple) < 0)
		return pawl_parser_no_memory(p);
	fault = pawl_symbol_fault(&p->graph->symbols[p->graph->n_symbols - 1]);
	if (fault)
		return pawl_parser_fail(p, PAWL_INVALID_GRAPH, token.line, token.column,
			"symbol $%s %s", name, fault);
	return pawl_parser_want_line_end(p);
}

static bool
parse_output(struct pawl_parser *p)
{
	const struct pawl_name_entry *entry;
	struct pawl_token token;

	pawl_parser_take(p);
	if (!pawl_parser_want_kind(p, PAWL_TOKEN_VALUE, "a value", &token))
		return false;
	entry = pawl_parser_find(p, token);
	if (!entry)
		return pawl_parser_fail(p, PAWL_INVALID_TEXT, token.line, token.column,
			"value %%%.*s is not defined", (int)token.n, token.text);
	if (entry->node)
		pawl_graph_add_output(p->graph, entry->node);
	if (p->graph->error.status)
		return pawl_parser_no_memory(p);
	return pawl_parser_want_line_end(p);
}

bool
pawl_parse_statement(struct pawl_parser *p)
{
	if (p->token.kind == PAWL_TOKEN_VALUE)
		return pawl_parse_node(p);
	if (at_word(p, "sym"))
		return parse_symbol(p);
	if (at_word(p, "output"))
		return parse_output(p);
	return pawl_parser_expected(p, "'sym', a value, 'output' or '}'");
}

static bool
parse_stage(struct pawl_parser *p)
{
	int i;

	for (i = 0; i < PAWL_N_STAGES; i++) {
		if (at_word(p, pawl_stage_name((enum pawl_stage)i))) {
			p->graph->stage = (enum pawl_stage)i;
			pawl_parser_take(p);
			return true;
		}
	}
	return pawl_parser_expected(p, "'values', 'ordered' or 'fused'");
}

static void
skip_blank_lines(struct pawl_parser *p)
{
	while (p->token.kind == PAWL_TOKEN_NEWLINE)
		pawl_parser_take(p);
}

static bool
parse_head(struct pawl_parser *p)
{
	struct pawl_token name;
	int64_t version;

	skip_blank_lines(p);
	if (!want_word(p, "pawl", "'pawl'") ||
		!pawl_parser_want_int(p, 1, 1, "the version", &version) ||
		!pawl_parser_want_line_end(p))
		return false;
	skip_blank_lines(p);
	if (!want_word(p, "graph", "'graph'") || !pawl_parser_want(p, '@') ||
		!pawl_parser_want_kind(p, PAWL_TOKEN_WORD, "a name", &name) ||
		!want_word(p, "stage", "'stage'"))
		return false;
	p->graph->name = pawl_arena_strndup(&p->graph->arena, name.text, name.n);
	if (!p->graph->name)
		return pawl_parser_no_memory(p);
	return parse_stage(p) && pawl_parser_want(p, '{') && pawl_parser_want_line_end(p);
}

static void
parse_body(struct pawl_parser *p)
{
	while (!p->is_dead) {
		skip_blank_lines(p);
		if (p->token.kind == PAWL_TOKEN_END || pawl_parser_at(p, '}'))
			break;
		if (pawl_parse_statement(p))
			continue;
		while (p->token.kind != PAWL_TOKEN_NEWLINE && p->token.kind != PAWL_TOKEN_END)
			pawl_parser_take(p);
	}
	if (p->is_dead || !pawl_parser_want(p, '}'))
		return;
	skip_blank_lines(p);
	if (p->token.kind != PAWL_TOKEN_END)
		pawl_parser_expected(p, "the end of the text");
}

static void
verify(struct pawl_parser *p)
{
	struct pawl_diagnostics found = {0};
	struct pawl_error error;
	int i;

	if (pawl_verify(p->graph, &found, &error) == PAWL_OUT_OF_MEMORY)
		pawl_parser_no_memory(p);
	for (i = 0; i < found.n; i++) {
		const struct pawl_node *node = found.items[i].node;

		pawl_parser_fail(p, PAWL_INVALID_GRAPH, node ? node->line : 1,
			node ? node->column : 1, "%s", found.items[i].text);
	}
	pawl_diagnostics_release(&found);
}

enum pawl_status
pawl_parse(const char *text, size_t n, const char *file, struct pawl_graph **out, char **all,
	struct pawl_error *err)
{
	struct pawl_parser p = {.file = file, .graph = pawl_graph_new("")};

	if (!p.graph) {
		pawl_parser_no_memory(&p);
	} else if (n > (size_t)PAWL_MAX_TEXT_MIB << 20) {
		pawl_parser_fail(&p, PAWL_INVALID_TEXT, 1, 1, "longer than %d MiB",
			PAWL_MAX_TEXT_MIB);
	} else {
		pawl_lexer_init(&p.lexer, text, n);
		p.token = pawl_lexer_next(&p.lexer);
		if (parse_head(&p))
			parse_body(&p);
		if (!p.n_errors && !p.is_dead)
			verify(&p);
	}
	free(p.names);
	free(p.values);
	if (all)
		*all = p.errors;
	else
		free(p.errors);
	if (p.first.status) {
		pawl_graph_free(p.graph);
		return pawl_fail(err, p.first.status, "%s", p.first.text);
	}
	*out = p.graph;
	return PAWL_OK;
}

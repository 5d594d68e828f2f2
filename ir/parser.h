/* State and helpers that the files of the parser share (ir/parse.c, ir/parse_node.c). */
#ifndef PAWL_IR_PARSER_H
#define PAWL_IR_PARSER_H

#include "ir/graph.h"
#include "ir/lex.h"

/* Values by name; node is NULL where the line that defines the value is in error. */
struct pawl_name_entry {
	const char *name; /* into the source */
	size_t n;
	struct pawl_node *node;
};

struct pawl_parser {
	struct pawl_lexer lexer;
	struct pawl_token token; /* the one not yet taken */
	const char *file;
	struct pawl_graph *graph;
	struct pawl_name_entry *names; /* open addressing, cap_names is a power of two or 0 */
	size_t n_names, cap_names;
	double *values; /* scratch of one literal */
	size_t cap_values;
	char *errors; /* lines */
	size_t errors_length;
	int n_errors;
	struct pawl_error first; /* PAWL_OK while there is none */
	bool is_dead;            /* out of memory or too many errors: nothing more is read */
};

/* Reports an error at a place and returns false. */
bool pawl_parser_fail(struct pawl_parser *p, enum pawl_status status, int32_t line, int32_t column,
	const char *format, ...) PAWL_PRINTF(5, 6);
/* "no memory"; returns false. */
bool pawl_parser_no_memory(struct pawl_parser *p);
/* Reports that `wanted` should stand at the current token; returns false. */
bool pawl_parser_expected(struct pawl_parser *p, const char *wanted);

/* Takes the current token. */
struct pawl_token pawl_parser_take(struct pawl_parser *p);
bool pawl_parser_at(const struct pawl_parser *p, char punct);
/* Takes the punctuation when it is the current token. */
bool pawl_parser_accept(struct pawl_parser *p, char punct);
/* The same, and an error otherwise. */
bool pawl_parser_want(struct pawl_parser *p, char punct);
/* A token of the kind into *out; `wanted` names it in the message. */
bool pawl_parser_want_kind(struct pawl_parser *p, enum pawl_token_kind kind, const char *wanted,
	struct pawl_token *out);
/* An integer of low .. high; `wanted` names it in the message. */
bool pawl_parser_want_int(
	struct pawl_parser *p, int64_t low, int64_t high, const char *wanted, int64_t *out);
/* A symbol that is declared; its index. */
bool pawl_parser_want_symbol(struct pawl_parser *p, int32_t *out);
bool pawl_parser_want_line_end(struct pawl_parser *p);

/* NULL when no value of the name is defined yet. */
struct pawl_name_entry *pawl_parser_find(const struct pawl_parser *p, struct pawl_token name);
/* False when memory is exhausted. */
bool pawl_parser_define(struct pawl_parser *p, struct pawl_token name, struct pawl_node *node);

/* A symbol, a node or an output, to the end of the line.  A node's name is defined in any case. */
bool pawl_parse_statement(struct pawl_parser *p);
/* "%x = op ..." from its first token to the end of the line; defines the value in any case. */
bool pawl_parse_node(struct pawl_parser *p);

#endif

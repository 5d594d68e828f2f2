/*
 * Tokens of the text form.  A line is a statement, so that its end is a token too.  Spaces, tabs,
 * carriage returns and comments (from ; to the end of the line) stand between tokens.
 */
#ifndef PAWL_IR_LEX_H
#define PAWL_IR_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pawl_token_kind {
	PAWL_TOKEN_END, /* of the text */
	PAWL_TOKEN_NEWLINE,
	PAWL_TOKEN_WORD,   /* [A-Za-z_][A-Za-z0-9_.]* */
	PAWL_TOKEN_VALUE,  /* % and a word or digits; text without the % */
	PAWL_TOKEN_SYMBOL, /* $ and a word; text without the $ */
	PAWL_TOKEN_NUMBER, /* -?[0-9]+(.[0-9]+)?(e[+-]?[0-9]+)? or -inf */
	PAWL_TOKEN_RANGE,  /* .. */
	PAWL_TOKEN_PUNCT,  /* one of = , : { } [ ] @ # * + % */
	PAWL_TOKEN_WRONG   /* a byte that starts nothing */
};

struct pawl_token {
	enum pawl_token_kind kind;
	const char *text; /* into the source */
	size_t n;
	int32_t line, column; /* from 1; columns count bytes */
};

struct pawl_lexer {
	const char *text;
	size_t n, at;
	size_t line_start;
	int32_t line;
};

void pawl_lexer_init(struct pawl_lexer *lexer, const char *text, size_t n);
struct pawl_token pawl_lexer_next(struct pawl_lexer *lexer);

#endif

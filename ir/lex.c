#include "ir/lex.h"

#include <string.h>

void
pawl_lexer_init(struct pawl_lexer *lexer, const char *text, size_t n)
{
	*lexer = (struct pawl_lexer){.text = text, .n = n, .line = 1};
}

static bool
is_digit(char ch)
{
	return ch >= '0' && ch <= '9';
}

static bool
is_letter(char ch)
{
	return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
}

/* The byte `ahead` places on, NUL behind the end. */
static char
peek(const struct pawl_lexer *lexer, size_t ahead)
{
	return lexer->at + ahead < lexer->n ? lexer->text[lexer->at + ahead] : '\0';
}

static void
skip_space(struct pawl_lexer *lexer)
{
	char ch;

	while ((ch = peek(lexer, 0)) == ' ' || ch == '\t' || ch == '\r')
		lexer->at++;
	if (ch == ';') {
		const char *end = memchr(lexer->text + lexer->at, '\n', lexer->n - lexer->at);

		lexer->at = end ? (size_t)(end - lexer->text) : lexer->n;
	}
}

static void
skip_word(struct pawl_lexer *lexer)
{
	while (is_letter(peek(lexer, 0)) || is_digit(peek(lexer, 0)) || peek(lexer, 0) == '.')
		lexer->at++;
}

static void
skip_digits(struct pawl_lexer *lexer)
{
	while (is_digit(peek(lexer, 0)))
		lexer->at++;
}

static void
skip_number(struct pawl_lexer *lexer)
{
	lexer->at += peek(lexer, 0) == '-';
	if (is_letter(peek(lexer, 0))) {
		skip_word(lexer);
		return;
	}
	skip_digits(lexer);
	if (peek(lexer, 0) == '.' && is_digit(peek(lexer, 1))) {
		lexer->at++;
		skip_digits(lexer);
	}
	if (peek(lexer, 0) == 'e') {
		lexer->at++;
		lexer->at += peek(lexer, 0) == '-' || peek(lexer, 0) == '+';
		skip_digits(lexer);
	}
}

static enum pawl_token_kind
skip_token(struct pawl_lexer *lexer)
{
	char ch = peek(lexer, 0), next = peek(lexer, 1);

	if (is_letter(ch)) {
		skip_word(lexer);
		return PAWL_TOKEN_WORD;
	}
	if (is_digit(ch) || (ch == '-' && (is_digit(next) || is_letter(next)))) {
		skip_number(lexer);
		return PAWL_TOKEN_NUMBER;
	}
	if ((ch == '%' && (is_letter(next) || is_digit(next))) || (ch == '$' && is_letter(next))) {
		lexer->at++;
		if (is_digit(next))
			skip_digits(lexer);
		else
			skip_word(lexer);
		return ch == '%' ? PAWL_TOKEN_VALUE : PAWL_TOKEN_SYMBOL;
	}
	if (ch == '.' && next == '.') {
		lexer->at += 2;
		return PAWL_TOKEN_RANGE;
	}
	lexer->at++;
	return ch && strchr("=,:{}[]@#*+%", ch) ? PAWL_TOKEN_PUNCT : PAWL_TOKEN_WRONG;
}

struct pawl_token
pawl_lexer_next(struct pawl_lexer *lexer)
{
	struct pawl_token token;
	size_t start;

	skip_space(lexer);
	start = lexer->at;
	token.text = lexer->text + start;
	token.line = lexer->line;
	token.column = (int32_t)(start - lexer->line_start) + 1;
	if (start == lexer->n) {
		token.kind = PAWL_TOKEN_END;
	} else if (*token.text == '\n') {
		token.kind = PAWL_TOKEN_NEWLINE;
		lexer->at++;
		lexer->line++;
		lexer->line_start = lexer->at;
	} else {
		token.kind = skip_token(lexer);
	}
	token.n = lexer->at - start;
	if (token.kind == PAWL_TOKEN_VALUE || token.kind == PAWL_TOKEN_SYMBOL) {
		token.text++;
		token.n--;
	}
	return token;
}

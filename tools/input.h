/* What commands read besides model files: whole texts and lists of token ids. */
#ifndef PAWL_TOOLS_INPUT_H
#define PAWL_TOOLS_INPUT_H

#include "ir/status.h"
#include "models/token_list.h"

#include <stdbool.h>
#include <stddef.h>

/* MiB of a text or a token list that is read whole. */
enum { PAWL_MAX_INPUT_MIB = 64 };

/* The name of a path in messages: "standard input" for "-". */
const char *pawl_input_name(const char *path);

/*
 * The whole file, "-" being standard input, and a zero after it (malloc).  PAWL_ENVIRONMENT when it
 * cannot be read, PAWL_INVALID_FILE when it is longer than max_mib MiB.
 */
enum pawl_status pawl_read_input(
	const char *path, int max_mib, char **text, size_t *n, struct pawl_error *err);

/*
 * Token ids: whole numbers 0 .. 2^31 - 1 separated by commas or blanks, in [ ] or not.  name stands
 * for the text in messages, which give the byte of the mistake.
 */
enum pawl_status pawl_parse_tokens(const char *text, size_t n, const char *name,
	struct pawl_token_list *list, struct pawl_error *err);

/* Whether it holds nothing but digits and separators. */
bool pawl_is_token_list(const char *word);

/*
 * word is such a list itself or the name of a file of one.  Messages call the list by the option
 * that gave the word.
 */
enum pawl_status pawl_read_tokens(
	const char *word, const char *option, struct pawl_token_list *list, struct pawl_error *err);

#endif

/* What commands read besides model files: whole texts and lists of token ids. */
#ifndef PAWL_TOOLS_INPUT_H
#define PAWL_TOOLS_INPUT_H

#include "ir/status.h"
#include "models/token_list.h"

#include <stddef.h>

/* Of any text that is read whole. */
enum { PAWL_MAX_INPUT = 64 << 20 };

/*
 * The whole file, "-" being standard input, and a zero after it (malloc).  PAWL_ENVIRONMENT when it
 * cannot be read, PAWL_INVALID_FILE when it is longer than PAWL_MAX_INPUT bytes.
 */
enum pawl_status pawl_read_input(const char *path, char **text, size_t *n, struct pawl_error *err);

/*
 * Token ids: whole numbers 0 .. 2^31 - 1 separated by commas or blanks, in [ ] or not.  name stands
 * for the text in messages, which give the byte of the mistake.
 */
enum pawl_status pawl_parse_tokens(const char *text, size_t n, const char *name,
	struct pawl_token_list *list, struct pawl_error *err);

/* word is such a list itself when it holds nothing but digits and separators, else a file's name.
 */
enum pawl_status pawl_read_tokens(
	const char *word, struct pawl_token_list *list, struct pawl_error *err);

#endif

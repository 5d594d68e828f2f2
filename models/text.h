/* Text of known length, not ended by a zero; it belongs to somebody else.  Thread-safe. */
#ifndef PAWL_MODELS_TEXT_H
#define PAWL_MODELS_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct pawl_text {
	const char *bytes; /* may be NULL when n is 0 */
	size_t n;
};

bool pawl_text_is(struct pawl_text text, const char *wanted);

/*
 * Copies text from a file for a message, cut to size (at least 4) with "..." and with "?" for
 * what is not printable ASCII; ends it with a zero.
 */
void pawl_text_show(struct pawl_text text, char *out, size_t size);

#endif

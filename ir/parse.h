/* Text to graph.  The grammar heads ir/parse.c. */
#ifndef PAWL_IR_PARSE_H
#define PAWL_IR_PARSE_H

#include "ir/graph.h"

/* MiB of text. */
enum { PAWL_MAX_TEXT_MIB = 16 };

/*
 * Parses one graph and verifies it.  On failure err holds "FILE:LINE:COLUMN: message" of the
 * first error and, when all is not NULL, *all (malloc'ed) every error, one a line.  `file` only
 * names the text in messages.  Limits: PAWL_MAX_TEXT_MIB, 1e6 nodes, dims up to 2^40.
 */
enum pawl_status pawl_parse(const char *text, size_t n, const char *file, struct pawl_graph **out,
	char **all, struct pawl_error *err);

/* Locale-independent; false unless the whole of text[0..n) is a number. */
bool pawl_parse_double(const char *text, size_t n, double *out);
bool pawl_parse_int(const char *text, size_t n, int64_t *out);

#endif

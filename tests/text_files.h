/* The graphs of tests/text, found by $top_srcdir. */
#ifndef PAWL_TESTS_TEXT_FILES_H
#define PAWL_TESTS_TEXT_FILES_H

#include <stddef.h>

struct pawl_graph;

/* The whole of tests/text/NAME and a zero after it; the caller frees.  The test fails without it.
 */
char *pawl_test_text(const char *name, size_t *n);

/* The graph of tests/text/NAME; the test fails when it does not parse. */
struct pawl_graph *pawl_test_graph(const char *name);

/* Calls check with "FOLDERNAME.pawl" for each; FOLDER is "" or ends in /.  Returns how many. */
int pawl_test_each_text(const char *folder, void (*check)(const char *name));

#endif

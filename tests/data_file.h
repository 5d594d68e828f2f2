/* Files of tests/data, found by $top_srcdir. */
#ifndef PAWL_TESTS_DATA_FILE_H
#define PAWL_TESTS_DATA_FILE_H

#include <stddef.h>

/* The whole file and a zero after it; the caller frees.  The test fails if it cannot be read. */
char *pawl_test_data(const char *name, size_t *n);

#endif

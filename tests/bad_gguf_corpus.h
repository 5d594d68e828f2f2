/*
 * Malformed GGUF files, each with the message it deserves.  Used by the reader's tests and, as
 * files written by tests/bad-gguf, by the tests of the tool.
 */
#ifndef PAWL_TESTS_BAD_GGUF_CORPUS_H
#define PAWL_TESTS_BAD_GGUF_CORPUS_H

#include <stddef.h>

struct pawl_bad_gguf {
	const char *name; /* of the fault: lower case and hyphens */
	const char *says; /* the message after "FILE: " */
	void *bytes;      /* free() it */
	size_t n_bytes;
};

size_t pawl_n_bad_ggufs(void);
void pawl_bad_gguf_make(size_t index, struct pawl_bad_gguf *out);

/*
 * A small well-formed file with a value of every type and three tensors.  It needs its last
 * byte, so that every shorter prefix of it is malformed.
 */
void *pawl_small_gguf(unsigned int version, size_t *n_bytes);

#endif

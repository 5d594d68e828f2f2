/*
 * The fixture of a suite on GGUF files in memory.  Included by the one source of a suite, whose own
 * the statics are.
 */
#ifndef PAWL_TESTS_GGUF_FIXTURE_H
#define PAWL_TESTS_GGUF_FIXTURE_H

#include "models/gguf.h"

#include "tests/bad_gguf_corpus.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static void *bytes; /* of the file under test */
static size_t n_bytes;
static struct pawl_gguf *gguf;
static struct pawl_arena arena;
static struct pawl_error err;

static inline void
open_bytes(void)
{
	ck_assert_msg(
		pawl_gguf_parse(bytes, n_bytes, "t.gguf", &gguf, &err) == PAWL_OK, "%s", err.text);
	pawl_arena_init(&arena);
}

static inline void
open_small(void)
{
	bytes = pawl_small_gguf(3, &n_bytes);
	open_bytes();
}

static inline void
close_bytes(void)
{
	pawl_arena_release(&arena);
	pawl_gguf_free(gguf);
	free(bytes);
}

static inline bool
string_is(struct pawl_gguf_string string, const char *text)
{
	return string.n == strlen(text) && !memcmp(string.text, text, string.n);
}

#endif

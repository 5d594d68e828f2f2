/*
 * The fixture of a suite on tiny vocabularies.  Included by the one source of a suite, whose own
 * the statics are.
 */
#ifndef PAWL_TESTS_VOCAB_FIXTURE_H
#define PAWL_TESTS_VOCAB_FIXTURE_H

#include "tests/tiny_vocab.h"

static struct pawl_tiny_vocab tiny;

/* a=0 b=1 c=2 d=3 */
static inline void
letters(const char *pre)
{
	pawl_tiny_vocab_init(&tiny, pre);
	pawl_tiny_vocab_add_letters(&tiny, "abcd");
}

#endif

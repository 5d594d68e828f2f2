/* Small vocabularies written in a test. */
#ifndef PAWL_TESTS_TINY_VOCAB_H
#define PAWL_TESTS_TINY_VOCAB_H

#include "models/tokenizer.h"

enum { PAWL_TINY_MAX = 64 };

/* source points into the other members: do not copy or move a tiny vocabulary. */
struct pawl_tiny_vocab {
	struct pawl_vocab_source source;
	struct pawl_text tokens[PAWL_TINY_MAX], merges[PAWL_TINY_MAX];
	int32_t types[PAWL_TINY_MAX];
};

/* Model "gpt2", no tokens, no merges. */
void pawl_tiny_vocab_init(struct pawl_tiny_vocab *tiny, const char *pre);
/* Returns the id.  The text must outlive the vocabulary. */
int32_t pawl_tiny_vocab_add(struct pawl_tiny_vocab *tiny, const char *text, int32_t type);
/* A normal token for each character; ASCII only. */
void pawl_tiny_vocab_add_letters(struct pawl_tiny_vocab *tiny, const char *letters);
void pawl_tiny_vocab_add_merge(struct pawl_tiny_vocab *tiny, const char *merge);

#endif

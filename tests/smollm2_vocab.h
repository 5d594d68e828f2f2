/* The vocabulary of SmolLM2 out of tests/data/smollm2-vocab.bin (format: tests/data/README.md). */
#ifndef PAWL_TESTS_SMOLLM2_VOCAB_H
#define PAWL_TESTS_SMOLLM2_VOCAB_H

#include "ir/arena.h"
#include "models/tokenizer.h"

/* The template that the model's GGUF file holds. */
extern const char pawl_smollm2_chat_template[];

/* What the GGUF file says; the texts live in the arena. */
void pawl_smollm2_vocab(struct pawl_arena *arena, struct pawl_vocab_source *source);

/* The caller frees it. */
struct pawl_tokenizer *pawl_smollm2_tokenizer(void);

#endif

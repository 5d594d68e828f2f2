/*
 * Splits text into the words that byte-pair merging never crosses, by the rules that
 * `tokenizer.ggml.pre` names.  Letters, numbers and the like are what the linked PCRE2 takes for
 * them: models see no difference except in characters newer than its Unicode tables.
 *
 * A pre-tokenizer is immutable and may be shared by threads.
 */
#ifndef PAWL_MODELS_PRETOKENIZE_H
#define PAWL_MODELS_PRETOKENIZE_H

#include "ir/status.h"
#include "models/text.h"

#include <stdbool.h>
#include <stddef.h>

struct pawl_pretokenizer;

/* UNSUPPORTED, naming it, when no rules of this name are known. */
enum pawl_status pawl_pretokenizer_new(
	struct pawl_text name, struct pawl_pretokenizer **out, struct pawl_error *err);
void pawl_pretokenizer_free(struct pawl_pretokenizer *pretokenizer);

/* Whether a word that is a token as a whole is taken so, whatever the merges say. */
bool pawl_pretokenizer_takes_whole_words(const struct pawl_pretokenizer *pretokenizer);

/* Whether a file that does not say so wants BOS in front of a text. */
bool pawl_pretokenizer_adds_bos(const struct pawl_pretokenizer *pretokenizer);

/* Ends of consecutive words: word i is [ends[i - 1], ends[i]), the first begins at 0. */
struct pawl_word_list {
	size_t *ends;
	size_t n, capacity;
};

void pawl_word_list_init(struct pawl_word_list *list);
void pawl_word_list_release(struct pawl_word_list *list);

/*
 * Splits n bytes of well-formed UTF-8 (not checked here); the words replace what words held and
 * cover the text without gaps.  The work is linear for the rules there are; CAPACITY if a match
 * needs more than a multiple of the text's length.
 */
enum pawl_status pawl_pretokenizer_split(const struct pawl_pretokenizer *pretokenizer,
	const char *text, size_t n, struct pawl_word_list *words, struct pawl_error *err);

#endif

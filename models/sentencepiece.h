/*
 * Merging by scores, as SentencePiece does with its BPE models: a text is its characters; of all
 * neighbours that together are a token the one of the highest score is merged first, the leftmost
 * of equal ones; a character that is no token becomes the tokens of its bytes.  Spaces are written
 * as U+2581 and words are not told apart before.  n log n in the length of the text.
 *
 * A table is immutable once made and may be shared by threads; a scratch belongs to one call at
 * a time.
 */
#ifndef PAWL_MODELS_SENTENCEPIECE_H
#define PAWL_MODELS_SENTENCEPIECE_H

#include "ir/arena.h"
#include "models/merge_heap.h"
#include "models/token_index.h"
#include "models/token_list.h"

/* What a space is written as: 3 bytes. */
#define PAWL_SENTENCEPIECE_SPACE "\xe2\x96\x81"

struct pawl_sentencepiece {
	const struct pawl_token_index *index; /* by the text of the vocabulary */
	const uint32_t *ranks;                /* of each id, the lower the better */
	int32_t byte_ids[256];
	size_t longest; /* bytes of the longest token */
};

/* The rank of a token that no text may turn into. */
#define PAWL_SENTENCEPIECE_NEVER UINT32_MAX

/* The rank of a score, which is finite. */
uint32_t pawl_sentencepiece_rank(float score);

struct pawl_sentencepiece_scratch {
	char *text; /* with U+2581 for spaces */
	struct pawl_sentencepiece_symbol *symbols;
	struct pawl_merge_candidate *heap;
	size_t capacity; /* bytes of a text */
};

void pawl_sentencepiece_scratch_init(struct pawl_sentencepiece_scratch *scratch);
void pawl_sentencepiece_scratch_release(struct pawl_sentencepiece_scratch *scratch);

/*
 * Adds the ids of n bytes of UTF-8, at most PAWL_SENTENCEPIECE_MAX_TEXT; with_space: of a space in
 * front of them.
 */
#define PAWL_SENTENCEPIECE_MAX_TEXT ((size_t)1 << 30)
enum pawl_status pawl_sentencepiece_encode(const struct pawl_sentencepiece *pieces,
	struct pawl_sentencepiece_scratch *scratch, const char *text, size_t n, bool with_space,
	struct pawl_token_list *list, struct pawl_error *err);

/* Copies n bytes of a token's text to out with spaces for U+2581; returns how many bytes it wrote.
 */
size_t pawl_sentencepiece_decode(const char *text, size_t n, char *out);

#endif

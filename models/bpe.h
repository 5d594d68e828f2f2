/*
 * Byte-pair merging of one word, by ranks: the merge of the lowest rank first, the leftmost of
 * equal ones.  n log n in the length of the word.
 *
 * A table is immutable once made and may be shared by threads; a scratch belongs to one call at
 * a time.
 */
#ifndef PAWL_MODELS_BPE_H
#define PAWL_MODELS_BPE_H

#include "ir/arena.h"
#include "ir/status.h"
#include "models/merge_heap.h"
#include "models/token_list.h"

#include <stddef.h>
#include <stdint.h>

struct pawl_bpe_merge {
	int32_t left, right, result; /* token ids */
	uint32_t rank;
};

struct pawl_bpe {
	int32_t byte_ids[256];               /* -1: no token for this byte */
	const struct pawl_bpe_merge *merges; /* sorted by left, then right; pairs are unique */
	const uint32_t *first_of_left;       /* n_tokens + 1 offsets into merges */
	size_t n_tokens;
};

/*
 * Sorts merges (from the arena, and kept) in place; of two merges of one pair the lower rank
 * stays.  Ids must lie in [0, n_tokens).
 */
enum pawl_status pawl_bpe_init(struct pawl_bpe *bpe, struct pawl_arena *arena,
	const int32_t byte_ids[256], struct pawl_bpe_merge *merges, size_t n_merges,
	size_t n_tokens, struct pawl_error *err);

struct pawl_bpe_scratch {
	struct pawl_bpe_symbol *symbols;
	struct pawl_merge_candidate *heap;
	size_t capacity;
};

void pawl_bpe_scratch_init(struct pawl_bpe_scratch *scratch);
void pawl_bpe_scratch_release(struct pawl_bpe_scratch *scratch);

/* Longest word that pawl_bpe_encode_word takes, in bytes. */
#define PAWL_BPE_MAX_WORD ((size_t)1 << 30)

/*
 * Adds the ids of one word (n <= PAWL_BPE_MAX_WORD bytes).  Bytes without a token take part in
 * no merge and give nothing.
 */
enum pawl_status pawl_bpe_encode_word(const struct pawl_bpe *bpe, struct pawl_bpe_scratch *scratch,
	const char *word, size_t n, struct pawl_token_list *list, struct pawl_error *err);

#endif

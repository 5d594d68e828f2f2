#include "models/byte_level.h"
#include "models/utf8.h"
#include "models/vocab.h"

#include <stdlib.h>
#include <string.h>

/* Finds the three tokens of a merge. */
static enum pawl_status
read_merge(const struct pawl_tokenizer *tokenizer, struct pawl_text text, size_t rank, char *joined,
	struct pawl_bpe_merge *merge, struct pawl_error *err)
{
	const char *space = text.n > 1 ? memchr(text.bytes + 1, ' ', text.n - 1) : NULL;
	const char *end = text.bytes + text.n;
	size_t n_left, n_right;

	if (!space || space + 1 == end)
		return pawl_fail(err, PAWL_INVALID_FILE,
			"tokenizer.ggml.merges[%zu] is not two tokens with a space between", rank);
	n_left = (size_t)(space - text.bytes);
	n_right = (size_t)(end - space - 1);
	memcpy(joined, text.bytes, n_left);
	memcpy(joined + n_left, space + 1, n_right);
	merge->left = pawl_token_index_find(&tokenizer->index, text.bytes, n_left);
	merge->right = pawl_token_index_find(&tokenizer->index, space + 1, n_right);
	merge->result = pawl_token_index_find(&tokenizer->index, joined, n_left + n_right);
	merge->rank = (uint32_t)rank;
	if (merge->left < 0 || merge->right < 0 || merge->result < 0)
		return pawl_fail(err, PAWL_INVALID_FILE,
			"tokenizer.ggml.merges[%zu]: its %s is not in tokenizer.ggml.tokens", rank,
			merge->left < 0    ? "left part"
			: merge->right < 0 ? "right part"
					   : "result");
	return PAWL_OK;
}

/* Merges that touch tokens which no word may turn into are left out. */
static enum pawl_status
read_merges(const struct pawl_tokenizer *tokenizer, const struct pawl_vocab_source *source,
	struct pawl_bpe_merge *merges, size_t *n_merges, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;
	size_t longest = 0;
	char *joined;

	for (size_t i = 0; i < source->n_merges; i++)
		longest = source->merges[i].n > longest ? source->merges[i].n : longest;
	joined = malloc(longest + 1);
	if (!joined)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory to read merges");
	*n_merges = 0;
	for (size_t i = 0; i < source->n_merges && !status; i++) {
		struct pawl_bpe_merge *merge = &merges[*n_merges];

		status = read_merge(tokenizer, source->merges[i], i, joined, merge, err);
		if (!status && pawl_token_comes_from_words(tokenizer, merge->left) &&
			pawl_token_comes_from_words(tokenizer, merge->right) &&
			pawl_token_comes_from_words(tokenizer, merge->result))
			++*n_merges;
	}
	free(joined);
	return status;
}

enum pawl_status
pawl_vocab_make_merges(struct pawl_tokenizer *tokenizer, const struct pawl_vocab_source *source,
	struct pawl_error *err)
{
	size_t n = source->n_merges;
	struct pawl_bpe_merge *merges =
		pawl_arena_alloc(&tokenizer->arena, n ? n : 1, sizeof(*merges));
	int32_t byte_ids[256];
	enum pawl_status status;

	if (!merges)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for %zu merges", n);
	for (int i = 0; i < 256; i++) {
		char code[4];
		int k = pawl_utf8_put(pawl_byte_level_code((unsigned char)i), code);
		int32_t id = pawl_token_index_find(&tokenizer->index, code, (size_t)k);

		byte_ids[i] = id >= 0 && pawl_token_comes_from_words(tokenizer, id) ? id : -1;
	}
	status = read_merges(tokenizer, source, merges, &n, err);
	if (status)
		return status;
	return pawl_bpe_init(
		&tokenizer->bpe, &tokenizer->arena, byte_ids, merges, n, tokenizer->n_tokens, err);
}

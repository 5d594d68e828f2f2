#include "models/tokenizer.h"

#include "models/byte_level.h"
#include "models/utf8.h"
#include "models/vocab.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

size_t
pawl_tokenizer_n_vocab(const struct pawl_tokenizer *tokenizer)
{
	return tokenizer->n_tokens;
}

int32_t
pawl_tokenizer_find(const struct pawl_tokenizer *tokenizer, const char *text, size_t n)
{
	return pawl_token_index_find(&tokenizer->index, text, n);
}

static bool
is_token(const struct pawl_tokenizer *tokenizer, uint32_t id)
{
	return id < tokenizer->n_tokens;
}

bool
pawl_tokenizer_is_control(const struct pawl_tokenizer *tokenizer, uint32_t id)
{
	return is_token(tokenizer, id) && (tokenizer->flags[id] & PAWL_TOKEN_IS_CONTROL);
}

bool
pawl_tokenizer_is_eog(const struct pawl_tokenizer *tokenizer, uint32_t id)
{
	return is_token(tokenizer, id) && (tokenizer->flags[id] & PAWL_TOKEN_IS_EOG);
}

const uint32_t *
pawl_tokenizer_eog(const struct pawl_tokenizer *tokenizer, size_t *n)
{
	*n = tokenizer->n_eog;
	return tokenizer->eog;
}

int32_t
pawl_tokenizer_bos(const struct pawl_tokenizer *tokenizer)
{
	return tokenizer->bos;
}

int32_t
pawl_tokenizer_eos(const struct pawl_tokenizer *tokenizer)
{
	return tokenizer->eos;
}

bool
pawl_tokenizer_wants_bos(const struct pawl_tokenizer *tokenizer)
{
	return tokenizer->wants_bos;
}

bool
pawl_tokenizer_piece(const struct pawl_tokenizer *tokenizer, uint32_t id, struct pawl_text *piece)
{
	if (!is_token(tokenizer, id))
		return false;
	*piece = tokenizer->pieces[id];
	return true;
}

enum pawl_status
pawl_tokenizer_decode(const struct pawl_tokenizer *tokenizer, const uint32_t *ids, size_t n,
	bool control, char **text, size_t *n_text, struct pawl_error *err)
{
	size_t n_bytes = 0;
	char *out;

	*text = NULL;
	*n_text = 0;
	for (size_t i = 0; i < n; i++) {
		if (!is_token(tokenizer, ids[i]))
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"id %" PRIu32 " at index %zu is not one of the %zu tokens", ids[i],
				i, tokenizer->n_tokens);
		if (control || !pawl_tokenizer_is_control(tokenizer, ids[i]))
			n_bytes += tokenizer->pieces[ids[i]].n;
	}
	out = malloc(n_bytes + 1);
	if (!out)
		return pawl_fail(
			err, PAWL_OUT_OF_MEMORY, "no memory for a text of %zu bytes", n_bytes);
	*text = out;
	*n_text = n_bytes;
	for (size_t i = 0; i < n; i++) {
		struct pawl_text piece = tokenizer->pieces[ids[i]];

		if (!control && pawl_tokenizer_is_control(tokenizer, ids[i]))
			continue;
		if (out == *text && tokenizer->adds_space && piece.n && *piece.bytes == ' ') {
			piece.bytes++;
			piece.n--;
			--*n_text;
		}
		memcpy(out, piece.bytes, piece.n);
		out += piece.n;
	}
	*out = 0;
	return PAWL_OK;
}

/* What one call of encode needs besides the tokenizer. */
struct encoder {
	const struct pawl_tokenizer *tokenizer;
	struct pawl_token_list *list;
	struct pawl_word_list words;
	struct pawl_bpe_scratch scratch;
	struct pawl_sentencepiece_scratch pieces;
	char *written; /* a whole word in the vocabulary's alphabet, or NULL: not looked for */
};

/* The token that the word is as a whole, or -1. */
static int32_t
find_whole_word(const struct encoder *encoder, const char *word, size_t n)
{
	const struct pawl_tokenizer *tokenizer = encoder->tokenizer;
	int32_t id;

	if (!encoder->written || n > tokenizer->longest_text)
		return -1;
	n = pawl_byte_level_encode(word, n, encoder->written);
	id = pawl_token_index_find(&tokenizer->index, encoder->written, n);
	return id >= 0 && pawl_token_comes_from_words(tokenizer, id) ? id : -1;
}

static enum pawl_status
encode_word(struct encoder *encoder, const char *word, size_t n, struct pawl_error *err)
{
	int32_t id = find_whole_word(encoder, word, n);

	if (id >= 0)
		return pawl_token_list_add(encoder->list, id, err);
	return pawl_bpe_encode_word(
		&encoder->tokenizer->bpe, &encoder->scratch, word, n, encoder->list, err);
}

static enum pawl_status
encode_plain(struct encoder *encoder, const char *text, size_t n, struct pawl_error *err)
{
	const struct pawl_tokenizer *tokenizer = encoder->tokenizer;
	enum pawl_status status;
	size_t start = 0;

	if (tokenizer->has_scores)
		return pawl_sentencepiece_encode(&tokenizer->sentencepiece, &encoder->pieces, text,
			n, tokenizer->adds_space, encoder->list, err);
	status = pawl_pretokenizer_split(tokenizer->pretokenizer, text, n, &encoder->words, err);

	for (size_t i = 0; i < encoder->words.n && !status; i++) {
		size_t end = encoder->words.ends[i];

		status = encode_word(encoder, text + start, end - start, err);
		start = end;
	}
	return status;
}

static enum pawl_status
encoder_init(struct encoder *encoder, const struct pawl_tokenizer *tokenizer,
	struct pawl_token_list *list, struct pawl_error *err)
{
	encoder->tokenizer = tokenizer;
	encoder->list = list;
	encoder->written = NULL;
	pawl_word_list_init(&encoder->words);
	pawl_bpe_scratch_init(&encoder->scratch);
	pawl_sentencepiece_scratch_init(&encoder->pieces);
	if (tokenizer->has_scores ||
		!pawl_pretokenizer_takes_whole_words(tokenizer->pretokenizer))
		return PAWL_OK;
	encoder->written = malloc(2 * tokenizer->longest_text + 1);
	if (!encoder->written)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory to encode a text");
	return PAWL_OK;
}

static void
encoder_release(struct encoder *encoder)
{
	free(encoder->written);
	pawl_word_list_release(&encoder->words);
	pawl_bpe_scratch_release(&encoder->scratch);
	pawl_sentencepiece_scratch_release(&encoder->pieces);
}

static enum pawl_status
encode_text(
	struct encoder *encoder, const char *text, size_t n, bool control, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;
	struct pawl_special_match match;
	size_t start = 0;

	while (!status && pawl_special_tokens_find(
				  &encoder->tokenizer->specials, text, n, start, control, &match)) {
		status = encode_plain(encoder, text + start, match.start - start, err);
		if (!status)
			status = pawl_token_list_add(encoder->list, match.id, err);
		start = match.start + match.n;
	}
	return status ? status : encode_plain(encoder, text + start, n - start, err);
}

static enum pawl_status
check_encode(const struct pawl_tokenizer *tokenizer, const char *text, size_t n, unsigned int flags,
	struct pawl_error *err)
{
	size_t n_valid;

	if (n > PAWL_BPE_MAX_WORD)
		return pawl_fail(err, PAWL_CAPACITY, "a text of %zu bytes is longer than %zu", n,
			PAWL_BPE_MAX_WORD);
	n_valid = pawl_utf8_valid_prefix(text, n);
	if (n_valid < n)
		return pawl_fail(
			err, PAWL_INVALID_TEXT, "the text is not UTF-8 at byte %zu", n_valid);
	if ((flags & PAWL_ENCODE_BOS) && tokenizer->bos < 0)
		return pawl_fail(
			err, PAWL_INVALID_ARGUMENT, "the vocabulary has no BOS token to put first");
	return PAWL_OK;
}

enum pawl_status
pawl_tokenizer_encode(const struct pawl_tokenizer *tokenizer, const char *text, size_t n,
	unsigned int flags, struct pawl_token_list *list, struct pawl_error *err)
{
	struct encoder encoder;
	size_t n_before = list->n;
	enum pawl_status status = check_encode(tokenizer, text, n, flags, err);

	if (status)
		return status;
	status = encoder_init(&encoder, tokenizer, list, err);
	if (!status && (flags & PAWL_ENCODE_BOS))
		status = pawl_token_list_add(list, tokenizer->bos, err);
	if (!status && n)
		status = encode_text(&encoder, text, n, flags & PAWL_ENCODE_SPECIAL, err);
	encoder_release(&encoder);
	if (status)
		list->n = n_before;
	return status;
}

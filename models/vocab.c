#include "models/vocab.h"

#include "models/byte_level.h"
#include "models/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Texts that end a turn or a text in some model family. */
static const char *const end_texts[] = {
	"<|im_end|>",
	"<|endoftext|>",
	"<|eot_id|>",
	"<|eom_id|>",
	"<|end_of_text|>",
	"<|end|>",
	"<|return|>",
	"<|call|>",
	"<end_of_turn>",
	"<end_of_utterance>",
	"<EOT>",
	"[EOT]",
	("<\xef\xbd\x9c"
	 "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>"),
};

/*
 * Texts that begin a turn.  Files exist in which these or the end texts are typed user-defined;
 * were they left so, the text of a message could write them.
 */
static const char *const begin_texts[] = {
	"<|im_start|>",
	"<|start_header_id|>",
	"<|end_header_id|>",
	"<start_of_turn>",
};

void
pawl_vocab_source_init(struct pawl_vocab_source *source)
{
	memset(source, 0, sizeof(*source));
	source->bos = source->eos = source->eot = source->unknown = source->padding = -1;
	source->add_bos = source->add_space_prefix = -1;
}

bool
pawl_tokenizer_knows(struct pawl_text model)
{
	return pawl_text_is(model, "gpt2") || pawl_vocab_has_scores(model);
}

bool
pawl_vocab_has_scores(struct pawl_text model)
{
	return pawl_text_is(model, "llama");
}

static enum pawl_status
check_source(const struct pawl_vocab_source *source, struct pawl_error *err)
{
	if (!pawl_tokenizer_knows(source->model)) {
		char shown[64];

		pawl_text_show(source->model, shown, sizeof(shown));
		return pawl_fail(err, PAWL_UNSUPPORTED,
			"tokenizer.ggml.model is '%s'; known are 'gpt2' (byte-level BPE) and "
			"'llama' (SentencePiece)",
			shown);
	}
	if (source->n_tokens == 0 || source->n_tokens > INT32_MAX)
		return pawl_fail(err, PAWL_INVALID_FILE, "tokenizer.ggml.tokens holds %zu tokens",
			source->n_tokens);
	if (source->token_types && source->n_token_types != source->n_tokens)
		return pawl_fail(err, PAWL_INVALID_FILE,
			"tokenizer.ggml.token_type has %zu elements, tokenizer.ggml.tokens %zu",
			source->n_token_types, source->n_tokens);
	if (pawl_vocab_has_scores(source->model) && source->n_scores != source->n_tokens)
		return pawl_fail(err, PAWL_INVALID_FILE,
			"tokenizer.ggml.scores has %zu elements, tokenizer.ggml.tokens %zu",
			source->n_scores, source->n_tokens);
	if (source->n_merges > UINT32_MAX)
		return pawl_fail(err, PAWL_INVALID_FILE, "tokenizer.ggml.merges has %zu elements",
			source->n_merges);
	return PAWL_OK;
}

static enum pawl_status
check_id(const struct pawl_vocab_source *source, int64_t id, const char *name,
	struct pawl_error *err)
{
	if (id >= -1 && id < (int64_t)source->n_tokens)
		return PAWL_OK;
	return pawl_fail(err, PAWL_INVALID_FILE,
		"tokenizer.ggml.%s_token_id is %lld, tokenizer.ggml.tokens has %zu elements", name,
		(long long)id, source->n_tokens);
}

static enum pawl_status
take_ids(struct pawl_tokenizer *tokenizer, const struct pawl_vocab_source *source,
	struct pawl_error *err)
{
	const struct {
		int64_t id;
		const char *name;
	} ids[] = {
		{source->bos, "bos"},
		{source->eos, "eos"},
		{source->eot, "eot"},
		{source->unknown, "unknown"},
		{source->padding, "padding"},
	};

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		enum pawl_status status = check_id(source, ids[i].id, ids[i].name, err);

		if (status)
			return status;
	}
	if (source->add_bos == 1 && source->bos < 0)
		return pawl_fail(err, PAWL_INVALID_FILE,
			"tokenizer.ggml.add_bos_token is true, but there is no "
			"tokenizer.ggml.bos_token_id");
	tokenizer->bos = (int32_t)source->bos;
	tokenizer->eos = (int32_t)source->eos;
	tokenizer->wants_bos =
		source->bos >= 0 &&
		(source->add_bos < 0 ? tokenizer->has_scores || pawl_pretokenizer_adds_bos(
								     tokenizer->pretokenizer)
				     : source->add_bos);
	tokenizer->adds_space = tokenizer->has_scores && source->add_space_prefix;
	return PAWL_OK;
}

static enum pawl_status
copy_texts(struct pawl_tokenizer *tokenizer, const struct pawl_vocab_source *source,
	struct pawl_error *err)
{
	struct pawl_text *texts =
		pawl_arena_alloc(&tokenizer->arena, source->n_tokens, sizeof(*texts));
	size_t n_bytes = 0;
	char *bytes;

	for (size_t i = 0; i < source->n_tokens; i++) {
		if (__builtin_add_overflow(n_bytes, source->tokens[i].n, &n_bytes))
			return pawl_fail(err, PAWL_INVALID_FILE,
				"tokenizer.ggml.tokens[%zu] is too long", i);
	}
	bytes = pawl_arena_alloc(&tokenizer->arena, n_bytes ? n_bytes : 1, 1);
	if (!texts || !bytes)
		return pawl_fail(
			err, PAWL_OUT_OF_MEMORY, "no memory for %zu tokens", source->n_tokens);
	for (size_t i = 0; i < source->n_tokens; i++) {
		struct pawl_text text = source->tokens[i];
		size_t valid = pawl_utf8_valid_prefix(text.bytes, text.n);

		if (valid < text.n)
			return pawl_fail(err, PAWL_INVALID_FILE,
				"tokenizer.ggml.tokens[%zu] is not UTF-8 at its byte %zu", i,
				valid);
		if (text.n)
			memcpy(bytes, text.bytes, text.n);
		texts[i] = (struct pawl_text){bytes, text.n};
		bytes += text.n;
		if (text.n > tokenizer->longest_text)
			tokenizer->longest_text = text.n;
	}
	tokenizer->texts = texts;
	tokenizer->n_tokens = source->n_tokens;
	return pawl_token_index_init(
		&tokenizer->index, &tokenizer->arena, texts, source->n_tokens, err);
}

static void
mark_texts(struct pawl_tokenizer *tokenizer, const char *const *texts, size_t n, int flags)
{
	for (size_t i = 0; i < n; i++) {
		int32_t id = pawl_token_index_find(&tokenizer->index, texts[i], strlen(texts[i]));

		if (id >= 0)
			tokenizer->flags[id] = (unsigned char)flags;
	}
}

static enum pawl_status
list_eog(struct pawl_tokenizer *tokenizer, struct pawl_error *err)
{
	uint32_t *eog;
	size_t n = 0;

	for (size_t i = 0; i < tokenizer->n_tokens; i++)
		n += (tokenizer->flags[i] & PAWL_TOKEN_IS_EOG) != 0;
	eog = pawl_arena_alloc(&tokenizer->arena, n ? n : 1, sizeof(*eog));
	if (!eog)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for the end tokens");
	tokenizer->eog = eog;
	tokenizer->n_eog = n;
	for (size_t i = 0; i < tokenizer->n_tokens; i++) {
		if (tokenizer->flags[i] & PAWL_TOKEN_IS_EOG)
			*eog++ = (uint32_t)i;
	}
	return PAWL_OK;
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte of a token "<0x0A>", or -1. */
static int
byte_token_value(struct pawl_text text)
{
	int high, low;

	if (text.n != 6 || memcmp(text.bytes, "<0x", 3) != 0 || text.bytes[5] != '>')
		return -1;
	high = hex_digit(text.bytes[3]);
	low = hex_digit(text.bytes[4]);
	return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static enum pawl_status
take_flags(struct pawl_tokenizer *tokenizer, const struct pawl_vocab_source *source,
	struct pawl_error *err)
{
	tokenizer->flags = pawl_arena_alloc(&tokenizer->arena, source->n_tokens, 1);
	if (!tokenizer->flags)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for token types");
	for (size_t i = 0; source->token_types && i < source->n_tokens; i++) {
		switch (source->token_types[i]) {
		case PAWL_TOKEN_UNKNOWN:
		case PAWL_TOKEN_CONTROL:
			tokenizer->flags[i] = PAWL_TOKEN_IS_CONTROL;
			break;
		case PAWL_TOKEN_USER_DEFINED:
			tokenizer->flags[i] = PAWL_TOKEN_IS_CUT_ALWAYS;
			break;
		case PAWL_TOKEN_UNDEFINED:
		case PAWL_TOKEN_NORMAL:
		case PAWL_TOKEN_UNUSED:
			break;
		case PAWL_TOKEN_BYTE:
			if (byte_token_value(tokenizer->texts[i]) >= 0)
				tokenizer->flags[i] = PAWL_TOKEN_IS_BYTE;
			else if (tokenizer->has_scores)
				return pawl_fail(err, PAWL_INVALID_FILE,
					"tokenizer.ggml.token_type[%zu] says that the token is a "
					"byte, but it is not written as <0x0A> is",
					i);
			break;
		default:
			return pawl_fail(err, PAWL_INVALID_FILE,
				"tokenizer.ggml.token_type[%zu] is %d, not one of 0 to 6", i,
				(int)source->token_types[i]);
		}
	}
	mark_texts(tokenizer, end_texts, sizeof(end_texts) / sizeof(end_texts[0]),
		PAWL_TOKEN_IS_CONTROL | PAWL_TOKEN_IS_EOG);
	mark_texts(tokenizer, begin_texts, sizeof(begin_texts) / sizeof(begin_texts[0]),
		PAWL_TOKEN_IS_CONTROL);
	if (source->eos >= 0)
		tokenizer->flags[source->eos] |= PAWL_TOKEN_IS_EOG;
	if (source->eot >= 0)
		tokenizer->flags[source->eot] |= PAWL_TOKEN_IS_EOG;
	return list_eog(tokenizer, err);
}

static enum pawl_status
make_pieces(struct pawl_tokenizer *tokenizer, struct pawl_error *err)
{
	size_t n = tokenizer->n_tokens, n_bytes = 0;
	struct pawl_text *pieces = pawl_arena_alloc(&tokenizer->arena, n, sizeof(*pieces));
	char *bytes;

	for (size_t i = 0; i < n; i++)
		n_bytes += tokenizer->texts[i].n;
	bytes = pawl_arena_alloc(&tokenizer->arena, n_bytes ? n_bytes : 1, 1);
	if (!pieces || !bytes)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for %zu tokens", n);
	for (size_t i = 0; i < n; i++) {
		struct pawl_text text = tokenizer->texts[i];
		int byte = tokenizer->flags[i] & PAWL_TOKEN_IS_BYTE ? byte_token_value(text) : -1;

		pieces[i] = text;
		if (tokenizer->flags[i] & (PAWL_TOKEN_IS_CONTROL | PAWL_TOKEN_IS_CUT_ALWAYS))
			continue;
		pieces[i].bytes = bytes;
		if (byte >= 0) {
			bytes[0] = (char)byte;
			pieces[i].n = 1;
		} else {
			pieces[i].n = (tokenizer->has_scores ? pawl_sentencepiece_decode
							     : pawl_byte_level_decode)(
				text.bytes, text.n, bytes);
		}
		bytes += pieces[i].n;
	}
	tokenizer->pieces = pieces;
	return PAWL_OK;
}

static enum pawl_status
make_specials(struct pawl_tokenizer *tokenizer, struct pawl_error *err)
{
	const int cut = PAWL_TOKEN_IS_CONTROL | PAWL_TOKEN_IS_CUT_ALWAYS;
	enum pawl_status status;
	size_t n_bytes = 0;

	for (size_t i = 0; i < tokenizer->n_tokens; i++) {
		if (!(tokenizer->flags[i] & cut))
			continue;
		if (tokenizer->texts[i].n > PAWL_SPECIAL_TOKEN_MAX_BYTES)
			return pawl_fail(err, PAWL_INVALID_FILE,
				"tokenizer.ggml.tokens[%zu] is a control or user-defined token of "
				"%zu bytes, more than %d",
				i, tokenizer->texts[i].n, PAWL_SPECIAL_TOKEN_MAX_BYTES);
		n_bytes += tokenizer->texts[i].n;
	}
	status = pawl_special_tokens_init(&tokenizer->specials, &tokenizer->arena, n_bytes, err);
	for (size_t i = 0; i < tokenizer->n_tokens && !status; i++) {
		if (tokenizer->flags[i] & cut)
			pawl_special_tokens_add(&tokenizer->specials, tokenizer->texts[i],
				(int32_t)i, tokenizer->flags[i] & PAWL_TOKEN_IS_CUT_ALWAYS);
	}
	return status ? status : pawl_special_tokens_link(&tokenizer->specials, err);
}

/* Of two tokens of one byte, "<0x0A>" and "<0x0a>", the one in capitals is taken. */
static enum pawl_status
find_bytes(struct pawl_tokenizer *tokenizer, struct pawl_error *err)
{
	int32_t *ids = tokenizer->sentencepiece.byte_ids;

	for (int i = 0; i < 256; i++)
		ids[i] = -1;
	for (size_t i = 0; i < tokenizer->n_tokens; i++) {
		int byte = byte_token_value(tokenizer->texts[i]);
		char capitals[16];

		if (!(tokenizer->flags[i] & PAWL_TOKEN_IS_BYTE))
			continue;
		snprintf(capitals, sizeof(capitals), "<0x%02X>", (unsigned int)byte);
		if (ids[byte] < 0 || !memcmp(tokenizer->texts[i].bytes, capitals, 6))
			ids[byte] = (int32_t)i;
	}
	for (int i = 0; i < 256; i++) {
		if (ids[i] < 0)
			return pawl_fail(err, PAWL_UNSUPPORTED,
				"tokenizer.ggml.tokens has no byte token <0x%02X>; vocabularies "
				"without byte fallback are not supported",
				(unsigned int)i);
	}
	return PAWL_OK;
}

static enum pawl_status
make_scores(struct pawl_tokenizer *tokenizer, const struct pawl_vocab_source *source,
	struct pawl_error *err)
{
	const int other = PAWL_TOKEN_IS_CONTROL | PAWL_TOKEN_IS_CUT_ALWAYS | PAWL_TOKEN_IS_BYTE;
	uint32_t *ranks = pawl_arena_alloc(&tokenizer->arena, source->n_tokens, sizeof(*ranks));

	if (!ranks)
		return pawl_fail(
			err, PAWL_OUT_OF_MEMORY, "no memory for %zu scores", source->n_scores);
	for (size_t i = 0; i < source->n_tokens; i++) {
		if (!isfinite(source->scores[i]))
			return pawl_fail(err, PAWL_INVALID_FILE,
				"tokenizer.ggml.scores[%zu] is no finite number", i);
		ranks[i] = tokenizer->flags[i] & other ? PAWL_SENTENCEPIECE_NEVER
						       : pawl_sentencepiece_rank(source->scores[i]);
	}
	tokenizer->sentencepiece.index = &tokenizer->index;
	tokenizer->sentencepiece.ranks = ranks;
	tokenizer->sentencepiece.longest = tokenizer->longest_text;
	return find_bytes(tokenizer, err);
}

static enum pawl_status
fill(struct pawl_tokenizer *tokenizer, const struct pawl_vocab_source *source,
	struct pawl_error *err)
{
	enum pawl_status status = check_source(source, err);

	tokenizer->has_scores = pawl_vocab_has_scores(source->model);
	if (!status && !tokenizer->has_scores)
		status = pawl_pretokenizer_new(source->pre, &tokenizer->pretokenizer, err);
	if (!status)
		status = take_ids(tokenizer, source, err);
	if (!status)
		status = copy_texts(tokenizer, source, err);
	if (!status)
		status = take_flags(tokenizer, source, err);
	if (!status)
		status = make_pieces(tokenizer, err);
	if (!status)
		status = make_specials(tokenizer, err);
	if (!status)
		status = (tokenizer->has_scores ? make_scores : pawl_vocab_make_merges)(
			tokenizer, source, err);
	return status;
}

enum pawl_status
pawl_tokenizer_new(
	const struct pawl_vocab_source *source, struct pawl_tokenizer **out, struct pawl_error *err)
{
	struct pawl_tokenizer *tokenizer = calloc(1, sizeof(*tokenizer));
	enum pawl_status status;

	*out = NULL;
	if (!tokenizer)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a tokenizer");
	pawl_arena_init(&tokenizer->arena);
	status = fill(tokenizer, source, err);
	if (status) {
		pawl_tokenizer_free(tokenizer);
		return status;
	}
	*out = tokenizer;
	return PAWL_OK;
}

void
pawl_tokenizer_free(struct pawl_tokenizer *tokenizer)
{
	if (!tokenizer)
		return;
	pawl_pretokenizer_free(tokenizer->pretokenizer);
	pawl_arena_release(&tokenizer->arena);
	free(tokenizer);
}

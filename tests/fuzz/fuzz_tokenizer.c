/*
 * A vocabulary and a text out of one input: four bytes (pre-tokenizer; bits below; bos; eos),
 * lines "TYPE DIGIT, TOKEN" up to an empty one, merges likewise, and the text.  What a text gives
 * must be in order the bytes of the text, some dropped, and no control token unasked.  With
 * scores, for which tokens of all bytes are added, it must be the text but for how spaces are
 * written.
 */
#include "models/chat.h"
#include "models/tokenizer.h"
#include "models/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINES = 128 };
enum { SPECIAL = 1, BOS = 2, NO_TYPES = 4, FEWER_TYPES = 8, NO_IDS = 16, SCORES = 32, SPACE = 64 };

static const char *const pres[] = {
	"gpt-2", "smollm", "llama-bpe", "qwen2", "qwen35", "gpt-4o", "tekken", "deepseek-v3"};

struct input {
	struct pawl_vocab_source source;
	struct pawl_text tokens[MAX_LINES + 256], merges[MAX_LINES], text;
	int32_t types[MAX_LINES + 256];
	float scores[MAX_LINES + 256];
	char bytes[256][8];
	unsigned int bits;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t
read_lines(struct pawl_text *rest, struct pawl_text *lines)
{
	size_t n = 0;

	while (n < MAX_LINES && rest->n) {
		const char *end = memchr(rest->bytes, '\n', rest->n);
		size_t k = end ? (size_t)(end - rest->bytes) : rest->n;

		lines[n] = (struct pawl_text){rest->bytes, k};
		rest->bytes += end ? k + 1 : k;
		rest->n -= end ? k + 1 : k;
		if (k == 0)
			break;
		n++;
	}
	return n;
}

/* Few scores, so that many are equal. */
static void
add_scores(struct input *in)
{
	struct pawl_vocab_source *source = &in->source;

	source->model = (struct pawl_text){"llama", 5};
	for (int i = 0; i < 256; i++) {
		size_t id = source->n_tokens++;

		snprintf(in->bytes[i], sizeof(in->bytes[i]), "<0x%02X>", (unsigned int)i);
		in->tokens[id] = (struct pawl_text){in->bytes[i], 6};
		in->types[id] = PAWL_TOKEN_BYTE;
	}
	for (size_t i = 0; i < source->n_tokens; i++)
		in->scores[i] = -(float)(i * 5 % 8);
	source->scores = in->scores;
	source->n_scores = source->n_tokens;
	source->add_space_prefix = (in->bits & SPACE) != 0;
}

static void
read_input(const uint8_t *data, size_t size, struct input *in)
{
	struct pawl_text rest = {(const char *)data + 4, size - 4};
	const char *pre = pres[data[0] % (sizeof(pres) / sizeof(pres[0]))];
	struct pawl_vocab_source *source = &in->source;

	pawl_vocab_source_init(source);
	in->bits = data[1];
	source->model = (struct pawl_text){"gpt2", 4};
	source->pre = (struct pawl_text){pre, strlen(pre)};
	source->n_tokens = read_lines(&rest, in->tokens);
	source->n_merges = read_lines(&rest, in->merges);
	for (size_t i = 0; i < source->n_tokens; i++) {
		in->types[i] = in->tokens[i].bytes[0] - '0';
		in->tokens[i].bytes++;
		in->tokens[i].n--;
	}
	if (in->bits & SCORES)
		add_scores(in);
	source->tokens = in->tokens;
	source->merges = in->merges;
	source->token_types = in->bits & NO_TYPES ? NULL : in->types;
	source->n_token_types = source->n_tokens - (in->bits & FEWER_TYPES ? 1 : 0);
	if (!(in->bits & NO_IDS)) {
		source->bos = (signed char)data[2];
		source->eos = (signed char)data[3];
	}
	in->text = rest;
}

static void
require(int truth)
{
	if (!truth)
		abort();
}

/* Writes U+2581 as a space, or leaves out both; returns the length. */
static size_t
write_spaces(char *text, size_t n, int drop)
{
	size_t n_out = 0;

	for (size_t i = 0; i < n; i++) {
		int is_mark = n - i >= 3 && !memcmp(text + i, "\xe2\x96\x81", 3);

		i += is_mark ? 2 : 0;
		if (is_mark || text[i] == ' ') {
			if (!drop)
				text[n_out++] = ' ';
		} else {
			text[n_out++] = text[i];
		}
	}
	return n_out;
}

static void
check_text(const char *joined, size_t n, struct pawl_text text, unsigned int bits)
{
	size_t at = 0;
	char *a, *b;

	if (!(bits & SCORES)) {
		for (size_t i = 0; i < n; i++, at++) {
			while (at < text.n && text.bytes[at] != joined[i])
				at++;
			require(at < text.n);
		}
		return;
	}
	a = malloc(n + 1);
	b = malloc(text.n + 1);
	require(a && b);
	memcpy(a, joined, n);
	memcpy(b, text.bytes, text.n);
	n = write_spaces(a, n, bits & SPACE);
	require(n == write_spaces(b, text.n, bits & SPACE) && !memcmp(a, b, n));
	free(a);
	free(b);
}

static void
check_ids(const struct pawl_tokenizer *tokenizer, const struct pawl_token_list *list, size_t first,
	struct pawl_text text, unsigned int bits)
{
	struct pawl_utf8_stream stream;
	size_t n, n_out = 0;
	char *joined, *out;

	for (size_t i = first; i < list->n; i++)
		require(bits & SPECIAL || !pawl_tokenizer_is_control(tokenizer, list->ids[i]));
	require(pawl_tokenizer_decode(tokenizer, list->ids + first, list->n - first, true, &joined,
			&n, NULL) == PAWL_OK);
	check_text(joined, n, text, bits);
	out = malloc(3 * n + 3 * list->n + 3);
	require(out != NULL);
	pawl_utf8_stream_init(&stream);
	for (size_t i = first; i < list->n; i++) {
		struct pawl_text piece;

		require(pawl_tokenizer_piece(tokenizer, list->ids[i], &piece));
		n_out += pawl_utf8_stream_push(&stream, piece.bytes, piece.n, out + n_out);
	}
	n_out += pawl_utf8_stream_flush(&stream, out + n_out);
	require(pawl_utf8_valid_prefix(out, n_out) == n_out);
	if (n == text.n && !(bits & SCORES))
		require(n_out == n && memcmp(out, text.bytes, n) == 0);
	free(out);
	free(joined);
}

static void
chat(const struct pawl_tokenizer *tokenizer, struct pawl_text text, struct pawl_token_list *list)
{
	struct pawl_chat_message message = {"user", text};
	struct pawl_chat c;

	if (pawl_chat_init(&c, tokenizer, text, NULL) == PAWL_OK)
		pawl_chat_prompt(&c, &message, 1, true, list, NULL);
	pawl_chat_release(&c);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct input in;
	struct pawl_tokenizer *tokenizer;
	struct pawl_token_list list;
	struct pawl_error err = {0};
	unsigned int flags;

	if (size < 4)
		return 0;
	read_input(data, size, &in);
	if (pawl_tokenizer_new(&in.source, &tokenizer, &err)) {
		require(err.text[0] && !strchr(err.text, '\n') && !tokenizer);
		return 0;
	}
	flags = (in.bits & SPECIAL ? PAWL_ENCODE_SPECIAL : 0u) |
		(in.bits & BOS ? PAWL_ENCODE_BOS : 0u);
	pawl_token_list_init(&list);
	if (pawl_tokenizer_encode(tokenizer, in.text.bytes, in.text.n, flags, &list, &err))
		require(list.n == 0);
	else if (list.n)
		check_ids(tokenizer, &list, in.bits & BOS ? 1 : 0, in.text, in.bits);
	chat(tokenizer, in.text, &list);
	pawl_token_list_release(&list);
	pawl_tokenizer_free(tokenizer);
	return 0;
}

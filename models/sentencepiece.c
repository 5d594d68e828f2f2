#include "models/sentencepiece.h"

#include <stdlib.h>
#include <string.h>

#include "models/utf8.h"

#define NO_SYMBOL UINT32_MAX
#define N_SPACE 3 /* bytes of PAWL_SENTENCEPIECE_SPACE */

/* A piece of the text; n = 0: it went into the one before it. */
struct pawl_sentencepiece_symbol {
	uint32_t start, n, previous, next;
};

uint32_t
pawl_sentencepiece_rank(float score)
{
	uint32_t bits;

	score += 0.0f; /* of the two zeros the positive one */
	memcpy(&bits, &score, sizeof(bits));
	return bits >> 31 ? bits : ~(bits | 0x80000000u);
}

void
pawl_sentencepiece_scratch_init(struct pawl_sentencepiece_scratch *scratch)
{
	*scratch = (struct pawl_sentencepiece_scratch){.capacity = 0};
}

void
pawl_sentencepiece_scratch_release(struct pawl_sentencepiece_scratch *scratch)
{
	free(scratch->text);
	free(scratch->symbols);
	free(scratch->heap);
	pawl_sentencepiece_scratch_init(scratch);
}

/* Two candidates a symbol are enough, as in models/bpe.c. */
static enum pawl_status
reserve(struct pawl_sentencepiece_scratch *scratch, size_t n, struct pawl_error *err)
{
	size_t capacity = scratch->capacity ? scratch->capacity : 64;

	if (n <= scratch->capacity)
		return PAWL_OK;
	while (capacity < n)
		capacity *= 2;
	pawl_sentencepiece_scratch_release(scratch);
	scratch->text = malloc(N_SPACE * capacity);
	scratch->symbols = malloc(capacity * sizeof(*scratch->symbols));
	scratch->heap = malloc(2 * capacity * sizeof(*scratch->heap));
	if (!scratch->text || !scratch->symbols || !scratch->heap) {
		pawl_sentencepiece_scratch_release(scratch);
		return pawl_fail(
			err, PAWL_OUT_OF_MEMORY, "no memory to encode a text of %zu bytes", n);
	}
	scratch->capacity = capacity;
	return PAWL_OK;
}

/* The symbol of a character; returns its end in the written text. */
static uint32_t
add_symbol(struct pawl_sentencepiece_scratch *scratch, uint32_t i, uint32_t start,
	const char *bytes, uint32_t n)
{
	memcpy(scratch->text + start, bytes, n);
	scratch->symbols[i] = (struct pawl_sentencepiece_symbol){start, n, i - 1, i + 1};
	return start + n;
}

/* One symbol for each character; returns how many. */
static uint32_t
split(struct pawl_sentencepiece_scratch *scratch, const char *text, size_t n, bool with_space)
{
	uint32_t n_symbols = 0, end = 0, code;

	if (with_space)
		end = add_symbol(scratch, n_symbols++, end, PAWL_SENTENCEPIECE_SPACE, N_SPACE);
	for (size_t i = 0; i < n;) {
		int k = pawl_utf8_next(text + i, n - i, &code);

		if (text[i] == ' ')
			end = add_symbol(
				scratch, n_symbols, end, PAWL_SENTENCEPIECE_SPACE, N_SPACE);
		else
			end = add_symbol(scratch, n_symbols, end, text + i, (uint32_t)k);
		n_symbols++;
		i += (size_t)k;
	}
	if (n_symbols)
		scratch->symbols[n_symbols - 1].next = NO_SYMBOL;
	return n_symbols;
}

static int32_t
find(const struct pawl_sentencepiece *pieces, const char *text, size_t n)
{
	int32_t id = n > pieces->longest ? -1 : pawl_token_index_find(pieces->index, text, n);

	return id >= 0 && pieces->ranks[id] != PAWL_SENTENCEPIECE_NEVER ? id : -1;
}

static void
queue_pair(const struct pawl_sentencepiece *pieces,
	const struct pawl_sentencepiece_scratch *scratch, uint32_t left, size_t *n_heap)
{
	const struct pawl_sentencepiece_symbol *symbols = scratch->symbols;
	uint32_t n;
	int32_t id;

	if (left == NO_SYMBOL || symbols[left].next == NO_SYMBOL)
		return;
	n = symbols[left].n + symbols[symbols[left].next].n;
	id = find(pieces, scratch->text + symbols[left].start, n);
	if (id >= 0)
		pawl_merge_heap_add(scratch->heap, n_heap,
			(struct pawl_merge_candidate){(uint64_t)pieces->ranks[id] << 32 | left, n});
}

/* Symbols only grow, so a queued merge is still the same exactly when both have as many bytes as
 * then. */
static void
merge_symbols(const struct pawl_sentencepiece *pieces, struct pawl_sentencepiece_scratch *scratch,
	uint32_t n_symbols)
{
	struct pawl_sentencepiece_symbol *symbols = scratch->symbols;
	size_t n_heap = 0;

	for (uint32_t i = 0; i < n_symbols; i++)
		queue_pair(pieces, scratch, i, &n_heap);
	while (n_heap) {
		struct pawl_merge_candidate best = pawl_merge_heap_take(scratch->heap, &n_heap);
		uint32_t left = (uint32_t)best.order, right = symbols[left].next;

		if (!symbols[left].n || right == NO_SYMBOL ||
			symbols[left].n + symbols[right].n != best.what)
			continue;
		symbols[left].n += symbols[right].n;
		symbols[left].next = symbols[right].next;
		if (symbols[right].next != NO_SYMBOL)
			symbols[symbols[right].next].previous = left;
		symbols[right].n = 0;
		queue_pair(pieces, scratch, symbols[left].previous, &n_heap);
		queue_pair(pieces, scratch, left, &n_heap);
	}
}

static enum pawl_status
add_piece(const struct pawl_sentencepiece *pieces, const char *text, size_t n,
	struct pawl_token_list *list, struct pawl_error *err)
{
	int32_t id = find(pieces, text, n);
	enum pawl_status status = PAWL_OK;

	if (id >= 0)
		return pawl_token_list_add(list, id, err);
	for (size_t i = 0; i < n && !status; i++)
		status = pawl_token_list_add(list, pieces->byte_ids[(unsigned char)text[i]], err);
	return status;
}

enum pawl_status
pawl_sentencepiece_encode(const struct pawl_sentencepiece *pieces,
	struct pawl_sentencepiece_scratch *scratch, const char *text, size_t n, bool with_space,
	struct pawl_token_list *list, struct pawl_error *err)
{
	enum pawl_status status;
	uint32_t n_symbols;

	if (n == 0)
		return PAWL_OK;
	status = reserve(scratch, n + with_space, err);
	if (status)
		return status;
	n_symbols = split(scratch, text, n, with_space);
	merge_symbols(pieces, scratch, n_symbols);
	for (uint32_t i = 0; i != NO_SYMBOL && !status; i = scratch->symbols[i].next)
		status = add_piece(pieces, scratch->text + scratch->symbols[i].start,
			scratch->symbols[i].n, list, err);
	return status;
}

size_t
pawl_sentencepiece_decode(const char *text, size_t n, char *out)
{
	size_t n_out = 0;

	for (size_t i = 0; i < n;) {
		bool is_space =
			n - i >= N_SPACE && !memcmp(text + i, PAWL_SENTENCEPIECE_SPACE, N_SPACE);

		out[n_out++] = is_space ? ' ' : text[i];
		i += is_space ? N_SPACE : 1;
	}
	return n_out;
}

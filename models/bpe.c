#include "models/bpe.h"

#include <stdlib.h>

#define NO_SYMBOL UINT32_MAX
#define ID_MERGED (-2) /* the symbol went into the one before it */

struct pawl_bpe_symbol {
	int32_t id; /* -1: byte without a token */
	uint32_t previous, next;
};

static int
compare_merges(const void *a, const void *b)
{
	const struct pawl_bpe_merge *x = a, *y = b;

	if (x->left != y->left)
		return x->left < y->left ? -1 : 1;
	if (x->right != y->right)
		return x->right < y->right ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

static size_t
drop_later_duplicates(struct pawl_bpe_merge *merges, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (kept && merges[kept - 1].left == merges[i].left &&
			merges[kept - 1].right == merges[i].right)
			continue;
		merges[kept++] = merges[i];
	}
	return kept;
}

enum pawl_status
pawl_bpe_init(struct pawl_bpe *bpe, struct pawl_arena *arena, const int32_t byte_ids[256],
	struct pawl_bpe_merge *merges, size_t n_merges, size_t n_tokens, struct pawl_error *err)
{
	uint32_t *first = pawl_arena_alloc(arena, n_tokens + 1, sizeof(*first));
	size_t m = 0;

	if (!first)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a merge table");
	if (n_merges) {
		qsort(merges, n_merges, sizeof(*merges), compare_merges);
		n_merges = drop_later_duplicates(merges, n_merges);
	}
	for (size_t id = 0; id <= n_tokens; id++) {
		while (m < n_merges && (size_t)merges[m].left < id)
			m++;
		first[id] = (uint32_t)m;
	}
	for (int i = 0; i < 256; i++)
		bpe->byte_ids[i] = byte_ids[i];
	bpe->merges = merges;
	bpe->first_of_left = first;
	bpe->n_tokens = n_tokens;
	return PAWL_OK;
}

static const struct pawl_bpe_merge *
find_merge(const struct pawl_bpe *bpe, int32_t left, int32_t right)
{
	size_t low, high;

	if (left < 0 || right < 0)
		return NULL;
	low = bpe->first_of_left[left];
	high = bpe->first_of_left[left + 1];
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (bpe->merges[middle].right < right)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == bpe->first_of_left[left + 1] || bpe->merges[low].right != right)
		return NULL;
	return &bpe->merges[low];
}

void
pawl_bpe_scratch_init(struct pawl_bpe_scratch *scratch)
{
	scratch->symbols = NULL;
	scratch->heap = NULL;
	scratch->capacity = 0;
}

void
pawl_bpe_scratch_release(struct pawl_bpe_scratch *scratch)
{
	free(scratch->symbols);
	free(scratch->heap);
	pawl_bpe_scratch_init(scratch);
}

/*
 * n - 1 candidates at first; each of the at most n - 1 merges takes one out and puts at most two
 * in, so 2 n never overflow.
 */
static enum pawl_status
reserve(struct pawl_bpe_scratch *scratch, size_t n, struct pawl_error *err)
{
	size_t capacity = scratch->capacity ? scratch->capacity : 64;

	if (n <= scratch->capacity)
		return PAWL_OK;
	while (capacity < n)
		capacity *= 2;
	pawl_bpe_scratch_release(scratch);
	scratch->symbols = malloc(capacity * sizeof(*scratch->symbols));
	scratch->heap = malloc(2 * capacity * sizeof(*scratch->heap));
	if (!scratch->symbols || !scratch->heap) {
		pawl_bpe_scratch_release(scratch);
		return pawl_fail(
			err, PAWL_OUT_OF_MEMORY, "no memory to merge a word of %zu bytes", n);
	}
	scratch->capacity = capacity;
	return PAWL_OK;
}

static void
queue_pair(const struct pawl_bpe *bpe, const struct pawl_bpe_scratch *scratch, uint32_t left,
	size_t *n_heap)
{
	const struct pawl_bpe_symbol *symbols = scratch->symbols;
	const struct pawl_bpe_merge *merge;

	if (left == NO_SYMBOL || symbols[left].next == NO_SYMBOL)
		return;
	merge = find_merge(bpe, symbols[left].id, symbols[symbols[left].next].id);
	if (merge)
		pawl_merge_heap_add(scratch->heap, n_heap,
			(struct pawl_merge_candidate){(uint64_t)merge->rank << 32 | left,
				(size_t)(merge - bpe->merges)});
}

/*
 * Symbols only grow, so a merge that was possible when it was queued still is exactly when both ids
 * still stand there.
 */
static void
merge_symbols(const struct pawl_bpe *bpe, struct pawl_bpe_scratch *scratch, size_t n)
{
	struct pawl_bpe_symbol *symbols = scratch->symbols;
	size_t n_heap = 0;

	for (uint32_t i = 0; i < n; i++)
		queue_pair(bpe, scratch, i, &n_heap);
	while (n_heap) {
		struct pawl_merge_candidate best = pawl_merge_heap_take(scratch->heap, &n_heap);
		const struct pawl_bpe_merge *merge = &bpe->merges[best.what];
		uint32_t left = (uint32_t)best.order;
		uint32_t right = symbols[left].next;

		if (symbols[left].id != merge->left || right == NO_SYMBOL ||
			symbols[right].id != merge->right)
			continue;
		symbols[left].id = merge->result;
		symbols[left].next = symbols[right].next;
		if (symbols[right].next != NO_SYMBOL)
			symbols[symbols[right].next].previous = left;
		symbols[right].id = ID_MERGED;
		queue_pair(bpe, scratch, symbols[left].previous, &n_heap);
		queue_pair(bpe, scratch, left, &n_heap);
	}
}

enum pawl_status
pawl_bpe_encode_word(const struct pawl_bpe *bpe, struct pawl_bpe_scratch *scratch, const char *word,
	size_t n, struct pawl_token_list *list, struct pawl_error *err)
{
	enum pawl_status status;

	if (n == 0)
		return PAWL_OK;
	status = reserve(scratch, n, err);
	if (status)
		return status;
	for (size_t i = 0; i < n; i++) {
		struct pawl_bpe_symbol *symbol = &scratch->symbols[i];

		symbol->id = bpe->byte_ids[(unsigned char)word[i]];
		symbol->previous = i == 0 ? NO_SYMBOL : (uint32_t)(i - 1);
		symbol->next = i + 1 == n ? NO_SYMBOL : (uint32_t)(i + 1);
	}
	merge_symbols(bpe, scratch, n);
	for (uint32_t i = 0; i != NO_SYMBOL; i = scratch->symbols[i].next) {
		if (scratch->symbols[i].id < 0)
			continue;
		status = pawl_token_list_add(list, scratch->symbols[i].id, err);
		if (status)
			return status;
	}
	return PAWL_OK;
}

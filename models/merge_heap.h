/*
 * What may be merged next, the least order first; a binary heap in memory of the caller's.  Orders
 * are unique.
 */
#ifndef PAWL_MODELS_MERGE_HEAP_H
#define PAWL_MODELS_MERGE_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct pawl_merge_candidate {
	uint64_t order; /* rank << 32 | index of the left symbol */
	size_t what;    /* the owner's, to tell whether the merge is still possible */
};

void pawl_merge_heap_add(
	struct pawl_merge_candidate *heap, size_t *n, struct pawl_merge_candidate candidate);
/* *n is not 0. */
struct pawl_merge_candidate pawl_merge_heap_take(struct pawl_merge_candidate *heap, size_t *n);

#endif

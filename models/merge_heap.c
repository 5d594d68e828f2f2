#include "models/merge_heap.h"

void
pawl_merge_heap_add(
	struct pawl_merge_candidate *heap, size_t *n, struct pawl_merge_candidate candidate)
{
	size_t i = (*n)++;

	while (i > 0 && heap[(i - 1) / 2].order > candidate.order) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = candidate;
}

struct pawl_merge_candidate
pawl_merge_heap_take(struct pawl_merge_candidate *heap, size_t *n)
{
	struct pawl_merge_candidate top = heap[0], last = heap[--*n];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= *n)
			break;
		if (child + 1 < *n && heap[child + 1].order < heap[child].order)
			child++;
		if (heap[child].order >= last.order)
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return top;
}

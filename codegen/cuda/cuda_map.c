/* Templates MAP, GATHER and BATCH: a thread takes elements of each op that stores its result. */
#include "codegen/cuda/cuda_emit.h"

#include <inttypes.h>
#include <stdio.h>

struct pawl_cuda_words
pawl_cuda_elements(const struct pawl_type *type)
{
	struct pawl_cuda_words words, rows = pawl_cuda_rows(type);

	snprintf(words.s, sizeof(words.s), "%.104s * %" PRId64, rows.s, pawl_type_row_length(type));
	return words;
}

void
pawl_cuda_map(struct pawl_cuda_emit *e)
{
	const char *from = e->is_single ? "PAWL_THREAD" : "PAWL_ELEMENT";
	const char *by = e->is_single ? "PAWL_THREADS" : "PAWL_ELEMENTS";
	int s;

	for (s = 0; s < e->segments.n; s++) {
		int32_t root = e->segments.first[s];
		const struct pawl_type *type = &e->step->ops[root].type;
		struct pawl_cuda_position at = {.index = {0}};
		int element;

		if (pawl_dtype_is_blocked(type->dtype)) {
			pawl_cuda_blocks(e, root);
			continue;
		}
		if (type->rank > 1 || (type->rank == 1 && type->dim[0].sym < 0))
			element = pawl_cuda_unrolled(e, 1, from, pawl_cuda_elements(type).s, by);
		else
			element = pawl_cuda_unrolled(
				e, 1, from, type->rank ? pawl_cuda_dim(type->dim[0]).s : "1", by);
		pawl_cuda_split(e, type, element, &at);
		pawl_cuda_outs(e, root, &at);
		pawl_cuda_close(e);
	}
}

int64_t
pawl_cuda_map_blocks(
	const struct pawl_step *step, const struct pawl_segments *segments, const int64_t *symbols)
{
	int64_t most = 1;
	int s, i;

	for (s = 0; s < segments->n; s++) {
		const struct pawl_type *type = &step->ops[segments->first[s]].type;
		int64_t n = 1;

		for (i = 0; i < type->rank; i++)
			n *= pawl_dim_value(type->dim[i], symbols);
		n = (n + PAWL_CUDA_THREADS - 1) / PAWL_CUDA_THREADS;
		most = n > most ? n : most;
	}
	return most;
}

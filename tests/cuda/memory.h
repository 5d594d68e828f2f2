/*
 * Memory for one run of a program: a buffer of its own for every slot, scratch full of NaNs, the
 * table of arguments.
 */
#ifndef PAWL_TESTS_CUDA_MEMORY_H
#define PAWL_TESTS_CUDA_MEMORY_H

#include "ir/graph.h"
#include "passes/step.h"

struct pawl_cuda_memory {
	const struct pawl_program *program;
	char **slots; /* into scratch for temporaries and outputs */
	void **args;
	char *scratch;
};

/*
 * Consts have the content that ir/random.h gives them, temporaries and outputs 0xff.  symbols: the
 * values for which dynamic starts must be right.
 */
void pawl_cuda_memory_init(struct pawl_cuda_memory *m, const struct pawl_graph *graph,
	const struct pawl_program *program, uint64_t seed, const int64_t *symbols);
/* The same content in memory of its own; temporaries and outputs are 0xff again. */
void pawl_cuda_memory_copy(struct pawl_cuda_memory *m, const struct pawl_cuda_memory *from);
/* Asserts that what belongs to no slot is still 0xff. */
void pawl_cuda_memory_release(struct pawl_cuda_memory *m);

/* The bytes of a slot by name. */
void *pawl_cuda_memory_find(const struct pawl_cuda_memory *m, const char *slot);

#endif

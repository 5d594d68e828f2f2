/* Runs of a case on one memory; what may fail is asserted. */
#ifndef PAWL_TESTS_CUDA_KERNEL_RUN_H
#define PAWL_TESTS_CUDA_KERNEL_RUN_H

#include "tests/cuda/cases.h"
#include "tests/cuda/memory.h"

/*
 * The kernels, by fibers, in order; they are to leave symbols alone and counters zero.  blocks: 0 is
 * what the launches say; spoiled, unless NULL, stands for one of the kernels.
 */
void pawl_cuda_run(const struct pawl_cuda_case *c, const struct pawl_cuda_memory *m,
	const int64_t *symbols, enum pawl_fiber_order order, int32_t blocks,
	const struct pawl_cuda_spoiled *spoiled);

void pawl_cuda_run_reference(const struct pawl_cuda_memory *m, const int64_t *symbols);

#endif

/*
 * A program (passes/step.h) as CUDA C: one source text and the launches that run it.
 *
 * Kernel ABI: void name(void *const *args, const i64 *symbols), both in device memory.  A launch
 * passes the table of the program's arguments moved to its step's first one, so that steps of one
 * shape share a kernel.  Nothing else varies: grid and block are constants of the program, counts
 * come from symbols by loops, so that captured launches never need editing.  The result has the
 * same bits for every number of blocks; the number of threads belongs to the arithmetic.
 *
 * Arguments and the offsets in them are aligned as on the CPU: slots to 64 bytes.  Dynamic starts,
 * row lists and lengths are checked by the host before a run, as for every target.
 */
#ifndef PAWL_CODEGEN_CUDA_PROGRAM_H
#define PAWL_CODEGEN_CUDA_PROGRAM_H

#include "codegen/cuda/cuda_text.h"
#include "passes/step.h"

struct pawl_cuda_kernel {
	char name[48];
	int32_t threads;
	size_t at, n; /* of its body in the source */
};

/* In the order of execution; each needs all before it to be complete. */
struct pawl_cuda_launch {
	int32_t step, kernel;
	int32_t blocks;
};

struct pawl_cuda_program {
	struct pawl_cuda_text source;
	int32_t n_kernels, n_launches;
	struct pawl_cuda_kernel *kernels;
	struct pawl_cuda_launch *launches;
};

/*
 * PAWL_UNSUPPORTED names the step and the op that has no kernel.  The same program gives the same
 * text.  *out is to be released after success.
 */
enum pawl_status pawl_cuda_program_init(
	struct pawl_cuda_program *out, const struct pawl_program *program, struct pawl_error *err);
void pawl_cuda_program_release(struct pawl_cuda_program *cuda);

#endif

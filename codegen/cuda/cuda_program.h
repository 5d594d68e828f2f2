/*
 * A program (passes/step.h) as CUDA C: a few source texts and the launches that run it.
 *
 * Kernel ABI: void name(void *const *args, i64 *state), both in device memory.  A launch passes the
 * table of the program's arguments moved to its step's first one, so that steps of one shape share
 * a kernel.  Nothing else varies: grid and block are constants of the program, counts come from
 * symbols by loops, so that captured launches never need editing.  The result has the same bits for
 * every number of blocks; the number of threads belongs to the arithmetic.
 *
 * state is state_bytes long and aligned to 64: the symbols as i64, then counters, which must be
 * zero before the first launch and are zero again after each run that was not cut short.  Launches
 * that share it may not overlap.
 *
 * Weights of matmuls lie as pawl_cuda_weight_layout says.  Arguments and the offsets in them are
 * aligned as on the CPU: slots to 64 bytes.  Dynamic starts, row lists and lengths are checked by
 * the host before a run, as for every target.
 */
#ifndef PAWL_CODEGEN_CUDA_PROGRAM_H
#define PAWL_CODEGEN_CUDA_PROGRAM_H

#include "codegen/cuda/cuda_text.h"
#include "passes/step.h"

/* Texts that may be compiled at once; two, as two threads are what compiling is worth. */
enum { PAWL_CUDA_UNITS = 2 };

struct pawl_cuda_kernel {
	char name[48];
	int32_t threads;
	int32_t unit; /* the source that it is in */
	int32_t step; /* the first step that it was written for, for people */
	size_t at, n; /* of its body in the source */
};

/* In the order of execution; each needs all before it to be complete. */
struct pawl_cuda_launch {
	int32_t step, n_steps; /* steps that it runs: step .. step + n_steps - 1 */
	int32_t kernel;
	int32_t blocks;
};

struct pawl_cuda_program {
	struct pawl_cuda_text sources[PAWL_CUDA_UNITS]; /* n_units of them */
	int32_t n_units, n_kernels, n_launches;
	struct pawl_cuda_kernel *kernels;
	struct pawl_cuda_launch *launches;
	int64_t state_bytes;
};

/* Packed tiles for quantized weights, rows for the rest. */
enum pawl_layout pawl_cuda_weight_layout(const struct pawl_type *type);

/*
 * PAWL_UNSUPPORTED names the step and the op that has no kernel.  The same program gives the same
 * texts.  *out is to be released after success.
 */
enum pawl_status pawl_cuda_program_init(
	struct pawl_cuda_program *out, const struct pawl_program *program, struct pawl_error *err);
void pawl_cuda_program_release(struct pawl_cuda_program *cuda);

#endif

/*
 * A program as code for one architecture: CUDA C, compiled by NVRTC.
 */
#ifndef PAWL_PLUGINS_CUDA_COMPILE_H
#define PAWL_PLUGINS_CUDA_COMPILE_H

#include "codegen/cuda/cuda_program.h"
#include "codegen/target.h"

/* The code of one source. */
struct pawl_cuda_binary {
	void *bytes; /* a cubin, or PTX with its final 0 */
	size_t n_bytes;
};

struct pawl_cuda_image {
	struct pawl_cuda_program cuda; /* the kernels by name, each in a unit, and the launches */
	struct pawl_cuda_binary binaries[PAWL_CUDA_UNITS]; /* cuda.n_units of them */
	int64_t n_bytes;                                   /* of all binaries */
	uint64_t hash; /* of the sources and of all else that chose the code */
};

struct pawl_cuda_compiler;

/* arch: "sm_90".  options: cache_dir, dump_dir.  NVRTC is opened when the first program needs it. */
enum pawl_status pawl_cuda_compiler_new(const struct pawl_target_options *options, const char *arch,
	struct pawl_cuda_compiler **out, struct pawl_error *err);
/* NULL is allowed. */
void pawl_cuda_compiler_free(struct pawl_cuda_compiler *compiler);

/*
 * PAWL_UNSUPPORTED names the step and the op that has no kernel; PAWL_ENVIRONMENT: no NVRTC.  *out is
 * to be released after success.  Any thread.
 */
enum pawl_status pawl_cuda_compile(struct pawl_cuda_compiler *compiler,
	const struct pawl_program *program, struct pawl_cuda_image *out, struct pawl_error *err);
void pawl_cuda_image_release(struct pawl_cuda_image *image);

/* kernel_compiles, kernels_read, kernels_shared, code_bytes, cache_fault. */
void pawl_cuda_compiler_counters(
	struct pawl_cuda_compiler *compiler, struct pawl_target_counters *out);

#endif

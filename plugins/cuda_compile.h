/*
 * A program as code for one architecture: CUDA C (codegen/cuda/cuda_program.h), compiled by NVRTC.
 *
 * What was compiled once is kept in a folder (codegen/object_cache.h), under a key of everything
 * that decided it: source, options, architecture, and the NVRTC that is installed.  A program that
 * is found there opens no NVRTC.
 */
#ifndef PAWL_PLUGINS_CUDA_COMPILE_H
#define PAWL_PLUGINS_CUDA_COMPILE_H

#include "codegen/cuda/cuda_program.h"
#include "codegen/target.h"

/* What a kernel takes on the architecture, as the assembler reports it; -1: PTX, whose driver
 * knows. */
struct pawl_cuda_resources {
	int32_t registers;
	int32_t shared_bytes, stack_bytes;
	int32_t spill_store_bytes, spill_load_bytes;
};

/* The code of one source. */
struct pawl_cuda_binary {
	void *bytes; /* a cubin, or PTX with its final 0 */
	size_t n_bytes;
	bool is_ptx;
};

struct pawl_cuda_image {
	struct pawl_cuda_program cuda; /* the kernels by name, each in a unit, and the launches */
	struct pawl_cuda_binary binaries[PAWL_CUDA_UNITS]; /* cuda.n_units of them */
	struct pawl_cuda_resources *resources;             /* of each kernel */
	int64_t n_bytes;                                   /* of all binaries */
	uint64_t hash; /* of the sources and of all else that chose the code */
	int nvrtc_major, nvrtc_minor; /* the compiler's, as the file that was found is one */
};

struct pawl_cuda_compiler;

/* arch: "sm_90".  options: cache_dir, dump_dir.  NVRTC is opened when the first program needs it.
 */
enum pawl_status pawl_cuda_compiler_new(const struct pawl_target_options *options, const char *arch,
	struct pawl_cuda_compiler **out, struct pawl_error *err);
/* NULL is allowed. */
void pawl_cuda_compiler_free(struct pawl_cuda_compiler *compiler);

/*
 * PAWL_UNSUPPORTED names the step and the op that has no kernel; PAWL_ENVIRONMENT: no NVRTC, or it
 * failed; PAWL_INTERNAL names the step whose kernel it does not take, with its first complaint.
 * *out is to be released after success.  Any thread; two more compile while it waits.
 */
enum pawl_status pawl_cuda_compile(struct pawl_cuda_compiler *compiler,
	const struct pawl_program *program, struct pawl_cuda_image *out, struct pawl_error *err);
void pawl_cuda_image_release(struct pawl_cuda_image *image);

/*
 * kernel_compiles, kernels_read, code_bytes, cache_dir, arch_fault; cache_fault, of a failed store
 * too.
 */
void pawl_cuda_compiler_counters(
	struct pawl_cuda_compiler *compiler, struct pawl_target_counters *out);

#endif

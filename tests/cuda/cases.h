/*
 * The programs whose kernels tests/emit-cuda writes and tests/cuda-kernels runs: steps of the tiny
 * families in every form of cache and type of weight, blocks of SmolLM2 and Gemma 3 (with fewer
 * tokens, which are no part of a kernel but as a number), graphs with an op of every other kind and
 * every attribute of attention, random graphs, matmuls of every type.
 */
#ifndef PAWL_TESTS_CUDA_CASES_H
#define PAWL_TESTS_CUDA_CASES_H

#include "codegen/cuda/cuda_program.h"
#include "ir/graph.h"
#include "tests/cuda/fibers.h"

enum {
	PAWL_CUDA_TINY_F32,   /* one token, k16 cache of f32, norms in the prologues of matmuls */
	PAWL_CUDA_TINY_F16,   /* one token, weights and cache f16 */
	PAWL_CUDA_TINY_CHUNK, /* three tokens, bf16, a mask, keys in rows, norms not in prologues */
	PAWL_CUDA_TINY_CASES,
	PAWL_CUDA_FAMILIES = PAWL_CUDA_TINY_CASES, /* those of the table in cases.c */
	PAWL_CUDA_N_FAMILIES = 23,
	PAWL_CUDA_MODELS = PAWL_CUDA_FAMILIES + PAWL_CUDA_N_FAMILIES, /* blocks of real models */
	PAWL_CUDA_N_MODELS = 6,
	PAWL_CUDA_MEDLEY = PAWL_CUDA_MODELS + PAWL_CUDA_N_MODELS,
	PAWL_CUDA_ATTENTIONS,
	PAWL_CUDA_RANDOM,
	PAWL_CUDA_MATMULS = PAWL_CUDA_RANDOM + 48, /* a type of weights and of activations each */
	PAWL_CUDA_N_MATMULS = 19,
	PAWL_CUDA_N_CASES = PAWL_CUDA_MATMULS + PAWL_CUDA_N_MATMULS
};

struct pawl_cuda_case {
	char name[32];
	void *owner; /* of the model that the graph is of, NULL: of none */
	void (*owner_free)(void *owner);
	struct pawl_graph *graph;
	struct pawl_program *program;
	struct pawl_cuda_program cuda; /* empty when unsupported */
	bool is_supported;
	bool is_exact;         /* no float weights: the bits are those of the reference */
	struct pawl_error why; /* when not supported */
};

/* Asserts whatever may fail; to be called inside of a Check test. */
void pawl_cuda_case_open(int number, struct pawl_cuda_case *out);
void pawl_cuda_case_close(struct pawl_cuda_case *c);
/* Of case PAWL_CUDA_MATMULS + number; activations are F32, A16 or A8. */
void pawl_cuda_matmul_types(int number, enum pawl_dtype *weights, enum pawl_dtype *activations);

struct pawl_cuda_compiled {
	const char *name;
	pawl_fiber_kernel *run;
};

/* What the generated file exports: the kernels of each supported case, in the order of cases. */
struct pawl_cuda_kernels {
	const char *case_name;
	int n;
	const struct pawl_cuda_compiled *kernels;
	char *shared_begin, *shared_end; /* NULL: they have none */
};
extern const struct pawl_cuda_kernels pawl_cuda_kernels[];
extern const int pawl_cuda_n_kernels;

/*
 * Kernels of case PAWL_CUDA_SPOILED with something done to them that tests must see: without one of
 * their barriers, or with a mask that is off by one.
 */
enum { PAWL_CUDA_SPOILED = PAWL_CUDA_FAMILIES + 1 };
struct pawl_cuda_spoiled {
	int kernel;
	const char *what;
	pawl_fiber_kernel *run;
};
extern const struct pawl_cuda_spoiled pawl_cuda_spoiled[];
extern const int pawl_cuda_n_spoiled;

#endif

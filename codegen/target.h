/*
 * What a code-generation target implements.  A target is a loadable module that exports
 * `pawl_target_query`; the runtime refuses one whose build id is not its own, since modules
 * share internal structures with the core.
 *
 * Threads: a target and compiled code are shareable; `run` may be called from several threads
 * on different runs of the same code.
 */
#ifndef PAWL_CODEGEN_TARGET_H
#define PAWL_CODEGEN_TARGET_H

#include "ir/status.h"
#include "passes/step.h"

struct pawl_target; /* opened module state */
struct pawl_code;   /* a compiled program */

/*
 * A team of threads.  run() calls fn(arg, thread, n) on n threads, at most those of the team, the
 * caller being thread 0, and returns when all have; inside, barrier() waits for the whole team.
 */
struct pawl_team {
	int n_threads;
	void (*run)(struct pawl_team *team, void (*fn)(void *arg, int thread, int n_threads), void *arg);
	void (*barrier)(struct pawl_team *team, int thread);
};

struct pawl_target_options {
	const char *cpu_variant; /* NULL: the best that this CPU runs; else avx512vnni, avx512, avx2, baseline */
	const char *module_dir;  /* where cpu_compiler lies; NULL: beside this module */
	const char *dump_dir;    /* NULL, or a folder for generated code */
	const char *cache_dir;   /* where compiled kernels outlive the process; NULL: nowhere */
};

struct pawl_target_counters {
	uint64_t kernel_compiles; /* kernels generated, ever */
	uint64_t kernels_read;    /* kernels taken from cache_dir */
	uint64_t kernels_shared;  /* steps served by a kernel that existed already */
	int64_t code_bytes;       /* of all kernels there are */
	const char *cache_fault;  /* why cache_dir is not used, NULL: it is; the target's */
};

/* One execution of code. */
struct pawl_run {
	void *const *args;     /* program->n_args pointers, resolved from slots */
	const int64_t *symbols; /* program->n_symbols values */
	struct pawl_team *team;
	void *const *thread_scratch; /* code's thread_scratch_bytes for each thread, 64-byte aligned */
};

struct pawl_code_info {
	int64_t thread_scratch_bytes;
	int64_t code_bytes;    /* of the kernels it uses, each once */
	uint64_t code_hash;    /* of the generated kernels, 0 for the reference */
	const char *variant;   /* "avx512vnni", "reference" ... */
};

struct pawl_target_api {
	size_t size; /* of this struct */
	const char *build_id;
	const char *name;
	enum pawl_status (*open)(const struct pawl_target_options *options, struct pawl_target **out,
		struct pawl_error *err);
	void (*close)(struct pawl_target *target);
	/* The layout in which this target wants weight `type` of a matmul. */
	enum pawl_layout (*weight_layout)(const struct pawl_target *target, const struct pawl_type *type);
	/*
	 * PAWL_UNSUPPORTED names the step and the op that this target cannot do.  The program must
	 * outlive the code.
	 */
	enum pawl_status (*compile)(struct pawl_target *target, const struct pawl_program *program,
		struct pawl_code **out, struct pawl_error *err);
	void (*code_free)(struct pawl_code *code);
	void (*code_info)(const struct pawl_code *code, struct pawl_code_info *out);
	/* Neither allocates nor compiles. */
	enum pawl_status (*run)(const struct pawl_code *code, const struct pawl_run *run, struct pawl_error *err);
	void (*counters)(const struct pawl_target *target, struct pawl_target_counters *out);
	/*
	 * The identity of the kernel that serves a step; steps of equal ones share it.  NULL: no
	 * kernels are generated.
	 */
	uint64_t (*kernel_hash)(const struct pawl_code *code, int32_t step);
};

typedef const struct pawl_target_api *pawl_target_query_fn(void);

#endif

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

struct pawl_target;   /* opened module state */
struct pawl_code;     /* a compiled program */
struct pawl_runner; /* of code on a target with memory of its own: what its runs need */

/*
 * A team of threads.  run() calls fn(arg, thread, n) on n threads, at most those of the team, the
 * caller being thread 0, and returns when all have; inside, barrier() waits for the whole team.
 */
struct pawl_team {
	int n_threads;
	void (*run)(struct pawl_team *team, void (*fn)(void *arg, int thread, int n_threads), void *arg);
	void (*barrier)(struct pawl_team *team, int thread);
	/* Set before run(): a name for what runs, the same for what takes about as long; NULL: none. */
	const void *work;
};

struct pawl_target_options {
	const char *cpu_variant; /* NULL: the best that this CPU runs; else avx512vnni, avx512, avx2, baseline */
	const char *module_dir;  /* where cpu_compiler lies; NULL: beside this module */
	const char *dump_dir;    /* NULL, or a folder for generated code */
	const char *cache_dir;   /* where compiled kernels outlive the process; NULL: nowhere */
	const char *arch;        /* NULL: that of the device; else "sm_90": code for it, which nothing runs */
};

struct pawl_target_counters {
	uint64_t kernel_compiles; /* kernels generated, ever */
	uint64_t kernels_read;    /* kernels taken from cache_dir */
	int64_t code_bytes;       /* of all kernels there are */
	const char *cache_fault;  /* why kernels are not kept in cache_dir, NULL: they are; the target's */

	/* Of targets with memory of their own. */
	uint64_t uploads, launches;    /* of runs: copies to the device; kernels launched one by one */
	uint64_t graph_launches;       /* captured runs replayed */
	uint64_t captures;             /* that succeeded */
	uint64_t capture_failures;     /* runners that go on with plain launches */
	const char *capture_fault;     /* why the first of them, NULL: none; the target's */
	uint64_t device_allocations;

	const char *cache_dir; /* of the options, used unless there is a fault; the target's */
	/* Code is of an older architecture, to be translated where it runs: why; NULL; the target's. */
	const char *arch_fault;
};

/* One execution of code. */
struct pawl_run {
	void *const *args;     /* program->n_args pointers, resolved from slots */
	const int64_t *symbols; /* program->n_symbols values */
	struct pawl_team *team;
	void *const *thread_scratch; /* code's thread_scratch_bytes for each thread, 64-byte aligned */
	/*
	 * NULL, or asked by thread 0 now and then whether to give up: the run then fails with
	 * PAWL_ENVIRONMENT somewhere between two steps.
	 */
	bool (*is_stopped)(void *arg);
	void *stop_arg;
	/*
	 * NULL, or program->n_steps sums: to each is added what thread 0 spends on the step, the wait
	 * for the others included, in nanoseconds.  Only of targets that say times_steps.
	 */
	int64_t *step_ns;
};

struct pawl_code_info {
	int64_t thread_scratch_bytes;
	int64_t code_bytes;    /* of the kernels it uses, each once */
	uint64_t code_hash;    /* of the generated kernels, 0 for the reference */
	const char *variant;   /* "avx512vnni", "reference" ... */
	int32_t n_launches;    /* of kernels in a run, as nodes of a graph; 0: the target has none */
};

enum pawl_copy_way { PAWL_COPY_UP, PAWL_COPY_DOWN, PAWL_COPY_WITHIN };

/* Pieces of `bytes` each, the i-th from i * from_pitch to i * to_pitch.  bytes >= 1. */
struct pawl_copy_pieces {
	int64_t n, bytes;
	int64_t to_pitch, from_pitch;
};

/*
 * Memory that is not the host's: the host computes with its addresses and touches none of it.  Each
 * call comes after all runs that have returned and is complete when it returns; any thread.  A lost
 * device is PAWL_ENVIRONMENT.
 */
struct pawl_target_memory {
	/* Aligned to 256 bytes, its content unspecified.  n_bytes >= 1.  PAWL_OUT_OF_MEMORY names it. */
	enum pawl_status (*alloc)(struct pawl_target *target, int64_t n_bytes, void **out,
		struct pawl_error *err);
	void (*free)(struct pawl_target *target, void *bytes);
	/* Pieces between the two sides, or within this one, where they do not overlap. */
	enum pawl_status (*copy)(struct pawl_target *target, enum pawl_copy_way way, void *to,
		const void *from, const struct pawl_copy_pieces *pieces, struct pawl_error *err);
	enum pawl_status (*fill)(struct pawl_target *target, void *bytes, unsigned char value,
		int64_t n_bytes, struct pawl_error *err);
};

/*
 * What host and device exchange in a run: the data block goes up before it, the results come down
 * after it.  Sizes are those asked for; 64-byte aligned.
 */
struct pawl_exchange {
	void *data, *results; /* the host's */
	void *device_data;
};

/* A result: bytes of the device's memory, which come to lie at results + at. */
struct pawl_result {
	const void *from;
	int64_t at, bytes;
};

/* One run of a runner. */
struct pawl_device_run {
	void *const *args;      /* program->n_args addresses of the device */
	bool has_new_args;      /* they differ from those of the last run that succeeded */
	const int64_t *symbols; /* program->n_symbols values */
	const struct pawl_result *results;
	int32_t n_results;
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
	/* The launch that runs a step, from 0 on; small steps share one.  NULL: there are none. */
	int32_t (*launch_of)(const struct pawl_code *code, int32_t step);
	bool times_steps; /* run fills in step_ns */

	/*
	 * NULL: code works on the host's memory and is run by `run`.  Otherwise by a runner, which
	 * one thread at a time uses; run is NULL.
	 */
	const struct pawl_target_memory *memory;
	/* The code must outlive the runner.  PAWL_OUT_OF_MEMORY. */
	enum pawl_status (*runner_new)(const struct pawl_code *code, int64_t data_bytes,
		int64_t result_bytes, struct pawl_runner **out, struct pawl_exchange *exchange,
		struct pawl_error *err);
	/* Before the memory that its runs worked on.  NULL is allowed. */
	void (*runner_free)(struct pawl_runner *runner);
	/*
	 * One upload (data, symbols, new addresses), the kernels, the results; complete when it
	 * returns. The first run records the kernels for the following ones, whatever the addresses
	 * then are; where that fails they are launched one by one, in this run and the following
	 * ones.  Allocates and compiles nothing after the first run.  PAWL_ENVIRONMENT when the
	 * device refuses: what the run was to write is then unspecified.  *waited_ns is the time in
	 * which the host had nothing left to do but to wait for the device.
	 */
	enum pawl_status (*runner_run)(struct pawl_runner *runner,
		const struct pawl_device_run *run, int64_t *waited_ns, struct pawl_error *err);
};

typedef const struct pawl_target_api *pawl_target_query_fn(void);

#endif

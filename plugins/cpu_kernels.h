/*
 * The kernels of a CPU target: read from the cache on disk or compiled once per key, kept until the
 * target is closed.  Opens the compiler module when a kernel is missing.  Thread-safe but for init and
 * release.
 */
#ifndef PAWL_PLUGINS_CPU_KERNELS_H
#define PAWL_PLUGINS_CPU_KERNELS_H

#include <pthread.h>

#include "codegen/code_memory.h"
#include "codegen/cpu_compiler.h"
#include "codegen/kernel.h"
#include "codegen/object_cache.h"
#include "codegen/target.h"

struct pawl_cpu_kernel {
	struct pawl_cpu_kernel *next;
	char *key;
	uint64_t hash; /* of the key */
	struct pawl_code_memory memory;
	pawl_kernel_fn *phases[PAWL_MAX_PHASES];
	int64_t scratch_bytes; /* that a thread needs */
	bool is_made;          /* false: a thread is at it */
};

struct pawl_cpu_kernels {
	pthread_mutex_t lock; /* of all but the compiler */
	pthread_cond_t made;  /* or given up */
	pthread_mutex_t opening;
	struct pawl_cpu_kernel *first;
	struct pawl_target_counters counters;
	int n_compiling;
	const struct pawl_cpu_compiler_api *compiler; /* NULL: not opened yet */
	char *module_dir, *dump_dir, *cache_dir;      /* NULL: beside this module; none */
	struct pawl_object_cache cache;
	struct pawl_error cache_error; /* why there is none, or an entry was not written */
};

/* False when memory is exhausted. */
bool pawl_cpu_kernels_init(
	struct pawl_cpu_kernels *kernels, const struct pawl_target_options *options);
void pawl_cpu_kernels_release(struct pawl_cpu_kernels *kernels);
void pawl_cpu_kernels_counters(
	const struct pawl_cpu_kernels *kernels, struct pawl_target_counters *out);

/*
 * The kernel of a step if it is in memory or on the disk, else NULL and in *hash the hash of its key (0
 * when memory is exhausted).
 */
const struct pawl_cpu_kernel *pawl_cpu_kernels_find(struct pawl_cpu_kernels *kernels,
	const struct pawl_program *program, const struct pawl_step *step,
	enum pawl_cpu_variant variant, uint64_t *hash);

/*
 * The kernel of a step, compiled if need be.  PAWL_ENVIRONMENT when the compiler module cannot be opened
 * or has no room.
 */
enum pawl_status pawl_cpu_kernels_get(struct pawl_cpu_kernels *kernels,
	const struct pawl_program *program, const struct pawl_step *step,
	enum pawl_cpu_variant variant, const struct pawl_cpu_kernel **out, struct pawl_error *err);

#endif

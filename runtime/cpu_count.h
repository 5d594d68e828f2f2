/*
 * How many threads this process may use: the smaller of its CPU affinity and the CPU quota of its
 * control groups (v1 or v2, all levels), rounded down, at least 1.
 */
#ifndef PAWL_RUNTIME_CPU_COUNT_H
#define PAWL_RUNTIME_CPU_COUNT_H

#include <stdbool.h>
#include <stddef.h>

#include "ir/status.h"

/*
 * The default thread count; PAWL_THREADS overrides it.  reason (n bytes, may be NULL) gets one
 * line without a final stop, such as "4 threads: affinity 8, cgroup quota 4.50 cpus".
 * PAWL_INVALID_ARGUMENT for a PAWL_THREADS that is no whole number of 1 to PAWL_MAX_THREADS.
 */
enum pawl_status pawl_default_threads(
	char *reason, size_t n, int *threads, struct pawl_error *err);

/*
 * What affinity and quotas grant, whatever PAWL_THREADS says.  reason (n bytes, may be NULL) gets
 * "affinity 8, cgroup quota 4.50 cpus".
 */
int pawl_granted_cpus(char *reason, size_t n);

/* CPUs that the scheduler lets the calling thread use. */
int pawl_affinity_cpus(void);

/*
 * The tightest quota in CPUs; false when there is none.  self is the text file that names the
 * groups of the process (/proc/self/cgroup), mount the folder where they are mounted
 * (/sys/fs/cgroup).
 */
bool pawl_cgroup_cpus(const char *self, const char *mount, double *cpus);

#endif

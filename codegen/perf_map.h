/*
 * The map from addresses to names that `perf report` reads for code without a file:
 * /tmp/perf-PID.map, one line a function.  Other code generators of the process may write to it
 * too, so lines are only appended, each by one write.  Any thread.
 */
#ifndef PAWL_CODEGEN_PERF_MAP_H
#define PAWL_CODEGEN_PERF_MAP_H

#include <stddef.h>

#include "ir/status.h"

/* PAWL_ENVIRONMENT when the file cannot be written or is not this user's own. */
enum pawl_status pawl_perf_map_add(
	const void *code, size_t n_bytes, const char *name, struct pawl_error *err);

#endif

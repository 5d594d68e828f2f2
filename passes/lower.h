/*
 * Lowering: a FUSED graph to a program, one step for each group, before memory is planned (slots of
 * role TEMP and OUTPUT have no offsets yet).  The graph must verify.  PAWL_UNSUPPORTED: a group that
 * its template cannot execute, a view that is no window, an output that is a view; the passes leave
 * none of them.
 */
#ifndef PAWL_PASSES_LOWER_H
#define PAWL_PASSES_LOWER_H

#include "ir/graph.h"
#include "passes/step.h"

enum pawl_status pawl_lower(
	const struct pawl_graph *graph, struct pawl_program **out, struct pawl_error *err);

#endif

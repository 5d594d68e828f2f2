/* The plans of this process by what they were translated from, shared by all streams.  Any thread. */
#ifndef PAWL_PLUGINS_GGML_PLANS_H
#define PAWL_PLUGINS_GGML_PLANS_H

#include "runtime/plan.h"

/* What is kept, of which that used longest ago goes first; who holds a plan keeps it longer. */
enum { PAWL_GGML_MOST_PLANS = 64, PAWL_GGML_MOST_BYTES = 256 << 20 };

/*
 * The plan of a graph of that hash (ggml_translate.h), built when there is none; the caller gets a
 * reference.  What could not be built once is not tried again.
 */
enum pawl_status pawl_ggml_plans_get(uint64_t hash, const struct pawl_graph *graph,
	struct pawl_device *device, struct pawl_plan **out, struct pawl_error *err);

/* For tests: other bounds than those above. */
void pawl_ggml_plans_limit(int plans, int64_t bytes);

#endif

/* The plans of this process by what they were translated from, shared by all streams.  Any thread. */
#ifndef PAWL_PLUGINS_GGML_PLANS_H
#define PAWL_PLUGINS_GGML_PLANS_H

#include "runtime/plan.h"

/*
 * The plan of a graph of that hash (ggml_translate.h), built when there is none; the caller gets a
 * reference.  What could not be built once is not tried again.
 */
enum pawl_status pawl_ggml_plans_get(uint64_t hash, const struct pawl_graph *graph,
	struct pawl_device *device, struct pawl_plan **out, struct pawl_error *err);

#endif

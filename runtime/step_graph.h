/*
 * What those who drive a model rely on in a graph that its source built, checked before a plan is
 * made of it: a source may be a host's.
 */
#ifndef PAWL_RUNTIME_STEP_GRAPH_H
#define PAWL_RUNTIME_STEP_GRAPH_H

#include "runtime/kv_cache.h"
#include "runtime/model_source.h"

/*
 * PAWL_INVALID_GRAPH, naming what is there and what was asked for, when output 0 is not the logits
 * of the request, a kv const is not of the cache's shape or nothing is written to it, the tables or
 * the pairs of rope are not the source's, attention over a ring sees more than the ring holds, or a
 * symbol is none that token data binds or does not have the range that it may need.  Names and types
 * of data consts, and whether consts are missing, are looked at when a session is made.
 */
enum pawl_status pawl_step_graph_check(const struct pawl_graph *graph,
	const struct pawl_model_source *source, const struct pawl_graph_request *request,
	const struct pawl_kv_shape *shape, struct pawl_error *err);

#endif

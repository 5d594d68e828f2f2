/* `pawl bench --replan`: what holding a plan saves, in one process and interleaved. */
#ifndef PAWL_TOOLS_BENCH_REPLAN_H
#define PAWL_TOOLS_BENCH_REPLAN_H

#include "runtime/json_write.h"
#include "tools/engine.h"
#include "tools/progress.h"

/*
 * Decodes single tokens on a contiguous and on a paged cache, each with plans that are held and with
 * plans that are made anew for every token; n tokens a round for held plans, a few for the others.
 * Prints a table, or adds rows to the array json when it is not NULL.  engine->model must be open.
 */
enum pawl_status pawl_bench_replan(struct pawl_engine *engine, int64_t n, int64_t repeats,
	struct pawl_progress *progress, struct pawl_json *json, cJSON *rows, struct pawl_error *err);

#endif

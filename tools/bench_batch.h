/* `pawl bench --batch`: tokens per second of several sequences that are decoded together. */
#ifndef PAWL_TOOLS_BENCH_BATCH_H
#define PAWL_TOOLS_BENCH_BATCH_H

#include "runtime/json_write.h"
#include "tools/engine.h"
#include "tools/progress.h"

/* The largest of --batch. */
enum { PAWL_BENCH_MAX_BATCH = 8 };

/*
 * For each of the batches n tokens of each of so many sequences a round, over one pool of
 * pages, each sequence at `depth` positions before; batches interleaved.  Prints a table, or adds rows
 * to the array json when it is not NULL.  engine->model must be open.
 */
enum pawl_status pawl_bench_batch(struct pawl_engine *engine, const struct pawl_ints *batches,
	int64_t depth, int64_t n, int64_t repeats, struct pawl_progress *progress,
	struct pawl_json *json, cJSON *rows, struct pawl_error *err);

#endif

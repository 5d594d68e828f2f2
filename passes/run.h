/*
 * Runs passes over a graph: gate (skip, bisect), run, verify, dump, account.
 */
#ifndef PAWL_PASSES_RUN_H
#define PAWL_PASSES_RUN_H

#include "passes/pass.h"

enum { PAWL_MAX_PASSES = 64 }; /* in one list */

struct pawl_run_options {
	const char *skip;        /* comma-separated names of optional passes, or NULL */
	int64_t bisect;          /* run only the first `bisect` optional passes; negative: all */
	bool verify_each;        /* verify after every pass that changed something */
	bool roundtrip_each;     /* print, parse and print again there (passes/observe.h) */
	const char *dump_folder; /* NULL, or where the graph is dumped there */
	/* Called after each pass that ran (NULL: none); n is its place in the pipeline. */
	void (*after)(void *arg, int n, enum pawl_pass pass, const struct pawl_graph *graph,
		int n_changes, double seconds);
	void *arg;
};

/* What one pass did, for statistics. */
struct pawl_pass_report {
	enum pawl_pass pass;
	bool ran;
	int n_changes;
	double seconds;
};

/*
 * Runs `passes` in order.  The graph must verify; it is rewritten in place and must be dropped on
 * failure.  reports: NULL or room for n_passes.  PAWL_INVALID_ARGUMENT for a pass whose `from`
 * stage is not the graph's and for a name in skip that is no optional pass.
 */
enum pawl_status pawl_passes_run(struct pawl_graph *graph, const enum pawl_pass *passes,
	int n_passes, const struct pawl_pass_facts *facts, const struct pawl_run_options *options,
	struct pawl_pass_report *reports, struct pawl_error *err);

/* The standard pipeline, readable aloud in passes/pipeline.c. */
const enum pawl_pass *pawl_pipeline(int *n_passes);

/* "dce,cse" to passes; an unknown or empty name is PAWL_INVALID_ARGUMENT.  At most 64. */
enum pawl_status pawl_passes_from_list(
	const char *list, enum pawl_pass *passes, int *n_passes, struct pawl_error *err);

/* Whether such a list, or NULL, holds optional passes only. */
enum pawl_status pawl_passes_check_skip(const char *list, struct pawl_error *err);

#endif

/*
 * Looking at a graph between two passes: verify it, read its text back, dump it.  What is asked
 * for stands in struct pawl_run_options.
 */
#ifndef PAWL_PASSES_OBSERVE_H
#define PAWL_PASSES_OBSERVE_H

#include "passes/run.h"

/*
 * What PAWL_SKIP, PAWL_BISECT, PAWL_DUMP and PAWL_DEBUG=verify,roundtrip ask for; the rest of out
 * becomes zero.  Texts belong to the environment.  PAWL_INVALID_ARGUMENT as pawl_debug_check says
 * and as pawl_passes_check_skip says of PAWL_SKIP.
 */
enum pawl_status pawl_run_options_from_env(struct pawl_run_options *out, struct pawl_error *err);

/* The number of a dump: 1 for the first run of passes in this process that is dumped. */
int pawl_observe_next_dump(void);

/*
 * Dumps the graph as `input.pawl`, before the first pass (pass_at = -1), or as `NN-PASS.pawl`, NN
 * being pass_at in two digits; `.D` stands before `.pawl` when dump number D is not the first.
 */
enum pawl_status pawl_observe_dump(const struct pawl_graph *graph, const char *folder, int dump,
	int pass_at, const char *pass, struct pawl_error *err);

/*
 * Verifies the graph and reads its text back, as asked for.  PAWL_INTERNAL says what is wrong; a
 * text that reads back is that of an equal hash and prints the same again.
 */
enum pawl_status pawl_observe_check(const struct pawl_graph *graph,
	const struct pawl_run_options *options, struct pawl_error *err);

#endif

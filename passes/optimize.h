/*
 * Graph to program: verify, passes, lowering, memory plan, check.  What "optimize once" counts.
 */
#ifndef PAWL_PASSES_OPTIMIZE_H
#define PAWL_PASSES_OPTIMIZE_H

#include "passes/run.h"
#include "passes/step.h"

struct pawl_optimize_options {
	struct pawl_pass_facts facts;
	struct pawl_run_options run;
	bool no_reuse;  /* every temporary gets memory of its own */
	bool red_zones; /* 64 bytes between temporaries that nothing may touch */
	/* NULL, or gets the graph as it was lowered, the caller's; untouched on failure. */
	struct pawl_graph **optimized;
};

/* Statistics of one optimization; reports covers pawl_pipeline's passes. */
struct pawl_optimize_report {
	struct pawl_pass_report passes[PAWL_MAX_PASSES];
	int n_passes;
	int32_t nodes_in, nodes_out;
};

/*
 * graph is not modified.  options may be NULL (a16, no target facts), report too.  The program
 * is a function of graph and options alone: the same input gives the same steps, offsets, names.
 */
enum pawl_status pawl_optimize(const struct pawl_graph *graph, const struct pawl_optimize_options *options,
	struct pawl_program **out, struct pawl_optimize_report *report, struct pawl_error *err);

/* What an optimization ends in: the steps and the memory plan of a graph that the passes are done with. */
enum pawl_status pawl_optimized_to_program(const struct pawl_graph *optimized,
	const struct pawl_optimize_options *options, struct pawl_program **out, struct pawl_error *err);

#endif

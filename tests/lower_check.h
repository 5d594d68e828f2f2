/* One graph through all passes, lowering and memory plan, executed at both ends. */
#ifndef PAWL_TESTS_LOWER_CHECK_H
#define PAWL_TESTS_LOWER_CHECK_H

#include "passes/optimize.h"

#include "tests/graph_run.h"

/*
 * Asserts that the program of graph leaves behind what the graph does after its passes, bit for
 * bit; that its steps can be executed as their templates say; and that optimizing anew gives the
 * same program.  Memory plans that reuse nothing keep red zones too.
 */
void pawl_test_check_lowering(const struct pawl_graph *graph, const struct pawl_optimize_options *options,
	const struct pawl_test_inputs *inputs, const char *what);

#endif

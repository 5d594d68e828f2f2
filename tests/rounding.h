/* The bounds of the passes that change arithmetic, checked on one graph. */
#ifndef PAWL_TESTS_ROUNDING_H
#define PAWL_TESTS_ROUNDING_H

#include "passes/pass.h"

#include "tests/graph_run.h"

/*
 * Runs the pass on a copy of graph whose outputs are joined by what the pass may change: results
 * that depend on no other such value stay within the bound that the pass states, what depends on none
 * keeps its bits.
 */
void pawl_test_check_rounding(const struct pawl_graph *graph, enum pawl_pass pass,
	const struct pawl_test_inputs *inputs, const char *what);

#endif

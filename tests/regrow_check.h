/* What must hold of programs whose graphs differ in the capacity of a cache only. */
#ifndef PAWL_TESTS_REGROW_CHECK_H
#define PAWL_TESTS_REGROW_CHECK_H

#include "ir/graph.h"

/* Asserts that the kernels of both, for CPUs and for CUDA, are the same code. */
void pawl_test_check_same_code(const struct pawl_graph *small, const struct pawl_graph *large);

/*
 * Regrows the optimized graph *kept, of the graph of that hash, to another and asserts that the
 * program is the one that optimizing that graph gives.  *kept is replaced by the new one.
 */
void pawl_test_check_regrown(
	struct pawl_graph **kept, uint64_t hash, const struct pawl_graph *to);

#endif

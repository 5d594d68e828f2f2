/*
 * Checks every rule of the IR that inference alone cannot see: topological list order, use
 * lists, arity, types as inferred, unique names, stage rules (ordering of destroyers, groups
 * contiguous), symbols in range, one chain of writes per storage.  Collects all errors.
 */
#ifndef PAWL_IR_VERIFY_H
#define PAWL_IR_VERIFY_H

#include "ir/graph.h"

struct pawl_diagnostic {
	const struct pawl_node *node; /* NULL: the graph as a whole */
	char text[256];
};

struct pawl_diagnostics {
	struct pawl_diagnostic *items; /* malloc'ed */
	int n;
};

void pawl_diagnostics_release(struct pawl_diagnostics *diagnostics);

/* "has no ...", or NULL when the range is sane. */
const char *pawl_symbol_fault(const struct pawl_symbol *symbol);

/*
 * PAWL_OK, or PAWL_INVALID_GRAPH with the first error (with line:column where the node came
 * from text) in err and all of them in *all (may be NULL).
 */
enum pawl_status pawl_verify(
	const struct pawl_graph *graph, struct pawl_diagnostics *all, struct pawl_error *err);

#endif

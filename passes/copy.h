/* Copies that passes insert. */
#ifndef PAWL_PASSES_COPY_H
#define PAWL_PASSES_COPY_H

#include "ir/graph.h"

/*
 * A row-major copy of value made just before `before` (NULL: at the end).  NULL with
 * PAWL_UNSUPPORTED, naming the value, when it cannot be copied: blocks, packed weights, a view whose
 * symbolic axis is not the first.
 */
struct pawl_node *pawl_copy_before(struct pawl_graph *graph, struct pawl_node *value,
	struct pawl_node *before, struct pawl_error *err);

#endif

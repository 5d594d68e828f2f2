/*
 * The same network for caches of another capacity, from the graph that its optimization left: no
 * pass runs.  Types and symbol ranges are stated anew, what follows from them is inferred, lowered
 * and planned by the code that every plan comes from.
 *
 * What a program holds of the capacity M, all of it made anew here: dims and bytes of kv slots;
 * strides across their planes (K, V: [1, heads, M, d]), which kernels read from a literal; the limit
 * of writes; the largest value of the symbol that bounds attention; the room for its partial results
 * and with it the places of temporaries; counts of work and bytes.  No kernel's code holds any of it
 * (codegen/kernel_key.h).
 */
#ifndef PAWL_PASSES_REGROW_H
#define PAWL_PASSES_REGROW_H

#include "passes/optimize.h"

/*
 * Whether the capacity of kv consts is seen by nothing but what bounds itself at run time: writes
 * along one dynamic axis or by rows, and attention whose length is a symbol, directly or through views
 * that pass the capacity on: reshapes that add or drop dims of 1, slices of the last dim.  Passes then
 * decided nothing by it.  Not so: masks, whose width is the capacity; rings and caches in blocks, which
 * do not grow.
 */
bool pawl_graph_can_regrow(const struct pawl_graph *graph);

/*
 * The program that optimizing `fresh` would give.  optimized is what pawl_optimize left of a graph
 * whose hash is `hash`.  *kept becomes its like for `fresh`, the caller's.  PAWL_UNSUPPORTED
 * when fresh differs from that graph in more than capacity, or cannot regrow.
 */
enum pawl_status pawl_regrow(const struct pawl_graph *optimized, uint64_t hash,
	const struct pawl_graph *fresh, const struct pawl_optimize_options *options,
	struct pawl_graph **kept, struct pawl_program **out, struct pawl_error *err);

#endif

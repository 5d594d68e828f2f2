/*
 * Result types.  pawl_infer computes the type of `op` over the given inputs, or, for ops with
 * the flag TYPED, checks the type that the caller put into *type.  It applies every rule of
 * the op that can be seen without the rest of the graph (arity, ranks, dtypes, dims,
 * attributes in range).  The message names the op and the operand at fault.
 */
#ifndef PAWL_IR_INFER_H
#define PAWL_IR_INFER_H

#include "ir/graph.h"

enum pawl_status pawl_infer(const struct pawl_graph *graph, enum pawl_op op,
	struct pawl_node *const *inputs, int n_inputs, const struct pawl_attrs *attrs,
	struct pawl_type *type, struct pawl_error *err);

/* The value of a dim at its symbol's least and largest; INT64_MAX when it overflows. */
int64_t pawl_dim_min(const struct pawl_graph *graph, struct pawl_dim dim);
int64_t pawl_dim_max(const struct pawl_graph *graph, struct pawl_dim dim);

#endif

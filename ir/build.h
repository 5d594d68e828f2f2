/*
 * Checked construction of graphs.  Each function infers the result type, appends one node and
 * returns it.  The first failure is stored in graph->error and makes this and every later call
 * return NULL (also a NULL operand does), so that a caller may build a whole graph and look at
 * graph->error once.
 */
#ifndef PAWL_IR_BUILD_H
#define PAWL_IR_BUILD_H

#include "ir/graph.h"

enum { PAWL_MAX_NAME = 255 };

/* [A-Za-z_][A-Za-z0-9_.]*, at most PAWL_MAX_NAME characters: what the text form can hold. */
bool pawl_name_is_valid(const char *name);

/* Any op.  type: wanted for TYPED ops, else NULL.  attrs may be NULL (defaults). */
struct pawl_node *pawl_build(struct pawl_graph *graph, enum pawl_op op, const char *name,
	struct pawl_node *const *inputs, int n_inputs, const struct pawl_attrs *attrs,
	const struct pawl_type *type);

struct pawl_node *pawl_build_const(struct pawl_graph *graph, enum pawl_role role, const char *name,
	const struct pawl_type *type);
/* A literal of the given type holding one repeated value. */
struct pawl_node *pawl_build_splat(
	struct pawl_graph *graph, const struct pawl_type *type, double value);
struct pawl_node *pawl_build_unary(struct pawl_graph *graph, enum pawl_op op, struct pawl_node *x);
/* y is broadcast to x's dims, or x to y's, where they differ. */
struct pawl_node *pawl_build_binary(
	struct pawl_graph *graph, enum pawl_op op, struct pawl_node *x, struct pawl_node *y);
struct pawl_node *pawl_build_scale(struct pawl_graph *graph, struct pawl_node *x, double scale);
struct pawl_node *pawl_build_cast(
	struct pawl_graph *graph, struct pawl_node *x, enum pawl_dtype dtype);
/* dims[0] = -1 is axis 0 of x as it is, symbolic or not. */
struct pawl_node *pawl_build_reshape(
	struct pawl_graph *graph, struct pawl_node *x, int rank, const int64_t *dims);
struct pawl_node *pawl_build_permute(
	struct pawl_graph *graph, struct pawl_node *x, const int *perm);
/* A symbolic axis stays whole: start 0, stop 0. */
struct pawl_node *pawl_build_slice(
	struct pawl_graph *graph, struct pawl_node *x, const int64_t *start, const int64_t *stop);
struct pawl_node *pawl_build_gather(
	struct pawl_graph *graph, struct pawl_node *table, struct pawl_node *ids);
struct pawl_node *pawl_build_matmul(
	struct pawl_graph *graph, struct pawl_node *x, struct pawl_node *w);
struct pawl_node *pawl_build_rms_norm(
	struct pawl_graph *graph, struct pawl_node *x, struct pawl_node *w, double eps);
struct pawl_node *pawl_build_rope(struct pawl_graph *graph, struct pawl_node *x,
	struct pawl_node *cos, struct pawl_node *sin, enum pawl_pairs pairs);
/*
 * Along `axis` the write starts at the value of `offset` (i64[]); elsewhere at start[].  axis -1
 * and offset NULL: at start[] everywhere.  start may be NULL for all 0.
 */
struct pawl_node *pawl_build_write_slice(struct pawl_graph *graph, struct pawl_node *dest,
	struct pawl_node *src, const int64_t *start, int axis, struct pawl_node *offset);

#endif

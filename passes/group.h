/*
 * Groups: the nodes that will run as one step.  In a FUSED graph the members of a group are
 * contiguous among the nodes that run; views, consts and allocs lie anywhere between.
 */
#ifndef PAWL_PASSES_GROUP_H
#define PAWL_PASSES_GROUP_H

#include "ir/graph.h"
#include "passes/step.h"

enum { PAWL_MAX_GROUP_NODES = 24 };

/*
 * Members of the group that `member` belongs to, in list order.  False when there are more than
 * PAWL_MAX_GROUP_NODES, of which the first are given.
 */
struct pawl_group {
	int32_t id;
	int n;
	struct pawl_node *nodes[PAWL_MAX_GROUP_NODES];
};
bool pawl_group_of(struct pawl_node *member, struct pawl_group *out);

/* Whether one writes storage that the other reads: they may neither change places nor share a step. */
bool pawl_nodes_conflict(const struct pawl_node *a, const struct pawl_node *b);

/* A quantize to q8_0: it works on 32 columns at a time, in a step of elementwise ops. */
bool pawl_node_makes_cache_blocks(const struct pawl_node *node);

enum pawl_template pawl_group_template(const struct pawl_group *group);
bool pawl_group_has(const struct pawl_group *group, enum pawl_op op);

/* Whether a value of the group is used outside of it, directly or through views, or is an output. */
bool pawl_node_escapes(const struct pawl_node *node);

/*
 * Whether the template of the group can execute its members as one step:
 *   MATMUL  a prologue of row and elementwise ops that only the matmuls' one input 0 comes from;
 *           matmuls; elementwise ops over their results
 *   ATTEND  rope and elementwise ops that only the query comes from; one attention; elementwise ops
 *   GATHER  one gather; elementwise ops
 *   BATCH   one batch_matmul
 *   ROWS    row ops, argmax and elementwise ops over equal dims
 *   MAP     elementwise ops, rope, writes and fills, or one concat
 * A member reads another directly, never through a view; only a write may, the view being turned
 * into part of its address.  A value is stored at most twice: to its own storage and by a write, or
 * by two writes.  No member writes storage that another reads.  All members have the group's id.
 */
bool pawl_group_fits(const struct pawl_graph *graph, const struct pawl_group *group);

/*
 * Makes one group of two (a before b in list order), keeping a's id.  Moves the members of a down
 * to b, or those of b up to a, whichever the dependences and effects between allow.  False, with
 * nothing changed, when neither may move, or when the group would be too large or not fit.
 */
bool pawl_group_merge(struct pawl_graph *graph, struct pawl_node *a, struct pawl_node *b);

#endif

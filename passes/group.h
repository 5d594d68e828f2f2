/*
 * Groups: the nodes that will run as one step.  In a FUSED graph the members of a group are
 * contiguous among the nodes that run; views, consts and allocs lie anywhere between.
 */
#ifndef PAWL_PASSES_GROUP_H
#define PAWL_PASSES_GROUP_H

#include "ir/graph.h"
#include "passes/step.h"

enum { PAWL_MAX_GROUP_NODES = 24 };

/* Members of the group that `member` belongs to, in list order. */
struct pawl_group {
	int32_t id;
	int n;
	struct pawl_node *nodes[PAWL_MAX_GROUP_NODES];
};
void pawl_group_of(struct pawl_node *member, struct pawl_group *out);

enum pawl_template pawl_group_template(const struct pawl_group *group);
bool pawl_group_has(const struct pawl_group *group, enum pawl_op op);

/* Whether a value of the group is used outside of it, directly or through views, or is an output. */
bool pawl_node_escapes(const struct pawl_node *node);

/* The value of `group` that node reads through input i, looking through views; NULL: none. */
struct pawl_node *pawl_node_reads_group(const struct pawl_node *node, int i, int32_t group);

/*
 * Makes one group of two (a before b in list order), keeping a's id.  Moves the members of a down
 * to b, or those of b up to a, whichever the dependences and effects between allow.  False, with
 * nothing changed, when neither may move, when the group would be too large, when a member would
 * read another through a view (only a write may, the view then becomes part of its address), or when
 * one writes what another reads.
 */
bool pawl_group_merge(struct pawl_graph *graph, struct pawl_node *a, struct pawl_node *b);

#endif

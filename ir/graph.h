/*
 * The graph: an ordered list of SSA nodes.
 *
 * List order is a topological order; after the pass order-effects it is also the order of
 * execution.  Before that pass a node denotes a value: a write makes a new value and leaves the
 * old one readable, whoever owns the storage.
 *
 * Only the functions of this header change a graph.  Nodes live in the graph's arena, have
 * dense ids (side tables are indexed by id, n_ids entries) and know their uses.  A graph
 * belongs to one thread at a time.
 */
#ifndef PAWL_IR_GRAPH_H
#define PAWL_IR_GRAPH_H

#include "ir/arena.h"
#include "ir/op.h"
#include "ir/status.h"

/* How far a graph has come; printed, and checked by the verifier. */
enum pawl_stage {
	PAWL_STAGE_VALUES,  /* pure dataflow: what a host hands over */
	PAWL_STAGE_ORDERED, /* list order is execution order, every destroyer follows its readers */
	/*
	 * Every node that runs (all but consts, pack, views and allocs without fill) belongs to a
	 * group; the members of a group are contiguous among the nodes that have one.
	 */
	PAWL_STAGE_FUSED,
	PAWL_N_STAGES
};

/* One operand of `user`: a link in the list of uses of `def`. */
struct pawl_use {
	struct pawl_node *def, *user;
	struct pawl_use *next, *prev;
};

/* A name a node stands for after passes merged others into it. */
struct pawl_origin {
	const char *name;
	struct pawl_origin *next;
};

struct pawl_node {
	enum pawl_op op;
	int32_t id;
	int32_t group;    /* fused step it belongs to, -1 before fusion */
	int32_t n_inputs;
	struct pawl_use *inputs; /* n_inputs operands */
	struct pawl_use *uses;   /* first use, NULL when unused */
	struct pawl_type type;
	struct pawl_attrs attrs;
	const char *name; /* SSA name without %, NULL for a numbered value */
	struct pawl_origin *origins;
	struct pawl_node *next, *prev; /* list order */
	int32_t n_outputs;             /* how often it is an output of the graph */
	int32_t line, column;          /* place in the text it came from, 0 when built */
};

/* An integer unknown until a run: min <= value <= max, a multiple of `multiple`. */
struct pawl_symbol {
	const char *name;
	int64_t min, max, multiple;
};

struct pawl_graph {
	struct pawl_arena arena;
	const char *name;
	enum pawl_stage stage;
	struct pawl_node *first, *last;
	int32_t n_nodes; /* in the list */
	int32_t n_ids;   /* ids ever given */
	int32_t n_groups;
	struct pawl_node **outputs;
	int32_t n_outputs, cap_outputs;
	struct pawl_symbol *symbols;
	int32_t n_symbols, cap_symbols;
	struct pawl_node *cursor; /* new nodes go before it, NULL: at the end */
	struct pawl_error error;  /* first failure of a builder call; PAWL_OK while none */
};

#define pawl_foreach_node(node, graph) for ((node) = (graph)->first; (node); (node) = (node)->next)
#define pawl_foreach_use(use, node) for ((use) = (node)->uses; (use); (use) = (use)->next)

/* NULL when memory is exhausted. */
struct pawl_graph *pawl_graph_new(const char *name);
void pawl_graph_free(struct pawl_graph *graph);
/* A copy in a fresh arena with ids 0 .. n_nodes - 1 in list order. */
enum pawl_status pawl_graph_clone(
	const struct pawl_graph *graph, struct pawl_graph **out, struct pawl_error *err);

/* The index of the new symbol, -1 on failure (graph->error). */
int32_t pawl_graph_add_symbol(
	struct pawl_graph *graph, const char *name, int64_t min, int64_t max, int64_t multiple);
int32_t pawl_graph_find_symbol(const struct pawl_graph *graph, const char *name, size_t n);

/*
 * A new node before graph->cursor with the given type; infers and checks nothing (ir/build.h
 * does).  name may be NULL and must be unique.  NULL on failure (graph->error).
 */
struct pawl_node *pawl_graph_add(struct pawl_graph *graph, enum pawl_op op, const char *name,
	struct pawl_node *const *inputs, int n_inputs, const struct pawl_attrs *attrs,
	const struct pawl_type *type);

/* Appends an output; PAWL_OUT_OF_MEMORY goes to graph->error. */
void pawl_graph_add_output(struct pawl_graph *graph, struct pawl_node *node);

/* Makes node output i in place of what it was. */
void pawl_graph_set_output(struct pawl_graph *graph, int32_t i, struct pawl_node *node);

struct pawl_node *pawl_node_input(const struct pawl_node *node, int i);
bool pawl_node_is_used(const struct pawl_node *node); /* by a node or as an output */
int pawl_node_n_uses(const struct pawl_node *node);   /* uses by nodes plus outputs */
/* The only use by a node when there is exactly one use in all and it is no output, else NULL. */
struct pawl_node *pawl_node_only_user(const struct pawl_node *node);

void pawl_graph_set_input(struct pawl_node *node, int i, struct pawl_node *def);
/* Every use and output of old becomes one of def; def inherits old's name as an origin. */
void pawl_graph_replace_uses(struct pawl_graph *graph, struct pawl_node *old, struct pawl_node *def);
/* Unlinks an unused node. */
void pawl_graph_remove(struct pawl_graph *graph, struct pawl_node *node);
/* Moves node to just before `before` (NULL: to the end). */
void pawl_graph_move(struct pawl_graph *graph, struct pawl_node *node, struct pawl_node *before);
/* Makes def and what it stands for an origin of node. */
void pawl_graph_add_origin(struct pawl_graph *graph, struct pawl_node *node, const struct pawl_node *def);

/* States what a node's type or a symbol's range is from now on; whoever does so infers the rest. */
void pawl_graph_set_type(struct pawl_node *node, const struct pawl_type *type);
void pawl_graph_set_range(
	struct pawl_graph *graph, int32_t symbol, int64_t min, int64_t max, int64_t multiple);

struct pawl_node *pawl_graph_find(const struct pawl_graph *graph, const char *name);

/*
 * Whether the node does work in a run: no const, pack (done when weights are bound), view, or alloc
 * without fill.
 */
bool pawl_node_runs(const struct pawl_node *node);

/* The node whose storage a value lives in: itself, or through views and in-place ops. */
struct pawl_node *pawl_node_storage(const struct pawl_node *node);

/*
 * Structural 64-bit FNV-1a fingerprint: symbols, and in list order ops, attributes, types, names
 * of consts, edges, outputs; neither ids nor groups nor other names.  0 when memory is exhausted.
 */
uint64_t pawl_graph_hash(const struct pawl_graph *graph);

#endif

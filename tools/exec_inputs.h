/*
 * Contents for the consts of a graph, made from a seed, so that it can be run anywhere.  They are
 * found by name and serve what passes made of the graph too.
 */
#ifndef PAWL_TOOLS_EXEC_INPUTS_H
#define PAWL_TOOLS_EXEC_INPUTS_H

#include "codegen/tensor.h"
#include "ir/graph.h"

/* Of any one value of a graph that is to be run. */
#define PAWL_EXEC_MAX_BYTES (INT64_C(1) << 30)

struct pawl_exec_input {
	const struct pawl_node *node; /* a const with storage */
	struct pawl_type type;        /* static: dims at the values of the symbols */
	void *bytes;                  /* as the seed gave them */
	int64_t n_bytes;              /* with symbols at their largest; zeros fill up */
};

struct pawl_exec_inputs {
	const struct pawl_graph *graph; /* must outlive this */
	int64_t *symbols;               /* in the graph's order, within their ranges */
	struct pawl_exec_input *items;
	int32_t n;
};

/*
 * PAWL_UNSUPPORTED for a graph with a value beyond PAWL_EXEC_MAX_BYTES.  To be released after a
 * failure too.
 */
enum pawl_status pawl_exec_inputs_init(struct pawl_exec_inputs *inputs,
	const struct pawl_graph *graph, uint64_t seed, struct pawl_error *err);
void pawl_exec_inputs_release(struct pawl_exec_inputs *inputs);

/* The type with symbols at these values. */
struct pawl_type pawl_type_at(const struct pawl_type *type, const int64_t *symbols);

/* The bytes of a static type as a tensor; *n_bytes is what it occupies. */
enum pawl_status pawl_static_tensor(const struct pawl_type *type, void *bytes,
	struct pawl_tensor *out, int64_t *n_bytes, struct pawl_error *err);

#endif

/*
 * The graph interpreter: what a graph means, at any stage.
 *
 * Every node is a value: it is computed in list order into memory of its own, a write as well
 * (which copies its destination first), so that no schedule and no aliasing can matter.  Groups
 * are ignored.  When all nodes have run, the last version of each kv const, at the end of its
 * chain of writes, is copied back to the const's storage; a run that fails leaves it as it was.
 *
 * PLANNED computes what docs/arithmetic.md specifies; EXACT what the ops mean, in f64
 * (codegen/ref_ops.h), where a kv const still rounds to its own type between runs.
 *
 * An interpreter belongs to one thread at a time.
 */
#ifndef PAWL_CODEGEN_INTERP_H
#define PAWL_CODEGEN_INTERP_H

#include "codegen/tensor.h"
#include "ir/graph.h"

struct pawl_interp;

enum pawl_interp_mode { PAWL_INTERP_PLANNED, PAWL_INTERP_EXACT };

/* The graph must outlive the interpreter and not change. */
enum pawl_status pawl_interp_new(const struct pawl_graph *graph, enum pawl_interp_mode mode,
	struct pawl_interp **out, struct pawl_error *err);
void pawl_interp_free(struct pawl_interp *interp);

/*
 * Binds a const to memory that the caller keeps.  Weights are always in rows, whatever layout
 * the const has; kv is in the const's layout.  Only kv is written to.  Bindings stay until
 * replaced.  PAWL_INVALID_ARGUMENT when there is no such const or it is a literal.
 */
enum pawl_status pawl_interp_bind(struct pawl_interp *interp, const char *name, void *data,
	int64_t bytes, struct pawl_error *err);
enum pawl_status pawl_interp_bind_node(struct pawl_interp *interp, const struct pawl_node *node,
	void *data, int64_t bytes, struct pawl_error *err);

/* Stays until set again.  PAWL_SYMBOL when there is no such symbol or it may not be `value`. */
enum pawl_status pawl_interp_set_symbol(
	struct pawl_interp *interp, const char *name, int64_t value, struct pawl_error *err);

/*
 * PAWL_INVALID_ARGUMENT: a const is unbound or bound to too few bytes; a negative start; an id of
 * a const out of range.  PAWL_SYMBOL: a symbol is unbound.  PAWL_CAPACITY: a start or row beyond its
 * destination.  PAWL_INVALID_GRAPH: a kv value is written twice, or something through a view.
 * PAWL_UNSUPPORTED: a quantize in exact mode.
 */
enum pawl_status pawl_interp_run(struct pawl_interp *interp, struct pawl_error *err);

/* Output i after a run that succeeded; lives until the next run. */
const struct pawl_tensor *pawl_interp_output(const struct pawl_interp *interp, int32_t i);
/* Its n elements in row-major order; n must be their number. */
enum pawl_status pawl_interp_read(
	const struct pawl_interp *interp, int32_t i, double *x, int64_t n, struct pawl_error *err);

#endif

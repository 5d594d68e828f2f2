/*
 * A pass: one file, one function, one row of passes/passes.def.
 *
 * A pass changes a graph only through ir/graph.h and ir/build.h, and counts its changes.  It
 * neither verifies, dumps nor times itself: the runner (passes/run.h) does.  On failure the graph
 * is left valid but possibly half-rewritten; the caller drops it.
 */
#ifndef PAWL_PASSES_PASS_H
#define PAWL_PASSES_PASS_H

#include "ir/graph.h"

/* How activations of quantized matmuls are rounded; part of the plan and of its key. */
enum pawl_precision { PAWL_PRECISION_A16, PAWL_PRECISION_A8, PAWL_N_PRECISIONS };

/* What passes may know of the target. */
struct pawl_pass_facts {
	enum pawl_precision precision;
	/* The layout in which the target wants weight `type` of a matmul; NULL: rows, always. */
	enum pawl_layout (*weight_layout)(const void *target, const struct pawl_type *type);
	const void *target; /* first argument of weight_layout */
	/* Prologues are computed by every thread for itself: only for this many rows. */
	int64_t max_prologue_rows;
};

struct pawl_pass_ctx {
	const struct pawl_pass_facts *facts;
	struct pawl_arena scratch; /* emptied by the runner after each pass */
	int n_changes;             /* the pass adds one per rewrite */
};

typedef enum pawl_status pawl_pass_fn(
	struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err);

enum pawl_pass {
#define PAWL_PASS_ROW(id, name, kind, from, to, exactness, doc) PAWL_PASS_##id,
#include "passes/passes.def"
	PAWL_N_PASSES
};

#define PAWL_PASS_ROW(id, name, kind, from, to, exactness, doc) pawl_pass_fn pawl_pass_##id;
#include "passes/passes.def"

struct pawl_pass_info {
	const char *name;
	pawl_pass_fn *run;
	bool required;
	bool rounds;
	enum pawl_stage from, to;
	const char *doc;
};

const struct pawl_pass_info *pawl_pass_info(enum pawl_pass pass);
bool pawl_pass_from_name(const char *name, size_t n, enum pawl_pass *out);

#endif

/*
 * A held plan: a graph optimized and compiled once.
 *
 * Immutable and reference-counted; any number of sessions and threads may share one.  It holds the
 * program, the code, the device, the validity key, and the bind points: for each slot the list of
 * arguments that point into it, so that rebinding a slot is a walk over that list.
 */
#ifndef PAWL_RUNTIME_PLAN_H
#define PAWL_RUNTIME_PLAN_H

#include "ir/graph.h"
#include "passes/optimize.h"
#include "runtime/counters.h"
#include "runtime/device.h"
#include "runtime/index_check.h"
#include "runtime/validity.h"

/* One argument that lies in a slot. */
struct pawl_bind_point {
	int32_t arg; /* among all arguments of the program */
	int64_t offset;
};

struct pawl_plan {
	atomic_int n_refs;
	struct pawl_device *device;
	struct pawl_program *program;
	struct pawl_code *code;
	struct pawl_code_info code_info;
	struct pawl_plan_key key;
	struct pawl_optimize_report report;
	double compile_seconds;
	uint64_t n_kernels_compiled, n_kernels_read; /* by the device meanwhile */
	int32_t *first_point;        /* n_slots + 1: slot s has points first_point[s] .. [s + 1] */
	struct pawl_bind_point *points; /* n_args */
	struct pawl_index_check *checks;
	int32_t n_checks;
	struct pawl_storage **literals; /* n_slots, NULL for slots of another role */
	struct pawl_type *types;        /* n_slots: slot types at the largest extents, static */
	struct pawl_graph *optimized;   /* NULL: has no like of another capacity */
};

struct pawl_plan_options {
	struct pawl_plan_key key;       /* device is filled in */
	bool no_reuse;                  /* as in struct pawl_optimize_options */
	struct pawl_counters *counters; /* optimizes is counted there; may be NULL */
};

/*
 * Optimizes graph (not modified) for the device and compiles it.  PAWL_SKIP, PAWL_BISECT,
 * PAWL_DUMP and PAWL_DEBUG=verify,roundtrip are obeyed.
 */
enum pawl_status pawl_plan_build(const struct pawl_graph *graph, struct pawl_device *device,
	const struct pawl_plan_options *options, struct pawl_plan **out, struct pawl_error *err);

/*
 * The plan of graph, which differs from the one that `like` was built from in the capacity of its
 * caches only, from the same code: no pass runs, and no kernel is compiled that `like` has
 * (passes/regrow.h says what is made anew).  Nothing is counted.  PAWL_UNSUPPORTED when the graph
 * differs in more: the caller builds.
 */
enum pawl_status pawl_plan_regrow(const struct pawl_plan *like, const struct pawl_graph *graph,
	const struct pawl_plan_options *options, struct pawl_plan **out, struct pawl_error *err);

struct pawl_plan *pawl_plan_ref(struct pawl_plan *plan);
/* NULL is allowed. */
void pawl_plan_unref(struct pawl_plan *plan);

/* What the plan itself takes in memory: program, code and literals; weights and runs take more. */
int64_t pawl_plan_bytes(const struct pawl_plan *plan);

/* The first slot of that role and name; -1 when there is none. */
int32_t pawl_plan_find_slot(
	const struct pawl_plan *plan, enum pawl_slot_role role, const char *name);

#endif

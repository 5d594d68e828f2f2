/*
 * Runs a graph once and keeps all that it computed, so that two ways of running it can be compared.
 */
#ifndef PAWL_TOOLS_EXEC_H
#define PAWL_TOOLS_EXEC_H

#include "codegen/interp.h"
#include "passes/pass.h"
#include "tools/exec_inputs.h"

/* What a run left: the outputs in order, then the kv consts in the order of the inputs. */
struct pawl_exec_value {
	char name[80];
	int64_t n;
	double *x; /* row-major */
};

struct pawl_exec_result {
	struct pawl_exec_value *values;
	int32_t n;
};

/* graph: the one that inputs were made for, or what passes made of it. */
enum pawl_status pawl_exec_interp(const struct pawl_exec_inputs *inputs,
	const struct pawl_graph *graph, enum pawl_interp_mode mode, struct pawl_exec_result *out,
	struct pawl_error *err);

/* Plans the graph for a target and runs that. */
enum pawl_status pawl_exec_plan(const struct pawl_exec_inputs *inputs,
	const struct pawl_graph *graph, const char *target, enum pawl_precision precision,
	int n_threads, struct pawl_exec_result *out, struct pawl_error *err);

void pawl_exec_result_release(struct pawl_exec_result *result);

struct pawl_exec_difference {
	int64_t n;      /* elements that are not the same */
	int64_t first;  /* of them */
	int64_t n_nan;  /* of them, one of two is NaN */
	double max;     /* |a - b| of the others; infinite where one of two is */
	int64_t beyond; /* of n, further apart than allowed */
};

/*
 * By the rule of pawl_eval_same() for elements that are f32 numbers.  Both of one length.  within:
 * the distance that is allowed; 0 allows only the same.
 */
struct pawl_exec_difference pawl_exec_compare(
	const struct pawl_exec_value *a, const struct pawl_exec_value *b, double within);

#endif

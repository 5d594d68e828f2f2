/*
 * Runs of graphs and of programs for tests of the passes: one set of filled consts serves every
 * stage of a graph, and what two runs leave behind is compared.  Whatever fails here fails the test.
 */
#ifndef PAWL_TESTS_GRAPH_RUN_H
#define PAWL_TESTS_GRAPH_RUN_H

#include "codegen/interp.h"
#include "ir/graph.h"
#include "passes/step.h"

/* The contents of a graph's consts, in rows (kv: in its layout), and the values of its symbols. */
struct pawl_test_inputs {
	struct pawl_test_const {
		const char *name;
		struct pawl_type type;
		bool is_kv;
		int64_t bytes;
		void *data;
	} *consts;
	int n_consts;
	int64_t *symbols; /* n_symbols, in the order of the graph's */
	int32_t n_symbols;
};

/* From a seed, as the users of each const need it; the graph must outlive the inputs. */
struct pawl_test_inputs pawl_test_inputs_of(const struct pawl_graph *graph, uint64_t seed);
void pawl_test_inputs_release(struct pawl_test_inputs *inputs);
struct pawl_test_const *pawl_test_input(const struct pawl_test_inputs *inputs, const char *name);

/* What a run leaves behind: its outputs in rows, then the kv consts in the order of the inputs. */
struct pawl_test_results {
	struct pawl_test_value {
		enum pawl_dtype dtype;
		bool is_wide; /* doubles */
		int64_t n, bytes;
		void *data;
	} *values;
	int n, n_outputs;
};

/* A graph at any stage; its consts and symbols are among the inputs, which stay as they are. */
struct pawl_test_results pawl_test_run_graph(const struct pawl_graph *graph,
	const struct pawl_test_inputs *inputs, enum pawl_interp_mode mode);

/*
 * A program run by the reference, its scratch memory filled with 0xff before; asserts that what
 * belongs to no slot still holds that afterwards.
 */
struct pawl_test_results pawl_test_run_program(
	const struct pawl_program *program, const struct pawl_test_inputs *inputs);

void pawl_test_results_release(struct pawl_test_results *results);

/* Element i of a value of a float or integer type. */
double pawl_test_value_at(const struct pawl_test_value *value, int64_t i);

/* -1 when all elements are the same, NaN being one class; else the first that differs. */
int64_t pawl_test_first_difference(const struct pawl_test_value *a, const struct pawl_test_value *b);

/* Asserts that two runs left the same bits behind; `what` names the case. */
void pawl_test_same_results(
	const struct pawl_test_results *a, const struct pawl_test_results *b, const char *what);

#endif

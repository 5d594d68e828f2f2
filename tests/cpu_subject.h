/*
 * A graph, run by the reference and by kernels of a CPU variant on the same bytes: outputs and
 * kv memory must be equal in the sense of pawl_eval_same.
 */
#ifndef PAWL_TESTS_CPU_SUBJECT_H
#define PAWL_TESTS_CPU_SUBJECT_H

#include "codegen/target.h"
#include "ir/graph.h"

enum { PAWL_CPU_SYMBOLS = 8 };

struct pawl_cpu_subject {
	struct pawl_graph *graph;
	uint64_t seed;
	int64_t symbols[PAWL_CPU_SYMBOLS];
	int64_t max_prologue_rows;
	bool is_a8;
	bool rows_only; /* weights stay row-major */
	/* Set by the caller after begin, or NULL: changes a const's content. */
	void (*adjust)(const char *name, void *bytes);
};

/* From statements in text form; every symbol is `symbol`. */
void pawl_cpu_subject_begin(struct pawl_cpu_subject *s, const char *statements, int64_t symbol);
void pawl_cpu_subject_end(struct pawl_cpu_subject *s);

/* Opens the target and says whether this machine runs the variant. */
const struct pawl_target_api *pawl_cpu_target(void);

/*
 * Compiles for the variant and compares with the reference on 1, 2 and 3 threads.  False when the
 * compiler declines (err says why); aborts the test on a difference or any other failure.
 */
bool pawl_cpu_subject_agrees(
	struct pawl_cpu_subject *s, const char *variant, struct pawl_error *err);

#endif

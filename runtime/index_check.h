/*
 * Dynamic indices of a plan: every place where a value bound at run time chooses an address.  They
 * are checked before a run, so that a run that would leave its bounds writes nothing at all.
 */
#ifndef PAWL_RUNTIME_INDEX_CHECK_H
#define PAWL_RUNTIME_INDEX_CHECK_H

#include "ir/status.h"
#include "passes/step.h"

struct pawl_index_check {
	int32_t slot; /* data slot that holds the index or indices, -1: symbol `sym` */
	int64_t at;   /* byte offset in the slot */
	int32_t sym;
	enum pawl_dtype dtype;
	bool is_list;  /* one index per element of `extent`, else extent elements from one start on
			*/
	bool may_skip; /* a negative index of a list is allowed (nothing is written) */
	bool wraps;    /* start modulo a ring: only its sign is checked */
	bool of_state; /* beyond the limit is PAWL_CAPACITY, else PAWL_INVALID_ARGUMENT */
	struct pawl_dim extent;
	int64_t limit;
};

/*
 * All dynamic indices of a program, malloc'ed by runtime/memory.h, duplicates left out.
 * PAWL_UNSUPPORTED for a start that is computed by the program itself, which nobody could check
 * beforehand; PAWL_INVALID_GRAPH for a constant start beyond its limit.
 */
enum pawl_status pawl_index_checks(const struct pawl_program *program,
	struct pawl_index_check **out, int32_t *n, struct pawl_error *err);

/*
 * bytes: what the data slot holds in this run (unused for symbols); symbols: values of all symbols.
 * The message names the slot or symbol, the start, the extent and the limit.
 */
enum pawl_status pawl_index_check_run(const struct pawl_index_check *check,
	const struct pawl_program *program, const void *bytes, const int64_t *symbols,
	struct pawl_error *err);

#endif

/*
 * Dynamic indices of a plan: every place where a value chooses an address.  They are checked before
 * a run, so that a run that would leave its bounds writes nothing at all.
 */
#ifndef PAWL_RUNTIME_INDEX_CHECK_H
#define PAWL_RUNTIME_INDEX_CHECK_H

#include "ir/status.h"
#include "passes/step.h"

/* What each run reads comes first, as runs leave nothing of it in the caches. */
struct pawl_index_check {
	int64_t at;     /* byte offset in the slot */
	int32_t slot;   /* that holds the index or indices, -1: symbol `sym` */
	int32_t sym;
	bool may_skip; /* a negative index of a list is allowed (nothing is written) */
	bool wraps;    /* start modulo a ring: only its sign is checked */
	bool of_state; /* beyond the limit is PAWL_CAPACITY, else PAWL_INVALID_ARGUMENT */
	struct pawl_dim limit;  /* symbolic: the rows of a table that the program computes */
	struct pawl_dim extent; /* of what goes from a start on; a list's are 1 each */
	/* How the indices lie in the slot: a number, or a list, through whatever views there are. */
	struct pawl_type type;
	struct pawl_access access;
	const char *op; /* of the nodes that use it, or of their step; the program's */
};

/*
 * All dynamic indices of a program that are known before it runs: symbols, and what lies in data,
 * weight, literal and kv consts as long as no step up to the one that uses it writes there.
 * Malloc'ed by runtime/memory.h, duplicates left out.
 *
 * Ids of a gather that the program computes are not checked: one without a row gives NaN
 * (docs/arithmetic.md, Indices).  PAWL_UNSUPPORTED for a start or row list of a write, or an offset
 * or list of positions or blocks of an attention, that the program computes: nobody could check it
 * beforehand.
 */
enum pawl_status pawl_index_checks(const struct pawl_program *program,
	struct pawl_index_check **out, int32_t *n, struct pawl_error *err);

/*
 * bytes: what the slot holds in this run (unused for symbols); symbols: values of all symbols.
 * The message names the op, the slot or symbol, the index, and the extent and limit.
 */
enum pawl_status pawl_index_check_run(const struct pawl_index_check *check,
	const struct pawl_program *program, const void *bytes, const int64_t *symbols,
	struct pawl_error *err);

#endif

/*
 * What a session did, by kind and reason.  The portable evidence that nothing is planned, compiled
 * or allocated between tokens.  Counted by the thread that owns the session.
 *
 * Optimizes of a whole generation are the number of its plans: one for the cache (alloc and
 * zero_fill of all layers), one for each token count and kind of logits in use (a prefill chunk,
 * a single token), whatever the number of tokens.  A cache that grows adds none: its plans are
 * regrown, which is neither a build nor an optimize.
 */
#ifndef PAWL_RUNTIME_COUNTERS_H
#define PAWL_RUNTIME_COUNTERS_H

#include <stdint.h>

/* Why a plan was built. */
enum pawl_rebuild_reason {
	PAWL_REBUILD_FIRST,   /* there was none: not a rebuild */
	PAWL_REBUILD_STALE,   /* a structural field of the key differed */
	PAWL_REBUILD_REFUSED, /* rebinding to another cache was refused */
	PAWL_REBUILD_ASKED,   /* the caller replans every token */
	PAWL_N_REBUILD_REASONS
};

struct pawl_counters {
	uint64_t optimizes; /* calls of pawl_optimize */
	uint64_t builds[PAWL_N_REBUILD_REASONS];
	uint64_t validity_checks; /* of a held session against what is asked */
	uint64_t verdicts[3];     /* by enum pawl_validity */
	uint64_t regrows;         /* plans re-instantiated for another capacity from the same code */
	uint64_t rebinds;         /* sessions moved to another cache without a rebuild */
	uint64_t runs;            /* of plans, first run included */
	uint64_t run_ns;          /* spent in compiled code and its barriers, or on waiting for a device */
	uint64_t tokens;          /* that advanced a cache */
	uint64_t bytes_bound;     /* copied into data Consts */
};

/* builds for any reason but PAWL_REBUILD_FIRST. */
uint64_t pawl_counters_rebuilds(const struct pawl_counters *counters);
/* "first", "stale", "refused", "asked" */
const char *pawl_rebuild_reason_name(enum pawl_rebuild_reason reason);

#endif

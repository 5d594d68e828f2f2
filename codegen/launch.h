/*
 * How a step is divided: phases, segments, and the units of each as a formula of symbols.  Shared
 * by all targets; nothing here depends on the number of threads.
 */
#ifndef PAWL_CODEGEN_LAUNCH_H
#define PAWL_CODEGEN_LAUNCH_H

#include "passes/step.h"

/* Ops of a body that targets must be able to compile. */
enum { PAWL_MAX_BODY_OPS = 64 };

/*
 * The parts of a body whose units are counted one after the other.
 *   MAP, GATHER, BATCH: each op that stores its result is a segment; a unit is a row of it
 *   MATMUL: matmuls joined by elementwise ops that read both are one segment, to which those ops
 *           belong; a unit is a tile of 16 columns of the result, of all rows
 *   ROWS, ATTEND: one segment
 */
struct pawl_segments {
	int n;
	int32_t of[PAWL_MAX_BODY_OPS];    /* segment of each op, -1: none */
	int32_t first[PAWL_MAX_BODY_OPS]; /* first op of each segment */
};

/* The value of a dim under the symbols of a run. */
static inline int64_t
pawl_dim_value(struct pawl_dim dim, const int64_t *symbols)
{
	return dim.sym < 0 ? dim.base : dim.base + dim.factor * symbols[dim.sym];
}

/* The body has at most PAWL_MAX_BODY_OPS ops. */
void pawl_step_segments(const struct pawl_step *step, struct pawl_segments *out);

int pawl_step_phases(const struct pawl_step *step);

/* Whether the counts of units depend on symbols. */
bool pawl_step_is_symbolic(const struct pawl_step *step);

/* The first op of that kind in the body, -1: none. */
int32_t pawl_step_find(const struct pawl_step *step, enum pawl_op op);

/* The attention of the body of an ATTEND step. */
int32_t pawl_step_attention(const struct pawl_step *step);

/*
 * Units of a phase.  ATTEND phase 0: (row, kv head, chunk of PAWL_ATTEND_CHUNK positions), the
 * last fastest and counted from the first that the row sees; phase 1: (row, query head).
 */
int64_t pawl_step_units(const struct pawl_step *step, const struct pawl_segments *segments,
	int phase, const int64_t *symbols);

/* Positions that an attention step looks at, at most. */
int64_t pawl_attend_length(const struct pawl_step_op *attention, const int64_t *symbols);

/* Chunks into which the window of a row may reach; INT64_MAX: it is open to one side. */
int64_t pawl_attend_window_chunks(const struct pawl_step_op *attention);

/*
 * Bytes of the partial results of an attention of `rows` rows over up to max_length positions:
 * for each (row, query head, chunk) maximum, sum and value_width values, as f32.
 */
int64_t pawl_attend_scratch_bytes(
	int64_t rows, int64_t heads, int64_t value_width, int64_t max_length);

#endif

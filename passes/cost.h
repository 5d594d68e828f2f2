/* What follows from a step's body alone: work, traffic, and the room attention needs. */
#ifndef PAWL_PASSES_COST_H
#define PAWL_PASSES_COST_H

#include "passes/step.h"

/*
 * Floating-point and integer operations, and bytes read or written, at the largest extents; INT64_MAX
 * stands for anything beyond it.
 */
void pawl_step_cost(const struct pawl_program *program, const struct pawl_step *step, int64_t *flops,
	int64_t *bytes);

/* Positions that an attention can look at: those of its cache, or of its table. */
int64_t pawl_attend_most(const struct pawl_step_op *attention);

/*
 * Partial results of an attention: for each row t, query head h and chunk c of PAWL_ATTEND_CHUNK
 * positions, dv + 2 floats, the ((t * hq + h) * chunks + c)th, with as many chunks as a run's
 * positions need.  There is room for the whole capacity.
 * INT64_MAX stands for anything beyond it.
 */
int64_t pawl_attend_partials_bytes(
	const struct pawl_program *program, const struct pawl_step_op *attention);

#endif

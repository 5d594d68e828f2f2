/*
 * The data consts that a decode session binds, by the names and types of runtime/decode_session.h.
 */
#ifndef PAWL_RUNTIME_DECODE_INPUTS_H
#define PAWL_RUNTIME_DECODE_INPUTS_H

#include "runtime/plan.h"

enum pawl_decode_input {
	PAWL_INPUT_TOKEN_IDS,
	PAWL_INPUT_ROPE_COS,
	PAWL_INPUT_ROPE_SIN,
	PAWL_INPUT_WINDOW_COS,
	PAWL_INPUT_WINDOW_SIN,
	PAWL_INPUT_MASK,
	PAWL_INPUT_OFFSET,
	PAWL_INPUT_POSITIONS,
	PAWL_INPUT_WRITE_INDEX,
	PAWL_INPUT_BLOCK_TABLE,
	PAWL_N_DECODE_INPUTS
};

const char *pawl_decode_input_name(enum pawl_decode_input input);

/*
 * slots[input]: of the plan, -1: it has none.  PAWL_INVALID_GRAPH for a data const of another name,
 * or of a type that plan->key does not say; for half of a pair of rope tables; and for a plan
 * without what its kind of step needs.
 */
enum pawl_status pawl_decode_inputs_find(const struct pawl_plan *plan,
	int32_t slots[PAWL_N_DECODE_INPUTS], struct pawl_error *err);

#endif

#include "runtime/decode_inputs.h"

#include "ir/print.h"

#include <inttypes.h>
#include <string.h>

enum { TYPE_BYTES = 128 };

static const char *const names[PAWL_N_DECODE_INPUTS] = {
	[PAWL_INPUT_TOKEN_IDS] = "token_ids",
	[PAWL_INPUT_ROPE_COS] = "rope_cos",
	[PAWL_INPUT_ROPE_SIN] = "rope_sin",
	[PAWL_INPUT_WINDOW_COS] = "window_cos",
	[PAWL_INPUT_WINDOW_SIN] = "window_sin",
	[PAWL_INPUT_MASK] = "mask",
	[PAWL_INPUT_OFFSET] = "offset",
	[PAWL_INPUT_POSITIONS] = "positions",
	[PAWL_INPUT_WRITE_INDEX] = "write_index",
	[PAWL_INPUT_BLOCK_TABLE] = "block_table",
};

const char *
pawl_decode_input_name(enum pawl_decode_input input)
{
	return names[input];
}

/* What a step of that key takes there; what is left to the graph is as it was found. */
static struct pawl_type
wanted(enum pawl_decode_input input, const struct pawl_type *found,
	const struct pawl_plan_key *key)
{
	const int64_t angles[] = {key->seq, pawl_type_row_length(found)};
	const int64_t seen[] = {key->seq, key->max_seq_len};
	const int64_t blocks[] = {key->n_sequences, key->max_blocks};

	switch (input) {
	case PAWL_INPUT_TOKEN_IDS:
		return pawl_type_make(found->dtype == PAWL_DTYPE_I32 ? found->dtype : PAWL_DTYPE_U32,
			1, angles);
	case PAWL_INPUT_ROPE_COS:
	case PAWL_INPUT_ROPE_SIN:
	case PAWL_INPUT_WINDOW_COS:
	case PAWL_INPUT_WINDOW_SIN:
		return pawl_type_make(PAWL_DTYPE_F32, 2, angles);
	case PAWL_INPUT_MASK:
		return pawl_type_make(
			pawl_dtype_is_float(found->dtype) ? found->dtype : PAWL_DTYPE_F32, 2, seen);
	case PAWL_INPUT_OFFSET:
		return pawl_type_make(PAWL_DTYPE_I64, 0, NULL);
	case PAWL_INPUT_POSITIONS:
	case PAWL_INPUT_WRITE_INDEX:
		return pawl_type_make(PAWL_DTYPE_I64, 1, angles);
	case PAWL_INPUT_BLOCK_TABLE:
	case PAWL_N_DECODE_INPUTS:
		break;
	}
	return pawl_type_make(PAWL_DTYPE_U32, 2, blocks);
}

/* Leading dims may be split. */
static bool
is_like(const struct pawl_type *found, const struct pawl_type *type)
{
	return found->layout == PAWL_LAYOUT_ROWS && found->dtype == type->dtype &&
	       pawl_type_elems(found) == pawl_type_elems(type) &&
	       (type->rank < 2 || pawl_type_row_length(found) == pawl_type_row_length(type));
}

/* Whether steps of one sequence in order have it, or those over blocks; both have the others. */
static bool
is_of_kind(enum pawl_decode_input input, bool is_paged)
{
	bool is_ordered_only = input == PAWL_INPUT_OFFSET || input == PAWL_INPUT_MASK;
	bool is_paged_only = input == PAWL_INPUT_WRITE_INDEX || input == PAWL_INPUT_BLOCK_TABLE;

	return is_paged ? !is_ordered_only : !is_paged_only;
}

static enum pawl_status
check(enum pawl_decode_input input, const struct pawl_type *found, const struct pawl_plan_key *key,
	struct pawl_error *err)
{
	const struct pawl_type type = wanted(input, found, key);
	char here[TYPE_BYTES], there[TYPE_BYTES];

	if (!is_of_kind(input, key->n_sequences > 0))
		return pawl_fail(err, PAWL_INVALID_GRAPH, "data const %s is not of a step over %s",
			names[input], key->n_sequences ? "blocks" : "one sequence in order");
	if (is_like(found, &type))
		return PAWL_OK;
	pawl_print_type(here, sizeof(here), NULL, found);
	pawl_print_type(there, sizeof(there), NULL, &type);
	return pawl_fail(err, PAWL_INVALID_GRAPH, "data const %s is %s, a step like this has %s",
		names[input], here, there);
}

static enum pawl_status
find(const struct pawl_plan *plan, int32_t slot, int32_t slots[PAWL_N_DECODE_INPUTS],
	struct pawl_error *err)
{
	const char *name = plan->program->slots[slot].name;

	for (int i = 0; i < PAWL_N_DECODE_INPUTS; i++)
		if (!strcmp(name, names[i])) {
			slots[i] = slot;
			return check((enum pawl_decode_input)i, &plan->types[slot], &plan->key,
				err);
		}
	return pawl_fail(err, PAWL_INVALID_GRAPH,
		"data const %s is nothing that a decode session binds", name);
}

/* Tables are filled in pairs, a row of each at once. */
static enum pawl_status
check_pair(const int32_t *slots, enum pawl_decode_input cos, enum pawl_decode_input sin,
	struct pawl_error *err)
{
	if ((slots[cos] < 0) == (slots[sin] < 0))
		return PAWL_OK;
	return pawl_fail(err, PAWL_INVALID_GRAPH, "the graph reads %s and not %s",
		names[slots[cos] < 0 ? sin : cos], names[slots[cos] < 0 ? cos : sin]);
}

enum pawl_status
pawl_decode_inputs_find(const struct pawl_plan *plan, int32_t slots[PAWL_N_DECODE_INPUTS],
	struct pawl_error *err)
{
	const struct pawl_program *program = plan->program;
	enum pawl_status status = PAWL_OK;

	for (int i = 0; i < PAWL_N_DECODE_INPUTS; i++)
		slots[i] = -1;
	for (int32_t i = 0; i < program->n_slots && !status; i++)
		if (program->slots[i].role == PAWL_SLOT_DATA)
			status = find(plan, i, slots, err);
	if (status)
		return status;
	if (slots[PAWL_INPUT_TOKEN_IDS] < 0)
		return pawl_fail(err, PAWL_INVALID_GRAPH, "the graph has no data const token_ids");
	/*
	 * Where no output reads an attention (a prompt's chunk through the only layer) neither
	 * table nor positions are left in the plan, but rows are written all the same.
	 */
	if (plan->key.n_sequences && slots[PAWL_INPUT_WRITE_INDEX] < 0)
		return pawl_fail(err, PAWL_INVALID_GRAPH,
			"the graph has no data const write_index of %" PRId64 " rows",
			plan->key.seq);
	status = check_pair(slots, PAWL_INPUT_ROPE_COS, PAWL_INPUT_ROPE_SIN, err);
	return status ? status
		      : check_pair(slots, PAWL_INPUT_WINDOW_COS, PAWL_INPUT_WINDOW_SIN, err);
}

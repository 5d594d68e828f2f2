/*
 * Greedy placement by size: the largest slot first, each at the lowest offset where it overlaps no
 * placed slot that lives at the same time.  Quadratic in the number of temporaries, which is a few
 * hundred.
 */
#include "passes/plan_memory.h"

#include <stdlib.h>

static bool
is_placed_role(enum pawl_slot_role role)
{
	return role == PAWL_SLOT_TEMP || role == PAWL_SLOT_OUTPUT;
}

static void
find_lifetimes(struct pawl_program *program)
{
	int32_t s, i;

	for (i = 0; i < program->n_slots; i++) {
		program->slots[i].first_step = -1;
		program->slots[i].last_step = -1;
	}
	for (s = 0; s < program->n_steps; s++) {
		const struct pawl_step *step = &program->steps[s];

		for (i = 0; i < step->n_args; i++) {
			struct pawl_slot *slot = &program->slots[step->args[i].slot];

			if (slot->first_step < 0)
				slot->first_step = s;
			slot->last_step = s;
		}
	}
	for (i = 0; i < program->n_slots; i++) {
		if (program->slots[i].role == PAWL_SLOT_OUTPUT)
			program->slots[i].last_step = program->n_steps;
	}
}

/* Bytes a slot takes up, with its padding. */
static int64_t
footprint(const struct pawl_slot *slot, bool red_zones)
{
	int64_t n = (slot->bytes + PAWL_MEMORY_ALIGN - 1) / PAWL_MEMORY_ALIGN * PAWL_MEMORY_ALIGN;

	return n + (red_zones ? PAWL_RED_ZONE : 0);
}

static int
by_size(const void *a, const void *b)
{
	const struct pawl_slot *x = *(struct pawl_slot *const *)a, *y = *(struct pawl_slot *const *)b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	if (x->first_step != y->first_step)
		return x->first_step < y->first_step ? -1 : 1;
	return x < y ? -1 : x > y;
}

static bool
lives_with(const struct pawl_slot *a, const struct pawl_slot *b)
{
	return a->first_step <= b->last_step && b->first_step <= a->last_step;
}

/* First fit among placed[0 .. n), which are in the order of their offsets. */
static int64_t
lowest_offset(const struct pawl_slot *slot, struct pawl_slot *const *placed, int32_t n, bool no_reuse,
	bool red_zones)
{
	int64_t at = 0, size = footprint(slot, red_zones);
	int32_t i;

	for (i = 0; i < n && placed[i]->offset < at + size; i++) {
		int64_t end = placed[i]->offset + footprint(placed[i], red_zones);

		if ((no_reuse || lives_with(slot, placed[i])) && at < end)
			at = end;
	}
	return at;
}

static void
insert_by_offset(struct pawl_slot **placed, int32_t n, struct pawl_slot *slot)
{
	for (; n > 0 && placed[n - 1]->offset > slot->offset; n--)
		placed[n] = placed[n - 1];
	placed[n] = slot;
}

static enum pawl_status
place_slots(struct pawl_program *program, struct pawl_slot **order, struct pawl_slot **placed, int32_t n,
	bool no_reuse, bool red_zones, struct pawl_error *err)
{
	int32_t i;

	program->scratch_bytes = 0;
	for (i = 0; i < n; i++) {
		struct pawl_slot *slot = order[i];
		int64_t end;

		slot->offset = lowest_offset(slot, placed, i, no_reuse, red_zones);
		insert_by_offset(placed, i, slot);
		end = slot->offset + footprint(slot, red_zones);
		if (end > PAWL_MAX_SCRATCH)
			return pawl_fail(err, PAWL_UNSUPPORTED,
				"the temporaries of '%s' exceed %lld bytes", program->name,
				(long long)PAWL_MAX_SCRATCH);
		if (end > program->scratch_bytes)
			program->scratch_bytes = end;
	}
	return PAWL_OK;
}

enum pawl_status
pawl_plan_memory(struct pawl_program *program, bool no_reuse, bool red_zones, struct pawl_error *err)
{
	struct pawl_slot **order = calloc(2 * (size_t)program->n_slots + 1, sizeof(struct pawl_slot *));
	enum pawl_status status;
	int32_t n = 0, i;

	if (!order)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory to plan %d slots", program->n_slots);
	find_lifetimes(program);
	for (i = 0; i < program->n_slots; i++) {
		if (is_placed_role(program->slots[i].role))
			order[n++] = &program->slots[i];
	}
	qsort(order, (size_t)n, sizeof(*order), by_size);
	status = place_slots(program, order, order + n, n, no_reuse, red_zones, err);
	free(order);
	return status;
}

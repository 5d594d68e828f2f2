/*
 * The independent checker of a memory plan: walks the steps as they would run and keeps, for each
 * piece of scratch memory, which slot owns it now.  A step may only read pieces that the slot it names
 * still owns, and writing takes pieces over.  It knows nothing of lifetimes.
 *
 * Pieces are what the first and last bytes of all slots cut the scratch memory into.
 */
#include "passes/plan_memory.h"

#include <stdlib.h>

enum { NOBODY = -1 };

struct owners {
	const struct pawl_program *program;
	int64_t *cut; /* n + 1 offsets in ascending order; piece i is cut[i] .. cut[i + 1] */
	int32_t *owner;
	int32_t n;
	unsigned char *born; /* per slot: some step has written it */
};

static bool
is_scratch(const struct owners *o, int32_t slot)
{
	enum pawl_slot_role role = o->program->slots[slot].role;

	return role == PAWL_SLOT_TEMP || role == PAWL_SLOT_OUTPUT;
}

static int
by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void
cut_scratch(struct owners *o)
{
	int32_t i, n = 0;

	o->cut[n++] = 0;
	for (i = 0; i < o->program->n_slots; i++) {
		if (!is_scratch(o, i))
			continue;
		o->cut[n++] = o->program->slots[i].offset;
		o->cut[n++] = o->program->slots[i].offset + o->program->slots[i].bytes;
	}
	qsort(o->cut, (size_t)n, sizeof(*o->cut), by_value);
	o->n = n - 1;
	for (i = 0; i < o->n; i++)
		o->owner[i] = NOBODY;
}

/* The first piece of a slot. */
static int32_t
first_piece(const struct owners *o, int32_t slot)
{
	int64_t at = o->program->slots[slot].offset;
	int32_t low = 0, high = o->n;

	while (low < high) {
		int32_t middle = low + (high - low) / 2;

		if (o->cut[middle] < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool
owns_all(const struct owners *o, int32_t slot)
{
	int64_t end = o->program->slots[slot].offset + o->program->slots[slot].bytes;
	int32_t i;

	for (i = first_piece(o, slot); i < o->n && o->cut[i] < end; i++) {
		if (o->owner[i] != slot && o->cut[i] < o->cut[i + 1])
			return false;
	}
	return true;
}

static void
take(struct owners *o, int32_t slot)
{
	int64_t end = o->program->slots[slot].offset + o->program->slots[slot].bytes;
	int32_t i;

	for (i = first_piece(o, slot); i < o->n && o->cut[i] < end; i++)
		o->owner[i] = slot;
	o->born[slot] = 1;
}

static enum pawl_status
check_bounds(const struct owners *o, struct pawl_error *err)
{
	int32_t i;

	for (i = 0; i < o->program->n_slots; i++) {
		const struct pawl_slot *s = &o->program->slots[i];

		if (is_scratch(o, i) && (s->offset < 0 || s->offset % PAWL_MEMORY_ALIGN || s->bytes < 0 ||
						s->offset > o->program->scratch_bytes - s->bytes))
			return pawl_fail(err, PAWL_INTERNAL,
				"slot %d '%s' lies outside of the scratch memory", i, s->name);
	}
	return PAWL_OK;
}

/*
 * What is read must have been written, and nothing may have been written over it since; but a buffer
 * has a content, an unspecified one, from its first use on.  It is written part by part: after its
 * first use it must stay whole.
 */
static enum pawl_status
check_operands(struct owners *o, const struct pawl_step *step, int32_t n, struct pawl_error *err)
{
	int32_t i;

	for (i = 0; i < step->n_args; i++) {
		int32_t slot = step->args[i].slot;

		if (!is_scratch(o, slot))
			continue;
		if (!o->born[slot] && o->program->slots[slot].is_buffer)
			take(o, slot);
		if ((!step->args[i].written || o->born[slot]) && !owns_all(o, slot))
			return pawl_fail(err, PAWL_INTERNAL,
				"step %d needs slot %d '%s', which nothing wrote or another slot has "
				"overwritten",
				n, slot, o->program->slots[slot].name);
	}
	return PAWL_OK;
}

/* Whatever a step writes, all slots that it names must keep their pieces. */
static enum pawl_status
check_results(struct owners *o, const struct pawl_step *step, int32_t n, struct pawl_error *err)
{
	int32_t i;

	for (i = 0; i < step->n_args; i++) {
		if (is_scratch(o, step->args[i].slot) && step->args[i].written)
			take(o, step->args[i].slot);
	}
	for (i = 0; i < step->n_args; i++) {
		int32_t slot = step->args[i].slot;

		if (is_scratch(o, slot) && !owns_all(o, slot))
			return pawl_fail(err, PAWL_INTERNAL,
				"step %d uses slot %d '%s' and overwrites part of it as another slot", n, slot,
				o->program->slots[slot].name);
	}
	return PAWL_OK;
}

static enum pawl_status
check_outputs(struct owners *o, struct pawl_error *err)
{
	int32_t i;

	for (i = 0; i < o->program->n_outputs; i++) {
		int32_t slot = o->program->outputs[i];

		if (is_scratch(o, slot) && !o->born[slot] && o->program->slots[slot].is_buffer)
			take(o, slot);
	}
	for (i = 0; i < o->program->n_outputs; i++) {
		int32_t slot = o->program->outputs[i];

		if (is_scratch(o, slot) && !owns_all(o, slot))
			return pawl_fail(err, PAWL_INTERNAL,
				"output %d is never written or overwritten before the end", i);
	}
	return PAWL_OK;
}

enum pawl_status
pawl_check_memory(const struct pawl_program *program, struct pawl_error *err)
{
	size_t n_slots = (size_t)program->n_slots;
	struct owners o = {.program = program};
	enum pawl_status status = check_bounds(&o, err);
	int32_t s;

	if (status != PAWL_OK)
		return status;
	o.cut = malloc((2 * n_slots + 1) * sizeof(*o.cut));
	o.owner = malloc((2 * n_slots + 1) * sizeof(*o.owner));
	o.born = calloc(n_slots + 1, 1);
	if (!o.cut || !o.owner || !o.born)
		status = pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory to check the memory plan");
	else
		cut_scratch(&o);
	for (s = 0; s < program->n_steps && status == PAWL_OK; s++) {
		status = check_operands(&o, &program->steps[s], s, err);
		if (status == PAWL_OK)
			status = check_results(&o, &program->steps[s], s, err);
	}
	if (status == PAWL_OK)
		status = check_outputs(&o, err);
	free(o.cut);
	free(o.owner);
	free(o.born);
	return status;
}

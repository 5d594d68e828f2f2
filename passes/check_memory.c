/*
 * The independent checker of a memory plan: walks the steps as they would run and keeps, for each
 * 64-byte line of scratch memory, which slot owns it now.  A step may only read lines that the
 * slot it names still owns, and writing takes lines over.  It knows nothing of lifetimes.
 */
#include "passes/plan_memory.h"

#include <stdlib.h>

enum { NOBODY = -1 };

struct owners {
	int32_t *line; /* n_lines: the slot that owns each, or NOBODY */
	int64_t n_lines;
	unsigned char *born; /* per slot: some step has written it */
};

static bool
is_scratch(const struct pawl_slot *slot)
{
	return slot->role == PAWL_SLOT_TEMP || slot->role == PAWL_SLOT_OUTPUT;
}

static bool
owns_all(const struct owners *o, const struct pawl_program *program, int32_t slot)
{
	const struct pawl_slot *s = &program->slots[slot];
	int64_t i, end = (s->offset + s->bytes + 63) / 64;

	for (i = s->offset / 64; i < end; i++) {
		if (o->line[i] != slot)
			return false;
	}
	return true;
}

static void
take(struct owners *o, const struct pawl_program *program, int32_t slot)
{
	const struct pawl_slot *s = &program->slots[slot];
	int64_t i, end = (s->offset + s->bytes + 63) / 64;

	for (i = s->offset / 64; i < end; i++)
		o->line[i] = slot;
}

static enum pawl_status
check_bounds(const struct pawl_program *program, struct pawl_error *err)
{
	int32_t i;

	for (i = 0; i < program->n_slots; i++) {
		const struct pawl_slot *s = &program->slots[i];

		if (is_scratch(s) && (s->offset < 0 || s->offset % 64 || s->bytes < 0 ||
					     s->offset + s->bytes > program->scratch_bytes))
			return pawl_fail(err, PAWL_INTERNAL,
				"slot %d '%s' lies outside of the scratch memory", i, s->name);
	}
	return PAWL_OK;
}

/*
 * Every slot is written by its first step before any other reads it; inside one step all slots named
 * must keep their lines, whatever the others write.
 */
static enum pawl_status
check_step(struct owners *o, const struct pawl_program *program, int32_t n, struct pawl_error *err)
{
	const struct pawl_step *step = &program->steps[n];
	int32_t i;

	for (i = 0; i < step->n_args; i++) {
		int32_t slot = step->args[i].slot;

		/* A slot may be written part by part: after its first write it must stay whole. */
		if (is_scratch(&program->slots[slot]) &&
			(!step->args[i].written || o->born[slot]) && !owns_all(o, program, slot))
			return pawl_fail(err, PAWL_INTERNAL,
				"step %d needs slot %d '%s', which nothing wrote or another slot has overwritten",
				n, slot, program->slots[slot].name);
	}
	for (i = 0; i < step->n_args; i++) {
		if (is_scratch(&program->slots[step->args[i].slot]) && step->args[i].written) {
			take(o, program, step->args[i].slot);
			o->born[step->args[i].slot] = 1;
		}
	}
	for (i = 0; i < step->n_args; i++) {
		int32_t slot = step->args[i].slot;

		if (is_scratch(&program->slots[slot]) && !owns_all(o, program, slot))
			return pawl_fail(err, PAWL_INTERNAL,
				"step %d uses slot %d '%s' and overwrites part of it as another slot", n, slot,
				program->slots[slot].name);
	}
	return PAWL_OK;
}

enum pawl_status
pawl_check_memory(const struct pawl_program *program, struct pawl_error *err)
{
	struct owners o = {.n_lines = program->scratch_bytes / 64 + 1};
	enum pawl_status status = check_bounds(program, err);
	int64_t i;
	int32_t s;

	if (status != PAWL_OK)
		return status;
	o.line = malloc((size_t)o.n_lines * sizeof(*o.line));
	o.born = calloc((size_t)program->n_slots + 1, 1);
	if (!o.line || !o.born)
		status = pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory to check the memory plan");
	for (i = 0; o.line && i < o.n_lines; i++)
		o.line[i] = NOBODY;
	for (s = 0; s < program->n_steps && status == PAWL_OK; s++)
		status = check_step(&o, program, s, err);
	for (s = 0; s < program->n_outputs && status == PAWL_OK; s++) {
		int32_t slot = program->outputs[s];

		if (is_scratch(&program->slots[slot]) && !owns_all(&o, program, slot))
			status = pawl_fail(err, PAWL_INTERNAL, "output %d is overwritten before the end", s);
	}
	free(o.line);
	free(o.born);
	return status;
}

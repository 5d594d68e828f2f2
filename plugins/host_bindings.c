/* What a host gives to a plan and gets from it, as a list. */
#include <stdlib.h>
#include <string.h>

#include "ir/print.h"
#include "plugins/host_api.h"

enum { BINDING_1 = 64, TYPE_BYTES = 96 };

_Static_assert(sizeof(struct pawl_binding) >= BINDING_1, "structs only grow");

static bool
find_role(enum pawl_slot_role slot, int64_t *role)
{
	switch (slot) {
	case PAWL_SLOT_WEIGHT:
		*role = PAWL_BINDING_WEIGHT;
		return true;
	case PAWL_SLOT_KV:
		*role = PAWL_BINDING_KV;
		return true;
	case PAWL_SLOT_DATA:
		*role = PAWL_BINDING_DATA;
		return true;
	case PAWL_SLOT_LITERAL:
	case PAWL_SLOT_TEMP:
	case PAWL_SLOT_OUTPUT:
	case PAWL_N_SLOT_ROLES:
		break;
	}
	return false;
}

static void
add_slot(struct pawl_host_plan *plan, int64_t role, int32_t slot)
{
	const struct pawl_program *program = plan->plan->program;
	struct pawl_type type = plan->plan->types[slot];
	char *text = plan->texts + (size_t)plan->n_bindings * TYPE_BYTES;

	/* A host has weights in rows, whatever the target wants them in. */
	if (program->slots[slot].role == PAWL_SLOT_WEIGHT)
		type.layout = PAWL_LAYOUT_ROWS;
	pawl_print_type(text, TYPE_BYTES, NULL, &type);
	plan->slots[plan->n_bindings] = slot;
	plan->bindings[plan->n_bindings++] = (struct pawl_binding){
		.name = program->slots[slot].name ? program->slots[slot].name : "",
		.role = role,
		.type = text,
		.n_bytes = program->slots[slot].bytes,
	};
}

static void
add_symbol(struct pawl_host_plan *plan, const struct pawl_program_symbol *symbol)
{
	plan->slots[plan->n_bindings] = -1;
	plan->bindings[plan->n_bindings++] = (struct pawl_binding){
		.name = symbol->name,
		.role = PAWL_BINDING_SYMBOL,
		.type = "",
		.min = symbol->min,
		.max = symbol->max,
		.multiple = symbol->multiple,
	};
}

enum pawl_status
pawl_host_list_bindings(struct pawl_host_plan *plan, struct pawl_error *err)
{
	const struct pawl_program *program = plan->plan->program;
	size_t most = (size_t)program->n_slots + (size_t)program->n_outputs +
		      (size_t)program->n_symbols + 1;
	int64_t role;

	plan->bindings = calloc(most, sizeof(*plan->bindings));
	plan->slots = calloc(most, sizeof(*plan->slots));
	plan->texts = calloc(most, TYPE_BYTES);
	if (!plan->bindings || !plan->slots || !plan->texts)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a plan");
	for (int32_t i = 0; i < program->n_outputs; i++)
		add_slot(plan, PAWL_BINDING_OUTPUT, program->outputs[i]);
	/* A weight may lie in several slots, one for each layout. */
	for (int32_t i = 0; i < program->n_slots; i++)
		if (find_role(program->slots[i].role, &role) &&
			pawl_program_find_slot(program, program->slots[i].name) == i)
			add_slot(plan, role, i);
	for (int32_t i = 0; i < program->n_symbols; i++)
		add_symbol(plan, &program->symbols[i]);
	plan->n_symbols = program->n_symbols;
	return PAWL_OK;
}

int
pawl_host_plan_binding(const struct pawl_host_plan *plan, int64_t i, struct pawl_binding *out)
{
	if (!pawl_host_is(plan, PAWL_HOST_PLAN) || !out || i < 0 || i >= plan->n_bindings)
		return 0;
	return pawl_host_write(out, BINDING_1, &plan->bindings[i], sizeof(plan->bindings[i]));
}

int64_t
pawl_host_plan_find(const struct pawl_host_plan *plan, int64_t role, const char *name)
{
	if (!pawl_host_is(plan, PAWL_HOST_PLAN) || !name)
		return -1;
	for (int32_t i = 0; i < plan->n_bindings; i++)
		if (plan->bindings[i].role == role && !strcmp(plan->bindings[i].name, name))
			return i;
	return -1;
}

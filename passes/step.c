#include "passes/step.h"

#include <stdlib.h>
#include <string.h>

static const char *const template_names[PAWL_N_TEMPLATES] = {
	[PAWL_TEMPLATE_MAP] = "map",
	[PAWL_TEMPLATE_ROWS] = "rows",
	[PAWL_TEMPLATE_MATMUL] = "matmul",
	[PAWL_TEMPLATE_ATTEND] = "attend",
	[PAWL_TEMPLATE_GATHER] = "gather",
	[PAWL_TEMPLATE_BATCH] = "batch",
};

static const char *const role_names[PAWL_N_SLOT_ROLES] = {
	[PAWL_SLOT_WEIGHT] = "weight",
	[PAWL_SLOT_KV] = "kv",
	[PAWL_SLOT_DATA] = "data",
	[PAWL_SLOT_LITERAL] = "literal",
	[PAWL_SLOT_TEMP] = "temporary",
	[PAWL_SLOT_OUTPUT] = "output",
};

const char *
pawl_template_name(enum pawl_template template)
{
	return template_names[template];
}

const char *
pawl_slot_role_name(enum pawl_slot_role role)
{
	return role_names[role];
}

void
pawl_program_free(struct pawl_program *program)
{
	if (!program)
		return;
	pawl_arena_release(&program->arena);
	free(program);
}

int32_t
pawl_program_find_slot(const struct pawl_program *program, const char *name)
{
	int32_t i;

	for (i = 0; i < program->n_slots; i++) {
		if (!strcmp(program->slots[i].name, name))
			return i;
	}
	return -1;
}

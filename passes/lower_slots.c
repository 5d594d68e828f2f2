#include "passes/lower_slots.h"

#include <stdio.h>
#include <string.h>

#include "ir/infer.h"
#include "passes/group.h"

static int64_t
max_elems(const struct pawl_graph *graph, const struct pawl_type *type)
{
	int64_t n = 1;
	int i;

	for (i = 0; i < type->rank; i++)
		n *= pawl_dim_max(graph, type->dim[i]);
	return n;
}

int32_t
pawl_lower_add_slot(const struct pawl_graph *graph, struct pawl_program *program,
	enum pawl_slot_role role, const char *name, const struct pawl_type *type)
{
	struct pawl_slot *slot = &program->slots[program->n_slots];

	*slot = (struct pawl_slot){.role = role, .type = *type, .first_step = -1, .last_step = -1};
	slot->name = pawl_arena_strdup(&program->arena, name ? name : "");
	slot->bytes = pawl_dtype_bytes(type->dtype, max_elems(graph, type));
	return program->n_slots++;
}

static enum pawl_slot_role
const_role(const struct pawl_node *node)
{
	switch (node->attrs.role) {
	case PAWL_ROLE_WEIGHT:
		return PAWL_SLOT_WEIGHT;
	case PAWL_ROLE_DATA:
		return PAWL_SLOT_DATA;
	case PAWL_ROLE_KV:
		return PAWL_SLOT_KV;
	case PAWL_ROLE_LITERAL:
	case PAWL_N_ROLES:
		break;
	}
	return PAWL_SLOT_LITERAL;
}

static bool
is_read_directly(const struct pawl_node *node)
{
	const struct pawl_use *use;

	if (node->n_outputs)
		return true;
	pawl_foreach_use(use, node) {
		if (use->user->op != PAWL_OP_PACK)
			return true;
	}
	return false;
}

static bool
copy_values(struct pawl_program *program, struct pawl_slot *slot, const struct pawl_node *node)
{
	double *values;

	if (!node->attrs.n_values)
		return true;
	values = pawl_arena_alloc(&program->arena, node->attrs.n_values, sizeof(double));
	if (!values)
		return false;
	memcpy(values, node->attrs.values, node->attrs.n_values * sizeof(double));
	slot->values = values;
	slot->n_values = node->attrs.n_values;
	return true;
}

static bool
owns_temporary(const struct pawl_node *node)
{
	/* A concat is made part by part, in its storage, even when nothing reads it. */
	return node->op == PAWL_OP_ALLOC || node->op == PAWL_OP_CONCAT ||
		(pawl_node_runs(node) && !pawl_op_has(node->op, PAWL_OPF_INPLACE) &&
			pawl_node_escapes(node));
}

/* Marks in slot_of. */
enum { NO_SLOT = -1, IS_OUTPUT = -2 };

static int32_t
slot_for(const struct pawl_graph *graph, struct pawl_program *program, const struct pawl_node *node,
	bool is_output)
{
	if (node->op == PAWL_OP_CONST)
		return is_read_directly(node) ?
			pawl_lower_add_slot(graph, program, const_role(node), node->name, &node->type) :
			NO_SLOT;
	if (node->op == PAWL_OP_PACK)
		return pawl_lower_add_slot(graph, program, PAWL_SLOT_WEIGHT, node->inputs[0].def->name,
			&node->type);
	if (owns_temporary(node))
		return pawl_lower_add_slot(graph, program,
			is_output ? PAWL_SLOT_OUTPUT : PAWL_SLOT_TEMP, node->name, &node->type);
	return NO_SLOT;
}

enum pawl_status
pawl_lower_slots(const struct pawl_graph *graph, struct pawl_program *program, int32_t *slot_of,
	struct pawl_error *err)
{
	const struct pawl_node *node;
	int32_t i;

	program->outputs = pawl_arena_alloc(
		&program->arena, (size_t)graph->n_outputs + 1, sizeof(*program->outputs));
	if (!program->outputs)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for slots");
	for (i = 0; i < graph->n_ids; i++)
		slot_of[i] = NO_SLOT;
	for (i = 0; i < graph->n_outputs; i++) {
		if (pawl_op_has(graph->outputs[i]->op, PAWL_OPF_VIEW))
			return pawl_fail(err, PAWL_UNSUPPORTED,
				"output %d is a view; materialize-views would copy it", i);
		slot_of[pawl_node_storage(graph->outputs[i])->id] = IS_OUTPUT;
	}
	pawl_foreach_node(node, graph) {
		int32_t slot = slot_for(graph, program, node, slot_of[node->id] == IS_OUTPUT);

		if (pawl_op_has(node->op, PAWL_OPF_VIEW | PAWL_OPF_INPLACE))
			slot = slot_of[node->inputs[0].def->id];
		slot_of[node->id] = slot;
		if (node->op == PAWL_OP_ALLOC)
			program->slots[slot].is_buffer = true;
		if (node->op == PAWL_OP_CONST && slot >= 0 &&
			!copy_values(program, &program->slots[slot], node))
			return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for literals");
	}
	for (i = 0; i < graph->n_outputs; i++)
		program->outputs[program->n_outputs++] = slot_of[graph->outputs[i]->id];
	return PAWL_OK;
}

int32_t
pawl_lower_pitch_slot(const struct pawl_graph *graph, struct pawl_program *program,
	const struct pawl_type *type, int64_t pitch)
{
	const struct pawl_type scalar = pawl_type_make(PAWL_DTYPE_I64, 0, NULL);
	double *value;
	char name[64];
	int32_t i;

	snprintf(name, sizeof(name), "plane of %lld x %lld", (long long)type->dim[type->rank - 2].base,
		(long long)type->dim[type->rank - 1].base);
	for (i = 0; i < program->n_slots; i++) {
		if (program->slots[i].role == PAWL_SLOT_LITERAL && !strcmp(program->slots[i].name, name))
			return i;
	}
	value = pawl_arena_alloc(&program->arena, 1, sizeof(*value));
	if (!value)
		return -1;
	*value = (double)pitch;
	i = pawl_lower_add_slot(graph, program, PAWL_SLOT_LITERAL, name, &scalar);
	program->slots[i].values = value;
	program->slots[i].n_values = 1;
	return i;
}

enum pawl_status
pawl_lower_keep_slots(struct pawl_program *program, struct pawl_error *err)
{
	size_t n = (size_t)program->n_slots;
	struct pawl_slot *slots = pawl_arena_alloc(&program->arena, n + 1, sizeof(*slots));

	if (!slots)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for slots");
	memcpy(slots, program->slots, n * sizeof(*slots));
	program->slots = slots;
	return PAWL_OK;
}

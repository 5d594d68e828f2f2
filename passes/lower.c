/*
 * One step for each group.  Views have become windows (passes/view.h), writes have become stores of
 * the op that makes the value, and a value that only its own group reads has no slot.
 */
#include "passes/lower.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/infer.h"
#include "passes/cost.h"
#include "passes/group.h"
#include "passes/lower_slots.h"
#include "passes/view.h"

struct lowering {
	const struct pawl_graph *graph;
	struct pawl_program *program;
	struct pawl_arena *arena; /* the program's */
	struct pawl_slot *slots;  /* the program's until all are there */
	int32_t *slot_of;         /* per node id, -1: none */
	/*
	 * The step being made: one op for each member, or for each input of a concat, which is alone.
	 * An op names its inputs and two stores with a start each; an attention its partial results.
	 */
	const struct pawl_group *group;
	struct pawl_step_op ops[PAWL_MAX_GROUP_NODES];
	int32_t n_ops, op_of[PAWL_MAX_GROUP_NODES];
	struct pawl_arg args[PAWL_MAX_GROUP_NODES * 2 * (PAWL_MAX_INPUTS + 4) + 1];
	int32_t n_args;
	struct pawl_error *err;
};

static enum pawl_status
no_memory(struct lowering *l)
{
	return pawl_fail(l->err, PAWL_OUT_OF_MEMORY, "no memory to lower graph '%s'", l->graph->name);
}

static int32_t
add_arg(struct lowering *l, int32_t slot, int64_t offset, bool written)
{
	int32_t i;

	for (i = 0; i < l->n_args; i++) {
		if (l->args[i].slot == slot && l->args[i].offset == offset) {
			l->args[i].written |= written;
			return i;
		}
	}
	l->args[l->n_args] = (struct pawl_arg){slot, offset, written};
	return l->n_args++;
}

static bool
moves_by_planes(const struct pawl_access *access)
{
	int i;

	for (i = 0; i < PAWL_MAX_RANK; i++) {
		if (pawl_access_planes(access, i))
			return true;
	}
	return false;
}

/* A window that has dims for the planes of a kv const tells where their distance is found. */
static bool
add_pitch(struct lowering *l, int32_t slot, struct pawl_access *access)
{
	const struct pawl_type *type = &l->program->slots[slot].type;
	int64_t pitch;
	int32_t literal;

	if (l->program->slots[slot].role != PAWL_SLOT_KV || type->rank < 2)
		return true;
	pitch = pawl_dim_max(l->graph, type->dim[type->rank - 2]) * type->dim[type->rank - 1].base;
	access->pitch = pitch;
	if (!moves_by_planes(access)) {
		access->pitch = 0;
		return true;
	}
	literal = pawl_lower_pitch_slot(l->graph, l->program, type, pitch);
	if (literal < 0)
		return false;
	access->pitch_arg = add_arg(l, literal, 0, false);
	return true;
}

/* The window of a value of another step, a const or an alloc. */
static bool
access_outside(struct lowering *l, const struct pawl_node *value, bool written, struct pawl_access *out)
{
	const struct pawl_node *base;
	int64_t offset;
	int32_t slot;

	if (!pawl_access_of(l->graph, value, &base, out, &offset))
		return false;
	slot = l->slot_of[base->id];
	if (slot < 0)
		return false;
	out->arg = add_arg(l, slot, pawl_dtype_bytes(out->dtype, offset), written);
	return add_pitch(l, slot, out);
}

static int32_t
member_index(const struct lowering *l, const struct pawl_node *node)
{
	int32_t i;

	for (i = 0; i < l->group->n; i++) {
		if (l->group->nodes[i] == node)
			return i;
	}
	return -1;
}

static enum pawl_status
lower_operand(struct lowering *l, const struct pawl_node *value, struct pawl_operand *out)
{
	int32_t member = member_index(l, pawl_node_base(value));

	*out = (struct pawl_operand){.value = -1, .type = value->type};
	if (member >= 0 && !pawl_op_has(value->op, PAWL_OPF_VIEW) && l->op_of[member] >= 0) {
		out->value = l->op_of[member];
		return PAWL_OK;
	}
	if (access_outside(l, value, false, &out->access))
		return PAWL_OK;
	return pawl_fail(l->err, PAWL_UNSUPPORTED,
		"operand %s (%s) is no window on storage; materialize-views would copy it",
		value->name ? value->name : "", pawl_op_name(value->op));
}

/* A body op for node (operands 0 .. n_inputs - 1 of it), without stores. */
static enum pawl_status
add_op(struct lowering *l, const struct pawl_node *node, enum pawl_op op, int first_input, int n_inputs,
	struct pawl_step_op **out)
{
	struct pawl_step_op *made = &l->ops[l->n_ops];
	int i;

	*made = (struct pawl_step_op){.op = op, .attrs = node->attrs, .type = node->type};
	made->name = pawl_arena_strdup(l->arena, node->name ? node->name : "");
	made->inputs = pawl_arena_alloc(l->arena, (size_t)n_inputs, sizeof(*made->inputs));
	if (!made->name || !made->inputs)
		return no_memory(l);
	made->n_inputs = n_inputs;
	for (i = 0; i < n_inputs; i++) {
		enum pawl_status status =
			lower_operand(l, node->inputs[first_input + i].def, &made->inputs[i]);

		if (status != PAWL_OK)
			return status;
	}
	l->n_ops++;
	*out = made;
	return PAWL_OK;
}

static enum pawl_status
add_store(struct lowering *l, struct pawl_step_op *op, const struct pawl_access *access)
{
	if (op->n_outs == 2)
		return pawl_fail(l->err, PAWL_INTERNAL, "%s is stored three times",
			pawl_op_name(op->op));
	op->outs[op->n_outs++] = *access;
	return PAWL_OK;
}

/* The window that a write stores to, over the dims of its source. */
static enum pawl_status
write_window(struct lowering *l, const struct pawl_node *write, struct pawl_access *out)
{
	const struct pawl_attrs *attrs = &write->attrs;
	const struct pawl_node *index = write->n_inputs > 2 ? write->inputs[2].def : NULL;
	struct pawl_access index_access;
	int64_t offset = 0;
	int32_t slot;
	int i;

	*out = pawl_access_whole(l->graph, &write->type);
	if (write->op == PAWL_OP_WRITE_ROWS) {
		out->at_dim = pawl_write_rows_axis(attrs);
		out->at_rows = true;
	} else {
		out->at_dim = (int32_t)attrs->axis;
		out->at_sym = attrs->sym;
		out->modulus = write->op == PAWL_OP_WRITE_SLICE_ROTATING ? attrs->modulus : 0;
		for (i = 0; i < write->type.rank; i++) {
			if (i == out->at_dim)
				continue;
			if (i == out->pos_dim)
				out->pos0 = attrs->start[i];
			else if (out->layout == PAWL_LAYOUT_K16 && i == write->type.rank - 1)
				offset += attrs->start[i] * 16;
			else
				offset += attrs->start[i] * out->stride[i];
		}
	}
	if (out->at_dim >= 0)
		out->limit = out->modulus ? out->modulus :
			pawl_dim_max(l->graph, write->type.dim[out->at_dim]);
	if (index) {
		if (!access_outside(l, index, false, &index_access))
			return pawl_fail(l->err, PAWL_UNSUPPORTED,
				"the index of a %s is no window on storage", pawl_op_name(write->op));
		out->at_arg = index_access.arg;
	}
	slot = l->slot_of[write->id];
	out->arg = add_arg(l, slot, pawl_dtype_bytes(out->dtype, offset), true);
	return add_pitch(l, slot, out) ? PAWL_OK : no_memory(l);
}

static enum pawl_status
lower_write(struct lowering *l, const struct pawl_node *write)
{
	const struct pawl_node *src = write->inputs[1].def, *base = pawl_node_base(src);
	int32_t member = member_index(l, base);
	struct pawl_access window;
	struct pawl_step_op *op;
	enum pawl_status status = write_window(l, write, &window);

	if (status != PAWL_OK)
		return status;
	if (member >= 0 && l->op_of[member] >= 0) {
		if (!pawl_access_invert(l->graph, src, base, &window))
			return pawl_fail(l->err, PAWL_INTERNAL, "a write cannot see its source");
		return add_store(l, &l->ops[l->op_of[member]], &window);
	}
	status = add_op(l, write, PAWL_OP_COPY, 1, 1, &op);
	if (status != PAWL_OK)
		return status;
	op->type = src->type;
	op->attrs = pawl_attrs_default();
	/* An index is looked up once for each row: rows of one element. */
	if (window.at_rows && op->type.rank == 1) {
		op->type.rank = op->inputs[0].type.rank = 2;
		op->type.dim[1] = op->inputs[0].type.dim[1] = pawl_dim_const(1);
		op->inputs[0].access.stride[1] = window.stride[1] = 1;
	}
	return add_store(l, op, &window);
}

/* zero_fill and alloc with fill: a value 0 stored over the whole storage. */
static enum pawl_status
lower_zero(struct lowering *l, const struct pawl_node *node)
{
	struct pawl_access whole = pawl_access_whole(l->graph, &node->type);
	struct pawl_step_op *op;
	enum pawl_status status = add_op(l, node, PAWL_OP_ZERO_FILL, 0, 0, &op);

	if (status != PAWL_OK)
		return status;
	whole.arg = add_arg(l, l->slot_of[node->id], 0, true);
	return add_store(l, op, &whole);
}

/* One copy for each input, to its place in the result. */
static enum pawl_status
lower_concat(struct lowering *l, const struct pawl_node *node)
{
	int64_t at = 0;
	int i;

	for (i = 0; i < node->n_inputs; i++) {
		struct pawl_access part = pawl_access_whole(l->graph, &node->type);
		const struct pawl_type *type = &node->inputs[i].def->type;
		struct pawl_step_op *op;
		enum pawl_status status = add_op(l, node, PAWL_OP_COPY, i, 1, &op);

		if (status != PAWL_OK)
			return status;
		op->type = *type;
		op->attrs = pawl_attrs_default();
		part.arg = add_arg(l, l->slot_of[node->id],
			pawl_dtype_bytes(type->dtype, at * part.stride[node->attrs.axis]), true);
		at += type->dim[node->attrs.axis].base;
		status = add_store(l, op, &part);
		if (status != PAWL_OK)
			return status;
	}
	return PAWL_OK;
}

static enum pawl_status
lower_node(struct lowering *l, int32_t member)
{
	const struct pawl_node *node = l->group->nodes[member];
	struct pawl_access whole;
	struct pawl_step_op *op;
	enum pawl_status status;

	l->op_of[member] = -1;
	if (node->op == PAWL_OP_ZERO_FILL || node->op == PAWL_OP_ALLOC)
		return lower_zero(l, node);
	if (pawl_op_has(node->op, PAWL_OPF_INPLACE))
		return lower_write(l, node);
	if (node->op == PAWL_OP_CONCAT)
		return lower_concat(l, node);
	status = add_op(l, node, node->op, 0, node->n_inputs, &op);
	if (status != PAWL_OK)
		return status;
	l->op_of[member] = (int32_t)(op - l->ops);
	if (l->slot_of[node->id] < 0)
		return PAWL_OK;
	whole = pawl_access_whole(l->graph, &node->type);
	whole.arg = add_arg(l, l->slot_of[node->id], 0, true);
	return add_store(l, op, &whole);
}

/* Weights that a step reads, or its ops when it reads none: "attn_q.weight+attn_k.weight". */
static const char *
step_name(struct lowering *l)
{
	char text[256];
	size_t n = 0;
	int i, pass;

	text[0] = 0;
	for (pass = 0; pass < 2 && !n; pass++) {
		for (i = 0; i < (pass ? l->group->n : l->n_args) && n + 1 < sizeof(text); i++) {
			const struct pawl_slot *slot = &l->program->slots[pass ? 0 : l->args[i].slot];
			const char *part = pass ? pawl_op_name(l->group->nodes[i]->op) : slot->name;

			if (!pass && slot->role != PAWL_SLOT_WEIGHT)
				continue;
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? "+" : "", part);
		}
	}
	return pawl_arena_strdup(l->arena, text);
}

/* Room for the partial results of the step's attention. */
static enum pawl_status
add_partials(struct lowering *l, struct pawl_step *step)
{
	const struct pawl_step_op *op = l->ops;
	int64_t bytes, n;
	struct pawl_type type;

	while (!pawl_op_attends(op->op))
		op++;
	bytes = pawl_attend_partials_bytes(l->program, op);
	if (bytes > PAWL_MAX_SCRATCH)
		return pawl_fail(l->err, PAWL_UNSUPPORTED,
			"attention %s: its partial results exceed %lld bytes", op->name,
			(long long)PAWL_MAX_SCRATCH);
	n = bytes / (int64_t)sizeof(float);
	type = pawl_type_make(PAWL_DTYPE_F32, 1, &n);
	step->scratch_arg = add_arg(l, pawl_lower_add_slot(l->graph, l->program, PAWL_SLOT_TEMP,
					       "attention partials", &type), 0, true);
	return PAWL_OK;
}

static enum pawl_status
finish_step(struct lowering *l, struct pawl_step *step)
{
	step->template = pawl_group_template(l->group);
	step->scratch_arg = -1;
	if (step->template == PAWL_TEMPLATE_ATTEND) {
		enum pawl_status status = add_partials(l, step);

		if (status != PAWL_OK)
			return status;
	}
	step->name = step_name(l);
	step->n_ops = l->n_ops;
	step->n_args = l->n_args;
	step->first_arg = l->program->n_args;
	step->ops = pawl_arena_alloc(l->arena, (size_t)l->n_ops, sizeof(*step->ops));
	step->args = pawl_arena_alloc(l->arena, (size_t)l->n_args, sizeof(*step->args));
	if (!step->name || !step->ops || !step->args)
		return no_memory(l);
	memcpy(step->ops, l->ops, (size_t)l->n_ops * sizeof(*step->ops));
	memcpy(step->args, l->args, (size_t)l->n_args * sizeof(*step->args));
	l->program->n_args += l->n_args;
	pawl_step_cost(l->program, step, &step->flops, &step->bytes);
	return PAWL_OK;
}

static bool
stores_nothing(const struct lowering *l)
{
	int32_t i;

	for (i = 0; i < l->n_ops; i++) {
		if (l->ops[i].n_outs)
			return false;
	}
	return true;
}

static enum pawl_status
lower_groups(struct lowering *l)
{
	struct pawl_node *node;
	struct pawl_group group;
	int32_t last = -1, i;
	enum pawl_status status = PAWL_OK;

	l->group = &group;
	l->program->steps =
		pawl_arena_alloc(l->arena, (size_t)l->graph->n_groups + 1, sizeof(*l->program->steps));
	if (!l->program->steps)
		return no_memory(l);
	pawl_foreach_node(node, l->graph) {
		if (node->group < 0 || node->group == last)
			continue;
		last = node->group;
		if (!pawl_group_of(node, &group) || !pawl_group_fits(l->graph, &group))
			return pawl_fail(l->err, PAWL_UNSUPPORTED,
				"no template can execute group #%d (%s) as one step", node->group,
				pawl_op_name(node->op));
		l->n_ops = 0;
		l->n_args = 0;
		for (i = 0; i < group.n && status == PAWL_OK; i++)
			status = lower_node(l, i);
		/* Dead code, when dce was skipped. */
		if (status == PAWL_OK && stores_nothing(l))
			continue;
		if (status == PAWL_OK)
			status = finish_step(l, &l->program->steps[l->program->n_steps++]);
		if (status != PAWL_OK)
			return status;
	}
	return PAWL_OK;
}

static enum pawl_status
copy_symbols(struct lowering *l)
{
	const struct pawl_graph *graph = l->graph;
	int32_t i;

	l->program->symbols =
		pawl_arena_alloc(l->arena, (size_t)graph->n_symbols + 1, sizeof(*l->program->symbols));
	if (!l->program->symbols)
		return no_memory(l);
	for (i = 0; i < graph->n_symbols; i++) {
		const struct pawl_symbol *s = &graph->symbols[i];

		l->program->symbols[i].name = pawl_arena_strdup(l->arena, s->name);
		l->program->symbols[i].min = s->min;
		l->program->symbols[i].max = s->max;
		l->program->symbols[i].multiple = s->multiple;
	}
	l->program->n_symbols = graph->n_symbols;
	return PAWL_OK;
}

enum pawl_status
pawl_lower(const struct pawl_graph *graph, struct pawl_program **out, struct pawl_error *err)
{
	struct lowering *l = calloc(1, sizeof(*l));
	enum pawl_status status = PAWL_OK;

	if (!l)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory to lower graph '%s'", graph->name);
	l->graph = graph;
	l->err = err;
	l->program = calloc(1, sizeof(*l->program));
	l->slot_of = malloc(((size_t)graph->n_ids + 1) * sizeof(*l->slot_of));
	/* A node owns one at most, and needs one more for partial results or a plane's size. */
	l->slots = calloc(2 * (size_t)graph->n_nodes + 1, sizeof(*l->slots));
	if (!l->program || !l->slot_of || !l->slots) {
		status = no_memory(l);
	} else {
		pawl_arena_init(&l->program->arena);
		l->arena = &l->program->arena;
		l->program->name = pawl_arena_strdup(l->arena, graph->name);
		l->program->n_nodes = graph->n_nodes;
		l->program->slots = l->slots;
		status = copy_symbols(l);
		if (status == PAWL_OK)
			status = pawl_lower_slots(graph, l->program, l->slot_of, err);
		if (status == PAWL_OK)
			status = lower_groups(l);
		if (status == PAWL_OK)
			status = pawl_lower_keep_slots(l->program, err);
	}
	if (status == PAWL_OK)
		*out = l->program;
	else
		pawl_program_free(l->program);
	free(l->slots);
	free(l->slot_of);
	free(l);
	return status;
}

#include "runtime/index_check.h"

#include "codegen/ref_attend.h"
#include "codegen/tensor.h"
#include "ir/each_token.h"
#include "passes/cost.h"
#include "runtime/memory.h"

#include <inttypes.h>
#include <string.h>

struct collect {
	const struct pawl_program *program;
	struct pawl_index_check *items; /* NULL while counting */
	int32_t n;
	bool *is_written; /* n_slots: by a step up to the present one */
};

static bool
is_same_place(const struct pawl_access *a, const struct pawl_access *b, int rank)
{
	for (int i = 0; i < rank; i++)
		if (a->stride[i] != b->stride[i])
			return false;
	return a->dtype == b->dtype && a->layout == b->layout && a->pos_dim == b->pos_dim &&
	       a->pos0 == b->pos0 && a->width == b->width;
}

static bool
is_same(const struct pawl_index_check *a, const struct pawl_index_check *b)
{
	return a->slot == b->slot && a->at == b->at && a->sym == b->sym &&
	       pawl_type_equal(&a->type, &b->type) &&
	       is_same_place(&a->access, &b->access, a->type.rank) && a->may_skip == b->may_skip &&
	       a->wraps == b->wraps && a->of_state == b->of_state &&
	       pawl_dim_equal(a->extent, b->extent) && pawl_dim_equal(a->limit, b->limit);
}

static void
add(struct collect *c, const struct pawl_index_check *check)
{
	if (c->items) {
		for (int32_t i = 0; i < c->n; i++)
			if (is_same(&c->items[i], check))
				return;
		c->items[c->n] = *check;
	}
	c->n++;
}

/* Adds a check of the index in argument arg of the step, unless the program computes it. */
static enum pawl_status
add_stored(struct collect *c, const struct pawl_step *step, int32_t arg,
	struct pawl_index_check *check, struct pawl_error *err)
{
	const struct pawl_arg *a = &step->args[arg];
	const struct pawl_slot *slot = &c->program->slots[a->slot];

	check->slot = a->slot;
	check->at = a->offset;
	if (slot->role != PAWL_SLOT_TEMP && slot->role != PAWL_SLOT_OUTPUT &&
		!c->is_written[a->slot])
		add(c, check);
	else if (check->type.rank == 0 || check->of_state)
		return pawl_fail(err, PAWL_UNSUPPORTED,
			"step %s: the start in %s is computed by the program, neither a const nor "
			"a symbol",
			step->name, slot->name && *slot->name ? slot->name : "a temporary");
	return PAWL_OK;
}

static const char *
name_of(const struct pawl_step *step, const struct pawl_step_op *op)
{
	return *op->name ? op->name : step->name;
}

static enum pawl_status
add_access(struct collect *c, const struct pawl_step *step, const struct pawl_step_op *op,
	const struct pawl_access *access, const struct pawl_type *type, struct pawl_error *err)
{
	struct pawl_index_check check = {
		.op = name_of(step, op),
		.slot = -1,
		.sym = access->at_sym,
		.access = {.dtype = PAWL_DTYPE_I64, .layout = PAWL_LAYOUT_ROWS, .stride = {1}},
		.type = {.dtype = PAWL_DTYPE_I64},
		.may_skip = access->at_rows,
		.wraps = access->modulus > 0,
		.of_state = true,
		.extent = pawl_dim_const(1),
		.limit = pawl_dim_const(access->limit),
	};

	if (access->at_dim < 0)
		return PAWL_OK;
	if (access->at_rows) {
		check.type.rank = 1;
		check.type.dim[0] = type->dim[access->at_dim];
	} else {
		check.extent = type->dim[access->at_dim];
	}
	if (access->at_arg < 0) {
		add(c, &check);
		return PAWL_OK;
	}
	check.sym = -1;
	return add_stored(c, step, access->at_arg, &check, err);
}

/* Positions and blocks of a paged attention, both part of its state. */
static enum pawl_status
add_pages(struct collect *c, const struct pawl_step *step, const struct pawl_step_op *op,
	struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;

	for (int i = 3; i < 5 && !status; i++) {
		const struct pawl_operand *index = &op->inputs[i];
		struct pawl_index_check check = {
			.op = name_of(step, op),
			.sym = -1,
			.extent = pawl_dim_const(1),
			.type = index->type,
			.access = index->access,
			.of_state = true,
			.may_skip = i == 3,
			.limit = pawl_dim_const(i == 3 ? pawl_attend_most(op)
						       : op->inputs[1].type.dim[2].base /
								 op->attrs.block),
		};

		if (index->value >= 0)
			return pawl_fail(err, PAWL_UNSUPPORTED,
				"step %s: %s are computed by the program", step->name,
				i == 3 ? "positions" : "blocks");
		status = add_stored(c, step, index->access.arg, &check, err);
	}
	return status;
}

/* Rows of a table chosen by ids; the position of an attention, which clips what lies beyond k. */
static enum pawl_status
add_op(struct collect *c, const struct pawl_step *step, const struct pawl_step_op *op,
	struct pawl_error *err)
{
	struct pawl_index_check check = {
		.op = name_of(step, op), .sym = -1, .extent = pawl_dim_const(1)};
	const struct pawl_operand *index;

	if (op->op == PAWL_OP_GATHER) {
		index = &op->inputs[1];
		check.limit = op->inputs[0].type.dim[0];
	} else if (op->op == PAWL_OP_ATTENTION) {
		index = &op->inputs[3];
		check.limit = pawl_dim_const(PAWL_ATTEND_MOST + 1);
	} else if (op->op == PAWL_OP_PAGED_ATTENTION) {
		return add_pages(c, step, op, err);
	} else {
		return PAWL_OK;
	}
	if (index->value >= 0)
		return PAWL_OK;
	check.type = index->type;
	check.access = index->access;
	return add_stored(c, step, index->access.arg, &check, err);
}

static enum pawl_status
collect(struct collect *c, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;

	memset(c->is_written, 0, (size_t)c->program->n_slots * sizeof(*c->is_written));
	for (int32_t s = 0; s < c->program->n_steps; s++) {
		const struct pawl_step *step = &c->program->steps[s];

		for (int32_t i = 0; i < step->n_args; i++)
			if (step->args[i].written)
				c->is_written[step->args[i].slot] = true;
		for (int32_t i = 0; i < step->n_ops; i++) {
			const struct pawl_step_op *op = &step->ops[i];

			status = add_op(c, step, op, err);
			for (int32_t j = 0; j < op->n_inputs && !status; j++)
				if (op->inputs[j].value < 0)
					status = add_access(c, step, op, &op->inputs[j].access,
						&op->inputs[j].type, err);
			for (int32_t j = 0; j < op->n_outs && !status; j++)
				status = add_access(c, step, op, &op->outs[j], &op->type, err);
			if (status)
				return status;
		}
	}
	return PAWL_OK;
}

enum pawl_status
pawl_index_checks(const struct pawl_program *program, struct pawl_index_check **out, int32_t *n,
	struct pawl_error *err)
{
	struct collect c = {.program = program};
	enum pawl_status status;

	c.is_written = pawl_memory_zalloc((size_t)program->n_slots, sizeof(*c.is_written));
	if (!c.is_written)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for %d slots",
			program->n_slots);
	status = collect(&c, err);
	if (!status) {
		c.items = pawl_memory_zalloc((size_t)c.n, sizeof(*c.items));
		if (!c.items)
			status = pawl_fail(
				err, PAWL_OUT_OF_MEMORY, "no memory for %d index checks", c.n);
	}
	if (!status) {
		c.n = 0;
		status = collect(&c, err);
		*out = c.items;
		*n = c.n;
	}
	pawl_memory_free(c.is_written);
	return status;
}

PAWL_EACH_TOKEN static int64_t
extent_of(struct pawl_dim dim, const int64_t *symbols)
{
	return dim.factor ? dim.base + dim.factor * symbols[dim.sym] : dim.base;
}

static const char *
index_name(const struct pawl_index_check *check, const struct pawl_program *program)
{
	const struct pawl_slot *slot;

	if (check->slot < 0)
		return program->symbols[check->sym].name;
	slot = &program->slots[check->slot];
	return *slot->name ? slot->name : pawl_slot_role_name(slot->role);
}

PAWL_EACH_TOKEN static enum pawl_status
check_start(const struct pawl_index_check *check, const struct pawl_program *program, int64_t start,
	const int64_t *symbols, struct pawl_error *err)
{
	int64_t extent = extent_of(check->extent, symbols);
	int64_t limit = extent_of(check->limit, symbols);

	if (start < 0)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"%s: %s is %" PRId64 ", a start is not negative", check->op,
			index_name(check, program), start);
	if (!check->wraps && start > limit - extent)
		return pawl_fail(err, check->of_state ? PAWL_CAPACITY : PAWL_INVALID_ARGUMENT,
			"%s: %s is %" PRId64 ": %" PRId64
			" more would go beyond the capacity of %" PRId64,
			check->op, index_name(check, program), start, extent, limit);
	return PAWL_OK;
}

PAWL_EACH_TOKEN static enum pawl_status
check_element(const struct pawl_index_check *check, const struct pawl_program *program, int64_t i,
	int64_t index, int64_t limit, struct pawl_error *err)
{
	if (index < limit && (index >= 0 || check->may_skip))
		return PAWL_OK;
	return pawl_fail(err, check->of_state ? PAWL_CAPACITY : PAWL_INVALID_ARGUMENT,
		"%s: %s[%" PRId64 "] is %" PRId64 ", outside 0 to %" PRId64, check->op,
		index_name(check, program), i, index, limit - 1);
}

static enum pawl_status
check_list(const struct pawl_index_check *check, const struct pawl_program *program, char *bytes,
	const int64_t *symbols, struct pawl_error *err)
{
	const struct pawl_access *access = &check->access;
	struct pawl_tensor list = {.data = bytes, .rank = check->type.rank, .at_dim = -1};
	int64_t limit = extent_of(check->limit, symbols);
	enum pawl_status status = PAWL_OK;

	list.dtype = access->dtype;
	list.layout = access->layout;
	list.pos_dim = access->layout == PAWL_LAYOUT_K16 ? access->pos_dim : -1;
	list.pos0 = access->pos0;
	list.width = access->width;
	for (int i = 0; i < list.rank; i++) {
		list.dim[i] = extent_of(check->type.dim[i], symbols);
		list.stride[i] = access->stride[i];
	}
	for (int64_t i = 0; i < pawl_tensor_elems(&list) && !status; i++)
		status = check_element(
			check, program, i, pawl_tensor_load_i64(&list, i), limit, err);
	return status;
}

PAWL_EACH_TOKEN enum pawl_status
pawl_index_check_run(const struct pawl_index_check *check, const struct pawl_program *program,
	const void *bytes, const int64_t *symbols, struct pawl_error *err)
{
	const struct pawl_type *type = &check->type;
	char *at = (char *)(uintptr_t)bytes + check->at;

	if (check->slot < 0)
		return check_start(check, program, symbols[check->sym], symbols, err);
	if (type->rank == 0)
		return check_start(check, program, pawl_integer_at(check->access.dtype, at),
			symbols, err);
	if (type->rank == 1 && pawl_dim_equal(type->dim[0], pawl_dim_const(1)) &&
		check->access.layout == PAWL_LAYOUT_ROWS)
		return check_element(check, program, 0, pawl_integer_at(check->access.dtype, at),
			extent_of(check->limit, symbols), err);
	return check_list(check, program, at, symbols, err);
}

#include "runtime/index_check.h"

#include "runtime/memory.h"

#include <inttypes.h>
#include <string.h>

struct collect {
	const struct pawl_program *program;
	struct pawl_index_check *items; /* NULL while counting */
	int32_t n;
};

static bool
is_same(const struct pawl_index_check *a, const struct pawl_index_check *b)
{
	return a->slot == b->slot && a->at == b->at && a->sym == b->sym && a->dtype == b->dtype &&
	       a->is_list == b->is_list && a->may_skip == b->may_skip && a->wraps == b->wraps &&
	       a->of_state == b->of_state && pawl_dim_equal(a->extent, b->extent) &&
	       a->limit == b->limit;
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

/*
 * Fills in where the index comes from.  *is_known becomes false for a literal, which is checked
 * here, and for a list computed by the program, which the target bounds by construction.
 */
static enum pawl_status
locate(const struct pawl_program *program, const struct pawl_step *step, int32_t arg,
	struct pawl_index_check *check, bool *is_known, struct pawl_error *err)
{
	const struct pawl_arg *a = &step->args[arg];
	const struct pawl_slot *slot = &program->slots[a->slot];

	*is_known = false;
	if (slot->role == PAWL_SLOT_DATA) {
		check->slot = a->slot;
		check->at = a->offset;
		*is_known = true;
		return PAWL_OK;
	}
	if (slot->role == PAWL_SLOT_LITERAL && slot->n_values == 1) {
		double start = slot->values[0];
		int64_t extent = check->is_list ? 1 : check->extent.base;

		if ((start < 0 && !check->may_skip) ||
			(!check->wraps && start + (double)extent > (double)check->limit))
			return pawl_fail(err, PAWL_INVALID_GRAPH,
				"step %s: index %" PRId64 " is outside 0 to %" PRId64, step->name,
				(int64_t)start, check->limit);
		return PAWL_OK;
	}
	if (check->is_list && !check->of_state)
		return PAWL_OK;
	return pawl_fail(err, PAWL_UNSUPPORTED,
		"step %s: the start in %s is neither a data const nor a symbol", step->name,
		slot->name ? slot->name : "a temporary");
}

static enum pawl_status
add_access(struct collect *c, const struct pawl_step *step, const struct pawl_access *access,
	const struct pawl_type *type, struct pawl_error *err)
{
	struct pawl_index_check check = {
		.slot = -1,
		.sym = access->at_sym,
		.dtype = PAWL_DTYPE_I64,
		.is_list = access->at_rows,
		.may_skip = access->at_rows,
		.wraps = access->modulus > 0,
		.of_state = true,
		.limit = access->limit,
	};
	bool is_known = true;
	enum pawl_status status;

	if (access->at_dim < 0)
		return PAWL_OK;
	check.extent = type->dim[access->at_dim];
	if (access->at_arg >= 0) {
		check.sym = -1;
		status = locate(c->program, step, access->at_arg, &check, &is_known, err);
		if (status)
			return status;
	}
	if (is_known)
		add(c, &check);
	return PAWL_OK;
}

/* Rows of a table chosen by ids; the position of an attention, which clips what lies beyond k. */
static enum pawl_status
add_op(struct collect *c, const struct pawl_step *step, const struct pawl_step_op *op,
	struct pawl_error *err)
{
	struct pawl_index_check check = {.slot = -1, .sym = -1};
	const struct pawl_operand *index;
	bool is_known;
	enum pawl_status status;

	if (op->op == PAWL_OP_GATHER) {
		index = &op->inputs[1];
		check.is_list = true;
		check.extent = pawl_dim_const(1);
		for (int i = 0; i < index->type.rank; i++)
			if (index->type.dim[i].factor || check.extent.base == 1)
				check.extent = index->type.dim[i];
		check.limit = op->inputs[0].type.dim[0].base;
	} else if (op->op == PAWL_OP_ATTENTION) {
		index = &op->inputs[3];
		check.wraps = true;
		check.extent = op->inputs[0].type.dim[0];
	} else {
		return PAWL_OK;
	}
	if (index->value >= 0)
		return PAWL_OK;
	check.dtype = index->access.dtype;
	status = locate(c->program, step, index->access.arg, &check, &is_known, err);
	if (!status && is_known)
		add(c, &check);
	return status;
}

static enum pawl_status
collect(struct collect *c, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;

	for (int32_t s = 0; s < c->program->n_steps; s++) {
		const struct pawl_step *step = &c->program->steps[s];

		for (int32_t i = 0; i < step->n_ops; i++) {
			const struct pawl_step_op *op = &step->ops[i];

			status = add_op(c, step, op, err);
			for (int32_t j = 0; j < op->n_inputs && !status; j++)
				if (op->inputs[j].value < 0)
					status = add_access(c, step, &op->inputs[j].access,
						&op->inputs[j].type, err);
			for (int32_t j = 0; j < op->n_outs && !status; j++)
				status = add_access(c, step, &op->outs[j], &op->type, err);
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
	enum pawl_status status = collect(&c, err);

	if (status)
		return status;
	c.items = pawl_memory_zalloc((size_t)c.n, sizeof(*c.items));
	if (!c.items)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for %d index checks", c.n);
	c.n = 0;
	status = collect(&c, err);
	if (status) {
		pawl_memory_free(c.items);
		return status;
	}
	*out = c.items;
	*n = c.n;
	return PAWL_OK;
}

static int64_t
load(enum pawl_dtype dtype, const void *bytes, int64_t i)
{
	if (dtype == PAWL_DTYPE_I64) {
		int64_t value;

		memcpy(&value, (const char *)bytes + i * 8, sizeof(value));
		return value;
	}
	if (dtype == PAWL_DTYPE_U32) {
		uint32_t value;

		memcpy(&value, (const char *)bytes + i * 4, sizeof(value));
		return value;
	}
	int32_t value;

	memcpy(&value, (const char *)bytes + i * 4, sizeof(value));
	return value;
}

enum pawl_status
pawl_index_check_run(const struct pawl_index_check *check, const struct pawl_program *program,
	const void *bytes, const int64_t *symbols, struct pawl_error *err)
{
	enum pawl_status beyond = check->of_state ? PAWL_CAPACITY : PAWL_INVALID_ARGUMENT;
	const char *name = check->slot >= 0 ? program->slots[check->slot].name
					    : program->symbols[check->sym].name;
	int64_t extent = check->extent.base;

	if (check->extent.factor)
		extent += check->extent.factor * symbols[check->extent.sym];
	if (!check->is_list) {
		int64_t start = check->slot >= 0
					? load(check->dtype, (const char *)bytes + check->at, 0)
					: symbols[check->sym];

		if (start < 0)
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"%s is %" PRId64 ", a start is not negative", name, start);
		if (!check->wraps && start > check->limit - extent)
			return pawl_fail(err, beyond,
				"%s is %" PRId64 ": %" PRId64
				" more would go beyond the capacity of %" PRId64,
				name, start, extent, check->limit);
		return PAWL_OK;
	}
	for (int64_t i = 0; i < extent; i++) {
		int64_t index = load(check->dtype, (const char *)bytes + check->at, i);

		if (index >= check->limit || (index < 0 && !check->may_skip))
			return pawl_fail(err, beyond,
				"%s[%" PRId64 "] is %" PRId64 ", outside 0 to %" PRId64, name, i,
				index, check->limit - 1);
	}
	return PAWL_OK;
}

#include "codegen/ref_step.h"

#include "codegen/ref_ops.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ALIGNMENT = 64 };

/* What the ops of one step share during a run. */
struct step_run {
	const struct pawl_program *program;
	const struct pawl_step *step;
	void *const *args; /* of this step */
	const int64_t *symbols;
	struct pawl_tensor *results; /* of the body's ops */
	char *scratch;
	int64_t used;
};

static int64_t
aligned(int64_t bytes)
{
	return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* The type as a whole row-major tensor without memory. */
static enum pawl_status
describe(const struct pawl_type *type, const int64_t *symbols, struct pawl_tensor *t,
	int64_t *bytes, struct pawl_error *err)
{
	int64_t dims[PAWL_MAX_RANK] = {0};
	int i;

	for (i = 0; i < type->rank; i++) {
		const struct pawl_dim *dim = &type->dim[i];

		if (dim->sym < 0)
			dims[i] = dim->base;
		else if (__builtin_mul_overflow(dim->factor, symbols[dim->sym], &dims[i]) ||
			 __builtin_add_overflow(dims[i], dim->base, &dims[i]))
			return pawl_fail(err, PAWL_INVALID_ARGUMENT, "dim %d overflows", i);
	}
	return pawl_tensor_init(
		t, type->dtype, PAWL_LAYOUT_ROWS, false, type->rank, dims, bytes, err);
}

static int64_t
read_start(const struct step_run *run, const struct pawl_access *access)
{
	struct pawl_tensor cell = {.pos_dim = -1, .at_dim = -1};

	if (access->at_arg < 0)
		return run->symbols[access->at_sym];
	cell.data = run->args[access->at_arg];
	cell.dtype = run->program->slots[run->step->args[access->at_arg].slot].type.dtype;
	return pawl_tensor_load_i64(&cell, 0);
}

static enum pawl_status
check_index(const int64_t *index, int64_t n, int64_t limit, struct pawl_error *err)
{
	int64_t i;

	for (i = 0; i < n; i++) {
		if (index[i] >= limit)
			return pawl_fail(err, PAWL_CAPACITY,
				"row %" PRId64 " goes to %" PRId64 " of %" PRId64, i, index[i],
				limit);
	}
	return PAWL_OK;
}

/* The window that an access opens on its argument, `type` saying how the op sees it. */
static enum pawl_status
open_access(const struct step_run *run, const struct pawl_access *access,
	const struct pawl_type *type, struct pawl_tensor *t, struct pawl_error *err)
{
	enum pawl_status status;
	int64_t bytes, extent;
	int i;

	status = describe(type, run->symbols, t, &bytes, err);
	if (status)
		return status;
	t->data = run->args[access->arg];
	t->dtype = access->dtype;
	t->layout = access->layout;
	for (i = 0; i < t->rank; i++)
		t->stride[i] = access->stride[i];
	t->pos_dim = access->layout == PAWL_LAYOUT_K16 ? access->pos_dim : -1;
	t->pos0 = access->pos0;
	t->width = access->width;
	t->at_dim = access->at_dim;
	if (access->at_dim < 0)
		return PAWL_OK;
	extent = t->dim[access->at_dim];
	if (access->at_rows) {
		t->index = run->args[access->at_arg];
		return check_index(t->index, extent, access->limit, err);
	}
	t->start = read_start(run, access);
	t->modulus = access->modulus;
	if (t->start < 0)
		return pawl_fail(
			err, PAWL_INVALID_ARGUMENT, "start %" PRId64 " is negative", t->start);
	if (t->modulus > 0)
		t->start %= t->modulus;
	else if (t->start > access->limit - extent)
		return pawl_fail(err, PAWL_CAPACITY,
			"start %" PRId64 " + %" PRId64 " exceeds %" PRId64, t->start, extent,
			access->limit);
	return PAWL_OK;
}

static enum pawl_status
open_operand(const struct step_run *run, const struct pawl_operand *operand, struct pawl_tensor *t,
	struct pawl_error *err)
{
	enum pawl_status status;
	int64_t bytes;

	if (operand->value < 0)
		return open_access(run, &operand->access, &operand->type, t, err);
	status = describe(&operand->type, run->symbols, t, &bytes, err);
	if (!status)
		t->data = run->results[operand->value].data;
	return status;
}

static enum pawl_status
run_op(struct step_run *run, int32_t i, struct pawl_error *err)
{
	const struct pawl_step_op *op = &run->step->ops[i];
	struct pawl_tensor *result = &run->results[i];
	struct pawl_tensor inputs[PAWL_MAX_INPUTS], out;
	struct pawl_ref_call call = {.attrs = &op->attrs,
		.inputs = inputs,
		.n_inputs = op->n_inputs,
		.out = result,
		.sym = op->attrs.sym < 0 ? 0 : run->symbols[op->attrs.sym]};
	enum pawl_status status = PAWL_OK;
	int64_t bytes;
	int32_t j;

	for (j = 0; j < op->n_inputs && !status; j++)
		status = open_operand(run, &op->inputs[j], &inputs[j], err);
	if (!status)
		status = describe(&op->type, run->symbols, result, &bytes, err);
	if (status)
		return status;
	result->data = run->scratch + run->used;
	run->used += aligned(bytes);
	call.scratch = run->scratch + run->used;
	status = pawl_ref_run(op->op, &call, err);
	for (j = 0; j < op->n_outs && !status; j++) {
		status = open_access(run, &op->outs[j], &op->type, &out, err);
		if (!status)
			pawl_tensor_copy(result, &out);
	}
	return status;
}

static void
begin_step(struct step_run *run, const struct pawl_step *step, void *const *args, void *scratch)
{
	run->step = step;
	run->args = args + step->first_arg;
	run->results = scratch;
	run->scratch = scratch;
	run->used = aligned(step->n_ops * (int64_t)sizeof(*run->results));
}

static enum pawl_status
in_step(const struct pawl_step *step, int32_t op, struct pawl_error *err)
{
	return pawl_error_prefix(
		err, "step %s: %s", step->name ? step->name : "", pawl_op_name(step->ops[op].op));
}

/* Adds the memory of op i's result to *results and raises *scratch to what the op needs. */
static enum pawl_status
measure_op(const struct pawl_step *step, int32_t i, const int64_t *symbols, int64_t *results,
	int64_t *scratch, struct pawl_error *err)
{
	const struct pawl_step_op *op = &step->ops[i];
	struct pawl_tensor inputs[PAWL_MAX_INPUTS], out;
	enum pawl_status status = PAWL_OK;
	int64_t bytes;
	int32_t j;

	for (j = 0; j < op->n_inputs && !status; j++) {
		const struct pawl_operand *operand = &op->inputs[j];

		if (operand->value >= i)
			return pawl_fail(err, PAWL_INTERNAL, "input %" PRId32 " comes later", j);
		if (operand->value < 0 && operand->access.layout == PAWL_LAYOUT_TILE16 &&
			op->op != PAWL_OP_MATMUL)
			return pawl_fail(err, PAWL_UNSUPPORTED, "input %" PRId32 " is packed", j);
		status = describe(&operand->type, symbols, &inputs[j], &bytes, err);
	}
	if (!status)
		status = describe(&op->type, symbols, &out, &bytes, err);
	if (status)
		return status;
	*results += aligned(bytes);
	bytes = pawl_ref_scratch_bytes(op->op, inputs, op->n_inputs, &out);
	*scratch = bytes > *scratch ? bytes : *scratch;
	return PAWL_OK;
}

enum pawl_status
pawl_ref_program_check(
	const struct pawl_program *program, int64_t *scratch_bytes, struct pawl_error *err)
{
	int64_t *largest = calloc((size_t)program->n_symbols + 1, sizeof(*largest));
	struct pawl_error local;
	enum pawl_status status = PAWL_OK;
	int32_t i, j;

	if (!err)
		err = &local;
	if (!largest)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for %" PRId32 " symbols",
			program->n_symbols);
	for (i = 0; i < program->n_symbols; i++)
		largest[i] = program->symbols[i].max;
	*scratch_bytes = 0;
	for (i = 0; i < program->n_steps && !status; i++) {
		const struct pawl_step *step = &program->steps[i];
		int64_t results = aligned(step->n_ops * (int64_t)sizeof(struct pawl_tensor)),
			scratch = 0;

		for (j = 0; j < step->n_ops && !status; j++) {
			status = measure_op(step, j, largest, &results, &scratch, err);
			if (status)
				in_step(step, j, err);
		}
		if (results + scratch > *scratch_bytes)
			*scratch_bytes = results + scratch;
	}
	free(largest);
	return status;
}

static bool
is_computed(const struct pawl_program *program, const struct pawl_step *step, int32_t arg)
{
	enum pawl_slot_role role = program->slots[step->args[arg].slot].role;

	return role == PAWL_SLOT_TEMP || role == PAWL_SLOT_OUTPUT;
}

static enum pawl_status
check_starts(struct step_run *run, void *const *args, struct pawl_error *err)
{
	struct pawl_tensor ignored;
	int32_t i, j, k;

	for (i = 0; i < run->program->n_steps; i++) {
		run->step = &run->program->steps[i];
		run->args = args + run->step->first_arg;
		for (j = 0; j < run->step->n_ops; j++) {
			const struct pawl_step_op *op = &run->step->ops[j];

			for (k = 0; k < op->n_outs; k++) {
				const struct pawl_access *access = &op->outs[k];

				if (access->at_arg >= 0 &&
					is_computed(run->program, run->step, access->at_arg))
					continue;
				if (open_access(run, access, &op->type, &ignored, err))
					return in_step(run->step, j, err);
			}
		}
	}
	return PAWL_OK;
}

static enum pawl_status
check_symbols(const struct pawl_program *program, const int64_t *symbols, struct pawl_error *err)
{
	int32_t i;

	for (i = 0; i < program->n_symbols; i++) {
		const struct pawl_program_symbol *symbol = &program->symbols[i];

		if (symbols[i] < symbol->min || symbols[i] > symbol->max)
			return pawl_fail(err, PAWL_SYMBOL,
				"symbol $%s = %" PRId64 " is not between %" PRId64 " and %" PRId64,
				symbol->name, symbols[i], symbol->min, symbol->max);
		if (symbol->multiple > 1 && symbols[i] % symbol->multiple)
			return pawl_fail(err, PAWL_SYMBOL,
				"symbol $%s = %" PRId64 " is no multiple of %" PRId64, symbol->name,
				symbols[i], symbol->multiple);
	}
	return PAWL_OK;
}

enum pawl_status
pawl_ref_program_run(const struct pawl_program *program, void *const *args, const int64_t *symbols,
	void *scratch, struct pawl_error *err)
{
	struct step_run run = {.program = program, .symbols = symbols};
	struct pawl_error local;
	enum pawl_status status;
	int32_t i, j;

	if (!err)
		err = &local;
	status = check_symbols(program, symbols, err);
	if (!status)
		status = check_starts(&run, args, err);
	for (i = 0; i < program->n_steps && !status; i++) {
		begin_step(&run, &program->steps[i], args, scratch);
		for (j = 0; j < run.step->n_ops; j++) {
			if (run_op(&run, j, err))
				return in_step(run.step, j, err);
		}
	}
	return status;
}

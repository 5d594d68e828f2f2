#include "tests/program_check.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_OPS = 64 };

/* A step under test. */
struct subject {
	const struct pawl_program *program;
	const struct pawl_step *step;
	const char *what;
};

#define HOLDS(s, test)                                                                             \
	ck_assert_msg(test, "%s: step %d (%s): %s", (s)->what,                                     \
		(int)((s)->step - (s)->program->steps), pawl_template_name((s)->step->template), #test)

static int32_t
slot_of(const struct subject *s, const struct pawl_access *access)
{
	HOLDS(s, access->arg >= 0 && access->arg < s->step->n_args);
	HOLDS(s, s->step->args[access->arg].slot >= 0);
	HOLDS(s, s->step->args[access->arg].slot < s->program->n_slots);
	return s->step->args[access->arg].slot;
}

static void
check_access(const struct subject *s, const struct pawl_access *access, const struct pawl_type *type,
	bool is_store)
{
	const struct pawl_slot *slot = &s->program->slots[slot_of(s, access)];

	HOLDS(s, access->dtype == type->dtype);
	HOLDS(s, access->dtype == slot->type.dtype);
	HOLDS(s, access->layout == slot->type.layout);
	HOLDS(s, (access->layout == PAWL_LAYOUT_K16) == (access->pos_dim >= 0));
	HOLDS(s, access->pos_dim < type->rank && access->at_dim < type->rank);
	HOLDS(s, is_store || access->at_dim < 0);
	HOLDS(s, access->at_dim < 0 || (access->at_arg >= 0) != (access->at_sym >= 0));
	HOLDS(s, access->at_arg < s->step->n_args);
	HOLDS(s, !access->pitch || s->step->args[access->pitch_arg].slot >= 0);
	HOLDS(s, !access->pitch || s->program->slots[s->step->args[access->pitch_arg].slot].values[0] ==
					   (double)access->pitch);
	HOLDS(s, !is_store || s->step->args[access->arg].written);
	HOLDS(s, !is_store || slot->role == PAWL_SLOT_KV || slot->role == PAWL_SLOT_TEMP ||
			slot->role == PAWL_SLOT_OUTPUT);
}

/* What one op stores, no op may load, or store again but for the parts of a concat. */
static void
check_races(const struct subject *s, const struct pawl_step_op *op)
{
	int32_t i, j, k;

	for (i = 0; i < op->n_outs; i++) {
		int32_t slot = slot_of(s, &op->outs[i]);

		for (j = 0; j < s->step->n_ops; j++) {
			const struct pawl_step_op *other = &s->step->ops[j];

			for (k = 0; k < other->n_inputs; k++)
				HOLDS(s, other->inputs[k].value >= 0 ||
						slot_of(s, &other->inputs[k].access) != slot);
			for (k = 0; k < other->n_outs; k++)
				HOLDS(s, (other == op && k == i) || op->op == PAWL_OP_COPY ||
						slot_of(s, &other->outs[k]) != slot);
		}
	}
}

static void
check_op(const struct subject *s, int32_t i)
{
	const struct pawl_step_op *op = &s->step->ops[i];
	int32_t j;

	HOLDS(s, op->n_inputs <= PAWL_MAX_INPUTS && op->n_outs <= 2);
	for (j = 0; j < op->n_inputs; j++) {
		const struct pawl_operand *operand = &op->inputs[j];

		HOLDS(s, operand->value < i);
		if (operand->value < 0)
			check_access(s, &operand->access, &operand->type, false);
		else
			HOLDS(s, pawl_type_equal(&operand->type, &s->step->ops[operand->value].type));
	}
	for (j = 0; j < op->n_outs; j++)
		check_access(s, &op->outs[j], &op->type, true);
	check_races(s, op);
}

static bool
is_core(enum pawl_op op)
{
	return op == PAWL_OP_MATMUL || pawl_op_attends(op) || op == PAWL_OP_GATHER;
}

/* Prologue, the op or ops that the template is named after, epilogue. */
static void
check_core(const struct subject *s, unsigned prologue)
{
	const struct pawl_step *step = s->step;
	bool is_result[MAX_OPS];
	int32_t i, j, n_cores = 0, core = -1;

	for (i = 0; i < step->n_ops; i++) {
		const struct pawl_step_op *op = &step->ops[i];

		is_result[i] = is_core(op->op);
		for (j = 0; j < op->n_inputs; j++)
			is_result[i] = is_result[i] ||
				(op->inputs[j].value >= 0 && is_result[op->inputs[j].value]);
		if (is_core(op->op)) {
			HOLDS(s, core < 0 || (op->op == PAWL_OP_MATMUL &&
						     op->inputs[0].value == step->ops[core].inputs[0].value &&
						     op->inputs[0].access.arg ==
							     step->ops[core].inputs[0].access.arg));
			for (j = 1; j < op->n_inputs; j++)
				HOLDS(s, op->inputs[j].value < 0);
			HOLDS(s, op->inputs[0].value < 0 || !is_result[op->inputs[0].value]);
			core = i;
			n_cores++;
		} else if (is_result[i]) {
			HOLDS(s, pawl_op_has(op->op, PAWL_OPF_ELEM));
			for (j = 0; j < op->n_inputs; j++)
				HOLDS(s, op->inputs[j].value < 0 || is_result[op->inputs[j].value]);
		} else {
			HOLDS(s, pawl_op_has(op->op, prologue) ||
					(step->template == PAWL_TEMPLATE_ATTEND && op->op == PAWL_OP_ROPE));
			HOLDS(s, op->n_outs == 0);
		}
	}
	HOLDS(s, n_cores > 0);
}

static void
check_template(const struct subject *s)
{
	const struct pawl_step *step = s->step;
	int32_t i;

	switch (step->template) {
	case PAWL_TEMPLATE_MATMUL:
		check_core(s, PAWL_OPF_ROW | PAWL_OPF_ELEM);
		return;
	case PAWL_TEMPLATE_ATTEND:
		HOLDS(s, step->scratch_arg >= 0);
		check_core(s, PAWL_OPF_ELEM);
		return;
	case PAWL_TEMPLATE_GATHER:
		check_core(s, 0);
		return;
	case PAWL_TEMPLATE_BATCH:
		HOLDS(s, step->n_ops == 1 && step->ops[0].op == PAWL_OP_BATCH_MATMUL);
		return;
	case PAWL_TEMPLATE_ROWS:
		for (i = 0; i < step->n_ops; i++) {
			HOLDS(s, pawl_op_has(step->ops[i].op, PAWL_OPF_ROW | PAWL_OPF_ELEM) ||
					step->ops[i].op == PAWL_OP_ARGMAX);
			HOLDS(s, pawl_type_same_dims(
					 &step->ops[i].inputs[0].type, &step->ops[0].inputs[0].type));
		}
		return;
	case PAWL_TEMPLATE_MAP:
		for (i = 0; i < step->n_ops; i++)
			HOLDS(s, pawl_op_has(step->ops[i].op, PAWL_OPF_ELEM) ||
					step->ops[i].op == PAWL_OP_ROPE ||
					step->ops[i].op == PAWL_OP_ZERO_FILL ||
					(step->ops[i].op == PAWL_OP_QUANTIZE &&
						step->ops[i].type.dtype == PAWL_DTYPE_Q8_0));
		return;
	case PAWL_N_TEMPLATES:
		break;
	}
	HOLDS(s, false);
}

void
pawl_test_check_program(const struct pawl_program *program, const char *what)
{
	struct subject s = {.program = program, .what = what};
	int32_t i, j, n_args = 0;

	for (i = 0; i < program->n_steps; i++) {
		int32_t n_stores = 0;

		s.step = &program->steps[i];
		HOLDS(&s, s.step->n_ops > 0 && s.step->n_ops <= MAX_OPS);
		HOLDS(&s, s.step->first_arg == n_args);
		n_args += s.step->n_args;
		for (j = 0; j < s.step->n_ops; j++) {
			check_op(&s, j);
			n_stores += s.step->ops[j].n_outs;
		}
		HOLDS(&s, n_stores > 0);
		check_template(&s);
	}
	ck_assert_int_eq(program->n_args, n_args);
}

static void
dump_access(FILE *out, const struct pawl_access *a)
{
	int i;

	fprintf(out, " arg %d %s %s [", a->arg, pawl_dtype_name(a->dtype), pawl_layout_name(a->layout));
	for (i = 0; i < PAWL_MAX_RANK; i++)
		fprintf(out, " %lld", (long long)a->stride[i]);
	fprintf(out, " ] pos %d %lld %lld at %d %d %d %d %lld %lld\n", a->pos_dim, (long long)a->pos0,
		(long long)a->width, a->at_dim, a->at_arg, a->at_sym, a->at_rows, (long long)a->modulus,
		(long long)a->limit);
}

static void
dump_type(FILE *out, const struct pawl_type *type)
{
	int i;

	fprintf(out, " %s %s [", pawl_dtype_name(type->dtype), pawl_layout_name(type->layout));
	for (i = 0; i < type->rank; i++)
		fprintf(out, " %lld+%lld*%d", (long long)type->dim[i].base,
			(long long)type->dim[i].factor, type->dim[i].sym);
	fprintf(out, " ]\n");
}

static void
dump_op(FILE *out, const struct pawl_step_op *op)
{
	int32_t i;

	fprintf(out, " op %s '%s' %a %a %a %lld %lld %lld %lld %d %d %d", pawl_op_name(op->op), op->name,
		op->attrs.eps, op->attrs.scale, op->attrs.softcap, (long long)op->attrs.axis,
		(long long)op->attrs.modulus, (long long)op->attrs.window,
		(long long)op->attrs.block, op->attrs.causal, op->attrs.sym, op->attrs.pairs);
	dump_type(out, &op->type);
	for (i = 0; i < op->n_inputs; i++) {
		fprintf(out, "  in %d", op->inputs[i].value);
		dump_type(out, &op->inputs[i].type);
		if (op->inputs[i].value < 0)
			dump_access(out, &op->inputs[i].access);
	}
	for (i = 0; i < op->n_outs; i++)
		dump_access(out, &op->outs[i]);
}

static void
dump_step(FILE *out, const struct pawl_step *step)
{
	int32_t i;

	fprintf(out, "step %s '%s' first %d scratch %d flops %lld bytes %lld\n",
		pawl_template_name(step->template), step->name, step->first_arg, step->scratch_arg,
		(long long)step->flops, (long long)step->bytes);
	for (i = 0; i < step->n_args; i++)
		fprintf(out, " arg slot %d + %lld %d\n", step->args[i].slot,
			(long long)step->args[i].offset, step->args[i].written);
	for (i = 0; i < step->n_ops; i++)
		dump_op(out, &step->ops[i]);
}

char *
pawl_test_dump_program(const struct pawl_program *program)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	int32_t i;

	ck_assert_ptr_nonnull(out);
	fprintf(out, "%s %d %lld %llx\n", program->name, program->n_nodes,
		(long long)program->scratch_bytes, (unsigned long long)program->hash);
	for (i = 0; i < program->n_symbols; i++)
		fprintf(out, "sym %s %lld %lld %lld\n", program->symbols[i].name,
			(long long)program->symbols[i].min, (long long)program->symbols[i].max,
			(long long)program->symbols[i].multiple);
	for (i = 0; i < program->n_slots; i++) {
		const struct pawl_slot *slot = &program->slots[i];
		uint32_t j;

		fprintf(out, "slot %s '%s' %lld at %lld, %d .. %d, %d:", pawl_slot_role_name(slot->role),
			slot->name, (long long)slot->bytes, (long long)slot->offset, slot->first_step,
			slot->last_step, slot->is_buffer);
		for (j = 0; j < slot->n_values; j++)
			fprintf(out, " %a", slot->values[j]);
		dump_type(out, &slot->type);
	}
	for (i = 0; i < program->n_outputs; i++)
		fprintf(out, "output %d\n", program->outputs[i]);
	for (i = 0; i < program->n_steps; i++)
		dump_step(out, &program->steps[i]);
	ck_assert_int_eq(fclose(out), 0);
	return text;
}

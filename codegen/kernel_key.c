#include "codegen/kernel_key.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Text that grows; NULL once memory was exhausted. */
struct text {
	char *bytes;
	size_t length, capacity;
};

static void put(struct text *t, const char *format, ...) PAWL_PRINTF(2, 3);

static void
put(struct text *t, const char *format, ...)
{
	char piece[128];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(piece, sizeof(piece), format, args);
	va_end(args);
	if (!t->bytes || n < 0)
		return;
	if (t->length + (size_t)n + 1 > t->capacity) {
		char *larger = realloc(t->bytes, 2 * t->capacity);

		if (!larger)
			free(t->bytes);
		t->bytes = larger;
		t->capacity *= 2;
		if (!larger)
			return;
	}
	memcpy(t->bytes + t->length, piece, (size_t)n + 1);
	t->length += (size_t)n;
}

/* Reals by their bits: exact, and independent of the locale. */
static void
put_real(struct text *t, const char *name, double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	if (bits)
		put(t, " %s=%" PRIx64, name, bits);
}

static void
put_int(struct text *t, const char *name, int64_t n, int64_t usual)
{
	if (n != usual)
		put(t, " %s=%" PRId64, name, n);
}

static void
put_type(struct text *t, const struct pawl_type *type)
{
	int i;

	put(t, "%s", pawl_dtype_name(type->dtype));
	for (i = 0; i < type->rank; i++) {
		put(t, "%c%" PRId64, i ? ',' : '[', type->dim[i].base);
		if (type->dim[i].sym >= 0)
			put(t, "+%" PRId64 "$%d", type->dim[i].factor, type->dim[i].sym);
	}
	put(t, type->rank ? "]" : "[]");
}

/* Attention of a symbolic length takes nothing from the capacity of keys and values. */
static void
put_input_type(struct text *t, const struct pawl_step_op *op, int input)
{
	struct pawl_type type = op->inputs[input].type;

	if (op->op == PAWL_OP_ATTENTION && op->attrs.sym >= 0 && (input == 1 || input == 2))
		type.dim[2] = pawl_dim_const(0);
	put_type(t, &type);
}

static void
put_access(struct text *t, const struct pawl_access *a, int rank)
{
	int i;

	put(t, "@%d %s %s", a->arg, pawl_dtype_name(a->dtype), pawl_layout_name(a->layout));
	for (i = 0; i < rank; i++) {
		int64_t planes = pawl_access_planes(a, i);

		put(t, planes ? "%c%" PRId64 "p" : "%c%" PRId64, i ? ',' : ':',
			planes ? planes : a->stride[i]);
	}
	if (a->pitch)
		put(t, " p @%d", a->pitch_arg);
	if (a->layout == PAWL_LAYOUT_K16)
		put(t, " pos %d from %" PRId64 " of %" PRId64, a->pos_dim, a->pos0, a->width);
	if (a->at_dim >= 0)
		put(t, " at %d %s%d $%d mod %" PRId64, a->at_dim, a->at_rows ? "rows " : "",
			a->at_arg, a->at_sym, a->modulus);
}

static void
put_op(struct text *t, const struct pawl_step_op *op)
{
	const struct pawl_attrs *a = &op->attrs;
	int i;

	put(t, "%s ", pawl_op_name(op->op));
	put_type(t, &op->type);
	put_real(t, "eps", a->eps);
	put_real(t, "scale", a->scale);
	put_real(t, "softcap", a->softcap);
	put_int(t, "window", a->window, 0);
	put_int(t, "block", a->block, 0);
	put_int(t, "causal", a->causal, 1);
	put_int(t, "sym", a->sym, -1);
	put_int(t, "pairs", a->pairs, 0);
	for (i = 0; i < op->n_inputs; i++) {
		put(t, " <- ");
		put_input_type(t, op, i);
		if (op->inputs[i].value >= 0)
			put(t, "%%%d", op->inputs[i].value);
		else
			put_access(t, &op->inputs[i].access, op->inputs[i].type.rank);
	}
	for (i = 0; i < op->n_outs; i++) {
		put(t, " -> ");
		put_access(t, &op->outs[i], op->type.rank);
	}
	put(t, "\n");
}

static bool
has_symbolic_types(const struct pawl_step *step)
{
	int32_t i, j;

	for (i = 0; i < step->n_ops; i++) {
		const struct pawl_step_op *op = &step->ops[i];

		if (!pawl_type_is_static(&op->type))
			return true;
		for (j = 0; j < op->n_inputs; j++) {
			if (!pawl_type_is_static(&op->inputs[j].type))
				return true;
		}
	}
	return false;
}

char *
pawl_kernel_key(const struct pawl_program *program, const struct pawl_step *step,
	enum pawl_cpu_variant variant)
{
	struct text t = {.capacity = 1024};
	int32_t i;

	t.bytes = calloc(1, t.capacity);
	put(&t, "%s %s scratch %d args", pawl_cpu_variant_info(variant)->name,
		pawl_template_name(step->template), step->scratch_arg);
	/* Starts are read as what their slots hold. */
	for (i = 0; i < step->n_args; i++)
		put(&t, " %s", pawl_dtype_name(program->slots[step->args[i].slot].type.dtype));
	put(&t, "\n");
	/* Scratch memory is made for the largest extents. */
	for (i = 0; i < program->n_symbols && has_symbolic_types(step); i++)
		put(&t, "$%d %" PRId64 " %" PRId64 "\n", i, program->symbols[i].min,
			program->symbols[i].max);
	for (i = 0; i < step->n_ops; i++)
		put_op(&t, &step->ops[i]);
	return t.bytes;
}

uint64_t
pawl_kernel_key_hash(const char *key)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *key; key++)
		hash = (hash ^ (unsigned char)*key) * 0x100000001b3u;
	return hash;
}

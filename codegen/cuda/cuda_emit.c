#include "codegen/cuda/cuda_emit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ir/half.h"

void
pawl_cuda_refuse(struct pawl_cuda_emit *e, const struct pawl_step_op *op, const char *format, ...)
{
	struct pawl_error reason = {.status = PAWL_OK};
	va_list args;

	if (e->status)
		return;
	va_start(args, format);
	pawl_vfail(&reason, PAWL_UNSUPPORTED, format, args);
	va_end(args);
	e->status = pawl_fail(e->err, PAWL_UNSUPPORTED, "step %s: %s: %s",
		e->step->name ? e->step->name : "", pawl_op_name(op->op), reason.text);
}

static void
indent(struct pawl_cuda_emit *e)
{
	int i;

	for (i = 0; i < e->indent; i++)
		pawl_cuda_text_append(e->out, "\t", 1);
}

void
pawl_cuda_line(struct pawl_cuda_emit *e, const char *format, ...)
{
	va_list args;

	indent(e);
	va_start(args, format);
	pawl_cuda_text_vprint(e->out, format, args);
	va_end(args);
	pawl_cuda_text_append(e->out, "\n", 1);
}

void
pawl_cuda_open(struct pawl_cuda_emit *e, const char *format, ...)
{
	va_list args;

	indent(e);
	va_start(args, format);
	pawl_cuda_text_vprint(e->out, format, args);
	va_end(args);
	pawl_cuda_text_print(e->out, " {\n");
	e->indent++;
}

void
pawl_cuda_close(struct pawl_cuda_emit *e)
{
	e->indent--;
	pawl_cuda_line(e, "}");
	pawl_cuda_move(e);
}

static int
declare(struct pawl_cuda_emit *e, const char *qualifier, const char *type, const char *format,
	va_list args)
{
	int variable = e->n_variables++;

	indent(e);
	pawl_cuda_text_print(e->out, "%s%s v%d = ", qualifier, type, variable);
	pawl_cuda_text_vprint(e->out, format, args);
	pawl_cuda_text_append(e->out, ";\n", 2);
	return variable;
}

int
pawl_cuda_let(struct pawl_cuda_emit *e, const char *type, const char *format, ...)
{
	va_list args;
	int variable;

	va_start(args, format);
	variable = declare(e, "const ", type, format, args);
	va_end(args);
	return variable;
}

int
pawl_cuda_var(struct pawl_cuda_emit *e, const char *type, const char *format, ...)
{
	va_list args;
	int variable;

	va_start(args, format);
	variable = declare(e, "", type, format, args);
	va_end(args);
	return variable;
}

int
pawl_cuda_loop(struct pawl_cuda_emit *e, const char *from, const char *to, const char *step)
{
	int variable = e->n_variables++;

	pawl_cuda_open(e, "for (%s v%d = %s; v%d < %s; v%d += %s)", e->index, variable, from,
		variable, to, variable, step);
	pawl_cuda_move(e);
	return variable;
}

int
pawl_cuda_unrolled(
	struct pawl_cuda_emit *e, int times, const char *from, const char *to, const char *step)
{
	pawl_cuda_line(e, "PAWL_UNROLL(%d)", times);
	return pawl_cuda_loop(e, from, to, step);
}

void
pawl_cuda_move(struct pawl_cuda_emit *e)
{
	memset(e->memo, 0, sizeof(e->memo));
}

const char *
pawl_cuda_type_name(enum pawl_dtype dtype)
{
	return pawl_dtype_is_float(dtype) ? "float" : "i64";
}

struct pawl_cuda_words
pawl_cuda_dim(struct pawl_dim dim)
{
	struct pawl_cuda_words words;

	if (dim.sym < 0)
		snprintf(words.s, sizeof(words.s), "%" PRId64, dim.base);
	else if (dim.base == 0 && dim.factor == 1)
		snprintf(words.s, sizeof(words.s), "s%" PRId32, dim.sym);
	else
		snprintf(words.s, sizeof(words.s), "(%" PRId64 " + %" PRId64 " * s%" PRId32 ")",
			dim.base, dim.factor, dim.sym);
	return words;
}

struct pawl_cuda_words
pawl_cuda_real(double value)
{
	float x = (float)value;
	uint32_t bits = pawl_f32_bits(x), exponent = bits >> 23 & 0xff;
	struct pawl_cuda_words words;

	/* No decimal point but that of the format, which a locale cannot change. */
	if (exponent == 0xff || exponent == 0)
		snprintf(words.s, sizeof(words.s), "pawl_f32_from_bits(0x%08" PRIx32 "u)", bits);
	else if (x > -1e6f && x < 1e6f && x == (float)(int)x)
		snprintf(words.s, sizeof(words.s), "%d.0f", (int)x);
	else
		snprintf(words.s, sizeof(words.s), "%s0x%" PRIx32 "p%df", bits >> 31 ? "-" : "",
			(bits & 0x7fffff) | 0x800000, (int)exponent - 150);
	return words;
}

struct pawl_cuda_words
pawl_cuda_rows(const struct pawl_type *type)
{
	struct pawl_cuda_words words;
	int64_t rest = 1;
	int i;

	for (i = 1; i + 1 < type->rank; i++)
		rest *= type->dim[i].base;
	if (type->rank < 2)
		snprintf(words.s, sizeof(words.s), "1");
	else if (type->dim[0].sym < 0)
		snprintf(words.s, sizeof(words.s), "%" PRId64, type->dim[0].base * rest);
	else if (rest == 1)
		return pawl_cuda_dim(type->dim[0]);
	else
		snprintf(words.s, sizeof(words.s), "%.80s * %" PRId64,
			pawl_cuda_dim(type->dim[0]).s, rest);
	return words;
}

/* Splits a variable over dims first .. 0, the last of them fastest. */
static void
split(struct pawl_cuda_emit *e, const struct pawl_type *type, int last, int flat,
	struct pawl_cuda_position *at)
{
	int64_t inner = 1;
	int j;

	for (j = last; j >= 0; j--) {
		struct pawl_dim dim = type->dim[j];

		if (dim.sym < 0 && dim.base == 1)
			at->index[j] = 0;
		else if (j == 0 && inner == 1)
			at->index[j] = flat;
		else if (j == 0)
			at->index[j] = pawl_cuda_let(e, e->index, "v%d / %" PRId64, flat, inner);
		else if (inner == 1)
			at->index[j] =
				pawl_cuda_let(e, e->index, "v%d %% %" PRId64, flat, dim.base);
		else
			at->index[j] = pawl_cuda_let(e, e->index, "v%d / %" PRId64 " %% %" PRId64,
				flat, inner, dim.base);
		inner *= dim.base;
	}
}

void
pawl_cuda_split(struct pawl_cuda_emit *e, const struct pawl_type *type, int flat,
	struct pawl_cuda_position *at)
{
	split(e, type, type->rank - 1, flat, at);
}

void
pawl_cuda_split_row(struct pawl_cuda_emit *e, const struct pawl_type *type, int row,
	struct pawl_cuda_position *at)
{
	split(e, type, type->rank - 2, row, at);
}

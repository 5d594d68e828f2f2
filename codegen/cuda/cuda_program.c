#include "codegen/cuda/cuda_program.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/cuda/cuda_emit.h"

enum {
	STATE_ALIGN = 64,
	/* Elements of steps that one block runs one after the other, together at most. */
	CHAIN_ELEMENTS = 4096
};

struct writer {
	struct pawl_cuda_program *out;
	const struct pawl_program *program;
	struct pawl_cuda_text body;          /* of the kernel being written */
	uint32_t packed;                     /* weight types that it unpacks */
	uint32_t unpackers[PAWL_CUDA_UNITS]; /* those that a source has */
	int64_t *largest;                    /* value of each symbol */
	int64_t n_counters;
	struct pawl_error *err;
};

/* Names of people's files end up in a comment. */
static void
print_name(struct pawl_cuda_text *out, const char *name)
{
	for (; name && *name; name++) {
		bool plain = isalnum((unsigned char)*name) || strchr("._+-", *name);

		pawl_cuda_text_append(out, plain ? name : "?", 1);
	}
}

/* What the kernel computes, an op a line. */
static void
print_comment(struct pawl_cuda_text *out, const struct pawl_program *program, int32_t number,
	int32_t n_steps)
{
	int32_t s, i;

	pawl_cuda_text_print(out, "\n/*");
	for (s = number; s < number + n_steps; s++) {
		const struct pawl_step *step = &program->steps[s];

		pawl_cuda_text_print(out, "\n * step %" PRId32 " ", s);
		print_name(out, step->name);
		for (i = 0; i < step->n_ops; i++)
			pawl_cuda_text_print(out, "\n *\t%s: %s", pawl_op_name(step->ops[i].op),
				pawl_op_info(step->ops[i].op)->doc);
	}
	pawl_cuda_text_print(out, "\n */\n");
}

static void
let_pitch(struct pawl_cuda_emit *e, const struct pawl_access *access, bool *is_known)
{
	if (!access->pitch || is_known[access->pitch_arg])
		return;
	is_known[access->pitch_arg] = true;
	pawl_cuda_line(e, "const i64 p%" PRId32 " = *(const i64 *)a%" PRId32 ";", access->pitch_arg,
		access->pitch_arg);
}

/* The distances of planes that windows are computed with, read once. */
static enum pawl_status
let_pitches(struct pawl_cuda_emit *e)
{
	bool *is_known = calloc((size_t)e->step->n_args + 1, sizeof(*is_known));
	int32_t i, j;

	if (!is_known)
		return pawl_fail(e->err, PAWL_OUT_OF_MEMORY, "no memory to write kernels");
	for (i = 0; i < e->step->n_ops; i++) {
		const struct pawl_step_op *op = &e->step->ops[i];

		for (j = 0; j < op->n_inputs; j++) {
			if (op->inputs[j].value < 0)
				let_pitch(e, &op->inputs[j].access, is_known);
		}
		for (j = 0; j < op->n_outs; j++)
			let_pitch(e, &op->outs[j], is_known);
	}
	free(is_known);
	return PAWL_OK;
}

static void
emit_body(struct pawl_cuda_emit *e)
{
	int32_t i;

	for (i = 0; i < e->step->n_args; i++)
		pawl_cuda_line(e, "char *const a%" PRId32 " = pawl_global(args[%" PRId32 "]);", i,
			e->first_arg + i);
	for (i = 0; i < e->program->n_symbols; i++)
		pawl_cuda_line(e, "const %s s%" PRId32 " = (%s)symbols[%" PRId32 "];", e->index, i,
			e->index, i);
	e->status = let_pitches(e);
	e->n_variables = 0;
	pawl_cuda_let(e, e->index, "0");
	switch (e->step->template) {
	case PAWL_TEMPLATE_MAP:
	case PAWL_TEMPLATE_GATHER:
	case PAWL_TEMPLATE_BATCH:
		pawl_cuda_map(e);
		break;
	case PAWL_TEMPLATE_ROWS:
		pawl_cuda_rows_kernel(e);
		break;
	case PAWL_TEMPLATE_MATMUL:
		if (pawl_cuda_is_packed(e->step))
			pawl_cuda_packed(e);
		else
			pawl_cuda_matmul(e);
		break;
	case PAWL_TEMPLATE_ATTEND:
		pawl_cuda_attend(e);
		break;
	case PAWL_N_TEMPLATES:
		break;
	}
}

static int64_t
count_blocks(const struct writer *w, const struct pawl_step *step)
{
	struct pawl_segments segments;
	int64_t blocks = 0;

	pawl_step_segments(step, &segments);
	switch (step->template) {
	case PAWL_TEMPLATE_MAP:
	case PAWL_TEMPLATE_GATHER:
	case PAWL_TEMPLATE_BATCH:
		blocks = pawl_cuda_map_blocks(step, &segments, w->largest);
		break;
	case PAWL_TEMPLATE_MATMUL:
		blocks = pawl_cuda_is_packed(step) ? pawl_cuda_packed_units(step, &segments)
						   : pawl_cuda_matmul_blocks(step, &segments);
		break;
	case PAWL_TEMPLATE_ROWS:
	case PAWL_TEMPLATE_ATTEND:
		blocks = pawl_step_units(step, &segments, 0, w->largest);
		break;
	case PAWL_N_TEMPLATES:
		break;
	}
	if (blocks > PAWL_CUDA_MOST_BLOCKS)
		return PAWL_CUDA_MOST_BLOCKS;
	return blocks > 1 ? blocks : 1;
}

/* Of a type whose dims are at their largest; INT64_MAX stands for anything beyond it. */
static int64_t
count_elements(const struct writer *w, const struct pawl_type *type)
{
	int64_t n = 1;
	int j;

	for (j = 0; j < type->rank; j++) {
		if (__builtin_mul_overflow(n, pawl_dim_value(type->dim[j], w->largest), &n))
			return INT64_MAX;
	}
	return n;
}

/* Whether numbers of elements do not fit an int; what a step stores nowhere is no larger. */
static bool
is_wide(const struct writer *w, const struct pawl_step *step)
{
	int32_t i;

	for (i = 0; i < step->n_args; i++) {
		const struct pawl_slot *slot = &w->program->slots[step->args[i].slot];

		if (slot->bytes > INT32_MAX || count_elements(w, &slot->type) > INT32_MAX)
			return true;
	}
	return false;
}

/* The kernel with the body just written: one that there is, or a new one in the shortest source. */
static int32_t
find_kernel(struct writer *w, int32_t step, int32_t n_steps)
{
	struct pawl_cuda_program *out = w->out;
	struct pawl_cuda_kernel *kernel;
	struct pawl_cuda_text *source;
	uint32_t missing;
	int32_t i, dtype;

	for (i = 0; i < out->n_kernels; i++) {
		kernel = &out->kernels[i];
		source = &out->sources[kernel->unit];
		if (kernel->n == w->body.n && !w->body.failed && !source->failed &&
			!memcmp(source->bytes + kernel->at, w->body.bytes, w->body.n))
			return i;
	}
	kernel = &out->kernels[out->n_kernels++];
	for (i = 1; i < out->n_units; i++) {
		if (out->sources[i].n < out->sources[kernel->unit].n)
			kernel->unit = i;
	}
	source = &out->sources[kernel->unit];
	missing = w->packed & ~w->unpackers[kernel->unit];
	w->unpackers[kernel->unit] |= missing;
	for (dtype = 0; dtype < PAWL_N_DTYPES; dtype++) {
		if (missing >> dtype & 1)
			pawl_cuda_unpacker(source, (enum pawl_dtype)dtype);
	}
	snprintf(kernel->name, sizeof(kernel->name), "step%" PRId32 "_%s", step,
		pawl_template_name(w->program->steps[step].template));
	kernel->step = step;
	kernel->threads = PAWL_CUDA_THREADS;
	print_comment(source, w->program, step, n_steps);
	pawl_cuda_text_print(
		source, "PAWL_KERNEL(%s, %" PRId32 ")\n{\n", kernel->name, kernel->threads);
	kernel->at = source->n;
	kernel->n = w->body.n;
	pawl_cuda_text_append(source, w->body.bytes, w->body.n);
	pawl_cuda_text_append(source, "}\n", 2);
	return out->n_kernels - 1;
}

static int64_t
count_stored(const struct writer *w, const struct pawl_step *step)
{
	int64_t n = 0;
	int32_t i;

	for (i = 0; i < step->n_ops && n <= CHAIN_ELEMENTS; i++) {
		if (step->ops[i].n_outs &&
			__builtin_add_overflow(n, count_elements(w, &step->ops[i].type), &n))
			return INT64_MAX;
	}
	return n;
}

/* Steps from `first` on that one block runs in less time than a launch of each would take. */
static int32_t
count_chain(const struct writer *w, int32_t first)
{
	int64_t elements = 0;
	int32_t s;

	for (s = first; s < w->program->n_steps; s++) {
		const struct pawl_step *step = &w->program->steps[s];

		if (step->template != PAWL_TEMPLATE_ROWS && step->template != PAWL_TEMPLATE_MAP)
			break;
		if (__builtin_add_overflow(elements, count_stored(w, step), &elements) ||
			elements > CHAIN_ELEMENTS)
			break;
	}
	return s > first + 1 ? s - first : 1;
}

static enum pawl_status
write_step(struct writer *w, int32_t number, int32_t first, bool is_single)
{
	const struct pawl_step *step = &w->program->steps[number];
	struct pawl_cuda_emit e = {.out = &w->body,
		.program = w->program,
		.step = step,
		.first_arg = step->first_arg - w->program->steps[first].first_arg,
		.is_single = is_single,
		.indent = is_single ? 2 : 1,
		.err = w->err};

	e.index = is_wide(w, step) ? "i64" : "int";
	if (step->n_ops > PAWL_MAX_BODY_OPS)
		return pawl_fail(w->err, PAWL_UNSUPPORTED,
			"step %s: %s: %" PRId32 " ops in one step", step->name ? step->name : "",
			pawl_op_name(step->ops[0].op), step->n_ops);
	if (step->template == PAWL_TEMPLATE_ATTEND) {
		int64_t n = pawl_cuda_attend_counters(step, w->largest);

		w->n_counters = n > w->n_counters ? n : w->n_counters;
	}
	pawl_step_segments(step, &e.segments);
	emit_body(&e);
	w->packed |= e.packed;
	return e.status;
}

/* A chain is a block of its own for each step, behind a barrier: memory is then as it was to be. */
static enum pawl_status
write_launch(struct writer *w, int32_t first, int32_t n_steps)
{
	struct pawl_cuda_launch *launch = &w->out->launches[w->out->n_launches++];
	enum pawl_status status = PAWL_OK;
	int32_t s;

	pawl_cuda_text_clear(&w->body);
	w->packed = 0;
	if (n_steps == 1)
		status = write_step(w, first, first, false);
	for (s = first; n_steps > 1 && s < first + n_steps && !status; s++) {
		pawl_cuda_text_print(&w->body, s == first ? "\tif (PAWL_BLOCK == 0) {\n"
							  : "\tPAWL_SYNC();\n"
							    "\tif (PAWL_BLOCK == 0) {\n");
		status = write_step(w, s, first, true);
		pawl_cuda_text_print(&w->body, "\t}\n");
	}
	if (status)
		return status;
	launch->step = first;
	launch->n_steps = n_steps;
	launch->kernel = find_kernel(w, first, n_steps);
	launch->blocks = n_steps > 1 ? 1 : (int32_t)count_blocks(w, &w->program->steps[first]);
	return PAWL_OK;
}

static enum pawl_status
no_memory(struct pawl_error *err)
{
	return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory to write kernels");
}

static enum pawl_status
write_program(struct writer *w)
{
	const struct pawl_program *program = w->program;
	size_t n = (size_t)program->n_steps + 1;
	enum pawl_status status = PAWL_OK;
	bool failed = false;
	int32_t i, n_steps;

	w->out->kernels = calloc(n, sizeof(*w->out->kernels));
	w->out->launches = calloc(n, sizeof(*w->out->launches));
	w->largest = calloc((size_t)program->n_symbols + 1, sizeof(*w->largest));
	if (!w->out->kernels || !w->out->launches || !w->largest)
		return no_memory(w->err);
	for (i = 0; i < program->n_symbols; i++)
		w->largest[i] = program->symbols[i].max;
	for (i = 0; i < w->out->n_units; i++)
		pawl_cuda_prelude(&w->out->sources[i]);
	for (i = 0; i < program->n_steps && !status; i += n_steps) {
		n_steps = count_chain(w, i);
		status = write_launch(w, i, n_steps);
	}
	for (i = 0; i < w->out->n_units; i++)
		failed = failed || w->out->sources[i].failed;
	if (!status && (failed || w->body.failed))
		return no_memory(w->err);
	if (w->out->n_units > w->out->n_kernels)
		w->out->n_units = w->out->n_kernels > 0 ? w->out->n_kernels : 1;
	w->out->state_bytes = 8 * (int64_t)program->n_symbols + 4 * w->n_counters;
	w->out->state_bytes = (w->out->state_bytes / STATE_ALIGN + 1) * STATE_ALIGN;
	return status;
}

enum pawl_status
pawl_cuda_program_init(
	struct pawl_cuda_program *out, const struct pawl_program *program, struct pawl_error *err)
{
	struct writer w = {.out = out, .program = program, .err = err};
	enum pawl_status status;
	int i;

	*out = (struct pawl_cuda_program){.n_units = PAWL_CUDA_UNITS};
	for (i = 0; i < PAWL_CUDA_UNITS; i++)
		pawl_cuda_text_init(&out->sources[i]);
	pawl_cuda_text_init(&w.body);
	status = write_program(&w);
	pawl_cuda_text_release(&w.body);
	free(w.largest);
	if (status)
		pawl_cuda_program_release(out);
	return status;
}

void
pawl_cuda_program_release(struct pawl_cuda_program *cuda)
{
	int i;

	for (i = 0; i < PAWL_CUDA_UNITS; i++)
		pawl_cuda_text_release(&cuda->sources[i]);
	free(cuda->kernels);
	free(cuda->launches);
	*cuda = (struct pawl_cuda_program){.n_kernels = 0};
}

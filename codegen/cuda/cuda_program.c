#include "codegen/cuda/cuda_program.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/cuda/cuda_emit.h"

struct writer {
	struct pawl_cuda_program *out;
	const struct pawl_program *program;
	struct pawl_cuda_text body; /* of the kernel being written */
	int64_t *largest;           /* value of each symbol */
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
print_comment(struct writer *w, int32_t number)
{
	const struct pawl_step *step = &w->program->steps[number];
	struct pawl_cuda_text *out = &w->out->source;
	int32_t i;

	pawl_cuda_text_print(out, "\n/*\n * step %" PRId32 " ", number);
	print_name(out, step->name);
	for (i = 0; i < step->n_ops; i++)
		pawl_cuda_text_print(out, "\n *\t%s: %s", pawl_op_name(step->ops[i].op),
			pawl_op_info(step->ops[i].op)->doc);
	pawl_cuda_text_print(out, "\n */\n");
}

static void
let_pitch(struct pawl_cuda_emit *e, const struct pawl_access *access, bool *is_known)
{
	if (!access->pitch || is_known[access->pitch_arg])
		return;
	is_known[access->pitch_arg] = true;
	pawl_cuda_line(e, "const i64 p%" PRId32 " = *(const i64 *)a%" PRId32 ";",
		access->pitch_arg, access->pitch_arg);
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
emit_body(struct pawl_cuda_emit *e, int phase)
{
	int32_t i;

	for (i = 0; i < e->step->n_args; i++)
		pawl_cuda_line(e, "char *const a%" PRId32 " = (char *)args[%" PRId32 "];", i, i);
	e->status = let_pitches(e);
	e->n_variables = 0;
	pawl_cuda_let(e, "i64", "0");
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
		pawl_cuda_matmul(e);
		break;
	case PAWL_TEMPLATE_ATTEND:
		pawl_cuda_attend(e, phase);
		break;
	case PAWL_N_TEMPLATES:
		break;
	}
}

static int64_t
count_blocks(const struct writer *w, const struct pawl_step *step,
	const struct pawl_segments *segments, int phase)
{
	int64_t blocks = 0;

	switch (step->template) {
	case PAWL_TEMPLATE_MAP:
	case PAWL_TEMPLATE_GATHER:
	case PAWL_TEMPLATE_BATCH:
		blocks = pawl_cuda_map_blocks(step, segments, w->largest);
		break;
	case PAWL_TEMPLATE_MATMUL:
		blocks = pawl_cuda_matmul_blocks(step, segments);
		break;
	case PAWL_TEMPLATE_ROWS:
	case PAWL_TEMPLATE_ATTEND:
		blocks = pawl_step_units(step, segments, phase, w->largest);
		break;
	case PAWL_N_TEMPLATES:
		break;
	}
	if (blocks > PAWL_CUDA_MOST_BLOCKS)
		return PAWL_CUDA_MOST_BLOCKS;
	return blocks > 1 ? blocks : 1;
}

static const char *
kernel_kind(const struct pawl_step *step, int phase)
{
	if (step->template == PAWL_TEMPLATE_ATTEND)
		return phase ? "merge" : "attend";
	return pawl_template_name(step->template);
}

/* The kernel with the body just written: one that there is, or a new one. */
static int32_t
find_kernel(struct writer *w, int32_t step, int phase)
{
	struct pawl_cuda_program *out = w->out;
	struct pawl_cuda_kernel *kernel;
	int32_t i;

	for (i = 0; i < out->n_kernels; i++) {
		kernel = &out->kernels[i];
		if (kernel->n == w->body.n && !w->body.failed && !out->source.failed &&
			!memcmp(out->source.bytes + kernel->at, w->body.bytes, w->body.n))
			return i;
	}
	kernel = &out->kernels[out->n_kernels++];
	snprintf(kernel->name, sizeof(kernel->name), "step%" PRId32 "_%s", step,
		kernel_kind(&w->program->steps[step], phase));
	kernel->threads = PAWL_CUDA_THREADS;
	print_comment(w, step);
	pawl_cuda_text_print(
		&out->source, "PAWL_KERNEL(%s, %" PRId32 ")\n{\n", kernel->name, kernel->threads);
	kernel->at = out->source.n;
	kernel->n = w->body.n;
	pawl_cuda_text_append(&out->source, w->body.bytes, w->body.n);
	pawl_cuda_text_append(&out->source, "}\n", 2);
	return i;
}

static enum pawl_status
write_step(struct writer *w, int32_t number)
{
	const struct pawl_step *step = &w->program->steps[number];
	struct pawl_cuda_launch *launch;
	int phase;

	if (step->n_ops > PAWL_MAX_BODY_OPS)
		return pawl_fail(w->err, PAWL_UNSUPPORTED,
			"step %s: %s: %" PRId32 " ops in one step", step->name ? step->name : "",
			pawl_op_name(step->ops[0].op), step->n_ops);
	for (phase = 0; phase < pawl_step_phases(step); phase++) {
		struct pawl_cuda_emit e = {.out = &w->body,
			.program = w->program,
			.step = step,
			.indent = 1,
			.err = w->err};

		pawl_cuda_text_clear(&w->body);
		pawl_step_segments(step, &e.segments);
		emit_body(&e, phase);
		if (e.status)
			return e.status;
		launch = &w->out->launches[w->out->n_launches++];
		launch->step = number;
		launch->kernel = find_kernel(w, number, phase);
		launch->blocks = (int32_t)count_blocks(w, step, &e.segments, phase);
	}
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
	size_t n = 2 * (size_t)program->n_steps + 1;
	enum pawl_status status = PAWL_OK;
	int32_t i;

	w->out->kernels = calloc(n, sizeof(*w->out->kernels));
	w->out->launches = calloc(n, sizeof(*w->out->launches));
	w->largest = calloc((size_t)program->n_symbols + 1, sizeof(*w->largest));
	if (!w->out->kernels || !w->out->launches || !w->largest)
		return no_memory(w->err);
	for (i = 0; i < program->n_symbols; i++)
		w->largest[i] = program->symbols[i].max;
	pawl_cuda_prelude(&w->out->source);
	for (i = 0; i < program->n_steps && !status; i++)
		status = write_step(w, i);
	if (!status && (w->out->source.failed || w->body.failed))
		return no_memory(w->err);
	return status;
}

enum pawl_status
pawl_cuda_program_init(
	struct pawl_cuda_program *out, const struct pawl_program *program, struct pawl_error *err)
{
	struct writer w = {.out = out, .program = program, .err = err};
	enum pawl_status status;

	*out = (struct pawl_cuda_program){.n_kernels = 0};
	pawl_cuda_text_init(&out->source);
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
	pawl_cuda_text_release(&cuda->source);
	free(cuda->kernels);
	free(cuda->launches);
	*cuda = (struct pawl_cuda_program){.n_kernels = 0};
}

/*
 * The reference target: programs run as written, in scalar C, on the calling thread alone.  It
 * is what every other target is compared with, bit for bit.
 */
#include "codegen/target.h"

#include "codegen/ref_step.h"
#include "ir/build_id.h"
#include "ir/fpenv.h"

#include <stdlib.h>

/* It has no state, but needs an address. */
struct pawl_target {
	char unused;
};

struct pawl_code {
	const struct pawl_program *program;
	int64_t scratch_bytes;
};

static enum pawl_status
open_target(
	const struct pawl_target_options *options, struct pawl_target **out, struct pawl_error *err)
{
	static struct pawl_target target;

	(void)options;
	(void)err;
	*out = &target;
	return PAWL_OK;
}

static void
close_target(struct pawl_target *target)
{
	(void)target;
}

static enum pawl_layout
weight_layout(const struct pawl_target *target, const struct pawl_type *type)
{
	(void)target;
	(void)type;
	return PAWL_LAYOUT_ROWS;
}

static enum pawl_status
compile(struct pawl_target *target, const struct pawl_program *program, struct pawl_code **out,
	struct pawl_error *err)
{
	enum pawl_status status;
	struct pawl_code *code;

	(void)target;
	code = calloc(1, sizeof(*code));
	if (!code)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for code");
	code->program = program;
	status = pawl_ref_program_check(program, &code->scratch_bytes, err);
	if (status) {
		free(code);
		return status;
	}
	*out = code;
	return PAWL_OK;
}

static void
code_free(struct pawl_code *code)
{
	free(code);
}

static void
code_info(const struct pawl_code *code, struct pawl_code_info *out)
{
	*out = (struct pawl_code_info){
		.thread_scratch_bytes = code->scratch_bytes, .variant = "reference"};
}

static enum pawl_status
run_code(const struct pawl_code *code, const struct pawl_run *run, struct pawl_error *err)
{
	uint32_t saved;
	enum pawl_status status;

	if (run->is_stopped && run->is_stopped(run->stop_arg))
		return pawl_fail(err, PAWL_ENVIRONMENT, "the run was told to stop");
	saved = pawl_fpenv_enter();
	status = pawl_ref_program_run(
		code->program, run->args, run->symbols, run->thread_scratch[0], err);
	pawl_fpenv_leave(saved);
	return status;
}

static void
counters(const struct pawl_target *target, struct pawl_target_counters *out)
{
	(void)target;
	*out = (struct pawl_target_counters){0};
}

__attribute__((visibility("default"))) const struct pawl_target_api *pawl_target_query(void);

const struct pawl_target_api *
pawl_target_query(void)
{
	static const struct pawl_target_api api = {
		.size = sizeof(api),
		.build_id = pawl_build_id,
		.name = "ref",
		.open = open_target,
		.close = close_target,
		.weight_layout = weight_layout,
		.compile = compile,
		.code_free = code_free,
		.code_info = code_info,
		.run = run_code,
		.counters = counters,
	};

	return &api;
}

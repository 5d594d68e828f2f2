#include "tools/plan_print.h"

#include "ir/debug.h"
#include "runtime/plan_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *
name_of(const struct pawl_slot *slot)
{
	return slot->name ? slot->name : "-";
}

static void
print_key(const struct pawl_plan *plan)
{
	printf("key");
	for (int i = 0; i < PAWL_KEY_ALLOC_ID; i++) {
		enum pawl_key_field field = (enum pawl_key_field)i;
		char text[64];

		printf("%s%s %s", i ? ", " : "      ", pawl_key_field_name(field),
			pawl_key_value_text(
				field, pawl_plan_key_value(&plan->key, field), text, sizeof(text)));
	}
	printf("\n");
}

static void
print_memory(const struct pawl_plan *plan)
{
	const struct pawl_program *program = plan->program;
	int64_t bytes[PAWL_N_SLOT_ROLES] = {0};

	for (int32_t i = 0; i < program->n_slots; i++)
		bytes[program->slots[i].role] += pawl_storage_bytes(&plan->types[i]);
	printf("memory  ");
	for (int role = 0; role < PAWL_N_SLOT_ROLES; role++)
		printf(" %s %" PRId64 ",", pawl_slot_role_name((enum pawl_slot_role)role),
			bytes[role]);
	printf(" planned %" PRId64 " bytes\n", program->scratch_bytes);
}

/* The first step that is named after that layer of a model; -1: there is none. */
static int32_t
first_step_of(const struct pawl_program *program, int64_t layer)
{
	char start[32];
	int n = snprintf(start, sizeof(start), "blk.%" PRId64 ".", layer);

	for (int32_t i = 0; i < program->n_steps; i++) {
		const char *name = program->steps[i].name;

		if (name && !strncmp(name, start, (size_t)n))
			return i;
	}
	return -1;
}

static void
print_launches(const struct pawl_plan *plan)
{
	const struct pawl_target_api *api = plan->device->api;
	int64_t last = plan->key.n_layers - 1;
	int32_t from, to;

	if (!api->launch_of)
		return;
	printf("launches %" PRId32, plan->code_info.n_launches);
	from = first_step_of(plan->program, 0);
	to = first_step_of(plan->program, last);
	if (last > 0 && from >= 0 && to > from)
		printf(", %.3g a layer", (double)(api->launch_of(plan->code, to) -
						  api->launch_of(plan->code, from)) /
						 (double)last);
	printf("\n");
}

static void
print_head(const struct pawl_plan *plan)
{
	const struct pawl_program *program = plan->program;
	const struct pawl_code_info *code = &plan->code_info;
	int64_t flops = 0, bytes = 0;

	for (int32_t i = 0; i < program->n_steps; i++) {
		flops += program->steps[i].flops;
		bytes += program->steps[i].bytes;
	}
	printf("plan     %s, graph 0x%016" PRIx64 "\n", program->name ? program->name : "-",
		program->hash);
	printf("target   %s, %s, code of %" PRId64 " bytes, hash 0x%016" PRIx64 "\n",
		plan->device->api->name, code->variant, code->code_bytes, code->code_hash);
	print_launches(plan);
	print_key(plan);
	printf("size     %" PRId32 " nodes became %" PRId32 " steps, %" PRId32 " slots, %" PRId32
	       " arguments\n",
		plan->report.nodes_in, program->n_steps, program->n_slots, program->n_args);
	printf("work     %" PRId64 " operations, %" PRId64 " bytes at most\n", flops, bytes);
	print_memory(plan);
	printf("passes  ");
	for (int i = 0; i < plan->report.n_passes; i++) {
		const struct pawl_pass_report *report = &plan->report.passes[i];

		if (report->ran)
			printf(" %s %d%s", pawl_pass_info(report->pass)->name, report->n_changes,
				i + 1 < plan->report.n_passes ? "," : "");
		else
			printf(" %s skipped%s", pawl_pass_info(report->pass)->name,
				i + 1 < plan->report.n_passes ? "," : "");
	}
	printf("\n");
	for (int32_t i = 0; i < program->n_symbols; i++)
		printf("symbol   $%s: %" PRId64 " .. %" PRId64 ", a multiple of %" PRId64 "\n",
			program->symbols[i].name, program->symbols[i].min, program->symbols[i].max,
			program->symbols[i].multiple);
}

static void
print_args(const struct pawl_step *step, bool written, const char *label)
{
	const char *separator = label;

	for (int32_t i = 0; i < step->n_args; i++) {
		const struct pawl_arg *arg = &step->args[i];

		if (arg->written != written)
			continue;
		printf("%s%" PRId32, separator, arg->slot);
		if (arg->offset)
			printf("+%" PRId64, arg->offset);
		separator = " ";
	}
}

static void
print_steps(const struct pawl_plan *plan)
{
	const struct pawl_program *program = plan->program;

	printf("\nstep  template  operations       bytes  body; slots; what it was\n");
	for (int32_t i = 0; i < program->n_steps; i++) {
		const struct pawl_step *step = &program->steps[i];

		printf("%4" PRId32 "  %-8s%12" PRId64 "%12" PRId64 "  ", i,
			pawl_template_name(step->template), step->flops, step->bytes);
		for (int32_t j = 0; j < step->n_ops; j++)
			printf("%s%s", j ? " " : "", pawl_op_name(step->ops[j].op));
		print_args(step, false, "; ");
		print_args(step, true, " -> ");
		printf("; %s\n", step->name ? step->name : "-");
	}
}

static void
print_slots(const struct pawl_plan *plan)
{
	const struct pawl_program *program = plan->program;

	printf("\nslot  role           bytes      offset  steps      type, name\n");
	for (int32_t i = 0; i < program->n_slots; i++) {
		const struct pawl_slot *slot = &program->slots[i];
		bool planned = slot->role == PAWL_SLOT_TEMP || slot->role == PAWL_SLOT_OUTPUT;
		char text[512];

		printf("%4" PRId32 "  %-8s%12" PRId64, i, pawl_slot_role_name(slot->role),
			pawl_storage_bytes(&plan->types[i]));
		if (planned)
			printf("%12" PRId64, slot->offset);
		else
			printf("%12s", "-");
		printf("  %4" PRId32 "..%-4" PRId32 " %s %s\n", slot->first_step, slot->last_step,
			pawl_program_type_text(program, &slot->type, text, sizeof(text)),
			name_of(slot));
	}
	printf("\noutputs ");
	for (int32_t i = 0; i < program->n_outputs; i++)
		printf(" %" PRId32, program->outputs[i]);
	printf("\n");
}

void
pawl_plan_print(const struct pawl_plan *plan)
{
	print_head(plan);
	print_steps(plan);
	print_slots(plan);
}

struct time_lines {
	const struct pawl_command *command;
	const char *plan;
};

static void
print_time(void *arg, const char *text)
{
	const struct time_lines *lines = arg;

	pawl_note(lines->command, "plan %s: %s", lines->plan, text);
}

void
pawl_plan_print_times(const struct pawl_command *command, const struct pawl_plan *plan)
{
	struct time_lines lines = {command, plan->program->name ? plan->program->name : "-"};

	if (pawl_debug(PAWL_DEBUG_TIME))
		pawl_plan_time_lines(plan, print_time, &lines);
}

#include <stdlib.h>
#include <string.h>

#include "ir/debug.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "plugins/host_api.h"
#include "runtime/plan_json.h"
#include "runtime/plan_text.h"

static bool
is_named(const struct pawl_slot *slot)
{
	return slot->role == PAWL_SLOT_WEIGHT || slot->role == PAWL_SLOT_KV ||
		slot->role == PAWL_SLOT_DATA;
}

/* One binding for each name: a weight may lie in several slots, one per layout. */
static void
list_bindings(struct pawl_host_plan *plan)
{
	const struct pawl_program *program = plan->plan->program;
	int32_t i;

	for (i = 0; i < program->n_slots; i++) {
		struct pawl_type type = plan->plan->types[i];

		if (!is_named(&program->slots[i]) ||
			pawl_program_find_slot(program, program->slots[i].name) != i)
			continue;
		if (program->slots[i].role == PAWL_SLOT_WEIGHT)
			type.layout = PAWL_LAYOUT_ROWS;
		pawl_print_type(plan->types[plan->n_bindings], sizeof(plan->types[0]), NULL, &type);
		plan->slots[plan->n_bindings++] = i;
	}
}

static struct pawl_status_object *
wrap_plan(struct pawl_context *context, struct pawl_plan *held, struct pawl_host_plan **out)
{
	size_t n = (size_t)held->program->n_slots + 1;
	struct pawl_host_plan *plan = calloc(1, sizeof(*plan));

	if (plan) {
		plan->slots = calloc(n, sizeof(*plan->slots));
		plan->types = calloc(n, sizeof(*plan->types));
	}
	if (!plan || !plan->slots || !plan->types) {
		if (plan) {
			free(plan->slots);
			free(plan->types);
		}
		free(plan);
		pawl_plan_unref(held);
		return pawl_host_refuse(PAWL_OUT_OF_MEMORY, "no memory for a plan");
	}
	plan->context = context;
	plan->plan = held;
	atomic_init(&plan->n_refs, 1);
	atomic_fetch_add(&context->n_children, 1);
	list_bindings(plan);
	*out = plan;
	return NULL;
}

static void
log_time(void *arg, const char *text)
{
	pawl_host_log(arg, 2, "%s", text);
}

struct pawl_status_object *
pawl_host_plan_compile(struct pawl_host_graph *graph, struct pawl_host_plan **out)
{
	struct pawl_error err;
	struct pawl_plan_options options = {0};
	struct pawl_context *context;
	struct pawl_graph *parsed;
	struct pawl_plan *plan;
	enum pawl_status status;
	const char *tail = "}\n";

	if (!graph || !out)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "plan_compile: a pointer is NULL");
	context = graph->context;
	if (graph->is_open) /* there is room: every statement was tried with its brace */
		memcpy(graph->text + graph->n, tail, strlen(tail));
	status = pawl_parse(graph->text, graph->n + (graph->is_open ? strlen(tail) : 0), "graph", &parsed,
		NULL, &err);
	if (graph->is_open)
		graph->text[graph->n] = 0;
	if (status != PAWL_OK)
		return pawl_host_status(status, &err);
	options.key.precision = context->precision;
	status = pawl_plan_build(parsed, context->device, &options, &plan, &err);
	pawl_graph_free(parsed);
	if (status != PAWL_OK)
		return pawl_host_status(status, &err);
	atomic_fetch_add(&context->optimizes, 1);
	pawl_host_log(context, 2, "plan '%s': %d steps, %s", plan->program->name, plan->program->n_steps,
		plan->code_info.variant);
	if (pawl_debug(PAWL_DEBUG_TIME))
		pawl_plan_time_lines(plan, log_time, context);
	return wrap_plan(context, plan, out);
}

void
pawl_host_plan_retain(struct pawl_host_plan *plan)
{
	if (plan)
		atomic_fetch_add(&plan->n_refs, 1);
}

void
pawl_host_plan_release(struct pawl_host_plan *plan)
{
	if (!plan || atomic_fetch_sub(&plan->n_refs, 1) != 1)
		return;
	pawl_plan_unref(plan->plan);
	atomic_fetch_sub(&plan->context->n_children, 1);
	free(plan->slots);
	free(plan->types);
	free(plan);
}

int32_t
pawl_host_plan_n_bindings(const struct pawl_host_plan *plan)
{
	return plan ? plan->n_bindings : 0;
}

int
pawl_host_plan_binding(const struct pawl_host_plan *plan, int32_t i, struct pawl_binding_info *out)
{
	const struct pawl_slot *slot;
	struct pawl_binding_info info;

	if (!plan || !out || i < 0 || i >= plan->n_bindings)
		return 0;
	slot = &plan->plan->program->slots[plan->slots[i]];
	info = (struct pawl_binding_info){.struct_size = out->struct_size, .name = slot->name,
		.role = pawl_slot_role_name(slot->role), .type = plan->types[i], .n_bytes = slot->bytes};
	memcpy(out, &info, out->struct_size < sizeof(info) ? out->struct_size : sizeof(info));
	return 1;
}

struct pawl_status_object *
pawl_host_plan_to_json(const struct pawl_host_plan *plan, pawl_sink *sink, void *user)
{
	struct pawl_error err;
	enum pawl_status status;
	char *text;
	int stopped;

	if (!plan || !sink)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "plan_to_json: a pointer is NULL");
	status = pawl_plan_json(plan->plan, &text, &err);
	if (status != PAWL_OK)
		return pawl_host_status(status, &err);
	stopped = sink(user, text, strlen(text));
	free(text);
	return stopped ? pawl_host_refuse(PAWL_ENVIRONMENT, "plan_to_json: the sink refused") : NULL;
}

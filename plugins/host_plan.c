#include <stdlib.h>
#include <string.h>

#include "ir/debug.h"
#include "plugins/host_api.h"
#include "runtime/forecast.h"
#include "runtime/plan_json.h"
#include "runtime/plan_text.h"

enum { MEMORY_NEEDS_1 = 56, MAX_PLANS = 1024 };

_Static_assert(sizeof(struct pawl_memory_needs) >= MEMORY_NEEDS_1, "structs only grow");

static void
plan_free(struct pawl_host_plan *plan)
{
	pawl_plan_unref(plan->plan);
	free(plan->kv_slots);
	free(plan->bindings);
	free(plan->slots);
	free(plan->texts);
	pawl_host_object_free(plan);
}

/*
 * Where the cache's tensors are in the plan.  A graph may have a kv const that nothing reads or
 * writes.
 */
static enum pawl_status
find_kv_slots(struct pawl_host_plan *plan, struct pawl_error *err)
{
	struct pawl_host_geometry *g = &plan->geometry;
	int32_t n = g->n_layers * g->n_which;

	if (g->kind == PAWL_GEOMETRY_NONE)
		return PAWL_OK;
	plan->kv_slots = calloc((size_t)n, sizeof(*plan->kv_slots));
	if (!plan->kv_slots)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a plan");
	for (int32_t i = 0; i < n; i++) {
		char name[PAWL_KV_NAME_BYTES];

		pawl_host_kv_name(g, i / g->n_which, i % g->n_which, name);
		plan->kv_slots[i] = pawl_plan_find_slot(plan->plan, PAWL_SLOT_KV, name);
		if (plan->kv_slots[i] >= 0)
			continue;
		*g = (struct pawl_host_geometry){.kind = PAWL_GEOMETRY_NONE};
		pawl_fail(&g->why, PAWL_UNSUPPORTED, "the plan has no use for kv const %s", name);
		break;
	}
	return PAWL_OK;
}

static void
log_line(void *context, const char *text)
{
	pawl_host_log(context, 2, "%s", text);
}

static void
tell(struct pawl_host_context *context, const struct pawl_plan *plan, const char *how)
{
	struct pawl_target_counters target;

	pawl_host_log(context, 2, "plan '%s' %s: %d steps, %s, %llu kernels compiled, %llu read",
		plan->program->name, how, plan->program->n_steps, plan->code_info.variant,
		(unsigned long long)plan->n_kernels_compiled,
		(unsigned long long)plan->n_kernels_read);
	pawl_device_counters(context->device, &target);
	if (target.cache_fault)
		pawl_host_log(context, 1, "kernels are not kept on disk: %s", target.cache_fault);
	if (pawl_debug(PAWL_DEBUG_TIME))
		pawl_plan_time_lines(plan, log_line, context);
}

/* Takes the plan, also on failure. */
static struct pawl_host_status *
wrap(struct pawl_host_context *context, const struct pawl_host_geometry *geometry,
	struct pawl_plan *held, struct pawl_host_plan **out)
{
	struct pawl_host_plan *plan = pawl_host_object_new(PAWL_HOST_PLAN, context, sizeof(*plan));
	enum pawl_status status;
	struct pawl_error err;

	if (!plan) {
		pawl_plan_unref(held);
		return pawl_host_refuse(PAWL_OUT_OF_MEMORY, "no memory for a plan");
	}
	plan->plan = held;
	plan->geometry = *geometry;
	status = find_kv_slots(plan, &err);
	if (!status)
		status = pawl_host_list_bindings(plan, &err);
	if (status)
		plan_free(plan);
	else
		*out = plan;
	return pawl_host_status(status, &err);
}

static struct pawl_plan_options
options_of(const struct pawl_host_context *context, const struct pawl_host_geometry *geometry)
{
	struct pawl_plan_options options = {.key.precision = context->precision};

	pawl_host_geometry_key(geometry, &options.key);
	return options;
}

static struct pawl_host_status *
make(struct pawl_host_plan *like, struct pawl_host_graph *graph, struct pawl_host_plan **out)
{
	struct pawl_host_context *context = graph->object.context;
	const struct pawl_graph *ir = pawl_host_graph_graph(graph);
	struct pawl_host_status *failed;
	struct pawl_host_geometry geometry;
	struct pawl_plan_options options;
	const struct pawl_block_source *before;
	enum pawl_status status;
	struct pawl_error err;
	struct pawl_plan *plan;

	if (pawl_host_is_aborted(context))
		return pawl_host_refuse(PAWL_ENVIRONMENT, "the host asks to give up");
	pawl_host_geometry_of(ir, &geometry);
	options = options_of(context, &geometry);
	before = pawl_host_enter(context);
	status = like ? pawl_plan_regrow(like->plan, ir, &options, &plan, &err)
		      : pawl_plan_build(ir, context->device, &options, &plan, &err);
	pawl_host_leave(before);
	if (status)
		return pawl_host_status(status, &err);
	tell(context, plan, like ? "regrown" : "compiled");
	failed = wrap(context, &geometry, plan, out);
	if (!failed)
		atomic_fetch_add(like ? &context->counts.regrown : &context->counts.plans, 1);
	return failed;
}

struct pawl_host_status *
pawl_host_plan_compile(struct pawl_host_graph *graph, struct pawl_host_plan **out)
{
	if (!pawl_host_is(graph, PAWL_HOST_GRAPH) || !out)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "plan_compile: no graph or a pointer is NULL");
	return make(NULL, graph, out);
}

struct pawl_host_status *
pawl_host_plan_regrow(
	struct pawl_host_plan *like, struct pawl_host_graph *graph, struct pawl_host_plan **out)
{
	if (!pawl_host_is(like, PAWL_HOST_PLAN) || !pawl_host_is(graph, PAWL_HOST_GRAPH) || !out)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"plan_regrow: no plan, no graph or a pointer is NULL");
	if (like->object.context != graph->object.context)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "plan_regrow: plan and graph are of two contexts");
	return make(like, graph, out);
}

void
pawl_host_plan_retain(struct pawl_host_plan *plan)
{
	if (pawl_host_is(plan, PAWL_HOST_PLAN))
		pawl_host_retain(plan);
}

void
pawl_host_plan_release(struct pawl_host_plan *plan)
{
	if (pawl_host_drop(plan, PAWL_HOST_PLAN))
		plan_free(plan);
}

struct pawl_host_status *
pawl_host_plan_to_json(const struct pawl_host_plan *plan, pawl_sink *sink, void *user)
{
	struct pawl_error err;
	enum pawl_status status;
	char *text;
	int stopped;

	if (!pawl_host_is(plan, PAWL_HOST_PLAN) || !sink)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "plan_to_json: no plan or no sink");
	status = pawl_plan_json(plan->plan, &text, &err);
	if (status)
		return pawl_host_status(status, &err);
	stopped = sink(user, text, strlen(text));
	free(text);
	return stopped ? pawl_host_refuse(PAWL_ENVIRONMENT, "plan_to_json: the sink refused")
		       : NULL;
}

static int64_t
kv_bytes(const struct pawl_host_plan *plan)
{
	const struct pawl_program *program = plan->plan->program;
	int64_t n = 0;

	for (int32_t i = 0; i < program->n_slots; i++)
		if (program->slots[i].role == PAWL_SLOT_KV)
			n += program->slots[i].bytes;
	return n;
}

struct pawl_host_status *
pawl_host_plans_forecast(
	struct pawl_host_plan *const *plans, int64_t n_plans, struct pawl_memory_needs *out)
{
	const struct pawl_plan *held[MAX_PLANS];
	struct pawl_memory_forecast forecast;
	struct pawl_memory_needs needs;
	enum pawl_status status;
	struct pawl_error err;

	if (!plans || !out || n_plans < 1 || n_plans > MAX_PLANS)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"plans_forecast: a pointer is NULL, or %lld plans", (long long)n_plans);
	for (int64_t i = 0; i < n_plans; i++) {
		if (!pawl_host_is(plans[i], PAWL_HOST_PLAN) ||
			plans[i]->object.context != plans[0]->object.context)
			return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
				"plans_forecast: plan %lld is none of the context of the first",
				(long long)i);
		held[i] = plans[i]->plan;
	}
	status = pawl_forecast_memory(
		held, (int)n_plans, NULL, plans[0]->object.context->n_threads, &forecast, &err);
	if (status)
		return pawl_host_status(status, &err);
	needs = (struct pawl_memory_needs){
		.weights = forecast.weights,
		.read = forecast.mapped,
		.kv = kv_bytes(plans[0]),
		.scratch = forecast.scratch,
		.data = forecast.data,
		.code = forecast.code,
	};
	return pawl_host_write(out, MEMORY_NEEDS_1, &needs, sizeof(needs))
		       ? NULL
		       : pawl_host_refuse(PAWL_INVALID_ARGUMENT,
				 "plans_forecast: struct_size of the needs is wrong");
}

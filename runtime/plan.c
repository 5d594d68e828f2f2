#include "runtime/plan.h"

#include "passes/observe.h"
#include "passes/regrow.h"
#include "runtime/clock.h"
#include "runtime/literal.h"
#include "runtime/memory.h"

#include <string.h>

static enum pawl_layout
weight_layout(const void *arg, const struct pawl_type *type)
{
	const struct pawl_device *device = arg;

	return device->api->weight_layout(device->target, type);
}

static enum pawl_status
optimize(struct pawl_plan *plan, const struct pawl_graph *graph,
	const struct pawl_plan_options *options, struct pawl_error *err)
{
	struct pawl_optimize_options o = {
		.facts =
			{
				.precision = options->key.precision,
				.weight_layout = weight_layout,
				.target = plan->device,
				.max_prologue_rows = 1,
			},
		.no_reuse = options->no_reuse,
	};
	enum pawl_status status = pawl_run_options_from_env(&o.run, err);

	if (status)
		return status;
	if (pawl_graph_can_regrow(graph))
		o.optimized = &plan->optimized;
	if (options->counters)
		options->counters->optimizes++;
	return pawl_optimize(graph, &o, &plan->program, &plan->report, err);
}

static enum pawl_status
regrow(struct pawl_plan *plan, const struct pawl_plan *like, const struct pawl_graph *graph,
	const struct pawl_plan_options *options, struct pawl_error *err)
{
	const struct pawl_optimize_options o = {.no_reuse = options->no_reuse};

	if (!like->optimized)
		return pawl_fail(err, PAWL_UNSUPPORTED, "graph '%s' sees the capacity of its caches",
			graph->name);
	plan->report = like->report;
	return pawl_regrow(like->optimized, like->program->hash, graph, &o, &plan->optimized,
		&plan->program, err);
}

/* The type with symbolic dims at their largest. */
static struct pawl_type
largest(const struct pawl_program *program, struct pawl_type type)
{
	for (int i = 0; i < type.rank; i++) {
		struct pawl_dim *dim = &type.dim[i];

		if (dim->factor)
			*dim = pawl_dim_const(
				dim->base + dim->factor * program->symbols[dim->sym].max);
	}
	return type;
}

static enum pawl_status
collect_points(struct pawl_plan *plan, struct pawl_error *err)
{
	const struct pawl_program *program = plan->program;
	int32_t n_slots = program->n_slots;
	int32_t *at;

	plan->first_point = pawl_memory_zalloc((size_t)n_slots + 1, sizeof(*plan->first_point));
	plan->points = pawl_memory_zalloc((size_t)program->n_args, sizeof(*plan->points));
	plan->types = pawl_memory_zalloc((size_t)n_slots, sizeof(*plan->types));
	at = pawl_memory_zalloc((size_t)n_slots, sizeof(*at));
	if (!plan->first_point || !plan->points || !plan->types || !at) {
		pawl_memory_free(at);
		return pawl_fail(
			err, PAWL_OUT_OF_MEMORY, "no memory for %d bind points", program->n_args);
	}
	for (int32_t s = 0; s < program->n_steps; s++)
		for (int32_t i = 0; i < program->steps[s].n_args; i++)
			plan->first_point[program->steps[s].args[i].slot + 1]++;
	for (int32_t i = 0; i < n_slots; i++) {
		plan->types[i] = largest(program, program->slots[i].type);
		plan->first_point[i + 1] += plan->first_point[i];
		at[i] = plan->first_point[i];
	}
	for (int32_t s = 0; s < program->n_steps; s++) {
		const struct pawl_step *step = &program->steps[s];

		for (int32_t i = 0; i < step->n_args; i++)
			plan->points[at[step->args[i].slot]++] =
				(struct pawl_bind_point){step->first_arg + i, step->args[i].offset};
	}
	pawl_memory_free(at);
	return PAWL_OK;
}

static enum pawl_status
literal_new(const struct pawl_plan *plan, const struct pawl_slot *slot, const struct pawl_type *type,
	struct pawl_storage **out, struct pawl_error *err)
{
	struct pawl_storage *literal;
	enum pawl_status status =
		pawl_literal_new(type, slot->values, slot->n_values, &literal, err);

	return status ? status : pawl_storage_settle(literal, plan->device, out, err);
}

static enum pawl_status
make_literals(struct pawl_plan *plan, struct pawl_error *err)
{
	const struct pawl_program *program = plan->program;
	enum pawl_status status = PAWL_OK;

	plan->literals = pawl_memory_zalloc((size_t)program->n_slots, sizeof(*plan->literals));
	if (!plan->literals)
		return pawl_fail(
			err, PAWL_OUT_OF_MEMORY, "no memory for %d slots", program->n_slots);
	for (int32_t i = 0; i < program->n_slots && !status; i++) {
		const struct pawl_slot *slot = &program->slots[i];

		if (slot->role == PAWL_SLOT_LITERAL)
			status = literal_new(plan, slot, &plan->types[i], &plan->literals[i], err);
	}
	return status;
}

static enum pawl_status
compile(struct pawl_plan *plan, struct pawl_error *err)
{
	const struct pawl_device *device = plan->device;
	struct pawl_target_counters before, after;
	double start = pawl_seconds();
	enum pawl_status status;

	pawl_device_counters(device, &before);
	status = device->api->compile(device->target, plan->program, &plan->code, err);
	pawl_device_counters(device, &after);
	plan->compile_seconds = pawl_seconds() - start;
	plan->n_kernels_compiled = after.kernel_compiles - before.kernel_compiles;
	plan->n_kernels_read = after.kernels_read - before.kernels_read;
	return status;
}

/* Everything after the program; frees the plan on failure. */
static enum pawl_status
finish(struct pawl_plan *plan, enum pawl_status status, struct pawl_plan **out,
	struct pawl_error *err)
{
	if (!status)
		status = collect_points(plan, err);
	if (!status)
		status = pawl_index_checks(plan->program, &plan->checks, &plan->n_checks, err);
	if (!status)
		status = make_literals(plan, err);
	if (!status)
		status = compile(plan, err);
	if (status) {
		pawl_plan_unref(plan);
		return status;
	}
	plan->device->api->code_info(plan->code, &plan->code_info);
	*out = plan;
	return PAWL_OK;
}

static struct pawl_plan *
plan_new(struct pawl_device *device, const struct pawl_plan_key *key, struct pawl_error *err)
{
	struct pawl_plan *plan = pawl_memory_zalloc(1, sizeof(*plan));

	if (!plan) {
		pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a plan");
		return NULL;
	}
	atomic_init(&plan->n_refs, 1);
	plan->device = pawl_device_ref(device);
	plan->key = *key;
	plan->key.device = device->id;
	return plan;
}

enum pawl_status
pawl_plan_build(const struct pawl_graph *graph, struct pawl_device *device,
	const struct pawl_plan_options *options, struct pawl_plan **out, struct pawl_error *err)
{
	struct pawl_plan *plan = plan_new(device, &options->key, err);

	return plan ? finish(plan, optimize(plan, graph, options, err), out, err)
		    : PAWL_OUT_OF_MEMORY;
}

enum pawl_status
pawl_plan_regrow(const struct pawl_plan *like, const struct pawl_graph *graph,
	const struct pawl_plan_options *options, struct pawl_plan **out, struct pawl_error *err)
{
	struct pawl_plan *plan = plan_new(like->device, &options->key, err);

	return plan ? finish(plan, regrow(plan, like, graph, options, err), out, err)
		    : PAWL_OUT_OF_MEMORY;
}

struct pawl_plan *
pawl_plan_ref(struct pawl_plan *plan)
{
	atomic_fetch_add_explicit(&plan->n_refs, 1, memory_order_relaxed);
	return plan;
}

void
pawl_plan_unref(struct pawl_plan *plan)
{
	if (!plan || atomic_fetch_sub_explicit(&plan->n_refs, 1, memory_order_acq_rel) != 1)
		return;
	if (plan->code)
		plan->device->api->code_free(plan->code);
	if (plan->literals)
		for (int32_t i = 0; i < plan->program->n_slots; i++)
			pawl_storage_unref(plan->literals[i]);
	pawl_memory_free(plan->literals);
	pawl_memory_free(plan->checks);
	pawl_memory_free(plan->types);
	pawl_memory_free(plan->points);
	pawl_memory_free(plan->first_point);
	if (plan->program)
		pawl_program_free(plan->program);
	pawl_graph_free(plan->optimized);
	pawl_device_unref(plan->device);
	pawl_memory_free(plan);
}

int64_t
pawl_plan_bytes(const struct pawl_plan *plan)
{
	const struct pawl_program *program = plan->program;
	int64_t n = (int64_t)program->arena.n_bytes + plan->code_info.code_bytes;

	for (int32_t i = 0; i < program->n_slots; i++)
		if (plan->literals[i])
			n += plan->literals[i]->n_bytes;
	if (plan->optimized)
		n += (int64_t)plan->optimized->arena.n_bytes;
	return n;
}

int32_t
pawl_plan_find_slot(const struct pawl_plan *plan, enum pawl_slot_role role, const char *name)
{
	for (int32_t i = 0; i < plan->program->n_slots; i++) {
		const struct pawl_slot *slot = &plan->program->slots[i];

		if (slot->role == role && slot->name && !strcmp(slot->name, name))
			return i;
	}
	return -1;
}

#include "runtime/inference_context.h"

#include "ir/each_token.h"
#include "runtime/decode_session.h"
#include "runtime/memory.h"

#include <string.h>

struct entry {
	char *name;
	struct pawl_storage *storage;
};

struct pawl_inference_context {
	struct pawl_device *device;
	struct pawl_run_hooks hooks;
	struct pawl_pool *pool; /* or */
	struct pawl_lent_team *lent;
	struct pawl_counters counters;
	struct entry *entries;
	int32_t n, cap;
	struct pawl_decode_session *session;
};

enum pawl_status
pawl_inference_context_new(struct pawl_device *device, int n_threads,
	struct pawl_inference_context **out, struct pawl_error *err)
{
	return pawl_inference_context_new_with(
		device, n_threads, &(struct pawl_run_hooks){.is_stopped = NULL}, out, err);
}

enum pawl_status
pawl_inference_context_new_with(struct pawl_device *device, int n_threads,
	const struct pawl_run_hooks *hooks, struct pawl_inference_context **out,
	struct pawl_error *err)
{
	struct pawl_inference_context *context = pawl_memory_zalloc(1, sizeof(*context));
	enum pawl_status status;

	if (!context)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a context");
	context->hooks = *hooks;
	status = hooks->threads.run
			 ? pawl_lent_team_new(&hooks->threads, n_threads, &context->lent, err)
			 : pawl_pool_new(n_threads, &context->pool, err);
	if (status) {
		pawl_memory_free(context);
		return status;
	}
	context->device = pawl_device_ref(device);
	*out = context;
	return PAWL_OK;
}

void
pawl_inference_context_free(struct pawl_inference_context *context)
{
	if (!context)
		return;
	pawl_decode_session_free(context->session);
	pawl_inference_context_clear_persistent(context);
	pawl_memory_free(context->entries);
	pawl_pool_free(context->pool);
	pawl_lent_team_free(context->lent);
	pawl_device_unref(context->device);
	pawl_memory_free(context);
}

PAWL_EACH_TOKEN struct pawl_device *
pawl_inference_context_device(const struct pawl_inference_context *context)
{
	return context->device;
}

uint64_t
pawl_inference_context_step_backs(const struct pawl_inference_context *context)
{
	return context->pool ? pawl_pool_step_backs(context->pool) : 0;
}

struct pawl_team *
pawl_inference_context_team(const struct pawl_inference_context *context)
{
	return context->pool ? pawl_pool_team(context->pool) : pawl_lent_team_team(context->lent);
}

const struct pawl_run_hooks *
pawl_inference_context_hooks(const struct pawl_inference_context *context)
{
	return &context->hooks;
}

PAWL_EACH_TOKEN struct pawl_counters *
pawl_inference_context_counters(struct pawl_inference_context *context)
{
	return &context->counters;
}

static struct entry *
find(const struct pawl_inference_context *context, const char *name)
{
	for (int32_t i = 0; i < context->n; i++)
		if (!strcmp(context->entries[i].name, name))
			return &context->entries[i];
	return NULL;
}

static bool
grow(struct pawl_inference_context *context)
{
	int32_t cap = context->cap ? 2 * context->cap : 16;
	struct entry *entries = pawl_memory_zalloc((size_t)cap, sizeof(*entries));

	if (!entries)
		return false;
	if (context->n)
		memcpy(entries, context->entries, (size_t)context->n * sizeof(*entries));
	pawl_memory_free(context->entries);
	context->entries = entries;
	context->cap = cap;
	return true;
}

enum pawl_status
pawl_inference_context_insert(struct pawl_inference_context *context, const char *name,
	struct pawl_storage *storage, struct pawl_error *err)
{
	struct entry *entry = find(context, name);

	if (!entry) {
		char *copy;

		if ((context->n == context->cap && !grow(context)) ||
			!(copy = pawl_memory_strdup(name)))
			return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory to remember %s", name);
		entry = &context->entries[context->n++];
		*entry = (struct entry){.name = copy};
	}
	pawl_storage_ref(storage);
	pawl_storage_unref(entry->storage);
	entry->storage = storage;
	return PAWL_OK;
}

bool
pawl_inference_context_remove(struct pawl_inference_context *context, const char *name)
{
	struct entry *entry = find(context, name);

	if (!entry)
		return false;
	pawl_storage_unref(entry->storage);
	pawl_memory_free(entry->name);
	*entry = context->entries[--context->n];
	return true;
}

struct pawl_storage *
pawl_inference_context_get(const struct pawl_inference_context *context, const char *name)
{
	const struct entry *entry = find(context, name);

	return entry ? entry->storage : NULL;
}

int32_t
pawl_inference_context_len(const struct pawl_inference_context *context)
{
	return context->n;
}

void
pawl_inference_context_clear_persistent(struct pawl_inference_context *context)
{
	while (context->n)
		pawl_inference_context_remove(context, context->entries[context->n - 1].name);
}

static enum pawl_status
bind_slot(struct pawl_inference_context *context, struct pawl_bindings *bindings, int32_t slot,
	struct pawl_error *err)
{
	const struct pawl_plan *plan = pawl_bindings_plan(bindings);
	const char *name = plan->program->slots[slot].name;
	struct pawl_storage *storage = pawl_inference_context_get(context, name), *packed;
	enum pawl_status status = PAWL_OK;

	if (!storage)
		return pawl_fail(
			err, PAWL_INVALID_ARGUMENT, "the context has no storage for %s", name);
	if (storage->location.space != PAWL_MEMORY_HOST ||
		plan->program->slots[slot].role != PAWL_SLOT_WEIGHT)
		return pawl_bindings_bind(bindings, slot, storage, err);
	if (plan->types[slot].layout != PAWL_LAYOUT_TILE16 ||
		storage->type.layout != PAWL_LAYOUT_ROWS)
		packed = pawl_storage_ref(storage);
	else
		status = pawl_storage_pack(storage, &plan->types[slot],
			pawl_inference_context_team(context), NULL, &packed, err);
	if (!status)
		status = pawl_storage_settle(packed, plan->device, &packed, err);
	if (status)
		return status;
	status = pawl_bindings_bind(bindings, slot, packed, err);
	pawl_storage_unref(packed);
	return status;
}

static enum pawl_status
bind_symbols(struct pawl_symenv *env, const int64_t *symbols, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;

	for (int32_t i = 0; i < env->n && symbols && !status; i++)
		status = pawl_symenv_bind(env, i, symbols[i], err);
	return status;
}

static enum pawl_status
run_once(struct pawl_inference_context *context, struct pawl_bindings *bindings,
	const int64_t *symbols, struct pawl_error *err)
{
	const struct pawl_program *program = pawl_bindings_plan(bindings)->program;
	enum pawl_status status = PAWL_OK;
	struct pawl_symenv env;

	for (int32_t i = 0; i < program->n_slots && !status; i++) {
		enum pawl_slot_role role = program->slots[i].role;

		if (role == PAWL_SLOT_WEIGHT || role == PAWL_SLOT_KV || role == PAWL_SLOT_DATA)
			status = bind_slot(context, bindings, i, err);
	}
	if (status)
		return status;
	status = pawl_symenv_init(&env, program->symbols, program->n_symbols, err);
	if (status)
		return status;
	status = bind_symbols(&env, symbols, err);
	if (!status)
		status = pawl_bindings_run(bindings, &env, &context->counters, err);
	pawl_symenv_release(&env);
	return status;
}

/* Memory for the host's copy of each output below n_host that is not made for this run anyway. */
static enum pawl_status
make_copies(const struct pawl_plan *plan, int32_t n_host, struct pawl_storage **outs,
	struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;

	for (int32_t i = 0; i < plan->program->n_outputs; i++)
		outs[i] = NULL;
	for (int32_t i = 0; i < n_host && !status; i++) {
		int32_t slot = plan->program->outputs[i];

		if (plan->program->slots[slot].role != PAWL_SLOT_OUTPUT ||
			plan->device->api->memory)
			status = pawl_storage_new(&plan->types[slot], &outs[i], err);
	}
	return status;
}

/* Fails before it gives anything. */
static enum pawl_status
take_outputs(const struct pawl_bindings *bindings, struct pawl_storage **outs,
	struct pawl_error *err)
{
	const struct pawl_program *program = pawl_bindings_plan(bindings)->program;
	enum pawl_status status = PAWL_OK;

	for (int32_t i = 0; i < program->n_outputs && !status; i++)
		if (outs[i])
			status = pawl_storage_read_all(
				pawl_bindings_storage(bindings, program->outputs[i]),
				outs[i]->bytes, err);
	for (int32_t i = 0; i < program->n_outputs && !status; i++)
		if (!outs[i])
			outs[i] = pawl_storage_ref(
				pawl_bindings_storage(bindings, program->outputs[i]));
	return status;
}

static enum pawl_status
run_plan(struct pawl_inference_context *context, struct pawl_plan *plan, int32_t n_host,
	const int64_t *symbols, struct pawl_storage **outs, struct pawl_error *err)
{
	struct pawl_bindings *bindings;
	enum pawl_status status = pawl_bindings_new_with_outputs(
		plan, pawl_inference_context_team(context), &bindings, err);

	if (status)
		return status;
	status = make_copies(plan, n_host, outs, err);
	if (!status)
		status = run_once(context, bindings, symbols, err);
	if (!status)
		status = take_outputs(bindings, outs, err);
	for (int32_t i = 0; i < n_host && status; i++)
		pawl_storage_unref(outs[i]);
	pawl_bindings_free(bindings);
	return status;
}

static enum pawl_status
realize(struct pawl_inference_context *context, const struct pawl_graph *graph, int32_t n_host,
	const int64_t *symbols, struct pawl_storage **outs, struct pawl_error *err)
{
	struct pawl_plan_options options = {.counters = &context->counters};
	struct pawl_plan *plan;
	enum pawl_status status = pawl_plan_build(graph, context->device, &options, &plan, err);

	if (status)
		return status;
	status = run_plan(context, plan, n_host, symbols, outs, err);
	pawl_plan_unref(plan);
	return status;
}

enum pawl_status
pawl_realize_many(struct pawl_inference_context *context, const struct pawl_graph *graph,
	const int64_t *symbols, struct pawl_storage **outs, struct pawl_error *err)
{
	return realize(context, graph, 0, symbols, outs, err);
}

enum pawl_status
pawl_realize_split(struct pawl_inference_context *context, const struct pawl_graph *graph,
	int32_t n_host, const int64_t *symbols, struct pawl_storage **outs, struct pawl_error *err)
{
	if (n_host < 0 || n_host > graph->n_outputs)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"graph %s has %d outputs, %d are wanted on the host",
			graph->name ? graph->name : "?", graph->n_outputs, n_host);
	return realize(context, graph, n_host, symbols, outs, err);
}

enum pawl_status
pawl_realize_one(struct pawl_inference_context *context, const struct pawl_graph *graph,
	const int64_t *symbols, struct pawl_storage **out, struct pawl_error *err)
{
	if (graph->n_outputs != 1)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "graph %s has %d outputs, 1 is wanted",
			graph->name ? graph->name : "?", graph->n_outputs);
	return pawl_realize_many(context, graph, symbols, out, err);
}

struct pawl_decode_session *
pawl_inference_context_take_session(struct pawl_inference_context *context)
{
	struct pawl_decode_session *session = context->session;

	context->session = NULL;
	return session;
}

void
pawl_inference_context_put_session(
	struct pawl_inference_context *context, struct pawl_decode_session *session)
{
	if (context->session != session)
		pawl_decode_session_free(context->session);
	context->session = session;
}

bool
pawl_inference_context_has_session(const struct pawl_inference_context *context)
{
	return context->session != NULL;
}

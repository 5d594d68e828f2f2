#include <stdlib.h>
#include <string.h>

#include "plugins/host_api.h"

static const struct pawl_program *
program_of(const struct pawl_instance *instance)
{
	return instance->plan->plan->program;
}

static enum pawl_status
init_instance(struct pawl_instance *instance, struct pawl_host_plan *plan, struct pawl_error *err)
{
	enum pawl_status status = pawl_pool_new(plan->context->n_threads, &instance->pool, err);

	if (status == PAWL_OK)
		status = pawl_bindings_new(
			plan->plan, pawl_pool_team(instance->pool), &instance->bindings, err);
	if (status == PAWL_OK)
		status = pawl_symenv_init(&instance->env, plan->plan->program->symbols,
			plan->plan->program->n_symbols, err);
	return status;
}

struct pawl_status_object *
pawl_host_instance_create(struct pawl_host_plan *plan, struct pawl_instance **out)
{
	struct pawl_instance *instance;
	enum pawl_status status;
	struct pawl_error err;

	if (!plan || !out)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "instance_create: a pointer is NULL");
	instance = calloc(1, sizeof(*instance));
	if (!instance)
		return pawl_host_refuse(PAWL_OUT_OF_MEMORY, "no memory for an instance");
	instance->plan = plan;
	pawl_host_plan_retain(plan);
	atomic_fetch_add(&plan->context->n_children, 1);
	status = init_instance(instance, plan, &err);
	if (status != PAWL_OK) {
		pawl_host_instance_destroy(instance);
		return pawl_host_status(status, &err);
	}
	*out = instance;
	return NULL;
}

void
pawl_host_instance_destroy(struct pawl_instance *instance)
{
	if (!instance)
		return;
	pawl_symenv_release(&instance->env);
	pawl_bindings_free(instance->bindings);
	pawl_pool_free(instance->pool);
	atomic_fetch_sub(&instance->plan->context->n_children, 1);
	pawl_host_plan_release(instance->plan);
	free(instance);
}

/* Lends host memory to one slot; a weight that the plan wants packed is packed now. */
static enum pawl_status
bind_slot(struct pawl_instance *instance, int32_t slot, void *bytes, size_t n_bytes,
	struct pawl_error *err)
{
	struct pawl_plan *plan = instance->plan->plan;
	struct pawl_type rows = plan->types[slot];
	struct pawl_storage *storage, *packed;
	enum pawl_status status;

	if (plan->program->slots[slot].role == PAWL_SLOT_WEIGHT)
		rows.layout = PAWL_LAYOUT_ROWS;
	status = pawl_storage_wrap(
		&rows, PAWL_LOCATION_HOST, bytes, (int64_t)n_bytes, NULL, NULL, &storage, err);
	if (status != PAWL_OK)
		return status;
	if (plan->types[slot].layout == PAWL_LAYOUT_TILE16) {
		status = pawl_storage_pack(storage, &plan->types[slot], pawl_pool_team(instance->pool),
			&packed, err);
		pawl_storage_unref(storage);
		if (status != PAWL_OK)
			return status;
		storage = packed;
	}
	status = pawl_bindings_bind(instance->bindings, slot, storage, err);
	pawl_storage_unref(storage);
	return status;
}

struct pawl_status_object *
pawl_host_instance_bind(struct pawl_instance *instance, const char *name, void *bytes, size_t n_bytes)
{
	const struct pawl_program *program;
	struct pawl_error err;
	int n_found = 0;
	int32_t i;

	if (!instance || !name || !bytes)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "instance_bind: a pointer is NULL");
	program = program_of(instance);
	for (i = 0; i < program->n_slots; i++) {
		const struct pawl_slot *slot = &program->slots[i];
		enum pawl_status status;

		if ((slot->role != PAWL_SLOT_WEIGHT && slot->role != PAWL_SLOT_KV) ||
			strcmp(slot->name, name))
			continue;
		n_found++;
		if ((int64_t)n_bytes != slot->bytes)
			return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
				"instance_bind: '%.64s' has %lld bytes, %zu are given", name,
				(long long)slot->bytes, n_bytes);
		if ((uintptr_t)bytes % (slot->role == PAWL_SLOT_KV ? 64 : 4))
			return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
				"instance_bind: '%.64s': the pointer is not aligned", name);
		status = bind_slot(instance, i, bytes, n_bytes, &err);
		if (status != PAWL_OK)
			return pawl_host_status(status, &err);
	}
	if (!n_found)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "instance_bind: no weight or kv '%.64s'", name);
	return NULL;
}

struct pawl_status_object *
pawl_host_instance_set_data(
	struct pawl_instance *instance, const char *name, const void *bytes, size_t n_bytes)
{
	int64_t wanted;
	int32_t slot;

	if (!instance || !name || !bytes)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "instance_set_data: a pointer is NULL");
	slot = pawl_plan_find_slot(instance->plan->plan, PAWL_SLOT_DATA, name);
	if (slot < 0)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "instance_set_data: no data '%.64s'", name);
	wanted = pawl_bindings_data_bytes(instance->bindings, slot);
	if ((int64_t)n_bytes != wanted)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"instance_set_data: '%.64s' has %lld bytes, %zu are given", name, (long long)wanted,
			n_bytes);
	pawl_bindings_offer(instance->bindings, slot, bytes);
	return NULL;
}

struct pawl_status_object *
pawl_host_instance_set_symbol(struct pawl_instance *instance, const char *name, int64_t value)
{
	struct pawl_error err;

	if (!instance || !name)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "instance_set_symbol: a pointer is NULL");
	return pawl_host_status(pawl_symenv_bind_name(&instance->env, name, value, &err), &err);
}

struct pawl_status_object *
pawl_host_instance_run(struct pawl_instance *instance)
{
	struct pawl_error err;
	enum pawl_status status;
	struct pawl_counters counters = {0};

	if (!instance)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "instance_run: a pointer is NULL");
	status = pawl_bindings_run(instance->bindings, &instance->env, &counters, &err);
	pawl_symenv_clear(&instance->env);
	if (status == PAWL_OK) {
		instance->has_run = 1;
		atomic_fetch_add(&instance->plan->context->runs, 1);
		atomic_fetch_add(&instance->plan->context->bytes_bound, counters.bytes_bound);
	}
	return pawl_host_status(status, &err);
}

struct pawl_status_object *
pawl_host_instance_output(
	const struct pawl_instance *instance, int32_t i, const void **bytes, size_t *n_bytes)
{
	const struct pawl_program *program;

	if (!instance || !bytes || !n_bytes)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "instance_output: a pointer is NULL");
	program = program_of(instance);
	if (i < 0 || i >= program->n_outputs)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "instance_output: %d of %d outputs", i,
			program->n_outputs);
	if (!instance->has_run)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "instance_output: the instance has not run");
	*bytes = pawl_bindings_output(instance->bindings, i, NULL);
	*n_bytes = (size_t)program->slots[program->outputs[i]].bytes;
	return NULL;
}

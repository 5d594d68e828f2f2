#include "runtime/bindings_parts.h"

#include "ir/debug.h"
#include "ir/each_token.h"
#include "runtime/clock.h"
#include "runtime/memory.h"

#include <inttypes.h>
#include <string.h>

static void
point(struct pawl_bindings *b, int32_t slot, char *base)
{
	const struct pawl_plan *plan = b->plan;

	for (int32_t i = plan->first_point[slot]; i < plan->first_point[slot + 1]; i++)
		b->args[plan->points[i].arg] = base ? base + plan->points[i].offset : NULL;
}

static void
put(struct pawl_bindings *b, int32_t slot, struct pawl_storage *storage)
{
	struct pawl_offer *offer = pawl_offers_find(&b->offers, slot);

	pawl_storage_unref(b->storages[slot]);
	b->storages[slot] = storage;
	if (offer)
		offer->to = storage->bytes;
	point(b, slot, storage->bytes);
	if (b->remote)
		pawl_remote_note_args(b->remote);
}

static enum pawl_status
alloc_tables(struct pawl_bindings *b, struct pawl_error *err)
{
	const struct pawl_program *program = b->plan->program;
	size_t n = (size_t)program->n_slots;

	b->storages = pawl_memory_zalloc(n, sizeof(*b->storages));
	b->offers.list = pawl_memory_zalloc(n, sizeof(*b->offers.list));
	b->outputs = pawl_memory_zalloc((size_t)program->n_outputs + 1, sizeof(*b->outputs));
	b->args = pawl_memory_zalloc((size_t)program->n_args, sizeof(*b->args));
	b->thread_scratch = pawl_memory_zalloc((size_t)b->n_threads, sizeof(*b->thread_scratch));
	if (!b->storages || !b->offers.list || !b->outputs || !b->args || !b->thread_scratch)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for the bindings of %d slots",
			program->n_slots);
	return PAWL_OK;
}

/* Outputs that own their memory leave the end of the scratch memory unused. */
static int64_t
scratch_bytes(const struct pawl_bindings *b)
{
	const struct pawl_program *program = b->plan->program;
	int64_t end = 0;

	if (!b->owns_outputs)
		return program->scratch_bytes;
	for (int32_t i = 0; i < program->n_slots; i++) {
		const struct pawl_slot *slot = &program->slots[i];

		if (slot->role == PAWL_SLOT_TEMP && slot->offset + slot->bytes > end)
			end = slot->offset + slot->bytes;
	}
	return end;
}

/* Of one thread. */
static int64_t
thread_bytes(const struct pawl_bindings *b)
{
	return (b->plan->code_info.thread_scratch_bytes + 63) / 64 * 64;
}

static enum pawl_status
alloc_scratch(struct pawl_bindings *b, struct pawl_error *err)
{
	if (b->plan->device->api->memory)
		return pawl_remote_new(
			b->plan, scratch_bytes(b), !b->owns_outputs, &b->remote, err);
	return pawl_scratch_reserve(
		b->scratch, scratch_bytes(b), thread_bytes(b) * b->n_threads, err);
}

static int64_t
owned_bytes(const struct pawl_bindings *b)
{
	const struct pawl_program *program = b->plan->program;
	int64_t n = 0;

	for (int32_t i = 0; i < program->n_slots && b->owns_outputs; i++) {
		if (program->slots[i].role == PAWL_SLOT_OUTPUT)
			n += program->slots[i].bytes;
	}
	return n;
}

/* Where temporaries and outputs are: an address of the device. */
static char *
scratch_at(const struct pawl_bindings *b, int64_t offset)
{
	char *start = b->remote ? pawl_remote_scratch(b->remote) : b->scratch->common.bytes;

	return start + offset;
}

/* A data slot is filled in on the host, wherever its steps read it. */
static enum pawl_status
fill_data(struct pawl_bindings *b, int32_t slot, struct pawl_error *err)
{
	const struct pawl_type *type = &b->plan->types[slot];
	struct pawl_storage *storage;
	enum pawl_status status;

	if (b->remote)
		status = pawl_storage_wrap(type, PAWL_LOCATION_HOST,
			pawl_remote_data(b->remote, slot), pawl_storage_bytes(type), NULL, NULL,
			&storage, err);
	else
		status = pawl_storage_new(type, &storage, err);
	if (status)
		return status;
	b->offers.list[b->offers.n++] = (struct pawl_offer){
		.n_bytes = (size_t)storage->n_bytes, .slot = slot};
	put(b, slot, storage);
	if (b->remote)
		point(b, slot, pawl_remote_device_data(b->remote, slot));
	return PAWL_OK;
}

/* Whatever lies in scratch memory, which may have moved. */
static void
point_to_scratch(struct pawl_bindings *b)
{
	const struct pawl_program *program = b->plan->program;

	for (int32_t i = 0; i < program->n_slots; i++) {
		const struct pawl_slot *slot = &program->slots[i];

		if ((slot->role == PAWL_SLOT_TEMP || slot->role == PAWL_SLOT_OUTPUT) &&
			!b->storages[i])
			point(b, i, scratch_at(b, slot->offset));
	}
	if (b->remote)
		return;
	for (int32_t i = 0; i < program->n_outputs && !b->owns_outputs; i++) {
		const struct pawl_slot *slot = &program->slots[program->outputs[i]];

		if (slot->role == PAWL_SLOT_OUTPUT)
			b->outputs[i] = scratch_at(b, slot->offset);
	}
	for (int i = 0; i < b->n_threads; i++)
		b->thread_scratch[i] = (char *)b->scratch->threads.bytes + thread_bytes(b) * i;
	b->common = b->scratch->common.bytes;
	b->threads = b->scratch->threads.bytes;
}

static enum pawl_status
fill_slots(struct pawl_bindings *b, struct pawl_error *err)
{
	const struct pawl_plan *plan = b->plan;
	struct pawl_region region = {NULL}, *outputs;
	enum pawl_status status = PAWL_OK;

	/* Those of a cache are many and live together. */
	outputs = owned_bytes(b) >= PAWL_REGION_FROM ? &region : NULL;

	for (int32_t i = 0; i < plan->program->n_slots && !status; i++) {
		const struct pawl_slot *slot = &plan->program->slots[i];
		struct pawl_storage *storage;

		switch (slot->role) {
		case PAWL_SLOT_WEIGHT:
		case PAWL_SLOT_KV:
			break;
		case PAWL_SLOT_DATA:
			status = fill_data(b, i, err);
			break;
		case PAWL_SLOT_LITERAL:
			put(b, i, pawl_storage_ref(plan->literals[i]));
			break;
		case PAWL_SLOT_OUTPUT:
			if (!b->owns_outputs)
				break;
			status = pawl_storage_new_on(
				plan->device, outputs, &plan->types[i], &storage, err);
			if (!status)
				put(b, i, storage);
			break;
		case PAWL_SLOT_TEMP:
		case PAWL_N_SLOT_ROLES:
			break;
		}
	}
	pawl_region_release(&region);
	if (!status)
		point_to_scratch(b);
	return status;
}

static enum pawl_status
bindings_new(struct pawl_plan *plan, struct pawl_team *team, bool owns_outputs,
	struct pawl_scratch *scratch, struct pawl_bindings **out, struct pawl_error *err)
{
	struct pawl_bindings *b = pawl_memory_zalloc(1, sizeof(*b));
	enum pawl_status status;

	if (!b)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for bindings");
	b->plan = pawl_plan_ref(plan);
	b->team = team;
	b->n_threads = team->n_threads;
	b->owns_outputs = owns_outputs;
	b->scratch = scratch ? scratch : &b->own;
	b->poisons = pawl_debug(PAWL_DEBUG_POISON);
	status = alloc_tables(b, err);
	if (!status)
		status = alloc_scratch(b, err);
	if (!status)
		status = fill_slots(b, err);
	if (status) {
		pawl_bindings_free(b);
		return status;
	}
	*out = b;
	return PAWL_OK;
}

enum pawl_status
pawl_bindings_new(struct pawl_plan *plan, struct pawl_team *team, struct pawl_bindings **out,
	struct pawl_error *err)
{
	return bindings_new(plan, team, false, NULL, out, err);
}

enum pawl_status
pawl_bindings_new_with_outputs(struct pawl_plan *plan, struct pawl_team *team,
	struct pawl_bindings **out, struct pawl_error *err)
{
	return bindings_new(plan, team, true, NULL, out, err);
}

enum pawl_status
pawl_bindings_new_over(struct pawl_plan *plan, struct pawl_team *team, struct pawl_scratch *scratch,
	struct pawl_bindings **out, struct pawl_error *err)
{
	return bindings_new(plan, team, false, scratch, out, err);
}

void
pawl_bindings_free(struct pawl_bindings *b)
{
	if (!b)
		return;
	pawl_remote_free(b->remote);
	if (b->storages)
		for (int32_t i = 0; i < b->plan->program->n_slots; i++)
			pawl_storage_unref(b->storages[i]);
	pawl_scratch_release(&b->own);
	pawl_memory_free(b->thread_scratch);
	pawl_memory_free(b->args);
	pawl_memory_free(b->outputs);
	pawl_memory_free(b->offers.list);
	pawl_memory_free(b->storages);
	pawl_plan_unref(b->plan);
	pawl_memory_free(b);
}

struct pawl_plan *
pawl_bindings_plan(const struct pawl_bindings *b)
{
	return b->plan;
}

enum pawl_status
pawl_bindings_bind_weights(
	struct pawl_bindings *b, struct pawl_weights *weights, struct pawl_error *err)
{
	const struct pawl_plan *plan = b->plan;

	for (int32_t i = 0; i < plan->program->n_slots; i++) {
		const struct pawl_slot *slot = &plan->program->slots[i];
		struct pawl_storage *storage;
		enum pawl_status status;

		if (slot->role != PAWL_SLOT_WEIGHT)
			continue;
		status = pawl_weights_bind_on(weights, plan->device, slot->name, &plan->types[i],
			b->team, &storage, err);
		if (status)
			return status;
		put(b, i, storage);
		b->is_apart = false;
	}
	return PAWL_OK;
}

enum pawl_status
pawl_bindings_bind(
	struct pawl_bindings *b, int32_t slot, struct pawl_storage *storage, struct pawl_error *err)
{
	const struct pawl_plan *plan = b->plan;
	const struct pawl_slot *s = &plan->program->slots[slot];
	struct pawl_offer *offer = NULL;
	char there[32], here[32];

	if (s->role == PAWL_SLOT_TEMP || s->role == PAWL_SLOT_LITERAL)
		return pawl_fail(
			err, PAWL_INVALID_ARGUMENT, "slot %d is a temporary or a literal", slot);
	if (!pawl_type_equal(&plan->types[slot], &storage->type))
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"%s: the plan wants %s@%s of %" PRId64
			" bytes, the storage is %s@%s of %" PRId64,
			s->name, pawl_dtype_name(plan->types[slot].dtype),
			pawl_layout_name(plan->types[slot].layout),
			pawl_storage_bytes(&plan->types[slot]),
			pawl_dtype_name(storage->type.dtype),
			pawl_layout_name(storage->type.layout), storage->n_bytes);
	if (s->role == PAWL_SLOT_DATA)
		offer = pawl_offers_find(&b->offers, slot);
	if (b->remote && offer && pawl_storage_is_reachable(storage)) {
		offer->is_filled = true;
		return pawl_storage_read_all(storage, b->storages[slot]->bytes, err);
	}
	if (!pawl_location_equal(plan->device->location, storage->location))
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"%s: the storage is on %s, the plan runs on %s", s->name,
			pawl_location_text(storage->location, there, sizeof(there)),
			pawl_location_text(plan->device->location, here, sizeof(here)));
	put(b, slot, pawl_storage_ref(storage));
	if (offer)
		offer->is_filled = true;
	b->is_apart = false;
	return PAWL_OK;
}

void
pawl_bindings_swap(struct pawl_bindings *b, int32_t slot, struct pawl_storage *storage)
{
	put(b, slot, pawl_storage_ref(storage));
}

struct pawl_storage *
pawl_bindings_storage(const struct pawl_bindings *b, int32_t slot)
{
	return b->storages[slot];
}

PAWL_EACH_TOKEN void
pawl_bindings_offer(struct pawl_bindings *b, int32_t slot, const void *bytes)
{
	pawl_offers_find(&b->offers, slot)->bytes = bytes;
}

int64_t
pawl_bindings_data_bytes(const struct pawl_bindings *b, int32_t slot)
{
	return b->storages[slot]->n_bytes;
}

void
pawl_bindings_set_stop(struct pawl_bindings *b, bool (*is_stopped)(void *arg), void *arg)
{
	b->is_stopped = is_stopped;
	b->stop_arg = arg;
}

void
pawl_bindings_time_steps(struct pawl_bindings *b, int64_t *step_ns)
{
	b->step_ns = step_ns;
}

/* What no step has written yet must not be read: it becomes NaN in every float type, -1 in ints. */
static enum pawl_status
poison(struct pawl_bindings *b, struct pawl_error *err)
{
	const struct pawl_program *program = b->plan->program;

	if (b->remote)
		return pawl_remote_poison(b->remote, err);
	memset(b->scratch->common.bytes, 0xff, b->scratch->common.n_bytes);
	memset(b->scratch->threads.bytes, 0xff, b->scratch->threads.n_bytes);
	for (int32_t i = 0; i < program->n_slots; i++)
		if (program->slots[i].role == PAWL_SLOT_OUTPUT && b->storages[i])
			memset(b->storages[i]->bytes, 0xff, (size_t)b->storages[i]->n_bytes);
	return PAWL_OK;
}

PAWL_EACH_TOKEN enum pawl_status
pawl_bindings_run(struct pawl_bindings *b, const struct pawl_symenv *env,
	struct pawl_counters *counters, struct pawl_error *err)
{
	struct pawl_run run = {
		.args = b->args,
		.symbols = env ? env->values : NULL,
		.team = b->team,
		.thread_scratch = b->thread_scratch,
		.is_stopped = b->is_stopped,
		.stop_arg = b->stop_arg,
		.step_ns = b->step_ns,
	};
	enum pawl_status status = pawl_bindings_check(b, env, err);
	uint64_t n_bytes = pawl_offers_take(&b->offers, status != PAWL_OK);
	int64_t start, ns;

	if (counters)
		counters->bytes_bound += n_bytes;
	if (status)
		return status;
	if (b->common != b->scratch->common.bytes || b->threads != b->scratch->threads.bytes)
		point_to_scratch(b);
	if (b->poisons)
		status = poison(b, err);
	if (status)
		return status;
	start = pawl_nanoseconds();
	if (b->remote) {
		status = pawl_remote_run(b->remote, b->args, run.symbols, b->storages, &ns, err);
	} else {
		status = b->plan->device->api->run(b->plan->code, &run, err);
		ns = pawl_nanoseconds() - start;
	}
	if (counters) {
		counters->run_ns += (uint64_t)ns;
		counters->runs += status == PAWL_OK;
	}
	return status;
}

PAWL_EACH_TOKEN const void *
pawl_bindings_output(const struct pawl_bindings *b, int32_t i, struct pawl_type *type)
{
	const struct pawl_program *program = b->plan->program;
	int32_t slot;

	if (!type && b->outputs[i])
		return b->outputs[i];
	slot = program->outputs[i];
	if (type)
		*type = b->plan->types[slot];
	if (b->remote && program->slots[slot].role == PAWL_SLOT_OUTPUT && !b->owns_outputs)
		return pawl_remote_output(b->remote, slot);
	if (b->storages[slot])
		return b->storages[slot]->bytes;
	return (const char *)b->scratch->common.bytes + program->slots[slot].offset;
}

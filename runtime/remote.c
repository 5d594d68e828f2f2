#include "runtime/remote.h"

#include "runtime/memory.h"

enum { ALIGNMENT = 64 };

struct pawl_remote {
	const struct pawl_plan *plan;
	struct pawl_runner *runner;
	struct pawl_exchange exchange;
	int64_t *at; /* of a data slot among the data, of an output among the results */
	void *scratch;
	int64_t scratch_bytes;
	int32_t *outputs; /* slots that are taken */
	struct pawl_result *results;
	int32_t n_results;
	struct pawl_block look;
	bool has_new_args;
};

static int64_t
aligned(int64_t n)
{
	return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static enum pawl_status
alloc_tables(struct pawl_remote *r, struct pawl_error *err)
{
	size_t n = (size_t)r->plan->program->n_slots;

	r->at = pawl_memory_zalloc(n, sizeof(*r->at));
	r->outputs = pawl_memory_zalloc(n, sizeof(*r->outputs));
	r->results = pawl_memory_zalloc(n, sizeof(*r->results));
	if (!r->at || !r->outputs || !r->results)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for bindings");
	return PAWL_OK;
}

/* Gives each data slot and each output taken its place; the bytes of both blocks. */
static void
place(struct pawl_remote *r, bool takes_outputs, int64_t *data_bytes, int64_t *result_bytes)
{
	const struct pawl_program *program = r->plan->program;

	*data_bytes = *result_bytes = 0;
	for (int32_t i = 0; i < program->n_slots; i++) {
		enum pawl_slot_role role = program->slots[i].role;
		int64_t bytes = pawl_storage_bytes(&r->plan->types[i]);

		if (role == PAWL_SLOT_DATA) {
			r->at[i] = *data_bytes;
			*data_bytes += aligned(bytes);
		} else if (role == PAWL_SLOT_OUTPUT && takes_outputs && bytes) {
			r->at[i] = *result_bytes;
			r->outputs[r->n_results] = i;
			r->results[r->n_results++] =
				(struct pawl_result){.at = *result_bytes, .bytes = bytes};
			*result_bytes += aligned(bytes);
		}
	}
}

enum pawl_status
pawl_remote_new(const struct pawl_plan *plan, int64_t scratch_bytes, bool takes_outputs,
	struct pawl_remote **out, struct pawl_error *err)
{
	const struct pawl_device *device = plan->device;
	struct pawl_remote *r = pawl_memory_zalloc(1, sizeof(*r));
	int64_t data_bytes, result_bytes;
	enum pawl_status status;

	if (!r)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for bindings");
	r->plan = plan;
	r->has_new_args = true;
	status = alloc_tables(r, err);
	if (!status && scratch_bytes)
		status = device->api->memory->alloc(
			device->target, scratch_bytes, &r->scratch, err);
	if (!status) {
		r->scratch_bytes = scratch_bytes;
		place(r, takes_outputs, &data_bytes, &result_bytes);
		status = device->api->runner_new(plan->code, data_bytes, result_bytes,
			&r->runner, &r->exchange, err);
	}
	if (status) {
		pawl_remote_free(r);
		return status;
	}
	*out = r;
	return PAWL_OK;
}

void
pawl_remote_free(struct pawl_remote *r)
{
	const struct pawl_device *device;

	if (!r)
		return;
	device = r->plan->device;
	device->api->runner_free(r->runner);
	if (r->scratch)
		device->api->memory->free(device->target, r->scratch);
	pawl_block_release(&r->look);
	pawl_memory_free(r->results);
	pawl_memory_free(r->outputs);
	pawl_memory_free(r->at);
	pawl_memory_free(r);
}

void *
pawl_remote_scratch(const struct pawl_remote *r)
{
	return r->scratch;
}

void *
pawl_remote_data(const struct pawl_remote *r, int32_t slot)
{
	return (char *)r->exchange.data + r->at[slot];
}

void *
pawl_remote_device_data(const struct pawl_remote *r, int32_t slot)
{
	return (char *)r->exchange.device_data + r->at[slot];
}

enum pawl_status
pawl_remote_look(struct pawl_remote *r, const struct pawl_storage *storage, const void **bytes,
	struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;

	if ((int64_t)r->look.n_bytes < storage->n_bytes) {
		pawl_block_release(&r->look);
		status = pawl_block_init(&r->look, storage->n_bytes, err);
	}
	if (!status)
		status = pawl_storage_read_all(storage, r->look.bytes, err);
	*bytes = r->look.bytes;
	return status;
}

enum pawl_status
pawl_remote_poison(const struct pawl_remote *r, struct pawl_error *err)
{
	const struct pawl_device *device = r->plan->device;

	if (!r->scratch)
		return PAWL_OK;
	return device->api->memory->fill(
		device->target, r->scratch, 0xff, r->scratch_bytes, err);
}

void
pawl_remote_note_args(struct pawl_remote *r)
{
	r->has_new_args = true;
}

enum pawl_status
pawl_remote_run(struct pawl_remote *r, void *const *args, const int64_t *symbols,
	struct pawl_storage *const *storages, int64_t *waited_ns, struct pawl_error *err)
{
	const struct pawl_program *program = r->plan->program;
	const struct pawl_device_run run = {.args = args,
		.has_new_args = r->has_new_args,
		.symbols = symbols,
		.results = r->results,
		.n_results = r->n_results};
	enum pawl_status status;

	for (int32_t i = 0; i < r->n_results; i++) {
		int32_t slot = r->outputs[i];

		r->results[i].from = storages[slot]
			? storages[slot]->bytes
			: (char *)r->scratch + program->slots[slot].offset;
	}
	status = r->plan->device->api->runner_run(r->runner, &run, waited_ns, err);
	if (!status)
		r->has_new_args = false;
	return status;
}

const void *
pawl_remote_output(const struct pawl_remote *r, int32_t slot)
{
	return r->n_results ? (const char *)r->exchange.results + r->at[slot] : NULL;
}

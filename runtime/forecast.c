#include "runtime/forecast.h"

#include "runtime/memory.h"

#include <string.h>

/* Weight slots met so far. */
struct seen {
	const struct pawl_plan **plans;
	int32_t *slots;
	int32_t n;
};

static bool
is_seen(const struct seen *seen, const struct pawl_plan *plan, int32_t slot)
{
	for (int32_t i = 0; i < seen->n; i++) {
		const struct pawl_plan *other = seen->plans[i];

		if (pawl_type_equal(&plan->types[slot], &other->types[seen->slots[i]]) &&
			!strcmp(plan->program->slots[slot].name,
				other->program->slots[seen->slots[i]].name))
			return true;
	}
	return false;
}

static void
add_weight(struct pawl_memory_forecast *f, struct seen *seen, const struct pawl_plan *plan,
	int32_t slot)
{
	const struct pawl_type *type = &plan->types[slot];

	if (is_seen(seen, plan, slot))
		return;
	seen->plans[seen->n] = plan;
	seen->slots[seen->n++] = slot;
	if (type->layout == PAWL_LAYOUT_ROWS && type->rank != 1)
		f->mapped += pawl_storage_bytes(type);
	else
		f->weights += pawl_storage_bytes(type);
}

static void
add_plan(struct pawl_memory_forecast *f, struct seen *seen, const struct pawl_plan *plan,
	int n_threads)
{
	const struct pawl_program *program = plan->program;
	int64_t each = (plan->code_info.thread_scratch_bytes + 63) / 64 * 64;

	f->scratch += program->scratch_bytes + each * n_threads;
	for (int32_t i = 0; i < program->n_slots; i++) {
		switch (program->slots[i].role) {
		case PAWL_SLOT_WEIGHT:
			add_weight(f, seen, plan, i);
			break;
		case PAWL_SLOT_DATA:
		case PAWL_SLOT_LITERAL:
			f->data += pawl_storage_bytes(&plan->types[i]);
			break;
		case PAWL_SLOT_KV:
		case PAWL_SLOT_TEMP:
		case PAWL_SLOT_OUTPUT:
		case PAWL_N_SLOT_ROLES:
			break;
		}
	}
}

enum pawl_status
pawl_forecast_memory(const struct pawl_plan *const *plans, int n_plans,
	const struct pawl_kv_shape *shape, int n_threads, struct pawl_memory_forecast *out,
	struct pawl_error *err)
{
	struct pawl_memory_forecast forecast = {0};
	struct seen seen = {.n = 0};
	enum pawl_status status = PAWL_OK;
	size_t most = 0;

	for (int i = 0; i < n_plans; i++)
		most += (size_t)plans[i]->program->n_slots;
	seen.plans = pawl_memory_zalloc(most, sizeof(struct pawl_plan *));
	seen.slots = pawl_memory_zalloc(most, sizeof(*seen.slots));
	if (!seen.plans || !seen.slots)
		status = pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a list of weights");
	for (int i = 0; i < n_plans && !status; i++)
		add_plan(&forecast, &seen, plans[i], n_threads);
	if (!status) {
		forecast.kv = shape ? pawl_kv_shape_bytes(shape) : 0;
		forecast.code = n_plans ? pawl_device_code_bytes(plans[0]->device) : 0;
		*out = forecast;
	}
	pawl_memory_free(seen.slots);
	pawl_memory_free(seen.plans);
	return status;
}

int64_t
pawl_forecast_total(const struct pawl_memory_forecast *f)
{
	return f->weights + f->mapped + f->kv + f->scratch + f->data + f->code;
}

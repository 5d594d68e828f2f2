#include "tools/exec.h"

#include "ir/eval.h"
#include "runtime/bindings.h"
#include "runtime/pool.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum pawl_status
result_init(struct pawl_exec_result *result, const struct pawl_exec_inputs *inputs,
	struct pawl_error *err)
{
	size_t n = (size_t)inputs->graph->n_outputs + (size_t)inputs->n + 1;

	*result = (struct pawl_exec_result){.values = calloc(n, sizeof(*result->values))};
	if (!result->values)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for results");
	return PAWL_OK;
}

void
pawl_exec_result_release(struct pawl_exec_result *result)
{
	for (int32_t i = 0; i < result->n; i++)
		free(result->values[i].x);
	free(result->values);
	*result = (struct pawl_exec_result){0};
}

static enum pawl_status
add_value(struct pawl_exec_result *result, int64_t n, struct pawl_exec_value **out,
	struct pawl_error *err)
{
	struct pawl_exec_value *value = &result->values[result->n];

	*out = value;
	value->n = n;
	value->x = malloc(sizeof(*value->x) * ((size_t)n + 1));
	if (!value->x)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for %" PRId64 " results", n);
	result->n++;
	return PAWL_OK;
}

static void
name_output(const struct pawl_exec_inputs *inputs, int32_t i, struct pawl_exec_value *value)
{
	const char *name = inputs->graph->outputs[i]->name;

	snprintf(value->name, sizeof(value->name), "output %" PRId32 "%s%.48s", i, name ? " %" : "",
		name ? name : "");
}

static enum pawl_status
add_tensor(struct pawl_exec_result *result, const struct pawl_type *type, const void *bytes,
	struct pawl_exec_value **out, struct pawl_error *err)
{
	struct pawl_tensor tensor;
	int64_t n_bytes, length, rows;
	enum pawl_status status =
		pawl_static_tensor(type, (void *)(uintptr_t)bytes, &tensor, &n_bytes, err);

	if (!status)
		status = add_value(result, pawl_tensor_elems(&tensor), out, err);
	if (status)
		return status;
	length = pawl_tensor_row_length(&tensor);
	rows = pawl_tensor_rows(&tensor);
	for (int64_t row = 0; row < rows; row++)
		pawl_tensor_load_f64(&tensor, row, 0, length, (*out)->x + row * length);
	return PAWL_OK;
}

static bool
is_kv(const struct pawl_exec_input *input)
{
	return input->node->attrs.role == PAWL_ROLE_KV;
}

/* Memory for each input in this run: kv gets a copy, the rest is only read. */
static enum pawl_status
run_memory(const struct pawl_exec_inputs *inputs, void ***out, struct pawl_error *err)
{
	void **memory = calloc((size_t)inputs->n + 1, sizeof(*memory));
	bool ok = memory != NULL;

	for (int32_t i = 0; i < inputs->n && ok; i++) {
		const struct pawl_exec_input *input = &inputs->items[i];

		memory[i] = input->bytes;
		if (!is_kv(input))
			continue;
		memory[i] = malloc((size_t)input->n_bytes + 1);
		ok = memory[i] != NULL;
		if (ok)
			memcpy(memory[i], input->bytes, (size_t)input->n_bytes);
	}
	*out = memory;
	return ok ? PAWL_OK
		  : pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a copy of the state");
}

static void
free_run_memory(const struct pawl_exec_inputs *inputs, void **memory)
{
	for (int32_t i = 0; i < inputs->n && memory; i++) {
		if (is_kv(&inputs->items[i]))
			free(memory[i]);
	}
	free(memory);
}

static enum pawl_status
add_state(const struct pawl_exec_inputs *inputs, void **memory, struct pawl_exec_result *result,
	struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;

	for (int32_t i = 0; i < inputs->n && !status; i++) {
		const struct pawl_exec_input *input = &inputs->items[i];
		struct pawl_exec_value *value;

		if (!is_kv(input))
			continue;
		status = add_tensor(result, &input->type, memory[i], &value, err);
		if (!status)
			snprintf(value->name, sizeof(value->name), "state %%%.64s",
				input->node->name ? input->node->name : "");
	}
	return status;
}

static enum pawl_status
interpret(const struct pawl_exec_inputs *inputs, void **memory, struct pawl_interp *interp,
	const struct pawl_graph *graph, struct pawl_exec_result *out, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;

	for (int32_t i = 0; i < inputs->graph->n_symbols && !status; i++)
		status = pawl_interp_set_symbol(
			interp, inputs->graph->symbols[i].name, inputs->symbols[i], err);
	for (int32_t i = 0; i < inputs->n && !status; i++) {
		const struct pawl_exec_input *input = &inputs->items[i];

		if (pawl_graph_find(graph, input->node->name))
			status = pawl_interp_bind(
				interp, input->node->name, memory[i], input->n_bytes, err);
	}
	if (!status)
		status = pawl_interp_run(interp, err);
	for (int32_t i = 0; i < graph->n_outputs && !status; i++) {
		int64_t n = pawl_tensor_elems(pawl_interp_output(interp, i));
		struct pawl_exec_value *value;

		status = add_value(out, n, &value, err);
		if (!status)
			status = pawl_interp_read(interp, i, value->x, n, err);
		if (!status)
			name_output(inputs, i, value);
	}
	return status ? status : add_state(inputs, memory, out, err);
}

enum pawl_status
pawl_exec_interp(const struct pawl_exec_inputs *inputs, const struct pawl_graph *graph,
	enum pawl_interp_mode mode, struct pawl_exec_result *out, struct pawl_error *err)
{
	struct pawl_interp *interp = NULL;
	void **memory = NULL;
	enum pawl_status status = result_init(out, inputs, err);

	if (!status)
		status = run_memory(inputs, &memory, err);
	if (!status)
		status = pawl_interp_new(graph, mode, &interp, err);
	if (!status)
		status = interpret(inputs, memory, interp, graph, out, err);
	pawl_interp_free(interp);
	free_run_memory(inputs, memory);
	return status;
}

static enum pawl_status
find_weight(void *ctx, const char *name, struct pawl_weight *out, struct pawl_error *err)
{
	const struct pawl_exec_inputs *inputs = ctx;

	for (int32_t i = 0; i < inputs->n; i++) {
		const struct pawl_exec_input *input = &inputs->items[i];

		if (strcmp(input->node->name, name))
			continue;
		*out = (struct pawl_weight){.bytes = input->bytes,
			.n_bytes = input->n_bytes,
			.dtype = input->type.dtype,
			.rank = input->type.rank};
		for (int j = 0; j < out->rank; j++)
			out->dim[j] = input->type.dim[j].base;
		return PAWL_OK;
	}
	return pawl_fail(err, PAWL_INVALID_ARGUMENT, "there is no weight %%%.64s", name);
}

static enum pawl_status
bind_all(const struct pawl_exec_inputs *inputs, void **memory, struct pawl_bindings *bindings,
	struct pawl_symenv *env, struct pawl_error *err)
{
	const struct pawl_plan *plan = pawl_bindings_plan(bindings);
	enum pawl_status status = PAWL_OK;

	for (int32_t i = 0; i < env->n && !status; i++) {
		const char *name = env->symbols[i].name;
		int32_t at = pawl_graph_find_symbol(inputs->graph, name, strlen(name));

		status = pawl_symenv_bind(env, i, inputs->symbols[at], err);
	}
	for (int32_t i = 0; i < inputs->n && !status; i++) {
		const struct pawl_exec_input *input = &inputs->items[i];
		int32_t kv = pawl_plan_find_slot(plan, PAWL_SLOT_KV, input->node->name);
		int32_t data = pawl_plan_find_slot(plan, PAWL_SLOT_DATA, input->node->name);
		struct pawl_storage *storage;

		if (is_kv(input) && kv >= 0) {
			status = pawl_storage_wrap(&plan->types[kv], PAWL_LOCATION_HOST, memory[i],
				input->n_bytes, NULL, NULL, &storage, err);
			if (!status)
				status = pawl_storage_settle(
					storage, plan->device, &storage, err);
			if (status)
				break;
			status = pawl_bindings_bind(bindings, kv, storage, err);
			pawl_storage_unref(storage);
		} else if (!is_kv(input) && data >= 0) {
			pawl_bindings_offer(bindings, data, memory[i]);
		}
	}
	return status;
}

/* State that the run changed elsewhere comes to the memory it was given in. */
static enum pawl_status
fetch_state(const struct pawl_exec_inputs *inputs, void **memory,
	const struct pawl_bindings *bindings, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;

	for (int32_t i = 0; i < inputs->n && !status; i++) {
		const char *name = inputs->items[i].node->name;
		int32_t kv = pawl_plan_find_slot(
			pawl_bindings_plan(bindings), PAWL_SLOT_KV, name);

		if (is_kv(&inputs->items[i]) && kv >= 0 &&
			pawl_bindings_storage(bindings, kv)->device)
			status = pawl_storage_read_all(
				pawl_bindings_storage(bindings, kv), memory[i], err);
	}
	return status;
}

/* What is an output and state at once is read where the state is. */
static const void *
output_bytes(const struct pawl_exec_inputs *inputs, void **memory,
	const struct pawl_bindings *bindings, int32_t i, struct pawl_type *type)
{
	const struct pawl_program *program = pawl_bindings_plan(bindings)->program;
	const struct pawl_slot *slot = &program->slots[program->outputs[i]];
	const void *bytes = pawl_bindings_output(bindings, i, type);

	for (int32_t j = 0; j < inputs->n && slot->role == PAWL_SLOT_KV; j++)
		if (!strcmp(inputs->items[j].node->name, slot->name))
			return memory[j];
	return bytes;
}

static enum pawl_status
run_plan(const struct pawl_exec_inputs *inputs, void **memory, struct pawl_bindings *bindings,
	struct pawl_exec_result *out, struct pawl_error *err)
{
	const struct pawl_program *program = pawl_bindings_plan(bindings)->program;
	struct pawl_symenv env;
	enum pawl_status status = pawl_symenv_init(&env, program->symbols, program->n_symbols, err);

	if (status)
		return status;
	status = bind_all(inputs, memory, bindings, &env, err);
	if (!status)
		status = pawl_bindings_run(bindings, &env, NULL, err);
	if (!status)
		status = fetch_state(inputs, memory, bindings, err);
	for (int32_t i = 0; i < program->n_outputs && !status; i++) {
		struct pawl_type type =
			pawl_type_at(&inputs->graph->outputs[i]->type, inputs->symbols);
		struct pawl_type planned;
		const void *bytes = output_bytes(inputs, memory, bindings, i, &planned);
		struct pawl_exec_value *value;

		type.layout = planned.layout; /* a copy of state is in rows */
		status = add_tensor(out, &type, bytes, &value, err);
		if (!status)
			name_output(inputs, i, value);
	}
	pawl_symenv_release(&env);
	return status ? status : add_state(inputs, memory, out, err);
}

static enum pawl_status
plan_and_run(const struct pawl_exec_inputs *inputs, const struct pawl_graph *graph,
	struct pawl_device *device, enum pawl_precision precision, struct pawl_pool *pool,
	struct pawl_exec_result *out, struct pawl_error *err)
{
	const struct pawl_plan_options options = {.key.precision = precision};
	const struct pawl_weight_source source = {(void *)(uintptr_t)inputs, find_weight, NULL};
	struct pawl_weights *weights = NULL;
	struct pawl_bindings *bindings = NULL;
	struct pawl_plan *plan = NULL;
	void **memory = NULL;
	enum pawl_status status = pawl_plan_build(graph, device, &options, &plan, err);

	if (!status)
		status = run_memory(inputs, &memory, err);
	if (!status)
		status = pawl_bindings_new(plan, pawl_pool_team(pool), &bindings, err);
	if (!status)
		status = pawl_weights_new(&source, &weights, err);
	if (!status)
		status = pawl_bindings_bind_weights(bindings, weights, err);
	if (!status)
		status = run_plan(inputs, memory, bindings, out, err);
	pawl_bindings_free(bindings);
	pawl_weights_unref(weights);
	free_run_memory(inputs, memory);
	pawl_plan_unref(plan);
	return status;
}

enum pawl_status
pawl_exec_plan(const struct pawl_exec_inputs *inputs, const struct pawl_graph *graph,
	const char *target, enum pawl_precision precision, int n_threads,
	struct pawl_exec_result *out, struct pawl_error *err)
{
	struct pawl_device *device = NULL;
	struct pawl_pool *pool = NULL;
	enum pawl_status status = result_init(out, inputs, err);

	if (!status)
		status = pawl_device_open(target, NULL, &device, err);
	if (!status)
		status = pawl_pool_new(n_threads, &pool, err);
	if (!status)
		status = plan_and_run(inputs, graph, device, precision, pool, out, err);
	pawl_pool_free(pool);
	pawl_device_unref(device);
	return status;
}

static bool
is_same(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b);
	if ((double)(float)a == a && (double)(float)b == b)
		return pawl_eval_same((float)a, (float)b);
	return a == b;
}

struct pawl_exec_difference
pawl_exec_compare(
	const struct pawl_exec_value *a, const struct pawl_exec_value *b, double within)
{
	struct pawl_exec_difference out = {0};

	for (int64_t i = 0; i < a->n; i++) {
		double distance;

		if (is_same(a->x[i], b->x[i]))
			continue;
		if (!out.n++)
			out.first = i;
		distance = fabs(a->x[i] - b->x[i]);
		if (isnan(distance))
			out.n_nan++;
		else
			out.max = fmax(out.max, distance);
		out.beyond += within == 0 || !(distance <= within);
	}
	return out;
}

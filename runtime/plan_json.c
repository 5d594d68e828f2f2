#include "runtime/plan_json.h"

#include "runtime/plan_json_parts.h"
#include "runtime/plan_text.h"

static void
add_key(struct pawl_json *json, cJSON *root, const struct pawl_plan_key *key)
{
	cJSON *object = pawl_json_object(json, root, "key");

	for (int field = 0; field < PAWL_KEY_ALLOC_ID; field++) {
		char text[64];

		pawl_key_value_text((enum pawl_key_field)field,
			pawl_plan_key_value(key, (enum pawl_key_field)field), text, sizeof(text));
		pawl_json_string(
			json, object, pawl_key_field_name((enum pawl_key_field)field), text);
	}
}

static void
add_target(struct pawl_json *json, cJSON *root, const struct pawl_plan *plan)
{
	cJSON *object = pawl_json_object(json, root, "target");
	const struct pawl_code_info *code = &plan->code_info;
	char location[32];

	pawl_json_string(json, object, "name", plan->device->api->name);
	pawl_json_string(json, object, "variant", code->variant);
	pawl_json_string(json, object, "build_id", plan->device->api->build_id);
	pawl_json_string(json, object, "location",
		pawl_location_text(plan->device->location, location, sizeof(location)));
	pawl_json_int64(json, object, "code_bytes", code->code_bytes);
	pawl_json_hash(json, object, "code_hash", code->code_hash);
	pawl_json_int64(json, object, "thread_scratch_bytes", code->thread_scratch_bytes);
	pawl_json_number(json, object, "launches", code->n_launches);
}

static void
add_symbols(struct pawl_json *json, cJSON *root, const struct pawl_program *program)
{
	cJSON *array = pawl_json_array(json, root, "symbols");

	for (int32_t i = 0; i < program->n_symbols; i++) {
		cJSON *object = pawl_json_object(json, array, NULL);

		pawl_json_string(json, object, "name", program->symbols[i].name);
		pawl_json_int64(json, object, "min", program->symbols[i].min);
		pawl_json_int64(json, object, "max", program->symbols[i].max);
		pawl_json_int64(json, object, "multiple", program->symbols[i].multiple);
	}
}

void
pawl_plan_json_type(struct pawl_json *json, cJSON *parent, const struct pawl_program *program,
	const struct pawl_type *type)
{
	cJSON *dims;

	pawl_json_string(json, parent, "dtype", pawl_dtype_name(type->dtype));
	pawl_json_string(json, parent, "layout", pawl_layout_name(type->layout));
	dims = pawl_json_array(json, parent, "dims");
	for (int i = 0; i < type->rank; i++) {
		char text[320];

		pawl_program_dim_text(program, type->dim[i], text, sizeof(text));
		pawl_json_string(json, dims, NULL, text);
	}
}

static bool
is_planned(const struct pawl_slot *slot)
{
	return slot->role == PAWL_SLOT_TEMP || slot->role == PAWL_SLOT_OUTPUT;
}

static void
add_slot(struct pawl_json *json, cJSON *array, const struct pawl_plan *plan, int32_t i)
{
	const struct pawl_slot *slot = &plan->program->slots[i];
	cJSON *object = pawl_json_object(json, array, NULL), *values;

	pawl_json_string(json, object, "role", pawl_slot_role_name(slot->role));
	pawl_json_string(json, object, "name", slot->name);
	pawl_plan_json_type(json, object, plan->program, &slot->type);
	pawl_json_int64(json, object, "bytes", pawl_storage_bytes(&plan->types[i]));
	if (is_planned(slot))
		pawl_json_int64(json, object, "offset", slot->offset);
	else
		pawl_json_null(json, object, "offset");
	pawl_json_number(json, object, "first_step", slot->first_step);
	pawl_json_number(json, object, "last_step", slot->last_step);
	if (slot->role != PAWL_SLOT_LITERAL) {
		pawl_json_null(json, object, "values");
		return;
	}
	values = pawl_json_array(json, object, "values");
	for (uint32_t j = 0; j < slot->n_values; j++)
		pawl_json_real(json, values, NULL, slot->values[j]);
}

static void
add_bind_points(struct pawl_json *json, cJSON *root, const struct pawl_plan *plan)
{
	cJSON *array = pawl_json_array(json, root, "bind_points");

	for (int32_t i = 0; i < plan->program->n_slots; i++) {
		const struct pawl_slot *slot = &plan->program->slots[i];
		cJSON *object, *args;

		if (slot->role == PAWL_SLOT_TEMP)
			continue;
		object = pawl_json_object(json, array, NULL);
		pawl_json_number(json, object, "slot", i);
		args = pawl_json_array(json, object, "args");
		for (int32_t j = plan->first_point[i]; j < plan->first_point[i + 1]; j++) {
			cJSON *point = pawl_json_object(json, args, NULL);

			pawl_json_number(json, point, "arg", plan->points[j].arg);
			pawl_json_int64(json, point, "offset", plan->points[j].offset);
		}
	}
}

static void
add_memory(struct pawl_json *json, cJSON *root, const struct pawl_plan *plan)
{
	static const char *const names[PAWL_N_SLOT_ROLES] = {"weight_bytes", "kv_bytes",
		"data_bytes", "literal_bytes", "temp_bytes", "output_bytes"};
	cJSON *object = pawl_json_object(json, root, "memory");
	int64_t bytes[PAWL_N_SLOT_ROLES] = {0};

	for (int32_t i = 0; i < plan->program->n_slots; i++)
		bytes[plan->program->slots[i].role] += pawl_storage_bytes(&plan->types[i]);
	for (int role = 0; role < PAWL_N_SLOT_ROLES; role++)
		pawl_json_int64(json, object, names[role], bytes[role]);
	pawl_json_int64(json, object, "scratch_bytes", plan->program->scratch_bytes);
}

static void
add_passes(struct pawl_json *json, cJSON *root, const struct pawl_optimize_report *report)
{
	cJSON *array = pawl_json_array(json, root, "passes");

	for (int i = 0; i < report->n_passes; i++) {
		cJSON *object = pawl_json_object(json, array, NULL);

		pawl_json_string(
			json, object, "name", pawl_pass_info(report->passes[i].pass)->name);
		pawl_json_bool(json, object, "ran", report->passes[i].ran);
		pawl_json_number(json, object, "changes", report->passes[i].n_changes);
	}
}

static void
add_statistics(struct pawl_json *json, cJSON *root, const struct pawl_plan *plan)
{
	const struct pawl_program *program = plan->program;
	cJSON *object = pawl_json_object(json, root, "statistics");
	int64_t flops = 0, bytes = 0;

	for (int32_t i = 0; i < program->n_steps; i++) {
		flops += program->steps[i].flops;
		bytes += program->steps[i].bytes;
	}
	pawl_json_number(json, object, "nodes_in", plan->report.nodes_in);
	pawl_json_number(json, object, "nodes_out", plan->report.nodes_out);
	pawl_json_number(json, object, "steps", program->n_steps);
	pawl_json_number(json, object, "slots", program->n_slots);
	pawl_json_number(json, object, "args", program->n_args);
	pawl_json_int64(json, object, "flops", flops);
	pawl_json_int64(json, object, "bytes", bytes);
}

enum pawl_status
pawl_plan_json(const struct pawl_plan *plan, char **out, struct pawl_error *err)
{
	const struct pawl_program *program = plan->program;
	struct pawl_json json;
	enum pawl_status status;
	cJSON *array;

	pawl_json_init(&json);
	pawl_json_string(&json, json.root, "format", "pawl-plan");
	pawl_json_number(&json, json.root, "version", PAWL_PLAN_JSON_VERSION);
	pawl_json_string(&json, json.root, "name", program->name);
	pawl_json_hash(&json, json.root, "graph_hash", program->hash);
	add_key(&json, json.root, &plan->key);
	add_target(&json, json.root, plan);
	add_symbols(&json, json.root, program);
	array = pawl_json_array(&json, json.root, "slots");
	for (int32_t i = 0; i < program->n_slots; i++)
		add_slot(&json, array, plan, i);
	add_bind_points(&json, json.root, plan);
	pawl_plan_json_steps(&json, json.root, plan);
	array = pawl_json_array(&json, json.root, "outputs");
	for (int32_t i = 0; i < program->n_outputs; i++)
		pawl_json_number(&json, array, NULL, program->outputs[i]);
	add_memory(&json, json.root, plan);
	add_passes(&json, json.root, &plan->report);
	add_statistics(&json, json.root, plan);
	status = pawl_json_text(&json, false, out, err);
	pawl_json_release(&json);
	return status;
}

#include "runtime/plan_json_parts.h"

static void
add_symbol_name(struct pawl_json *json, cJSON *parent, const char *name,
	const struct pawl_program *program, int32_t symbol)
{
	pawl_json_string(json, parent, name, symbol < 0 ? NULL : program->symbols[symbol].name);
}

static void
add_access(struct pawl_json *json, cJSON *parent, const char *name,
	const struct pawl_program *program, const struct pawl_access *access, int rank)
{
	cJSON *object = pawl_json_object(json, parent, name), *inner;

	pawl_json_number(json, object, "arg", access->arg);
	pawl_json_string(json, object, "dtype", pawl_dtype_name(access->dtype));
	pawl_json_string(json, object, "layout", pawl_layout_name(access->layout));
	inner = pawl_json_array(json, object, "strides");
	for (int i = 0; i < rank; i++)
		pawl_json_int64(json, inner, NULL, access->stride[i]);
	if (access->layout == PAWL_LAYOUT_K16) {
		inner = pawl_json_object(json, object, "position");
		pawl_json_number(json, inner, "dim", access->pos_dim);
		pawl_json_int64(json, inner, "first", access->pos0);
		pawl_json_int64(json, inner, "width", access->width);
	} else {
		pawl_json_null(json, object, "position");
	}
	if (access->pitch) {
		inner = pawl_json_object(json, object, "pitch");
		pawl_json_number(json, inner, "arg", access->pitch_arg);
		pawl_json_int64(json, inner, "elements", access->pitch);
	} else {
		pawl_json_null(json, object, "pitch");
	}
	if (access->at_dim < 0) {
		pawl_json_null(json, object, "at");
		return;
	}
	inner = pawl_json_object(json, object, "at");
	pawl_json_number(json, inner, "dim", access->at_dim);
	pawl_json_number(json, inner, "arg", access->at_arg);
	add_symbol_name(json, inner, "symbol", program, access->at_sym);
	pawl_json_bool(json, inner, "rows", access->at_rows);
	pawl_json_int64(json, inner, "modulus", access->modulus);
	pawl_json_int64(json, inner, "limit", access->limit);
}

static void
add_list(struct pawl_json *json, cJSON *parent, const char *name, const int64_t *list, int n)
{
	cJSON *array = pawl_json_array(json, parent, name);

	for (int i = 0; i < n; i++)
		pawl_json_int64(json, array, NULL, list[i]);
}

static void
add_attr(struct pawl_json *json, cJSON *parent, const struct pawl_program *program,
	const struct pawl_step_op *op, enum pawl_attr attr)
{
	const struct pawl_attrs *attrs = &op->attrs;
	const char *name = pawl_attr_info(attr)->name;

	switch (attr) {
	case PAWL_ATTR_eps:
		pawl_json_real(json, parent, name, attrs->eps);
		break;
	case PAWL_ATTR_scale:
		pawl_json_real(json, parent, name, attrs->scale);
		break;
	case PAWL_ATTR_softcap:
		pawl_json_real(json, parent, name, attrs->softcap);
		break;
	case PAWL_ATTR_axis:
		pawl_json_int64(json, parent, name, attrs->axis);
		break;
	case PAWL_ATTR_modulus:
		pawl_json_int64(json, parent, name, attrs->modulus);
		break;
	case PAWL_ATTR_block:
		pawl_json_int64(json, parent, name, attrs->block);
		break;
	case PAWL_ATTR_window:
		pawl_json_int64(json, parent, name, attrs->window);
		break;
	case PAWL_ATTR_causal:
		pawl_json_bool(json, parent, name, attrs->causal);
		break;
	case PAWL_ATTR_start:
		add_list(json, parent, name, attrs->start, op->type.rank);
		break;
	case PAWL_ATTR_stop:
		add_list(json, parent, name, attrs->stop, op->type.rank);
		break;
	case PAWL_ATTR_perm:
		add_list(json, parent, name, attrs->perm, op->type.rank);
		break;
	case PAWL_ATTR_sym:
		add_symbol_name(json, parent, name, program, attrs->sym);
		break;
	case PAWL_ATTR_dtype:
		pawl_json_string(json, parent, name, pawl_dtype_name(attrs->dtype));
		break;
	case PAWL_ATTR_role:
		pawl_json_string(json, parent, name, pawl_attr_word(attr, (int)attrs->role));
		break;
	case PAWL_ATTR_fill:
		pawl_json_string(json, parent, name, pawl_attr_word(attr, (int)attrs->fill));
		break;
	case PAWL_ATTR_pairs:
		pawl_json_string(json, parent, name, pawl_attr_word(attr, (int)attrs->pairs));
		break;
	case PAWL_ATTR_values: /* of consts, which are slots and no ops */
	case PAWL_N_ATTRS:
		break;
	}
}

static void
add_op(struct pawl_json *json, cJSON *array, const struct pawl_program *program,
	const struct pawl_step_op *op)
{
	cJSON *object = pawl_json_object(json, array, NULL), *inner;

	pawl_json_string(json, object, "op", pawl_op_name(op->op));
	pawl_json_string(json, object, "name", op->name);
	pawl_plan_json_type(json, object, program, &op->type);
	inner = pawl_json_object(json, object, "attrs");
	for (int attr = 0; attr < PAWL_N_ATTRS; attr++) {
		if (pawl_op_has_attr(op->op, (enum pawl_attr)attr))
			add_attr(json, inner, program, op, (enum pawl_attr)attr);
	}
	inner = pawl_json_array(json, object, "inputs");
	for (int32_t i = 0; i < op->n_inputs; i++) {
		const struct pawl_operand *operand = &op->inputs[i];
		cJSON *input = pawl_json_object(json, inner, NULL);

		pawl_plan_json_type(json, input, program, &operand->type);
		pawl_json_number(json, input, "value", operand->value);
		if (operand->value < 0)
			add_access(json, input, "access", program, &operand->access,
				operand->type.rank);
		else
			pawl_json_null(json, input, "access");
	}
	inner = pawl_json_array(json, object, "stores");
	for (int32_t i = 0; i < op->n_outs; i++)
		add_access(json, inner, NULL, program, &op->outs[i], op->type.rank);
}

void
pawl_plan_json_steps(struct pawl_json *json, cJSON *root, const struct pawl_plan *plan)
{
	const struct pawl_target_api *api = plan->device->api;
	const struct pawl_program *program = plan->program;
	cJSON *array = pawl_json_array(json, root, "steps");

	for (int32_t i = 0; i < program->n_steps; i++) {
		const struct pawl_step *step = &program->steps[i];
		cJSON *object = pawl_json_object(json, array, NULL), *inner;

		pawl_json_string(json, object, "template", pawl_template_name(step->template));
		pawl_json_string(json, object, "name", step->name);
		pawl_json_int64(json, object, "flops", step->flops);
		pawl_json_int64(json, object, "bytes", step->bytes);
		if (api->kernel_hash)
			pawl_json_hash(json, object, "kernel", api->kernel_hash(plan->code, i));
		else
			pawl_json_null(json, object, "kernel");
		if (api->launch_of)
			pawl_json_number(json, object, "launch", api->launch_of(plan->code, i));
		else
			pawl_json_null(json, object, "launch");
		pawl_json_number(json, object, "first_arg", step->first_arg);
		pawl_json_number(json, object, "scratch_arg", step->scratch_arg);
		inner = pawl_json_array(json, object, "args");
		for (int32_t j = 0; j < step->n_args; j++) {
			cJSON *arg = pawl_json_object(json, inner, NULL);

			pawl_json_number(json, arg, "slot", step->args[j].slot);
			pawl_json_int64(json, arg, "offset", step->args[j].offset);
			pawl_json_bool(json, arg, "written", step->args[j].written);
		}
		inner = pawl_json_array(json, object, "ops");
		for (int32_t j = 0; j < step->n_ops; j++)
			add_op(json, inner, program, &step->ops[j]);
	}
}

/* What runtime/plan_json.c and runtime/plan_json_steps.c share. */
#ifndef PAWL_RUNTIME_PLAN_JSON_PARTS_H
#define PAWL_RUNTIME_PLAN_JSON_PARTS_H

#include "runtime/json_write.h"
#include "runtime/plan.h"

/* Adds "dtype", "layout" and "dims", which are written as in the text form: "2*$T+1". */
void pawl_plan_json_type(struct pawl_json *json, cJSON *parent, const struct pawl_program *program,
	const struct pawl_type *type);

void pawl_plan_json_steps(struct pawl_json *json, cJSON *root, const struct pawl_plan *plan);

#endif

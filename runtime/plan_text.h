/* Parts of a plan as text, for people and for runtime/plan_json.h. */
#ifndef PAWL_RUNTIME_PLAN_TEXT_H
#define PAWL_RUNTIME_PLAN_TEXT_H

#include "runtime/plan.h"

#include <stddef.h>

/* As in the text form of graphs: "64", "$T", "2*$T+1"; returns out, which is cut to n bytes. */
const char *pawl_program_dim_text(
	const struct pawl_program *program, struct pawl_dim dim, char *out, size_t n);
/* "f16[1, 3, $T, 64]@k16" */
const char *pawl_program_type_text(
	const struct pawl_program *program, const struct pawl_type *type, char *out, size_t n);

/*
 * What PAWL_DEBUG=time says of a plan: line is called for each pass that ran ("pass dce: 3 changes,
 * 0.041 ms") and for the compilation.
 */
void pawl_plan_time_lines(
	const struct pawl_plan *plan, void (*line)(void *arg, const char *text), void *arg);

#endif

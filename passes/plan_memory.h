/*
 * Offsets for the TEMP and OUTPUT slots of a program.
 *
 * pawl_plan_memory places them; pawl_check_memory, which shares no code with it, re-derives the
 * lifetimes from the steps and refuses a plan in which two values that live at the same time
 * overlap, or a slot that lies outside of the scratch memory.
 */
#ifndef PAWL_PASSES_PLAN_MEMORY_H
#define PAWL_PASSES_PLAN_MEMORY_H

#include "ir/status.h"
#include "passes/step.h"

enum { PAWL_MEMORY_ALIGN = 64, PAWL_RED_ZONE = 64 };

enum pawl_status pawl_plan_memory(
	struct pawl_program *program, bool no_reuse, bool red_zones, struct pawl_error *err);
enum pawl_status pawl_check_memory(const struct pawl_program *program, struct pawl_error *err);

#endif

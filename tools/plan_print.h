/* A held plan for people. */
#ifndef PAWL_TOOLS_PLAN_PRINT_H
#define PAWL_TOOLS_PLAN_PRINT_H

#include "runtime/plan.h"
#include "tools/options.h"

/* On stdout. */
void pawl_plan_print(const struct pawl_plan *plan);

/* On stderr, with PAWL_DEBUG=time: how long the passes and the compilation took. */
void pawl_plan_print_times(const struct pawl_command *command, const struct pawl_plan *plan);

#endif

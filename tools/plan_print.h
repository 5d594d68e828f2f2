/* A held plan for people, on stdout. */
#ifndef PAWL_TOOLS_PLAN_PRINT_H
#define PAWL_TOOLS_PLAN_PRINT_H

#include "runtime/plan.h"

void pawl_plan_print(const struct pawl_plan *plan);

#endif

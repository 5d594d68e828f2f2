/*
 * A held plan as JSON: everything that it is made of, as docs/plan-schema.json describes it.  The
 * same plan gives the same bytes; neither times nor addresses are in it.
 */
#ifndef PAWL_RUNTIME_PLAN_JSON_H
#define PAWL_RUNTIME_PLAN_JSON_H

#include "runtime/plan.h"

/* Of the format: grows with every change that a reader of the last one would not understand. */
enum { PAWL_PLAN_JSON_VERSION = 1 };

/* malloc'ed text. */
enum pawl_status pawl_plan_json(const struct pawl_plan *plan, char **out, struct pawl_error *err);

#endif

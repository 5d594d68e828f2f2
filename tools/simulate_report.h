/* What pawl simulate prints. */
#ifndef PAWL_TOOLS_SIMULATE_REPORT_H
#define PAWL_TOOLS_SIMULATE_REPORT_H

#include "runtime/json_write.h"
#include "tools/simulation.h"

/* A line about the pool and who has it. */
void pawl_simulate_print_look(const struct pawl_scheduler_stats *stats);
/* A table of the requests and a summary; with `show` the texts as well. */
enum pawl_status pawl_simulate_print(
	const struct pawl_simulation *simulation, bool show, struct pawl_error *err);

/* The same as JSON: an element of `looks`, and members of the root. */
void pawl_simulate_add_look(
	struct pawl_json *json, cJSON *looks, const struct pawl_scheduler_stats *stats);
enum pawl_status pawl_simulate_add(const struct pawl_simulation *simulation, bool show,
	struct pawl_json *json, struct pawl_error *err);

#endif

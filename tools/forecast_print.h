/* What `pawl plan --memory` shows: the memory of a run of a model, before anything is made for it. */
#ifndef PAWL_TOOLS_FORECAST_PRINT_H
#define PAWL_TOOLS_FORECAST_PRINT_H

#include "tools/engine.h"

/*
 * For a generation on a cache of `capacity` positions: prompt chunks and single tokens.  Opens the
 * engine's device; engine->model must be open.
 */
enum pawl_status pawl_forecast_print(
	struct pawl_engine *engine, int64_t capacity, bool json, struct pawl_error *err);

#endif

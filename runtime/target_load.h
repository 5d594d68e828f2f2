/*
 * Finds and opens the modules that hold targets.
 *
 * Module target_<name>.so is looked for in the folders of PAWL_PLUGIN_PATH, then beside the library
 * or module that this code is part of, then in ../plugins/.libs beside the running program (that is
 * where a build tree has them), then where modules are installed.  A file of that name that is
 * refused does not end the search; when nothing better comes, the reason of the first is the error.
 * A module stays loaded for good.  What came of a name is remembered: a failure is not tried again.
 * Any thread.
 */
#ifndef PAWL_RUNTIME_TARGET_LOAD_H
#define PAWL_RUNTIME_TARGET_LOAD_H

#include "codegen/target.h"

/*
 * name is "ref", "cpu" ...: letters, digits and underscores, else PAWL_INVALID_ARGUMENT.
 * PAWL_ENVIRONMENT when no folder has the module, it cannot be opened, is no target, or was built
 * from other sources (both build ids are named).
 */
enum pawl_status pawl_target_load(
	const char *name, const struct pawl_target_api **out, struct pawl_error *err);

#endif

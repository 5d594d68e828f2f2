/* Options that callers give by number, enums among them. */
#ifndef PAWL_RUNTIME_OPTION_CHECK_H
#define PAWL_RUNTIME_OPTION_CHECK_H

#include "ir/status.h"

#include <stdint.h>

/* PAWL_INVALID_ARGUMENT, naming option, value and range, unless least <= value <= most. */
enum pawl_status pawl_check_option(
	const char *name, int64_t value, int64_t least, int64_t most, struct pawl_error *err);

#endif

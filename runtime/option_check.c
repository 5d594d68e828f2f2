#include "runtime/option_check.h"

#include <inttypes.h>

enum pawl_status
pawl_check_option(
	const char *name, int64_t value, int64_t least, int64_t most, struct pawl_error *err)
{
	if (value >= least && value <= most)
		return PAWL_OK;
	return pawl_fail(err, PAWL_INVALID_ARGUMENT,
		"%s is %" PRId64 ", not in %" PRId64 " .. %" PRId64, name, value, least, most);
}

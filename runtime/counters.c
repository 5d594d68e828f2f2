#include "runtime/counters.h"

uint64_t
pawl_counters_rebuilds(const struct pawl_counters *counters)
{
	uint64_t n = 0;

	for (int i = PAWL_REBUILD_FIRST + 1; i < PAWL_N_REBUILD_REASONS; i++)
		n += counters->builds[i];
	return n;
}

const char *
pawl_rebuild_reason_name(enum pawl_rebuild_reason reason)
{
	static const char *const names[PAWL_N_REBUILD_REASONS] = {
		[PAWL_REBUILD_FIRST] = "first",
		[PAWL_REBUILD_STALE] = "stale",
		[PAWL_REBUILD_REFUSED] = "refused",
		[PAWL_REBUILD_ASKED] = "asked",
	};

	return names[reason];
}

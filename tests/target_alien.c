/* A target module built from other sources, for tests of loading. */
#include "codegen/target.h"

__attribute__((visibility("default"))) const struct pawl_target_api *pawl_target_query(void);

const struct pawl_target_api *
pawl_target_query(void)
{
	static const struct pawl_target_api api = {
		.size = sizeof(api),
		.build_id = "0.0.0-alien",
		.name = "alien",
	};

	return &api;
}

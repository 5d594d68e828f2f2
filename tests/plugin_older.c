/*
 * A plugin of another release, for hosts to meet: by PAWL_TEST_PLUGIN it knows no version of the host's
 * ("version"), or its table ends where version 1 had begun ("table").
 */
#include <stdlib.h>
#include <string.h>

#include "pawl/plugin.h"

static int
is_asked_for(const char *what)
{
	const char *asked = getenv("PAWL_TEST_PLUGIN");

	return asked && !strcmp(asked, what);
}

PAWL_API int
pawl_negotiate(uint32_t *version)
{
	if (is_asked_for("version"))
		return 0;
	*version = 1;
	return 1;
}

PAWL_API const struct pawl_api *
pawl_get_api(uint32_t version)
{
	static const struct pawl_api api = {
		.struct_size = offsetof(struct pawl_api, session_create),
		.abi_version = 1,
		.build_id = "older"};

	return version == 1 ? &api : NULL;
}

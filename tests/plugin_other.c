/*
 * A plugin of another release, for hosts to meet.  By PAWL_TEST_PLUGIN it knows no version of the
 * host's ("version"), its table ends where version 1 had begun ("table"), or both go on beyond what
 * the host knows ("newer"): the table of pawl_plugin.so, in the folder PAWL_PLUGIN_PATH, and more.
 */
#include <dlfcn.h>
#include <stdio.h>
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
	if (*version > PAWL_ABI_VERSION + 1)
		*version = PAWL_ABI_VERSION + 1;
	return 1;
}

static const struct pawl_api *
newer(void)
{
	static struct {
		struct pawl_api api;
		void (*more[4])(void);
	} table;
	const struct pawl_api *(*get_api)(uint32_t version) = NULL;
	char path[4200];
	void *module;

	snprintf(path, sizeof(path), "%s/pawl_plugin.so", getenv("PAWL_PLUGIN_PATH"));
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (module)
		*(void **)&get_api = dlsym(module, "pawl_get_api");
	if (!get_api)
		return NULL;
	table.api = *get_api(PAWL_ABI_VERSION);
	table.api.struct_size = sizeof(table);
	return &table.api;
}

PAWL_API const struct pawl_api *
pawl_get_api(uint32_t version)
{
	static const struct pawl_api older = {
		.struct_size = offsetof(struct pawl_api, session_create),
		.abi_version = 1,
		.build_id = "older"};

	if (version != 1)
		return NULL;
	return is_asked_for("newer") ? newer() : &older;
}

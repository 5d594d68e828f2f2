#include "runtime/target_load.h"

#include "ir/build_id.h"
#include "ir/debug.h"
#include "runtime/memory.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_NAME = 32, PATH_BYTES = 4096 };

/* What became of a name. */
struct module {
	char name[MAX_NAME + 1];
	const struct pawl_target_api *api; /* NULL: error says why */
	struct pawl_error error;
	struct module *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct module *modules;

static bool
is_name(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");

	return n > 0 && n <= MAX_NAME && !name[n];
}

/* Whether folder[0 .. n) holds the module; its path goes to out. */
static bool
holds(const char *folder, size_t n, const char *name, char *out, size_t out_bytes)
{
	int length = snprintf(out, out_bytes, "%.*s/target_%s.so", (int)n, folder, name);

	return n && length > 0 && (size_t)length < out_bytes && !access(out, F_OK);
}

/* Where the build leaves modules, seen from a program that was not installed; "" otherwise. */
static const char *
build_folder(char *out, size_t n)
{
	static const char modules_at[] = "/../plugins/.libs";
	ssize_t length = readlink("/proc/self/exe", out, n);
	char *slash = NULL;

	if (length > 0 && (size_t)length < n) {
		out[length] = 0;
		slash = strrchr(out, '/');
	}
	if (!slash || (size_t)(slash - out) + sizeof(modules_at) > n)
		return "";
	memcpy(slash, modules_at, sizeof(modules_at));
	return out;
}

static enum pawl_status
find_module(const char *name, char *out, size_t n, struct pawl_error *err)
{
	const char *folders = pawl_env(PAWL_ENV_PLUGIN_PATH), *folder;
	char built[PATH_BYTES];

	for (const char *at = folders; at && *at;) {
		size_t length = strcspn(at, ":");

		if (length < PATH_BYTES && holds(at, length, name, out, n))
			return PAWL_OK;
		at += length + (at[length] == ':');
	}
	folder = build_folder(built, sizeof(built));
	if (holds(folder, strlen(folder), name, out, n))
		return PAWL_OK;
	if (holds(PAWL_PLUGIN_DIR, strlen(PAWL_PLUGIN_DIR), name, out, n))
		return PAWL_OK;
	return pawl_fail(err, PAWL_ENVIRONMENT, "target %s: no target_%s.so in %s%s%s", name, name,
		folders ? folders : "", folders ? " or " : "", PAWL_PLUGIN_DIR);
}

static enum pawl_status
open_module(const char *name, const struct pawl_target_api **out, struct pawl_error *err)
{
	char path[PATH_BYTES + MAX_NAME + 16];
	const struct pawl_target_api *api;
	pawl_target_query_fn *query;
	void *handle;

	if (find_module(name, path, sizeof(path), err))
		return PAWL_ENVIRONMENT;
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return pawl_fail(err, PAWL_ENVIRONMENT, "target %s: %s", name, dlerror());
	*(void **)&query = dlsym(handle, "pawl_target_query");
	if (!query)
		return pawl_fail(err, PAWL_ENVIRONMENT,
			"target %s: %s is no target: it has no pawl_target_query", name, path);
	api = query();
	if (api->size < offsetof(struct pawl_target_api, name) ||
		strcmp(api->build_id, pawl_build_id))
		return pawl_fail(err, PAWL_ENVIRONMENT,
			"target %s: %s is of build %s, this library of build %s", name, path,
			api->size < offsetof(struct pawl_target_api, name) ? "?" : api->build_id,
			pawl_build_id);
	if (strcmp(api->name, name))
		return pawl_fail(err, PAWL_ENVIRONMENT, "target %s: %s is target %.32s", name, path,
			api->name);
	*out = api;
	return PAWL_OK;
}

enum pawl_status
pawl_target_load(const char *name, const struct pawl_target_api **out, struct pawl_error *err)
{
	struct module *module;
	enum pawl_status status = PAWL_OK;

	if (!is_name(name))
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a target is named by small letters, digits and underscores, not \"%.40s\"",
			name);
	pthread_mutex_lock(&lock);
	for (module = modules; module && strcmp(module->name, name); module = module->next)
		continue;
	if (!module) {
		module = pawl_memory_zalloc(1, sizeof(*module));
		if (!module) {
			status =
				pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for target %s", name);
			goto done;
		}
		snprintf(module->name, sizeof(module->name), "%s", name);
		open_module(name, &module->api, &module->error);
		module->next = modules;
		modules = module;
	}
	if (module->api)
		*out = module->api;
	else
		status = pawl_fail(err, module->error.status, "%s", module->error.text);
done:
	pthread_mutex_unlock(&lock);
	return status;
}

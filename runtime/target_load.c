#include "runtime/target_load.h"

#include "codegen/module_file.h"
#include "ir/build_id.h"
#include "ir/debug.h"
#include "runtime/memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
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

/*
 * The folder of the library or module that this code is linked into, as it was opened; "" when the
 * loader does not know it.
 */
static const char *
own_folder(char *out, size_t n)
{
	const char *slash;
	Dl_info info;

	if (!dladdr(&lock, &info) || !info.dli_fname || !(slash = strrchr(info.dli_fname, '/')) ||
		(size_t)(slash - info.dli_fname) >= n)
		return "";
	memcpy(out, info.dli_fname, (size_t)(slash - info.dli_fname));
	out[slash - info.dli_fname] = 0;
	return out;
}

static enum pawl_status
open_module(const char *path, const char *name, const struct pawl_target_api **out,
	struct pawl_error *err)
{
	const struct pawl_target_api *api;
	pawl_target_query_fn *query;
	void *handle;

	if (pawl_module_open(path, &handle, err))
		return PAWL_ENVIRONMENT;
	*(void **)&query = dlsym(handle, "pawl_target_query");
	if (!query)
		return pawl_fail(err, PAWL_ENVIRONMENT,
			"%s is no target: it has no pawl_target_query", path);
	api = query();
	if (api->size < offsetof(struct pawl_target_api, name) ||
		strcmp(api->build_id, pawl_build_id))
		return pawl_fail(err, PAWL_ENVIRONMENT,
			"%s is of build %s, this library of build %s", path,
			api->size < offsetof(struct pawl_target_api, name) ? "?" : api->build_id,
			pawl_build_id);
	if (strcmp(api->name, name))
		return pawl_fail(
			err, PAWL_ENVIRONMENT, "%s is target %.32s", path, api->name);
	*out = api;
	return PAWL_OK;
}

/*
 * Opens folder[0 .. n)/target_<name>.so unless there is none; true when that gave the target.  The
 * reason of the first module that was refused stays in *refusal.
 */
static bool
try_folder(const char *folder, size_t n, struct module *module, struct pawl_error *refusal)
{
	char path[PATH_BYTES + MAX_NAME + 16];
	struct pawl_error reason;

	if (!n || n >= PATH_BYTES)
		return false;
	snprintf(path, sizeof(path), "%.*s/target_%s.so", (int)n, folder, module->name);
	if (access(path, F_OK) && (errno == ENOENT || errno == ENOTDIR))
		return false;
	if (!open_module(path, module->name, &module->api, &reason))
		return true;
	if (!refusal->status)
		*refusal = reason;
	return false;
}

static void
find_module(struct module *module)
{
	const char *folders = pawl_env(PAWL_ENV_PLUGIN_PATH), *folder;
	struct pawl_error refusal = {.status = PAWL_OK};
	char buffer[PATH_BYTES];

	for (const char *at = folders; at && *at;) {
		size_t length = strcspn(at, ":");

		if (try_folder(at, length, module, &refusal))
			return;
		at += length + (at[length] == ':');
	}
	folder = own_folder(buffer, sizeof(buffer));
	if (try_folder(folder, strlen(folder), module, &refusal))
		return;
	folder = build_folder(buffer, sizeof(buffer));
	if (try_folder(folder, strlen(folder), module, &refusal))
		return;
	if (try_folder(PAWL_PLUGIN_DIR, strlen(PAWL_PLUGIN_DIR), module, &refusal))
		return;
	if (refusal.status) {
		pawl_fail(&module->error, PAWL_ENVIRONMENT, "target %s: %s", module->name,
			refusal.text);
		return;
	}
	folder = own_folder(buffer, sizeof(buffer));
	pawl_fail(&module->error, PAWL_ENVIRONMENT, "target %s: no target_%s.so in %s%s%s%s%s (PAWL_PLUGIN_PATH names other folders)",
		module->name, module->name, folders ? folders : "", folders ? " or " : "", folder,
		*folder ? " or " : "", PAWL_PLUGIN_DIR);
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
		find_module(module);
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

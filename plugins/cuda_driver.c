#include "plugins/cuda_driver.h"

#include <dlfcn.h>
#include <string.h>

#include "codegen/module_file.h"
#include "ir/debug.h"

static const struct {
	const char *symbol;
	size_t at;
} functions[] = {
#define PAWL_CUDA_FN(member, symbol, parameters)                                                   \
	{#symbol, offsetof(struct pawl_cuda_calls, member)},
#include "plugins/cuda_driver.def"
};

static const char *
library_name(void)
{
	const char *path = pawl_env(PAWL_ENV_CUDA_DRIVER);

	return path ? path : "libcuda.so.1";
}

/* "13.0" of 13000. */
struct version {
	int major, minor;
};

static struct version
split(int version)
{
	return (struct version){version / 1000, version % 1000 / 10};
}

static enum pawl_status
too_old(int version, struct pawl_error *err)
{
	struct version have = split(version), want = split(PAWL_CUDA_LEAST_DRIVER);

	return pawl_fail(err, PAWL_ENVIRONMENT,
		"the CUDA driver %s is of CUDA %d.%d, too old: %d.%d or later is needed",
		library_name(), have.major, have.minor, want.major, want.minor);
}

static enum pawl_status
find_functions(struct pawl_cuda_driver *driver, void *library, struct pawl_error *err)
{
	CUresult (*version)(int *) = NULL, result;

	*(void **)&version = dlsym(library, "cuDriverGetVersion");
	if (!version)
		return pawl_fail(err, PAWL_ENVIRONMENT,
			"%s is no CUDA driver: it has no cuDriverGetVersion", library_name());
	result = version(&driver->version);
	if (!result && driver->version < PAWL_CUDA_LEAST_DRIVER)
		return too_old(driver->version, err);
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *function = dlsym(library, functions[i].symbol);

		if (!function)
			return pawl_fail(err, PAWL_ENVIRONMENT,
				"the CUDA driver %s, of CUDA %d.%d, has no %s", library_name(),
				split(driver->version).major, split(driver->version).minor,
				functions[i].symbol);
		memcpy((char *)&driver->call + functions[i].at, &function, sizeof(function));
	}
	return pawl_cuda_check(driver, result, "asking the CUDA driver for its version", err);
}

static enum pawl_status
find_device(struct pawl_cuda_driver *driver, struct pawl_error *err)
{
	const struct pawl_cuda_calls *call = &driver->call;
	CUresult result = call->init(0);
	int n = 0;

	if (!result)
		result = call->device_count(&n);
	if (result == PAWL_CUDA_ERROR_NO_DEVICE || (!result && n < 1))
		return pawl_fail(err, PAWL_ENVIRONMENT,
			"there is no CUDA device (the driver, of CUDA %d.%d, finds none)",
			split(driver->version).major, split(driver->version).minor);
	if (!result)
		result = call->device_get(&driver->device, 0);
	if (!result)
		result = call->device_name(driver->name, sizeof(driver->name), driver->device);
	if (!result)
		result = call->device_attribute(&driver->major,
			PAWL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, driver->device);
	if (!result)
		result = call->device_attribute(&driver->minor,
			PAWL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, driver->device);
	if (!result)
		result = call->device_attribute(&driver->n_multiprocessors,
			PAWL_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, driver->device);
	if (!result)
		result = call->context_retain(&driver->context, driver->device);
	return pawl_cuda_check(driver, result, "opening the CUDA device", err);
}

/* A path is looked at before it is opened; a name alone is the loader's to find. */
static enum pawl_status
open_library(const char *name, void **out, struct pawl_error *err)
{
	if (strchr(name, '/'))
		return pawl_module_open(name, out, err);
	*out = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	return *out ? PAWL_OK : pawl_fail(err, PAWL_ENVIRONMENT, "%s", dlerror());
}

enum pawl_status
pawl_cuda_driver_open(struct pawl_cuda_driver *out, struct pawl_error *err)
{
	void *library;
	enum pawl_status status = open_library(library_name(), &library, err);

	*out = (struct pawl_cuda_driver){.version = 0};
	if (status) {
		pawl_error_prefix(err, "there is no CUDA driver");
		return status;
	}
	status = find_functions(out, library, err);
	return status ? status : find_device(out, err);
}

void
pawl_cuda_driver_close(struct pawl_cuda_driver *driver)
{
	if (driver->context)
		driver->call.context_release(driver->device);
	driver->context = NULL;
}

enum pawl_status
pawl_cuda_enter(const struct pawl_cuda_driver *driver, struct pawl_error *err)
{
	return pawl_cuda_check(driver, driver->call.context_push(driver->context),
		"entering the CUDA context", err);
}

void
pawl_cuda_leave(const struct pawl_cuda_driver *driver)
{
	CUcontext context;

	driver->call.context_pop(&context);
}

enum pawl_status
pawl_cuda_check(const struct pawl_cuda_driver *driver, CUresult result, const char *what,
	struct pawl_error *err)
{
	const char *name = NULL;

	if (!result)
		return PAWL_OK;
	if (driver->call.error_name(result, &name) || !name)
		name = "an unknown error";
	return pawl_fail(err,
		result == PAWL_CUDA_ERROR_OUT_OF_MEMORY ? PAWL_OUT_OF_MEMORY : PAWL_ENVIRONMENT,
		"%s: %s (%d)", what, name, result);
}

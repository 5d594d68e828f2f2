#include "runtime/device.h"

#include "ir/debug.h"
#include "runtime/identity.h"
#include "runtime/memory.h"
#include "runtime/target_load.h"

#include <stdlib.h>

enum pawl_status
pawl_device_open(const char *name, const struct pawl_target_options *options,
	struct pawl_device **out, struct pawl_error *err)
{
	const struct pawl_target_api *api;
	enum pawl_status status = pawl_target_load(name, &api, err);

	return status ? status : pawl_device_new(api, options, out, err);
}

enum pawl_status
pawl_device_new(const struct pawl_target_api *api, const struct pawl_target_options *options,
	struct pawl_device **out, struct pawl_error *err)
{
	struct pawl_device *device = pawl_memory_zalloc(1, sizeof(*device));
	struct pawl_target_options o = {0};
	char *cache_dir = NULL;
	enum pawl_status status = PAWL_OK;

	if (options)
		o = *options;
	if (!o.cpu_variant)
		o.cpu_variant = pawl_env(PAWL_ENV_CPU);
	if (!o.dump_dir)
		o.dump_dir = pawl_env(PAWL_ENV_DUMP);
	if (!device)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a device");
	if (!o.cache_dir) {
		status = pawl_env_kernel_cache(&cache_dir, err);
		o.cache_dir = cache_dir;
	}
	if (!status)
		status = api->open(&o, &device->target, err);
	free(cache_dir);
	if (status) {
		pawl_memory_free(device);
		return status;
	}
	atomic_init(&device->n_refs, 1);
	device->id = pawl_device_id_new();
	device->api = api;
	device->location = api->memory ? (struct pawl_location){PAWL_MEMORY_CUDA, 0}
				       : PAWL_LOCATION_HOST;
	*out = device;
	return PAWL_OK;
}

struct pawl_device *
pawl_device_ref(struct pawl_device *device)
{
	atomic_fetch_add_explicit(&device->n_refs, 1, memory_order_relaxed);
	return device;
}

void
pawl_device_unref(struct pawl_device *device)
{
	if (!device || atomic_fetch_sub_explicit(&device->n_refs, 1, memory_order_acq_rel) != 1)
		return;
	device->api->close(device->target);
	pawl_memory_free(device);
}

void
pawl_device_counters(const struct pawl_device *device, struct pawl_target_counters *out)
{
	*out = (struct pawl_target_counters){0};
	device->api->counters(device->target, out);
}

int64_t
pawl_device_code_bytes(const struct pawl_device *device)
{
	struct pawl_target_counters counters;

	pawl_device_counters(device, &counters);
	return counters.code_bytes;
}

/*
 * A device: an opened target, reference-counted.  Plans hold one, so that a target is closed after
 * the last code compiled by it.  Any thread.
 */
#ifndef PAWL_RUNTIME_DEVICE_H
#define PAWL_RUNTIME_DEVICE_H

#include "codegen/target.h"
#include "runtime/storage.h"

struct pawl_device {
	atomic_int n_refs;
	uint64_t id; /* never given twice; part of the validity key */
	const struct pawl_target_api *api;
	struct pawl_target *target;
	struct pawl_location location; /* of the memory its code works on */
};

/* Loads the module of target `name` (runtime/target_load.h) and opens it.  options may be NULL;
 * PAWL_CPU, PAWL_DUMP and PAWL_KERNEL_CACHE stand for what they leave out. */
enum pawl_status pawl_device_open(const char *name, const struct pawl_target_options *options,
	struct pawl_device **out, struct pawl_error *err);
/* The same for a target that is linked in. */
enum pawl_status pawl_device_new(const struct pawl_target_api *api,
	const struct pawl_target_options *options, struct pawl_device **out,
	struct pawl_error *err);

struct pawl_device *pawl_device_ref(struct pawl_device *device);
/* NULL is allowed. */
void pawl_device_unref(struct pawl_device *device);

/* What the target has done so far. */
void pawl_device_counters(const struct pawl_device *device, struct pawl_target_counters *out);
/* Bytes of all kernels that the target holds. */
int64_t pawl_device_code_bytes(const struct pawl_device *device);

#endif

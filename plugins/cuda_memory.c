#include "plugins/cuda_exec.h"

#include <inttypes.h>
#include <string.h>

static CUdeviceptr
address(const void *bytes)
{
	return (CUdeviceptr)(uintptr_t)bytes;
}

enum pawl_status
pawl_cuda_device_init(struct pawl_cuda_device *device, struct pawl_error *err)
{
	enum pawl_status status;

	memset(device, 0, sizeof(*device));
	status = pawl_cuda_driver_open(&device->driver, err);
	if (!status)
		status = pawl_cuda_enter(&device->driver, err);
	if (!status) {
		status = pawl_cuda_check(&device->driver,
			device->driver.call.stream_new(
				&device->stream, PAWL_CU_STREAM_NON_BLOCKING),
			"making a stream", err);
		pawl_cuda_leave(&device->driver);
	}
	if (status) {
		pawl_cuda_driver_close(&device->driver);
		return status;
	}
	pthread_mutex_init(&device->copying, NULL);
	pthread_mutex_init(&device->naming, NULL);
	return PAWL_OK;
}

void
pawl_cuda_device_release(struct pawl_cuda_device *device)
{
	if (!pawl_cuda_enter(&device->driver, NULL)) {
		device->driver.call.stream_free(device->stream);
		pawl_cuda_leave(&device->driver);
	}
	pawl_cuda_driver_close(&device->driver);
	pthread_mutex_destroy(&device->copying);
	pthread_mutex_destroy(&device->naming);
}

void
pawl_cuda_device_counters(const struct pawl_cuda_device *device, struct pawl_target_counters *out)
{
	out->uploads = atomic_load(&device->uploads);
	out->launches = atomic_load(&device->launches);
	out->graph_launches = atomic_load(&device->graph_launches);
	out->captures = atomic_load(&device->captures);
	out->capture_failures = atomic_load(&device->capture_failures);
	out->device_allocations = atomic_load(&device->allocations);
	if (out->capture_failures)
		out->capture_fault = device->capture_fault;
}

enum pawl_status
pawl_cuda_alloc(
	struct pawl_cuda_device *device, int64_t n_bytes, void **out, struct pawl_error *err)
{
	const struct pawl_cuda_driver *driver = &device->driver;
	enum pawl_status status = pawl_cuda_enter(driver, err);
	CUdeviceptr at = 0;

	if (status)
		return status;
	status = pawl_cuda_check(driver, driver->call.memory_alloc(&at, (size_t)n_bytes),
		"allocating device memory", err);
	pawl_cuda_leave(driver);
	if (status == PAWL_OUT_OF_MEMORY)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY,
			"%" PRId64 " bytes of device memory could not be had", n_bytes);
	if (status)
		return status;
	atomic_fetch_add(&device->allocations, 1);
	*out = (void *)(uintptr_t)at;
	return PAWL_OK;
}

void
pawl_cuda_free(struct pawl_cuda_device *device, void *bytes)
{
	if (pawl_cuda_enter(&device->driver, NULL))
		return;
	device->driver.call.memory_free(address(bytes));
	pawl_cuda_leave(&device->driver);
}

static CUresult
copy_piece(const struct pawl_cuda_device *device, enum pawl_copy_way way, char *to,
	const char *from, size_t n)
{
	const struct pawl_cuda_calls *call = &device->driver.call;
	CUstream stream = device->stream;

	switch (way) {
	case PAWL_COPY_UP:
		return call->copy_up(address(to), from, n, stream);
	case PAWL_COPY_DOWN:
		return call->copy_down(to, address(from), n, stream);
	case PAWL_COPY_WITHIN:
		return call->copy_within(address(to), address(from), n, stream);
	}
	return PAWL_CUDA_ERROR_INVALID_VALUE;
}

enum pawl_status
pawl_cuda_copy(struct pawl_cuda_device *device, enum pawl_copy_way way, void *to, const void *from,
	const struct pawl_copy_pieces *pieces, struct pawl_error *err)
{
	static const char *const names[] = {[PAWL_COPY_UP] = "copying to the device",
		[PAWL_COPY_DOWN] = "copying from the device",
		[PAWL_COPY_WITHIN] = "copying on the device"};
	const struct pawl_cuda_driver *driver = &device->driver;
	CUresult result = PAWL_CUDA_SUCCESS, waited;
	enum pawl_status status = pawl_cuda_enter(driver, err);

	if (status)
		return status;
	pthread_mutex_lock(&device->copying);
	for (int64_t i = 0; i < pieces->n && !result; i++)
		result = copy_piece(device, way, (char *)to + i * pieces->to_pitch,
			(const char *)from + i * pieces->from_pitch, (size_t)pieces->bytes);
	/* Whatever was begun must be over before the caller's memory goes. */
	waited = driver->call.stream_wait(device->stream);
	pthread_mutex_unlock(&device->copying);
	status = pawl_cuda_check(driver, result ? result : waited, names[way], err);
	pawl_cuda_leave(driver);
	return status;
}

enum pawl_status
pawl_cuda_fill(struct pawl_cuda_device *device, void *bytes, unsigned char value, int64_t n_bytes,
	struct pawl_error *err)
{
	const struct pawl_cuda_driver *driver = &device->driver;
	enum pawl_status status = pawl_cuda_enter(driver, err);
	CUresult result;

	if (status)
		return status;
	pthread_mutex_lock(&device->copying);
	result = driver->call.fill(address(bytes), value, (size_t)n_bytes, device->stream);
	if (!result)
		result = driver->call.stream_wait(device->stream);
	pthread_mutex_unlock(&device->copying);
	status = pawl_cuda_check(driver, result, "filling device memory", err);
	pawl_cuda_leave(driver);
	return status;
}

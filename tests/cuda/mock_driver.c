#include "tests/cuda/mock.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/cuda/mock_parts.h"

#define API __attribute__((visibility("default")))

#define PAWL_CUDA_FN(member, symbol, parameters) API CUresult symbol parameters;
#include "plugins/cuda_driver.def"

struct pawl_mock pawl_mock = {.driver_version = 13000,
	.n_devices = 1,
	.only_call = -1,
	.slow_call = -1,
	.memory_bytes = INT64_C(8) << 30};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pawl_mock_object *objects;
static CUresult device_error; /* of work done, told by every call after it */
static _Thread_local int n_pushed;

void
pawl_mock_mistake(const char *format, ...)
{
	va_list args;

	if (!pawl_mock.mistakes++) {
		va_start(args, format);
		vsnprintf(pawl_mock.mistake, sizeof(pawl_mock.mistake), format, args);
		va_end(args);
	}
}

static const char *
call_name(enum pawl_mock_call call)
{
	static const char *const names[] = {
#define PAWL_CUDA_FN(member, symbol, parameters) #symbol,
#include "plugins/cuda_driver.def"
	};

	return names[call];
}

/* Calls that give back, and the thread's own: no driver refuses them, short of memory or lost. */
static bool
gives_back(enum pawl_mock_call call)
{
	return call == PAWL_MOCK_context_release || call == PAWL_MOCK_context_pop ||
	       call == PAWL_MOCK_context_push ||
	       call == PAWL_MOCK_module_unload || call == PAWL_MOCK_memory_free ||
	       call == PAWL_MOCK_pinned_free || call == PAWL_MOCK_stream_free ||
	       call == PAWL_MOCK_graph_free || call == PAWL_MOCK_exec_free ||
	       call == PAWL_MOCK_error_name;
}

/* Takes the lock; what the call is to return before it does anything. */
static CUresult
enter(enum pawl_mock_call call, bool needs_context)
{
	pthread_mutex_lock(&lock);
	pawl_mock.n_calls++;
	pawl_mock.calls[call]++;
	if (pawl_mock.slow_call == (int)call)
		nanosleep(&(struct timespec){.tv_nsec = pawl_mock.slow_ns}, NULL);
	if (needs_context && !n_pushed) {
		pawl_mock_mistake("%s without a context", call_name(call));
		return PAWL_CUDA_ERROR_INVALID_CONTEXT;
	}
	if (gives_back(call))
		return PAWL_CUDA_SUCCESS;
	if (pawl_mock.fails_in > 0 &&
		(pawl_mock.only_call < 0 || pawl_mock.only_call == (int)call) &&
		--pawl_mock.fails_in == 0) {
		pawl_mock.is_lost = pawl_mock.stays_lost;
		return pawl_mock.fails_with ? pawl_mock.fails_with
					    : PAWL_CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (pawl_mock.is_lost)
		return PAWL_CUDA_ERROR_LAUNCH_FAILED;
	return needs_context ? device_error : PAWL_CUDA_SUCCESS;
}

static CUresult
leave(CUresult result)
{
	pthread_mutex_unlock(&lock);
	return result;
}

static struct pawl_mock_object *
object_new(enum pawl_mock_kind kind, int64_t *count)
{
	struct pawl_mock_object *object = calloc(1, sizeof(*object));

	if (!object)
		abort();
	object->kind = kind;
	object->is_live = true;
	object->count = count;
	object->next = objects;
	objects = object;
	++*count;
	return object;
}

static struct pawl_mock_object *
find(const void *handle, enum pawl_mock_kind kind, enum pawl_mock_call call)
{
	struct pawl_mock_object *object = objects;

	while (object && (object != handle || object->kind != kind))
		object = object->next;
	if (object && object->is_live)
		return object;
	pawl_mock_mistake("%s: %s", call_name(call),
		object ? "what it is given was freed" : "what it is given was never made");
	return NULL;
}

static CUresult
end(struct pawl_mock_object *object)
{
	if (!object)
		return PAWL_CUDA_ERROR_INVALID_HANDLE;
	object->is_live = false;
	--*object->count;
	return PAWL_CUDA_SUCCESS;
}

static struct pawl_mock_object *
find_memory(enum pawl_mock_kind kind, const void *bytes, size_t n)
{
	uintptr_t at = (uintptr_t)bytes;
	struct pawl_mock_object *o;

	for (o = objects; o; o = o->next)
		if (o->kind == kind && o->is_live && at >= (uintptr_t)o->bytes &&
			at + n <= (uintptr_t)o->bytes + o->n_bytes)
			return o;
	return NULL;
}

bool
pawl_mock_has(const void *bytes, size_t n)
{
	return find_memory(PAWL_MOCK_MEMORY, bytes, n) != NULL;
}

/* While work is done the device's memory can be touched. */
static void
open_memory(bool is_open)
{
	struct pawl_mock_object *o;

	for (o = objects; o; o = o->next)
		if (o->kind == PAWL_MOCK_MEMORY && o->is_live)
			pawl_mock_memory_open(o, is_open);
}

/* The memory at both ends of a copy alone: to open all of it for each of many takes its time. */
static void
open_ends(const struct pawl_mock_work *copy, bool is_open)
{
	const void *ends[] = {copy->from, copy->to};
	int i;

	for (i = 0; i < 2; i++) {
		struct pawl_mock_object *o = find_memory(PAWL_MOCK_MEMORY, ends[i], 1);

		if (o)
			pawl_mock_memory_open(o, is_open);
	}
}

static bool
has_kernels(const struct pawl_mock_work *work)
{
	while (work && work->kind != PAWL_MOCK_KERNEL)
		work = work->next;
	return work != NULL;
}

/* All that a stream has before it. */
static CUresult
drain(struct pawl_mock_object *stream)
{
	struct pawl_mock_work *work = stream->first, *next;
	bool opens_all = has_kernels(work);

	if (opens_all)
		open_memory(true);
	for (; work; work = next) {
		next = work->next;
		if (!opens_all)
			open_ends(work, true);
		if (!device_error)
			device_error = pawl_mock_work_run(work);
		if (!opens_all)
			open_ends(work, false);
		pawl_mock_work_free(work);
	}
	if (opens_all)
		open_memory(false);
	stream->first = NULL;
	return device_error;
}

static CUresult
enqueue(CUstream handle, struct pawl_mock_work *work, enum pawl_mock_call call)
{
	struct pawl_mock_object *stream = NULL;
	struct pawl_mock_work **at;
	CUresult result = PAWL_CUDA_SUCCESS;

	if (!handle)
		pawl_mock_mistake("%s on the default stream", call_name(call));
	else
		stream = find(handle, PAWL_MOCK_STREAM, call);
	if (!stream) {
		result = PAWL_CUDA_ERROR_INVALID_HANDLE;
	} else if (stream->is_capturing &&
		   (work->kind != PAWL_MOCK_KERNEL || pawl_mock.hates_capture)) {
		stream->is_broken = true;
		result = PAWL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	if (result) {
		pawl_mock_work_free(work);
		return result;
	}
	for (at = stream->is_capturing ? &stream->captured : &stream->first; *at;)
		at = &(*at)->next;
	*at = work;
	return PAWL_CUDA_SUCCESS;
}

CUresult
cuInit(unsigned int flags)
{
	CUresult result = enter(PAWL_MOCK_init, false);
	Dl_info info;

	(void)flags;
	/* Kernels find the fibers here. */
	if (!result && dladdr(&pawl_mock, &info))
		dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
	return leave(result);
}

CUresult
cuDriverGetVersion(int *version)
{
	CUresult result = enter(PAWL_MOCK_driver_version, false);

	*version = pawl_mock.driver_version;
	return leave(result);
}

CUresult
cuGetErrorName(CUresult error, const char **name)
{
#define NAME(text, value) if (error == (value)) *name = "CUDA_" #text;
	*name = NULL;
	PAWL_CUDA_NUMBERS(NAME)
	return *name ? PAWL_CUDA_SUCCESS : PAWL_CUDA_ERROR_INVALID_VALUE;
}

CUresult
cuDeviceGetCount(int *count)
{
	CUresult result = enter(PAWL_MOCK_device_count, false);

	*count = pawl_mock.n_devices;
	return leave(result);
}

CUresult
cuDeviceGet(CUdevice *device, int ordinal)
{
	CUresult result = enter(PAWL_MOCK_device_get, false);

	*device = ordinal;
	return leave(result);
}

CUresult
cuDeviceGetName(char *name, int n, CUdevice device)
{
	CUresult result = enter(PAWL_MOCK_device_name, false);

	(void)device;
	snprintf(name, (size_t)n, "no GPU");
	return leave(result);
}

CUresult
cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	CUresult result = enter(PAWL_MOCK_device_attribute, false);

	(void)device;
	*value = attribute == PAWL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 :
		 attribute == PAWL_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT	? 4 : 0;
	return leave(result);
}

CUresult
cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	CUresult result = enter(PAWL_MOCK_context_retain, false);

	(void)device;
	if (!result) {
		pawl_mock.contexts++;
		*context = (CUcontext)(void *)&pawl_mock;
	}
	return leave(result);
}

CUresult
cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	enter(PAWL_MOCK_context_release, false);
	(void)device;
	if (pawl_mock.contexts-- <= 0)
		pawl_mock_mistake("the context is released twice");
	return leave(PAWL_CUDA_SUCCESS);
}

CUresult
cuCtxPushCurrent_v2(CUcontext context)
{
	CUresult result = enter(PAWL_MOCK_context_push, false);

	if ((void *)context != (void *)&pawl_mock || pawl_mock.contexts < 1)
		pawl_mock_mistake("a context is entered that is none");
	n_pushed += !result;
	return leave(result);
}

CUresult
cuCtxPopCurrent_v2(CUcontext *context)
{
	enter(PAWL_MOCK_context_pop, true);
	*context = NULL;
	n_pushed--;
	return leave(PAWL_CUDA_SUCCESS);
}

CUresult
cuModuleLoadData(CUmodule *module, const void *image)
{
	CUresult result = enter(PAWL_MOCK_module_load, true);
	void *library = NULL;
	int fd;

	if (!result && !(library = pawl_mock_image_open(image, &fd)))
		result = PAWL_CUDA_ERROR_INVALID_IMAGE;
	if (!result) {
		struct pawl_mock_object *object = object_new(PAWL_MOCK_MODULE, &pawl_mock.modules);

		object->library = library;
		object->fd = fd;
		*module = (CUmodule)(void *)object;
	}
	return leave(result);
}

CUresult
cuModuleUnload(CUmodule module)
{
	struct pawl_mock_object *object;

	enter(PAWL_MOCK_module_unload, true);
	object = find(module, PAWL_MOCK_MODULE, PAWL_MOCK_module_unload);
	if (object) {
		dlclose(object->library);
		close(object->fd);
	}
	return leave(end(object));
}

CUresult
cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	CUresult result = enter(PAWL_MOCK_module_function, true);
	const struct pawl_mock_object *object =
		result ? NULL : find(module, PAWL_MOCK_MODULE, PAWL_MOCK_module_function);
	const struct pawl_mock_kernel *kernel =
		object ? dlsym(object->library, "pawl_mock_kernels") : NULL;

	while (kernel && kernel->name && strcmp(kernel->name, name))
		kernel++;
	if (!result && (!kernel || !kernel->name))
		result = PAWL_CUDA_ERROR_NOT_FOUND;
	if (!result)
		*function = (CUfunction)pawl_mock_function_new(object, kernel);
	return leave(result);
}

CUresult
cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
	CUresult result = enter(PAWL_MOCK_function_attribute, true);

	(void)attribute;
	(void)function;
	*value = 0;
	return leave(result);
}

CUresult
cuMemAlloc_v2(CUdeviceptr *address, size_t n)
{
	CUresult result = enter(PAWL_MOCK_memory_alloc, true);
	struct pawl_mock_object *object;

	if (!result && !n)
		result = PAWL_CUDA_ERROR_INVALID_VALUE;
	if (!result && (int64_t)n > pawl_mock.memory_bytes - pawl_mock.allocated_bytes)
		result = PAWL_CUDA_ERROR_OUT_OF_MEMORY;
	if (!result) {
		object = object_new(PAWL_MOCK_MEMORY, &pawl_mock.allocations);
		pawl_mock_memory_make(object, n);
		pawl_mock.allocated_bytes += (int64_t)n;
		*address = (CUdeviceptr)(uintptr_t)object->bytes;
	}
	return leave(result);
}

/* An allocation by its first byte. */
static struct pawl_mock_object *
find_start(enum pawl_mock_kind kind, const void *bytes, enum pawl_mock_call call)
{
	struct pawl_mock_object *o = objects;

	while (o && !(o->kind == kind && o->is_live && o->bytes == bytes))
		o = o->next;
	if (!o)
		pawl_mock_mistake("%s of what there is none of", call_name(call));
	return o;
}

/* Work that is not done yet may still be about to use it, as the driver waits for it to be done. */
static void
drain_all(void)
{
	struct pawl_mock_object *o;

	for (o = objects; o; o = o->next)
		if (o->kind == PAWL_MOCK_STREAM && o->is_live)
			drain(o);
}

CUresult
cuMemFree_v2(CUdeviceptr address)
{
	struct pawl_mock_object *object;

	enter(PAWL_MOCK_memory_free, true);
	drain_all();
	object = find_start(
		PAWL_MOCK_MEMORY, (void *)(uintptr_t)address, PAWL_MOCK_memory_free);
	if (object) {
		pawl_mock.allocated_bytes -= (int64_t)object->n_bytes;
		pawl_mock_memory_end(object);
	}
	return leave(end(object));
}

CUresult
cuMemHostAlloc(void **memory, size_t n, unsigned int flags)
{
	CUresult result = enter(PAWL_MOCK_pinned_alloc, true);
	struct pawl_mock_object *object;

	(void)flags;
	if (!result) {
		object = object_new(PAWL_MOCK_PINNED, &pawl_mock.pinned);
		object->n_bytes = n;
		object->bytes = malloc(n);
		*memory = memset(object->bytes, 0xff, n);
	}
	return leave(result);
}

CUresult
cuMemFreeHost(void *memory)
{
	struct pawl_mock_object *object;

	enter(PAWL_MOCK_pinned_free, true);
	drain_all();
	object = find_start(PAWL_MOCK_PINNED, memory, PAWL_MOCK_pinned_free);
	if (object)
		free(object->bytes);
	return leave(end(object));
}

/* What is not pinned is read at once. */
static CUresult
copy(enum pawl_mock_work_kind kind, void *to, const void *from, size_t n, CUstream stream,
	enum pawl_mock_call call)
{
	CUresult result = enter(call, true);
	const void *host = kind == PAWL_MOCK_UP ? from : kind == PAWL_MOCK_DOWN ? to : NULL;
	bool is_pageable = host && !find_memory(PAWL_MOCK_PINNED, host, n);
	struct pawl_mock_work *work;

	if (!result) {
		pawl_mock.pageable_copies += is_pageable;
		work = pawl_mock_copy_new(kind, to, from, n);
		if (is_pageable && kind == PAWL_MOCK_UP)
			work->from = work->staged = memcpy(malloc(n), from, n);
		result = enqueue(stream, work, call);
	}
	if (!result && is_pageable && kind == PAWL_MOCK_DOWN)
		result = drain(find(stream, PAWL_MOCK_STREAM, call));
	return leave(result);
}

CUresult
cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n, CUstream stream)
{
	return copy(PAWL_MOCK_UP, (void *)(uintptr_t)to, from, n, stream, PAWL_MOCK_copy_up);
}

CUresult
cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, CUstream stream)
{
	return copy(PAWL_MOCK_DOWN, to, (void *)(uintptr_t)from, n, stream, PAWL_MOCK_copy_down);
}

CUresult
cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream)
{
	return copy(PAWL_MOCK_WITHIN, (void *)(uintptr_t)to, (void *)(uintptr_t)from, n, stream,
		PAWL_MOCK_copy_within);
}

CUresult
cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t n, CUstream stream)
{
	CUresult result = enter(PAWL_MOCK_fill, true);
	struct pawl_mock_work *work;

	if (!result) {
		work = pawl_mock_copy_new(PAWL_MOCK_FILL, (void *)(uintptr_t)at, NULL, n);
		work->value = value;
		result = enqueue(stream, work, PAWL_MOCK_fill);
	}
	return leave(result);
}

CUresult
cuStreamCreate(CUstream *stream, unsigned int flags)
{
	CUresult result = enter(PAWL_MOCK_stream_new, true);

	if (flags != PAWL_CU_STREAM_NON_BLOCKING)
		pawl_mock_mistake("a stream that waits for the default one");
	if (!result)
		*stream = (CUstream)(void *)object_new(PAWL_MOCK_STREAM, &pawl_mock.streams);
	return leave(result);
}

CUresult
cuStreamDestroy_v2(CUstream stream)
{
	struct pawl_mock_object *object;

	enter(PAWL_MOCK_stream_free, true);
	object = find(stream, PAWL_MOCK_STREAM, PAWL_MOCK_stream_free);
	if (object && object->is_capturing)
		pawl_mock_mistake("a stream is destroyed while it captures");
	if (object)
		drain(object);
	return leave(end(object));
}

CUresult
cuStreamSynchronize(CUstream stream)
{
	CUresult result = enter(PAWL_MOCK_stream_wait, true);
	struct pawl_mock_object *object =
		result ? NULL : find(stream, PAWL_MOCK_STREAM, PAWL_MOCK_stream_wait);

	if (!result)
		result = object ? drain(object) : PAWL_CUDA_ERROR_INVALID_HANDLE;
	return leave(result);
}

CUresult
cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	CUresult result = enter(PAWL_MOCK_capture_begin, true);
	struct pawl_mock_object *object =
		result ? NULL : find(stream, PAWL_MOCK_STREAM, PAWL_MOCK_capture_begin);

	(void)mode;
	if (object) {
		object->is_capturing = true;
		object->is_broken = false;
	}
	return leave(result);
}

CUresult
cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	CUresult result = enter(PAWL_MOCK_capture_end, true);
	struct pawl_mock_object *object =
		find(stream, PAWL_MOCK_STREAM, PAWL_MOCK_capture_end), *made;

	*graph = NULL;
	if (object) {
		object->is_capturing = false;
		if (!result && object->is_broken)
			result = PAWL_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
		if (result) {
			pawl_mock_works_free(object->captured);
		} else {
			made = object_new(PAWL_MOCK_GRAPH, &pawl_mock.graphs);
			made->first = object->captured;
			*graph = (CUgraph)(void *)made;
		}
		object->captured = NULL;
	}
	return leave(result);
}

CUresult
cuGraphDestroy(CUgraph graph)
{
	struct pawl_mock_object *object;

	enter(PAWL_MOCK_graph_free, true);
	object = find(graph, PAWL_MOCK_GRAPH, PAWL_MOCK_graph_free);
	if (object)
		pawl_mock_works_free(object->first);
	return leave(end(object));
}

CUresult
cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	CUresult result = enter(PAWL_MOCK_graph_instantiate, true);
	struct pawl_mock_object *object =
		result ? NULL : find(graph, PAWL_MOCK_GRAPH, PAWL_MOCK_graph_instantiate), *made;

	(void)flags;
	if (object) {
		made = object_new(PAWL_MOCK_EXEC, &pawl_mock.execs);
		made->first = pawl_mock_works_copy(object->first);
		*exec = (CUgraphExec)(void *)made;
	}
	return leave(result);
}

CUresult
cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	CUresult result = enter(PAWL_MOCK_graph_launch, true);
	struct pawl_mock_object *object =
		result ? NULL : find(exec, PAWL_MOCK_EXEC, PAWL_MOCK_graph_launch);
	struct pawl_mock_work *works = object ? pawl_mock_works_copy(object->first) : NULL, *next;

	for (; works && !result; works = next) {
		next = works->next;
		works->next = NULL;
		result = enqueue(stream, works, PAWL_MOCK_graph_launch);
	}
	pawl_mock_works_free(works);
	return leave(result);
}

CUresult
cuGraphExecDestroy(CUgraphExec exec)
{
	struct pawl_mock_object *object;

	enter(PAWL_MOCK_exec_free, true);
	drain_all();
	object = find(exec, PAWL_MOCK_EXEC, PAWL_MOCK_exec_free);
	if (object)
		pawl_mock_works_free(object->first);
	return leave(end(object));
}

CUresult
cuLaunchKernel(CUfunction function, unsigned int blocks_x, unsigned int blocks_y,
	unsigned int blocks_z, unsigned int threads_x, unsigned int threads_y,
	unsigned int threads_z, unsigned int shared_bytes, CUstream stream, void **parameters,
	void **extra)
{
	CUresult result = enter(PAWL_MOCK_launch, true);
	struct pawl_mock_work *work;

	(void)extra;
	if (!result && (blocks_y != 1 || blocks_z != 1 || threads_y != 1 || threads_z != 1 ||
			       shared_bytes || !blocks_x))
		result = PAWL_CUDA_ERROR_INVALID_VALUE;
	if (!result) {
		work = pawl_mock_kernel_new(function, blocks_x, threads_x, parameters);
		result = work ? enqueue(stream, work, PAWL_MOCK_launch)
			      : PAWL_CUDA_ERROR_INVALID_VALUE;
	}
	return leave(result);
}

#include "plugins/cuda_exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/clock.h"

enum { ALIGNMENT = 256 };

/* How its runs launch. */
enum mode { FRESH, CAPTURED, PLAIN };

struct pawl_runner {
	const struct pawl_cuda_module *module;
	CUstream stream;
	char *host; /* the pinned double of block */
	char *results;
	CUdeviceptr block;
	int64_t data_at, args_at, n_bytes;
	enum mode mode;
	CUgraphExec exec; /* CAPTURED */
};

static enum pawl_status
load_kernel(struct pawl_cuda_module *module, int32_t i, struct pawl_error *err)
{
	const struct pawl_cuda_driver *driver = &module->device->driver;
	const struct pawl_cuda_kernel *kernel = &module->cuda->kernels[i];
	CUresult result = driver->call.module_function(
		&module->functions[i], module->units[kernel->unit], kernel->name);
	char what[96];
	int bytes;

	/* Also makes a driver load now what it would load at the first launch. */
	if (!result)
		result = driver->call.function_attribute(
			&bytes, PAWL_CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, module->functions[i]);
	snprintf(what, sizeof(what), "loading kernel %s", kernel->name);
	return pawl_cuda_check(driver, result, what, err);
}

static enum pawl_status
load_all(struct pawl_cuda_module *module, const struct pawl_cuda_image *image,
	struct pawl_error *err)
{
	const struct pawl_cuda_driver *driver = &module->device->driver;
	enum pawl_status status = PAWL_OK;
	char what[96];
	int32_t i;

	/* One that is older than the NVRTC says little of its reason. */
	snprintf(what, sizeof(what), "loading kernels of NVRTC %d.%d by a driver of CUDA %d.%d",
		image->nvrtc_major, image->nvrtc_minor, driver->version / 1000,
		driver->version % 1000 / 10);
	for (i = 0; i < image->cuda.n_units && !status; i++)
		status = pawl_cuda_check(driver,
			driver->call.module_load(&module->units[i], image->binaries[i].bytes), what,
			err);
	for (i = 0; i < image->cuda.n_kernels && !status; i++)
		status = load_kernel(module, i, err);
	return status;
}

enum pawl_status
pawl_cuda_module_init(struct pawl_cuda_module *module, struct pawl_cuda_device *device,
	const struct pawl_program *program, const struct pawl_cuda_image *image,
	struct pawl_error *err)
{
	const struct pawl_cuda_driver *driver = &device->driver;
	enum pawl_status status;

	*module = (struct pawl_cuda_module){
		.device = device, .program = program, .cuda = &image->cuda};
	module->functions = calloc((size_t)image->cuda.n_kernels + 1, sizeof(CUfunction));
	if (!module->functions)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a module");
	status = pawl_cuda_enter(driver, err);
	if (!status) {
		status = load_all(module, image, err);
		pawl_cuda_leave(driver);
	}
	if (status)
		pawl_cuda_module_release(module);
	return status;
}

void
pawl_cuda_module_release(struct pawl_cuda_module *module)
{
	const struct pawl_cuda_driver *driver = &module->device->driver;

	if (!pawl_cuda_enter(driver, NULL)) {
		for (int i = 0; i < PAWL_CUDA_UNITS; i++)
			if (module->units[i])
				driver->call.module_unload(module->units[i]);
		pawl_cuda_leave(driver);
	}
	free(module->functions);
	*module = (struct pawl_cuda_module){.device = NULL};
}

static int64_t
aligned(int64_t n)
{
	return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static CUresult
make(struct pawl_runner *runner, int64_t result_bytes)
{
	const struct pawl_cuda_calls *call = &runner->module->device->driver.call;
	CUresult result = call->stream_new(&runner->stream, PAWL_CU_STREAM_NON_BLOCKING);

	if (!result)
		result = call->pinned_alloc(
			(void **)&runner->host, (size_t)runner->n_bytes, 0);
	if (!result && result_bytes)
		result = call->pinned_alloc((void **)&runner->results, (size_t)result_bytes, 0);
	if (!result)
		result = call->memory_alloc(&runner->block, (size_t)runner->n_bytes);
	return result;
}

/* Takes everything but runs. */
static enum pawl_status
runner_ahead(const struct pawl_cuda_module *module, int64_t data_bytes, int64_t result_bytes,
	struct pawl_runner **out, struct pawl_exchange *exchange, struct pawl_error *err)
{
	struct pawl_runner *runner = calloc(1, sizeof(*runner));

	if (runner)
		runner->host = calloc(1, (size_t)(aligned(data_bytes) + aligned(result_bytes) + 1));
	if (!runner || !runner->host) {
		free(runner);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a runner");
	}
	runner->module = module;
	*exchange = (struct pawl_exchange){.data = runner->host,
		.results = runner->host + aligned(data_bytes),
		.device_data = runner->host};
	*out = runner;
	return PAWL_OK;
}

enum pawl_status
pawl_cuda_runner_new(const struct pawl_cuda_module *module, int64_t data_bytes,
	int64_t result_bytes, struct pawl_runner **out, struct pawl_exchange *exchange,
	struct pawl_error *err)
{
	const struct pawl_cuda_driver *driver;
	struct pawl_runner *runner;
	enum pawl_status status;

	if (!module->device)
		return runner_ahead(module, data_bytes, result_bytes, out, exchange, err);
	driver = &module->device->driver;
	runner = calloc(1, sizeof(*runner));
	if (!runner)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a runner");
	runner->module = module;
	runner->data_at = aligned(module->cuda->state_bytes);
	runner->args_at = runner->data_at + aligned(data_bytes);
	runner->n_bytes = runner->args_at +
			    aligned((module->program->n_args + 1) * (int64_t)sizeof(void *));
	status = pawl_cuda_enter(driver, err);
	if (status) {
		free(runner);
		return status;
	}
	status = pawl_cuda_check(
		driver, make(runner, result_bytes), "making a runner of a plan", err);
	pawl_cuda_leave(driver);
	if (status) {
		pawl_cuda_runner_free(runner);
		return status;
	}
	atomic_fetch_add(&module->device->allocations, 1);
	memset(runner->host, 0, (size_t)runner->n_bytes);
	*exchange = (struct pawl_exchange){.data = runner->host + runner->data_at,
		.results = runner->results,
		.device_data = (void *)(uintptr_t)(runner->block + (CUdeviceptr)runner->data_at)};
	*out = runner;
	return PAWL_OK;
}

void
pawl_cuda_runner_free(struct pawl_runner *runner)
{
	const struct pawl_cuda_driver *driver;

	if (!runner)
		return;
	if (!runner->module->device) {
		free(runner->host);
		free(runner);
		return;
	}
	driver = &runner->module->device->driver;
	if (!pawl_cuda_enter(driver, NULL)) {
		if (runner->exec)
			driver->call.exec_free(runner->exec);
		if (runner->block)
			driver->call.memory_free(runner->block);
		if (runner->results)
			driver->call.pinned_free(runner->results);
		if (runner->host)
			driver->call.pinned_free(runner->host);
		if (runner->stream)
			driver->call.stream_free(runner->stream);
		pawl_cuda_leave(driver);
	}
	free(runner);
}

/* Every kernel once, in order; *n is how many got through. */
static CUresult
launch_all(const struct pawl_runner *runner, uint64_t *n)
{
	const struct pawl_cuda_module *module = runner->module;
	const struct pawl_cuda_program *cuda = module->cuda;
	CUdeviceptr args, state = runner->block;
	void *parameters[] = {&args, &state};
	CUresult result = PAWL_CUDA_SUCCESS;

	*n = 0;
	for (int32_t i = 0; i < cuda->n_launches && !result; i++) {
		const struct pawl_cuda_launch *launch = &cuda->launches[i];

		args = runner->block + (CUdeviceptr)runner->args_at +
		       sizeof(void *) * (CUdeviceptr)module->program->steps[launch->step].first_arg;
		result = module->device->driver.call.launch(module->functions[launch->kernel],
			(unsigned)launch->blocks, 1, 1,
			(unsigned)cuda->kernels[launch->kernel].threads, 1, 1, 0, runner->stream,
			parameters, NULL);
		*n += !result;
	}
	return result;
}

/* The launches as one graph.  A capture that was begun is ended, whatever becomes of it. */
static CUresult
capture(struct pawl_runner *runner)
{
	const struct pawl_cuda_calls *call = &runner->module->device->driver.call;
	CUgraph graph = NULL;
	uint64_t n;
	CUresult result = call->capture_begin(
		runner->stream, PAWL_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	CUresult ended;

	if (result)
		return result;
	result = launch_all(runner, &n);
	ended = call->capture_end(runner->stream, &graph);
	if (!result)
		result = ended;
	if (!result)
		result = call->graph_instantiate(&runner->exec, graph, 0);
	if (result)
		runner->exec = NULL;
	if (graph)
		call->graph_free(graph);
	return result;
}

static void
choose_mode(struct pawl_runner *runner)
{
	struct pawl_cuda_device *device = runner->module->device;
	CUresult result = capture(runner);
	struct pawl_error why;

	if (!result) {
		runner->mode = CAPTURED;
		atomic_fetch_add(&device->captures, 1);
		return;
	}
	runner->mode = PLAIN;
	pawl_cuda_check(&device->driver, result, "capturing a run", &why);
	pthread_mutex_lock(&device->naming);
	if (!device->capture_fault[0])
		snprintf(device->capture_fault, sizeof(device->capture_fault), "%.255s", why.text);
	pthread_mutex_unlock(&device->naming);
	atomic_fetch_add(&device->capture_failures, 1);
}

static CUresult
launch(struct pawl_runner *runner)
{
	struct pawl_cuda_device *device = runner->module->device;
	CUresult result;
	uint64_t n;

	if (runner->mode == FRESH)
		choose_mode(runner);
	if (runner->mode == CAPTURED) {
		result = device->driver.call.graph_launch(runner->exec, runner->stream);
		atomic_fetch_add(&device->graph_launches, !result);
		return result;
	}
	result = launch_all(runner, &n);
	atomic_fetch_add(&device->launches, n);
	return result;
}

static CUresult
run_all(struct pawl_runner *runner, const struct pawl_device_run *run, int64_t *waited_ns)
{
	struct pawl_cuda_device *device = runner->module->device;
	const struct pawl_cuda_calls *call = &device->driver.call;
	size_t n = (size_t)(run->has_new_args ? runner->n_bytes : runner->args_at);
	CUresult result = call->copy_up(runner->block, runner->host, n, runner->stream), waited;
	int64_t start;

	atomic_fetch_add(&device->uploads, !result);
	if (!result)
		result = launch(runner);
	for (int32_t i = 0; i < run->n_results && !result; i++)
		result = call->copy_down(runner->results + run->results[i].at,
			(CUdeviceptr)(uintptr_t)run->results[i].from,
			(size_t)run->results[i].bytes, runner->stream);
	/* Nothing may be on its way when the host goes on to fill the block. */
	start = pawl_nanoseconds();
	waited = call->stream_wait(runner->stream);
	*waited_ns = pawl_nanoseconds() - start;
	return result ? result : waited;
}

enum pawl_status
pawl_cuda_runner_run(struct pawl_runner *runner, const struct pawl_device_run *run,
	int64_t *waited_ns, struct pawl_error *err)
{
	const struct pawl_program *program = runner->module->program;
	const struct pawl_cuda_driver *driver;
	enum pawl_status status;

	*waited_ns = 0;
	if (!runner->module->device)
		return pawl_fail(err, PAWL_UNSUPPORTED,
			"target cuda was opened to compile for an architecture, not to run");
	driver = &runner->module->device->driver;
	status = pawl_cuda_enter(driver, err);
	if (status)
		return status;
	if (program->n_symbols)
		memcpy(runner->host, run->symbols,
			(size_t)program->n_symbols * sizeof(*run->symbols));
	if (run->has_new_args)
		memcpy(runner->host + runner->args_at, run->args,
			(size_t)program->n_args * sizeof(*run->args));
	status = pawl_cuda_check(driver, run_all(runner, run, waited_ns), "running a plan", err);
	pawl_cuda_leave(driver);
	return status;
}

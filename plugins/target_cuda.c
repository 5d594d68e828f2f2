/*
 * The target for NVIDIA GPUs: a program becomes CUDA C (codegen/cuda), compiled by NVRTC
 * (plugins/cuda_compile.h) and run through the driver (plugins/cuda_exec.h), both opened by dlopen.
 *
 * With options.arch there is no device: programs are compiled, and nothing can be run.
 */
#include "codegen/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/build_id.h"
#include "plugins/cuda_compile.h"
#include "plugins/cuda_exec.h"
#include "plugins/cuda_nvrtc.h"

enum { MEMORY_ALIGN = 256 };

struct pawl_target {
	struct pawl_cuda_device device;
	bool has_device;
	struct pawl_cuda_compiler *compiler;
	char arch[32];
};

struct pawl_code {
	struct pawl_target *target;
	struct pawl_cuda_image image;
	struct pawl_cuda_module module; /* where there is a device */
};

static void
close_target(struct pawl_target *target)
{
	if (!target)
		return;
	pawl_cuda_compiler_free(target->compiler);
	if (target->has_device)
		pawl_cuda_device_release(&target->device);
	free(target);
}

/* A device is of no use without a compiler, and who may take another target learns it here. */
static enum pawl_status
open_device(struct pawl_target *target, struct pawl_error *err)
{
	char nvrtc[PAWL_NVRTC_PATH];
	enum pawl_status status = pawl_cuda_device_init(&target->device, err);

	if (status)
		return status;
	target->has_device = true;
	snprintf(target->arch, sizeof(target->arch), "sm_%d%d", target->device.driver.major,
		target->device.driver.minor);
	return pawl_nvrtc_find(nvrtc, err);
}

static enum pawl_status
open_target(
	const struct pawl_target_options *options, struct pawl_target **out, struct pawl_error *err)
{
	const struct pawl_target_options none = {.arch = NULL};
	const struct pawl_target_options *o = options ? options : &none;
	struct pawl_target *target = calloc(1, sizeof(*target));
	enum pawl_status status = PAWL_OK;

	if (!target)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a target");
	if (o->arch)
		snprintf(target->arch, sizeof(target->arch), "%s", o->arch);
	else
		status = open_device(target, err);
	if (!status)
		status = pawl_cuda_compiler_new(o, target->arch, &target->compiler, err);
	if (status) {
		close_target(target);
		return status;
	}
	*out = target;
	return PAWL_OK;
}

static enum pawl_layout
weight_layout(const struct pawl_target *target, const struct pawl_type *type)
{
	(void)target;
	return pawl_cuda_weight_layout(type);
}

static void
code_free(struct pawl_code *code)
{
	if (!code)
		return;
	if (code->module.device)
		pawl_cuda_module_release(&code->module);
	pawl_cuda_image_release(&code->image);
	free(code);
}

static enum pawl_status
compile(struct pawl_target *target, const struct pawl_program *program, struct pawl_code **out,
	struct pawl_error *err)
{
	struct pawl_code *code = calloc(1, sizeof(*code));
	enum pawl_status status;

	if (!code)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for code");
	code->target = target;
	status = pawl_cuda_compile(target->compiler, program, &code->image, err);
	if (status) {
		free(code);
		return status;
	}
	if (target->has_device)
		status = pawl_cuda_module_init(
			&code->module, &target->device, program, &code->image, err);
	if (status) {
		code_free(code);
		return status;
	}
	*out = code;
	return PAWL_OK;
}

static void
code_info(const struct pawl_code *code, struct pawl_code_info *out)
{
	*out = (struct pawl_code_info){
		.code_bytes = code->image.n_bytes,
		.code_hash = code->image.hash,
		.variant = code->target->arch,
		.n_launches = code->image.cuda.n_launches,
	};
}

static void
counters(const struct pawl_target *target, struct pawl_target_counters *out)
{
	pawl_cuda_compiler_counters(target->compiler, out);
	if (target->has_device)
		pawl_cuda_device_counters(&target->device, out);
}

/* Without a device memory is addresses, which nothing is stored at. */
static enum pawl_status
alloc(struct pawl_target *target, int64_t n_bytes, void **out, struct pawl_error *err)
{
	if (target->has_device)
		return pawl_cuda_alloc(&target->device, n_bytes, out, err);
	*out = n_bytes < INT64_MAX - MEMORY_ALIGN
		       ? aligned_alloc(MEMORY_ALIGN,
				 (size_t)(n_bytes / MEMORY_ALIGN + 1) * MEMORY_ALIGN)
		       : NULL;
	if (!*out)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no room for %lld bytes for %s",
			(long long)n_bytes, target->arch);
	return PAWL_OK;
}

static void
free_bytes(struct pawl_target *target, void *bytes)
{
	if (target->has_device)
		pawl_cuda_free(&target->device, bytes);
	else
		free(bytes);
}

static enum pawl_status
copy(struct pawl_target *target, enum pawl_copy_way way, void *to, const void *from,
	const struct pawl_copy_pieces *pieces, struct pawl_error *err)
{
	if (target->has_device)
		return pawl_cuda_copy(&target->device, way, to, from, pieces, err);
	for (int64_t i = 0; way == PAWL_COPY_DOWN && i < pieces->n; i++)
		memset((char *)to + i * pieces->to_pitch, 0, (size_t)pieces->bytes);
	return PAWL_OK;
}

static enum pawl_status
fill(struct pawl_target *target, void *bytes, unsigned char value, int64_t n_bytes,
	struct pawl_error *err)
{
	return target->has_device ? pawl_cuda_fill(&target->device, bytes, value, n_bytes, err)
				  : PAWL_OK;
}

static enum pawl_status
runner_new(const struct pawl_code *code, int64_t data_bytes, int64_t result_bytes,
	struct pawl_runner **out, struct pawl_exchange *exchange, struct pawl_error *err)
{
	return pawl_cuda_runner_new(&code->module, data_bytes, result_bytes, out, exchange, err);
}

static int32_t
launch_of(const struct pawl_code *code, int32_t step)
{
	const struct pawl_cuda_program *cuda = &code->image.cuda;
	int32_t i = 0;

	while (cuda->launches[i].step + cuda->launches[i].n_steps <= step)
		i++;
	return i;
}

__attribute__((visibility("default"))) const struct pawl_target_api *pawl_target_query(void);

const struct pawl_target_api *
pawl_target_query(void)
{
	static const struct pawl_target_memory memory = {
		.alloc = alloc,
		.free = free_bytes,
		.copy = copy,
		.fill = fill,
	};
	static const struct pawl_target_api api = {
		.size = sizeof(api),
		.build_id = pawl_build_id,
		.name = "cuda",
		.open = open_target,
		.close = close_target,
		.weight_layout = weight_layout,
		.compile = compile,
		.code_free = code_free,
		.code_info = code_info,
		.counters = counters,
		.launch_of = launch_of,
		.memory = &memory,
		.runner_new = runner_new,
		.runner_free = pawl_cuda_runner_free,
		.runner_run = pawl_cuda_runner_run,
	};

	return &api;
}

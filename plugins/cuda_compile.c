#include "plugins/cuda_compile.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/debug.h"

typedef struct _nvrtcProgram *nvrtcProgram;

struct pawl_cuda_compiler {
	char arch[32];
	pthread_mutex_t lock; /* of what follows */
	void *library;
	int (*create)(nvrtcProgram *program, const char *source, const char *name, int n_headers,
		const char *const *headers, const char *const *include_names);
	int (*compile)(nvrtcProgram program, int n_options, const char *const *options);
	int (*log_size)(nvrtcProgram program, size_t *size);
	int (*log)(nvrtcProgram program, char *log);
	int (*code_size)(nvrtcProgram program, size_t *size);
	int (*code)(nvrtcProgram program, char *code);
	int (*destroy)(nvrtcProgram *program);
	uint64_t n_compiles;
	int64_t code_bytes;
};

enum pawl_status
pawl_cuda_compiler_new(const struct pawl_target_options *options, const char *arch,
	struct pawl_cuda_compiler **out, struct pawl_error *err)
{
	struct pawl_cuda_compiler *compiler = calloc(1, sizeof(*compiler));

	(void)options;
	if (!compiler)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a compiler");
	snprintf(compiler->arch, sizeof(compiler->arch), "%s", arch);
	pthread_mutex_init(&compiler->lock, NULL);
	*out = compiler;
	return PAWL_OK;
}

void
pawl_cuda_compiler_free(struct pawl_cuda_compiler *compiler)
{
	if (!compiler)
		return;
	pthread_mutex_destroy(&compiler->lock);
	free(compiler);
}

static bool
find(void *library, const char *name, void *function)
{
	void *found = dlsym(library, name);

	*(void **)function = found;
	return found != NULL;
}

static enum pawl_status
open_library(struct pawl_cuda_compiler *c, struct pawl_error *err)
{
	const char *name = pawl_env(PAWL_ENV_NVRTC);

	if (c->library)
		return PAWL_OK;
	if (!name)
		name = "libnvrtc.so.13";
	c->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!c->library)
		return pawl_fail(err, PAWL_ENVIRONMENT, "there is no NVRTC: %s", dlerror());
	if (find(c->library, "nvrtcCreateProgram", &c->create) &&
		find(c->library, "nvrtcCompileProgram", &c->compile) &&
		find(c->library, "nvrtcGetProgramLogSize", &c->log_size) &&
		find(c->library, "nvrtcGetProgramLog", &c->log) &&
		find(c->library, "nvrtcGetCUBINSize", &c->code_size) &&
		find(c->library, "nvrtcGetCUBIN", &c->code) &&
		find(c->library, "nvrtcDestroyProgram", &c->destroy))
		return PAWL_OK;
	c->library = NULL;
	return pawl_fail(err, PAWL_ENVIRONMENT, "%s is no NVRTC", name);
}

static enum pawl_status
compile(struct pawl_cuda_compiler *c, const char *source, struct pawl_cuda_binary *out,
	struct pawl_error *err)
{
	char option[48], log[512] = "";
	const char *options[] = {
		option, "-fmad=false", "-ftz=true", "-prec-div=true", "-prec-sqrt=true"};
	nvrtcProgram program;
	int result;

	snprintf(option, sizeof(option), "-arch=%s", c->arch);
	result = c->create(&program, source, "kernels.cu", 0, NULL, NULL);
	if (result)
		return pawl_fail(err, PAWL_ENVIRONMENT, "NVRTC: error %d", result);
	result = c->compile(program, sizeof(options) / sizeof(*options), options);
	if (result) {
		size_t n = 0;

		if (!c->log_size(program, &n) && n <= sizeof(log))
			c->log(program, log);
		pawl_fail(err, PAWL_INTERNAL, "NVRTC: error %d: %s", result, log);
	} else {
		result = c->code_size(program, &out->n_bytes);
		out->bytes = result ? NULL : malloc(out->n_bytes);
		if (out->bytes)
			result = c->code(program, out->bytes);
	}
	c->destroy(&program);
	if (!result && !out->bytes)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for kernels");
	return result ? PAWL_INTERNAL : PAWL_OK;
}

enum pawl_status
pawl_cuda_compile(struct pawl_cuda_compiler *compiler, const struct pawl_program *program,
	struct pawl_cuda_image *out, struct pawl_error *err)
{
	enum pawl_status status;

	*out = (struct pawl_cuda_image){.n_bytes = 0};
	status = pawl_cuda_program_init(&out->cuda, program, err);
	if (status)
		return status;
	pthread_mutex_lock(&compiler->lock);
	status = open_library(compiler, err);
	for (int32_t i = 0; i < out->cuda.n_units && !status; i++) {
		status = compile(compiler, out->cuda.sources[i].bytes, &out->binaries[i], err);
		out->n_bytes += (int64_t)out->binaries[i].n_bytes;
	}
	if (!status) {
		compiler->n_compiles += (uint64_t)out->cuda.n_kernels;
		compiler->code_bytes += out->n_bytes;
	}
	pthread_mutex_unlock(&compiler->lock);
	if (status)
		pawl_cuda_image_release(out);
	return status;
}

void
pawl_cuda_image_release(struct pawl_cuda_image *image)
{
	pawl_cuda_program_release(&image->cuda);
	for (int i = 0; i < PAWL_CUDA_UNITS; i++)
		free(image->binaries[i].bytes);
	*image = (struct pawl_cuda_image){.n_bytes = 0};
}

void
pawl_cuda_compiler_counters(struct pawl_cuda_compiler *compiler, struct pawl_target_counters *out)
{
	pthread_mutex_lock(&compiler->lock);
	out->kernel_compiles = compiler->n_compiles;
	out->code_bytes = compiler->code_bytes;
	pthread_mutex_unlock(&compiler->lock);
}

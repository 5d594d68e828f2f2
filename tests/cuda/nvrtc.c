#include "tests/cuda/nvrtc.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef HAVE_NVRTC_H
#include <nvrtc.h>
#else
typedef struct _nvrtcProgram *nvrtcProgram;
typedef int nvrtcResult;
#endif

static struct {
	nvrtcResult (*create)(nvrtcProgram *program, const char *source, const char *name,
		int n_headers, const char *const *headers, const char *const *include_names);
	nvrtcResult (*compile)(nvrtcProgram program, int n_options, const char *const *options);
	nvrtcResult (*log_size)(nvrtcProgram program, size_t *size);
	nvrtcResult (*log)(nvrtcProgram program, char *log);
	nvrtcResult (*code_size)(nvrtcProgram program, size_t *size);
	nvrtcResult (*destroy)(nvrtcProgram *program);
} nvrtc;

#ifdef HAVE_NVRTC_H
/* The header agrees with what is called here; its library is not linked. */
#define SAME(member, function)                                                                     \
	_Static_assert(                                                                            \
		__builtin_types_compatible_p(__typeof__(nvrtc.member), __typeof__(&function)),     \
		#function " has another type")
SAME(create, nvrtcCreateProgram);
SAME(compile, nvrtcCompileProgram);
SAME(log_size, nvrtcGetProgramLogSize);
SAME(log, nvrtcGetProgramLog);
SAME(code_size, nvrtcGetCUBINSize);
SAME(destroy, nvrtcDestroyProgram);
#endif

static void *
open_matching(const char *pattern)
{
	void *library = NULL;
	glob_t found;
	size_t i;

	if (glob(pattern, 0, NULL, &found))
		return NULL;
	for (i = found.gl_pathc; i > 0 && !library; i--)
		library = dlopen(found.gl_pathv[i - 1], RTLD_NOW | RTLD_LOCAL);
	globfree(&found);
	return library;
}

static void *
open_library(void)
{
	static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
	static const char *const folders[] = {"/usr/local/cuda*/lib*",
		"/usr/local/cuda*/targets/*/lib", "/opt/cuda*/lib*",
		"/usr/lib/python3*/*-packages/nvidia/*/lib",
		"/usr/local/lib/python3*/*-packages/nvidia/*/lib"};
	const char *variables[] = {getenv("CUDA_PATH"), getenv("CUDA_HOME")};
	char pattern[512];
	void *library;
	size_t i, j;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
		for (j = 0; j < sizeof(variables) / sizeof(*variables) && !library; j++) {
			snprintf(pattern, sizeof(pattern), "%s/lib*/%s",
				variables[j] ? variables[j] : "", names[i]);
			library = variables[j] ? open_matching(pattern) : NULL;
		}
		for (j = 0; j < sizeof(folders) / sizeof(*folders) && !library; j++) {
			snprintf(pattern, sizeof(pattern), "%s/%s", folders[j], names[i]);
			library = open_matching(pattern);
		}
		if (library)
			return library;
	}
	return NULL;
}

static bool
find(void *library, const char *name, void *function)
{
	void *found = dlsym(library, name);

	*(void **)function = found;
	return found != NULL;
}

bool
pawl_nvrtc_open(void)
{
	void *library = open_library();

	return library && find(library, "nvrtcCreateProgram", &nvrtc.create) &&
	       find(library, "nvrtcCompileProgram", &nvrtc.compile) &&
	       find(library, "nvrtcGetProgramLogSize", &nvrtc.log_size) &&
	       find(library, "nvrtcGetProgramLog", &nvrtc.log) &&
	       find(library, "nvrtcGetCUBINSize", &nvrtc.code_size) &&
	       find(library, "nvrtcDestroyProgram", &nvrtc.destroy);
}

bool
pawl_nvrtc_compile(const char *source, const char *arch, char **log, size_t *code_bytes)
{
	char arch_option[32];
	const char *options[] = {arch_option, "-fmad=false", "-ftz=true", "-prec-div=true",
		"-prec-sqrt=true", "--ptxas-options=-v", "-diag-suppress=177"};
	nvrtcProgram program;
	size_t n = 0;
	bool ok;

	snprintf(arch_option, sizeof(arch_option), "-arch=%s", arch);
	if (nvrtc.create(&program, source, "kernels.cu", 0, NULL, NULL))
		return false;
	ok = !nvrtc.compile(program, sizeof(options) / sizeof(*options), options);
	nvrtc.log_size(program, &n);
	*log = calloc(n + 1, 1);
	if (*log)
		nvrtc.log(program, *log);
	*code_bytes = 0;
	ok = ok && *log && !nvrtc.code_size(program, code_bytes);
	nvrtc.destroy(&program);
	return ok;
}

#include "plugins/cuda_nvrtc.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "codegen/module_file.h"
#include "ir/debug.h"

#ifdef HAVE_NVRTC_H
#include <nvrtc.h>

#define PAWL_NVRTC_FN(member, symbol, parameters)                                                  \
	_Static_assert(__builtin_types_compatible_p(                                               \
			       __typeof__(nvrtcResult(*) parameters), __typeof__(&symbol)),        \
		#symbol " has another type");
#define PAWL_NVRTC_MAY_LACK(member, symbol, parameters)
#include "plugins/cuda_nvrtc.def"
#else
typedef struct _nvrtcProgram *nvrtcProgram;
#endif

/* The least that has all that is used, and knows the architectures kernels are tested for. */
enum { LEAST_MAJOR = 12, MOST_ARCHS = 64 };

struct pawl_nvrtc {
	int major, minor, n_known;
	int known[MOST_ARCHS]; /* 75, 80, ... */
#define PAWL_NVRTC_FN(member, symbol, parameters) int(*member) parameters;
#include "plugins/cuda_nvrtc.def"
};

/* -v makes the report of resources; 177 is about values that a kernel has and does not use. */
static const char *const options[] = {"-fmad=false", "-ftz=true", "-prec-div=true",
	"-prec-sqrt=true", "-diag-suppress=177", "--ptxas-options=-v"};
const char pawl_nvrtc_options[] = "-fmad=false -ftz=true -prec-div=true -prec-sqrt=true";

static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

static bool
is_file(const char *path)
{
	struct stat info;

	return !stat(path, &info) && S_ISREG(info.st_mode);
}

/* The last that matches, which is the one of the highest version where folders have one. */
static bool
find_matching(const char *pattern, char path[PAWL_NVRTC_PATH])
{
	bool found = false;
	glob_t matches;
	size_t i;

	if (glob(pattern, 0, NULL, &matches))
		return false;
	for (i = matches.gl_pathc; i > 0 && !found; i--) {
		found = strlen(matches.gl_pathv[i - 1]) < PAWL_NVRTC_PATH &&
			is_file(matches.gl_pathv[i - 1]);
		if (found)
			strcpy(path, matches.gl_pathv[i - 1]);
	}
	globfree(&matches);
	return found;
}

static bool
find_in(const char *root, const char *folder, char path[PAWL_NVRTC_PATH])
{
	char pattern[PAWL_NVRTC_PATH];
	size_t i;

	for (i = 0; root && i < sizeof(names) / sizeof(*names); i++) {
		int n = snprintf(pattern, sizeof(pattern), "%s%s/%s", root, folder, names[i]);

		if (n > 0 && (size_t)n < sizeof(pattern) && find_matching(pattern, path))
			return true;
	}
	return false;
}

static enum pawl_status
find_named(const char *named, char path[PAWL_NVRTC_PATH], struct pawl_error *err)
{
	if (is_file(named) && strlen(named) < PAWL_NVRTC_PATH) {
		strcpy(path, named);
		return PAWL_OK;
	}
	if (find_in(named, "", path))
		return PAWL_OK;
	return pawl_fail(err, PAWL_ENVIRONMENT, "%s=%.300s: neither NVRTC nor a folder with %s",
		pawl_env_info(PAWL_ENV_NVRTC)->name, named, names[0]);
}

/* Where tools/setup-lib.sh leaves pip's: in the folder for what is kept. */
static bool
find_kept(char path[PAWL_NVRTC_PATH])
{
	static const struct {
		enum pawl_env variable;
		const char *folder;
	} places[] = {{PAWL_ENV_CACHE_DIR, "/nvrtc/nvidia/*/lib"},
		{PAWL_ENV_XDG_CACHE, "/pawl/nvrtc/nvidia/*/lib"},
		{PAWL_ENV_HOME, "/.cache/pawl/nvrtc/nvidia/*/lib"}};
	size_t i;

	for (i = 0; i < sizeof(places) / sizeof(*places); i++) {
		if (pawl_env(places[i].variable))
			return find_in(pawl_env(places[i].variable), places[i].folder, path);
	}
	return false;
}

enum pawl_status
pawl_nvrtc_find(char path[PAWL_NVRTC_PATH], struct pawl_error *err)
{
	static const char *const folders[] = {"/usr/local/cuda*/lib*",
		"/usr/local/cuda*/targets/*/lib", "/opt/cuda*/lib*", "/opt/cuda*/targets/*/lib",
		"/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib",
		"/usr/local/lib/python3*/*-packages/nvidia/*/lib",
		"/usr/lib/python3*/*-packages/nvidia/*/lib"};
	static const enum pawl_env toolkits[] = {PAWL_ENV_CUDA_PATH, PAWL_ENV_CUDA_HOME};
	const char *python = "/lib/python3*/*-packages/nvidia/*/lib", *named;
	char local[PAWL_NVRTC_PATH];
	size_t i;

	named = pawl_env(PAWL_ENV_NVRTC);
	if (named)
		return find_named(named, path, err);
	for (i = 0; i < sizeof(toolkits) / sizeof(*toolkits); i++) {
		if (find_in(pawl_env(toolkits[i]), "/lib*", path))
			return PAWL_OK;
	}
	if (find_in(pawl_env(PAWL_ENV_VIRTUAL_ENV), python, path))
		return PAWL_OK;
	for (i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		if (find_in("", folders[i], path))
			return PAWL_OK;
	}
	if (pawl_env(PAWL_ENV_HOME)) {
		snprintf(local, sizeof(local), "/.local%s", python);
		if (find_in(pawl_env(PAWL_ENV_HOME), local, path))
			return PAWL_OK;
	}
	if (find_kept(path))
		return PAWL_OK;
	return pawl_fail(err, PAWL_ENVIRONMENT,
		"no NVRTC: %s or %s is neither in a CUDA toolkit nor of pip's nvidia-cuda-nvrtc; "
		"%s may name it",
		names[0], names[1], pawl_env_info(PAWL_ENV_NVRTC)->name);
}

static enum pawl_status
find_functions(struct pawl_nvrtc *nvrtc, void *library, const char *path, struct pawl_error *err)
{
	const char *missing = NULL;
	void *function;

#define PAWL_NVRTC_FN(member, symbol, parameters)                                                  \
	function = dlsym(library, #symbol);                                                        \
	missing = function || missing ? missing : #symbol;                                         \
	*(void **)&nvrtc->member = function;
#define PAWL_NVRTC_MAY_LACK(member, symbol, parameters)                                            \
	*(void **)&nvrtc->member = dlsym(library, #symbol);
#include "plugins/cuda_nvrtc.def"
	if (missing)
		return pawl_fail(
			err, PAWL_ENVIRONMENT, "%.300s is no usable NVRTC: no %s", path, missing);
	return PAWL_OK;
}

static enum pawl_status
ask_library(struct pawl_nvrtc *nvrtc, const char *path, struct pawl_error *err)
{
	if (nvrtc->version(&nvrtc->major, &nvrtc->minor))
		return pawl_fail(err, PAWL_ENVIRONMENT, "%.300s does not tell its version", path);
	if (nvrtc->major < LEAST_MAJOR)
		return pawl_fail(err, PAWL_ENVIRONMENT,
			"%.300s is NVRTC %d.%d, and %d.0 is the oldest that will do", path,
			nvrtc->major, nvrtc->minor, LEAST_MAJOR);
	if (nvrtc->n_archs(&nvrtc->n_known) || nvrtc->n_known < 1 || nvrtc->n_known > MOST_ARCHS ||
		nvrtc->archs(nvrtc->known))
		return pawl_fail(
			err, PAWL_ENVIRONMENT, "%.300s does not tell its architectures", path);
	return PAWL_OK;
}

enum pawl_status
pawl_nvrtc_open(const char *path, struct pawl_nvrtc **out, struct pawl_error *err)
{
	struct pawl_nvrtc *nvrtc = calloc(1, sizeof(*nvrtc));
	enum pawl_status status;
	void *library;

	if (!nvrtc)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for NVRTC");
	status = pawl_module_open(path, &library, err);
	if (status)
		pawl_error_prefix(err, "NVRTC");
	if (!status)
		status = find_functions(nvrtc, library, path, err);
	if (!status)
		status = ask_library(nvrtc, path, err);
	if (status)
		free(nvrtc);
	else
		*out = nvrtc;
	return status;
}

void
pawl_nvrtc_close(struct pawl_nvrtc *nvrtc)
{
	free(nvrtc);
}

void
pawl_nvrtc_version(const struct pawl_nvrtc *nvrtc, int *major, int *minor)
{
	*major = nvrtc->major;
	*minor = nvrtc->minor;
}

/* 90 of "sm_90" and "sm_90a", 0 of anything else. */
static int
number_of(const char *arch)
{
	return strncmp(arch, "sm_", 3) ? 0 : atoi(arch + 3);
}

bool
pawl_nvrtc_knows(const struct pawl_nvrtc *nvrtc, const char *arch)
{
	int i;

	for (i = 0; i < nvrtc->n_known; i++) {
		if (nvrtc->known[i] == number_of(arch))
			return true;
	}
	return false;
}

/* -arch=sm_90, or, of an architecture that is not known, the latest PTX before it. */
static enum pawl_status
choose_arch(const struct pawl_nvrtc *nvrtc, const char *arch, char option[32], int *ptx_arch,
	struct pawl_error *err)
{
	int best = 0, i;

	*ptx_arch = 0;
	if (pawl_nvrtc_knows(nvrtc, arch)) {
		snprintf(option, 32, "-arch=%.20s", arch);
		return PAWL_OK;
	}
	for (i = 0; i < nvrtc->n_known; i++) {
		if (nvrtc->known[i] < number_of(arch) && nvrtc->known[i] > best)
			best = nvrtc->known[i];
	}
	if (!best)
		return pawl_fail(err, PAWL_ENVIRONMENT,
			"NVRTC %d.%d makes no code for %.32s, which is older than all it knows",
			nvrtc->major, nvrtc->minor, arch);
	*ptx_arch = best;
	snprintf(option, 32, "-arch=compute_%d", best);
	return PAWL_OK;
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct clock {
	double end;
	bool is_over;
};

/* Asked by the compiler between its phases: 1 stops it. */
static int
is_too_late(void *arg, void *unused)
{
	struct clock *clock = arg;

	(void)unused;
	clock->is_over = clock->is_over || now() >= clock->end;
	return clock->is_over;
}

static enum pawl_status
take_code(const struct pawl_nvrtc *nvrtc, nvrtcProgram program, struct pawl_nvrtc_result *out,
	struct pawl_error *err)
{
	if (out->ptx_arch ? nvrtc->ptx_size(program, &out->n_code)
			: nvrtc->cubin_size(program, &out->n_code))
		return pawl_fail(err, PAWL_ENVIRONMENT, "NVRTC has no code to give");
	out->code = malloc(out->n_code + 1);
	if (!out->code)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for kernels");
	if (out->ptx_arch ? nvrtc->ptx(program, out->code) : nvrtc->cubin(program, out->code))
		return pawl_fail(err, PAWL_ENVIRONMENT, "NVRTC does not give its code");
	return PAWL_OK;
}

static void
take_log(const struct pawl_nvrtc *nvrtc, nvrtcProgram program, struct pawl_nvrtc_result *out)
{
	size_t n = 0;

	if (nvrtc->log_size(program, &n))
		n = 0;
	out->log = calloc(n + 1, 1);
	if (out->log && n)
		nvrtc->log(program, out->log);
}

/* What a failed compilation is; the log says more. */
static enum pawl_status
explain(const struct pawl_nvrtc *nvrtc, const struct pawl_nvrtc_job *job, const struct clock *clock,
	int result, struct pawl_error *err)
{
	enum { COMPILATION = 6 };

	if (clock->is_over)
		return pawl_fail(err, PAWL_ENVIRONMENT,
			"NVRTC %d.%d was stopped after %d s without a result", nvrtc->major,
			nvrtc->minor, (int)job->deadline_s);
	if (result == COMPILATION)
		return pawl_fail(err, PAWL_INTERNAL, "NVRTC %d.%d does not compile the kernels for %.32s",
			nvrtc->major, nvrtc->minor, job->arch);
	return pawl_fail(err, PAWL_ENVIRONMENT, "NVRTC %d.%d, asked for code for %.32s: error %d",
		nvrtc->major, nvrtc->minor, job->arch, result);
}

enum pawl_status
pawl_nvrtc_compile(const struct pawl_nvrtc *nvrtc, const struct pawl_nvrtc_job *job,
	struct pawl_nvrtc_result *out, struct pawl_error *err)
{
	enum { N_OPTIONS = sizeof(options) / sizeof(*options) };
	struct clock clock = {.end = now() + job->deadline_s};
	const char *all[N_OPTIONS + 1];
	nvrtcProgram program;
	enum pawl_status status;
	char arch[32];
	int result;

	*out = (struct pawl_nvrtc_result){.code = NULL};
	status = choose_arch(nvrtc, job->arch, arch, &out->ptx_arch, err);
	if (status)
		return status;
	memcpy(all, options, sizeof(options));
	all[N_OPTIONS] = arch;
	result = nvrtc->create(&program, job->source, "kernels.cu", 0, NULL, NULL);
	if (result)
		return explain(nvrtc, job, &clock, result, err);
	if (job->deadline_s > 0 && nvrtc->set_flow)
		nvrtc->set_flow(program, is_too_late, &clock);
	result = nvrtc->compile(program, N_OPTIONS + 1, all);
	take_log(nvrtc, program, out);
	status = result ? explain(nvrtc, job, &clock, result, err)
			: take_code(nvrtc, program, out, err);
	nvrtc->destroy(&program);
	return status;
}

void
pawl_nvrtc_result_release(struct pawl_nvrtc_result *result)
{
	free(result->code);
	free(result->log);
	*result = (struct pawl_nvrtc_result){.code = NULL};
}

/*
 * NVRTC, found and opened at run time: from PAWL_NVRTC (a file, or a folder with one), the loader's
 * own folders, those of CUDA toolkits, those where pip puts nvidia-cuda-nvrtc, and the one where
 * tools/setup-lib.sh lets it.
 *
 * Threads: an opened library may compile on several at once.
 */
#ifndef PAWL_PLUGINS_CUDA_NVRTC_H
#define PAWL_PLUGINS_CUDA_NVRTC_H

#include <stdbool.h>
#include <stddef.h>

#include "ir/status.h"

struct pawl_nvrtc;

/* For the places that may hold one; PATH_MAX of Linux. */
enum { PAWL_NVRTC_PATH = 4096 };

/*
 * Where the library lies, without opening it: what identifies the compiler of kernels that are
 * kept. PAWL_ENVIRONMENT, naming what was looked for, when there is none.
 */
enum pawl_status pawl_nvrtc_find(char path[PAWL_NVRTC_PATH], struct pawl_error *err);

/* PAWL_ENVIRONMENT: not to be opened, older than 12.0, or without a function, which is named. */
enum pawl_status pawl_nvrtc_open(const char *path, struct pawl_nvrtc **out, struct pawl_error *err);
/* NULL is allowed.  The library stays loaded: it does not bear being closed. */
void pawl_nvrtc_close(struct pawl_nvrtc *nvrtc);

void pawl_nvrtc_version(const struct pawl_nvrtc *nvrtc, int *major, int *minor);

/* The architecture of cubins that -arch=`arch` gives is known: "sm_90".  Else PTX will be made. */
bool pawl_nvrtc_knows(const struct pawl_nvrtc *nvrtc, const char *arch);

/* What kernels are compiled with, for keys: docs/arithmetic.md, "CUDA". */
extern const char pawl_nvrtc_options[];

struct pawl_nvrtc_job {
	const char *source;
	const char *arch;  /* "sm_90" */
	double deadline_s; /* 0: none; needs NVRTC 12.9 or later, before which there is none */
};

struct pawl_nvrtc_result {
	int ptx_arch; /* 121 of PTX for compute_121, 0: a cubin */
	void *code; /* n_code bytes: a cubin, or PTX with its final 0 */
	size_t n_code;
	char *log; /* of the compiler, with the resources of each kernel where a cubin was made */
};

/*
 * PAWL_INTERNAL: the source is wrong, out->log says where; PAWL_ENVIRONMENT: an architecture too
 * old for this NVRTC, the deadline, or whatever else it fails with.  *out is to be released in any
 * case.
 */
enum pawl_status pawl_nvrtc_compile(const struct pawl_nvrtc *nvrtc,
	const struct pawl_nvrtc_job *job, struct pawl_nvrtc_result *out, struct pawl_error *err);
void pawl_nvrtc_result_release(struct pawl_nvrtc_result *result);

#endif

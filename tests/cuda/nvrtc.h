/*
 * NVRTC, opened at run time: from the loader's own folders, from those of CUDA toolkits, and from
 * the Python package nvidia-cuda-nvrtc.
 */
#ifndef PAWL_TESTS_CUDA_NVRTC_H
#define PAWL_TESTS_CUDA_NVRTC_H

#include <stdbool.h>
#include <stddef.h>

/* False when there is none. */
bool pawl_nvrtc_open(void);

/*
 * Compiles for an architecture ("sm_90") and gives the log, with a resource report of each kernel,
 * and the size of the machine code.  The log is malloc'ed.
 */
bool pawl_nvrtc_compile(const char *source, const char *arch, char **log, size_t *code_bytes);

#endif

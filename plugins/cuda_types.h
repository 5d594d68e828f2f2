/*
 * The types and numbers of cuda.h that plugins/cuda_driver.def needs, so that building needs no
 * CUDA. plugins/cuda_check.c compares them with cuda.h where there is one; numbers have a prefix
 * since both are seen there.
 */
#ifndef PAWL_PLUGINS_CUDA_TYPES_H
#define PAWL_PLUGINS_CUDA_TYPES_H

#ifndef PAWL_SEES_CUDA_H
typedef int CUresult;
typedef int CUdevice;
typedef int CUdevice_attribute;
typedef int CUfunction_attribute;
typedef int CUstreamCaptureMode;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
#endif

/* The oldest driver that is asked for: cuGraphInstantiateWithFlags came with it. */
enum { PAWL_CUDA_LEAST_DRIVER = 11040 };

/* clang-format off */
#define PAWL_CUDA_NUMBERS(row) \
	row(SUCCESS, 0) \
	row(ERROR_INVALID_VALUE, 1) \
	row(ERROR_OUT_OF_MEMORY, 2) \
	row(ERROR_NO_DEVICE, 100) \
	row(ERROR_INVALID_IMAGE, 200) \
	row(ERROR_INVALID_CONTEXT, 201) \
	row(ERROR_NO_BINARY_FOR_GPU, 209) \
	row(ERROR_INVALID_HANDLE, 400) \
	row(ERROR_NOT_FOUND, 500) \
	row(ERROR_ILLEGAL_ADDRESS, 700) \
	row(ERROR_LAUNCH_FAILED, 719) \
	row(ERROR_STREAM_CAPTURE_UNSUPPORTED, 900) \
	row(ERROR_STREAM_CAPTURE_INVALIDATED, 901)

#define PAWL_CU_NUMBER(name, value) PAWL_CUDA_##name = value,
enum { PAWL_CUDA_NUMBERS(PAWL_CU_NUMBER) };
#undef PAWL_CU_NUMBER

enum {
	PAWL_CU_STREAM_NON_BLOCKING = 1,
	PAWL_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
	PAWL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
	PAWL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
	PAWL_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
	PAWL_CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3
};
/* clang-format on */

#endif

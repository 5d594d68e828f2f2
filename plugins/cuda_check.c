/* Compares what plugins/cuda_driver.def and cuda_types.h say with the cuda.h that is there. */
#define PAWL_SEES_CUDA_H
#include <cuda.h>

#include "plugins/cuda_types.h"

#define PAWL_CUDA_FN(member, symbol, parameters)                                                   \
	_Static_assert(__builtin_types_compatible_p(__typeof__(CUresult(*) parameters),            \
			       __typeof__(&symbol)),                                               \
		#symbol " has another type");
#include "plugins/cuda_driver.def"

#define SAME_NUMBER(name, value)                                                                   \
	_Static_assert((int)CUDA_##name == (value), "CUDA_" #name " has another value");
PAWL_CUDA_NUMBERS(SAME_NUMBER)

#define SAME(name) _Static_assert((int)PAWL_##name == (int)(name), #name " has another value")
SAME(CU_STREAM_NON_BLOCKING);
SAME(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);

/* An enum and the int that stands for it are passed alike. */
_Static_assert(sizeof(CUresult) == sizeof(int) && sizeof(CUdevice_attribute) == sizeof(int) &&
		       sizeof(CUfunction_attribute) == sizeof(int) &&
		       sizeof(CUstreamCaptureMode) == sizeof(int),
	"an enum of cuda.h is no int");

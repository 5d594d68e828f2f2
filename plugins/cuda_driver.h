/*
 * The CUDA driver, opened by dlopen when the target is: nothing is linked, and no header of CUDA is
 * needed.  One device, the first that the driver shows (CUDA_VISIBLE_DEVICES chooses), in its
 * primary context, which other libraries of the process share.
 *
 * Calls of the table need that context: they stand between pawl_cuda_enter and pawl_cuda_leave,
 * which leave the calling thread's context as it was.  Any thread.
 */
#ifndef PAWL_PLUGINS_CUDA_DRIVER_H
#define PAWL_PLUGINS_CUDA_DRIVER_H

#include <stddef.h>

#include "ir/status.h"
#include "plugins/cuda_types.h"

struct pawl_cuda_calls {
#define PAWL_CUDA_FN(member, symbol, parameters) CUresult(*member) parameters;
#include "plugins/cuda_driver.def"
};

struct pawl_cuda_driver {
	struct pawl_cuda_calls call;
	int version; /* of CUDA that it is for: 13000 is 13.0 */
	CUdevice device;
	CUcontext context;
	char name[128];
	int major, minor; /* of the compute capability */
	int n_multiprocessors;
};

/*
 * PAWL_ENVIRONMENT, saying which it is: no library, one without a function or too old (with both
 * versions), no device.  The library stays loaded for good.
 */
enum pawl_status pawl_cuda_driver_open(struct pawl_cuda_driver *out, struct pawl_error *err);
void pawl_cuda_driver_close(struct pawl_cuda_driver *driver);

enum pawl_status pawl_cuda_enter(const struct pawl_cuda_driver *driver, struct pawl_error *err);
void pawl_cuda_leave(const struct pawl_cuda_driver *driver);

/*
 * The status of a call; an error names what was asked for and the driver's word for it.  No memory
 * is PAWL_OUT_OF_MEMORY, all else PAWL_ENVIRONMENT.
 */
enum pawl_status pawl_cuda_check(const struct pawl_cuda_driver *driver, CUresult result,
	const char *what, struct pawl_error *err);

#endif

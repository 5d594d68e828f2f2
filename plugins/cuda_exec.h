/*
 * Compiled programs on a CUDA device: the module of a program, and runners of it.
 *
 * A runner has one block of device memory, with a pinned double on the host: the program's state
 * (symbols, and counters, which so begin each run as zero), data of the token, and the table of all
 * arguments, in this order, so that a run is one upload (of the first two, or of all after
 * addresses have changed) and one launch.  Kernels get addresses within that block only, so that a
 * captured graph never needs editing and outlives no memory but the block.
 */
#ifndef PAWL_PLUGINS_CUDA_EXEC_H
#define PAWL_PLUGINS_CUDA_EXEC_H

#include <pthread.h>
#include <stdatomic.h>

#include "codegen/target.h"
#include "plugins/cuda_compile.h"
#include "plugins/cuda_driver.h"

struct pawl_cuda_device {
	struct pawl_cuda_driver driver;
	pthread_mutex_t copying; /* of stream, on which copies outside of runs are */
	CUstream stream;
	_Atomic uint64_t uploads, launches, graph_launches, captures, capture_failures;
	_Atomic uint64_t allocations;
	pthread_mutex_t naming; /* of the fault */
	char capture_fault[256];
};

enum pawl_status pawl_cuda_device_init(struct pawl_cuda_device *device, struct pawl_error *err);
void pawl_cuda_device_release(struct pawl_cuda_device *device);
void pawl_cuda_device_counters(
	const struct pawl_cuda_device *device, struct pawl_target_counters *out);

/* As struct pawl_target_memory. */
enum pawl_status pawl_cuda_alloc(
	struct pawl_cuda_device *device, int64_t n_bytes, void **out, struct pawl_error *err);
void pawl_cuda_free(struct pawl_cuda_device *device, void *bytes);
enum pawl_status pawl_cuda_copy(struct pawl_cuda_device *device, enum pawl_copy_way way, void *to,
	const void *from, const struct pawl_copy_pieces *pieces, struct pawl_error *err);
enum pawl_status pawl_cuda_fill(struct pawl_cuda_device *device, void *bytes, unsigned char value,
	int64_t n_bytes, struct pawl_error *err);

/* A program's kernels on the device. */
struct pawl_cuda_module {
	struct pawl_cuda_device *device;
	const struct pawl_program *program;
	const struct pawl_cuda_program *cuda; /* launches */
	CUmodule units[PAWL_CUDA_UNITS];
	CUfunction *functions; /* of each kernel */
};

/* program and image outlive the module.  A failure leaves nothing to release. */
enum pawl_status pawl_cuda_module_init(struct pawl_cuda_module *module,
	struct pawl_cuda_device *device, const struct pawl_program *program,
	const struct pawl_cuda_image *image, struct pawl_error *err);
void pawl_cuda_module_release(struct pawl_cuda_module *module);

/* As in struct pawl_target_api. */
enum pawl_status pawl_cuda_runner_new(const struct pawl_cuda_module *module, int64_t data_bytes,
	int64_t result_bytes, struct pawl_runner **out, struct pawl_exchange *exchange,
	struct pawl_error *err);
void pawl_cuda_runner_free(struct pawl_runner *runner);
enum pawl_status pawl_cuda_runner_run(struct pawl_runner *runner,
	const struct pawl_device_run *run, int64_t *waited_ns, struct pawl_error *err);

#endif

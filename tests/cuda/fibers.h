/*
 * CUDA blocks on a host: each thread of a block is a fiber, blocks run one after the other.
 *
 * What this finds: a missing barrier (another order gives other bits), shared memory read before
 * it is written (it holds NaNs at the start of each block), a barrier or shuffle that not all
 * threads reach (reported), misaligned vector loads.  It knows no memory ordering, and no races
 * between blocks.
 *
 * One process-wide machine: one thread at a time.
 */
#ifndef PAWL_TESTS_CUDA_FIBERS_H
#define PAWL_TESTS_CUDA_FIBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/status.h"

/* Kernels may come from a library that is opened later. */
#pragma GCC visibility push(default)

enum { PAWL_FIBER_WARP = 32, PAWL_FIBER_MOST = 1024 };

/*
 * In which order blocks run, warps up to their next barrier, and in a warp threads to their next
 * shuffle.
 */
enum pawl_fiber_order {
	PAWL_FIBER_ASCENDING,
	PAWL_FIBER_DESCENDING,
	PAWL_FIBER_RANDOM, /* another one after each; the same in every run */
	PAWL_FIBER_N_ORDERS
};

typedef void pawl_fiber_kernel(void *const *args, int64_t *state);

struct pawl_fiber_launch {
	pawl_fiber_kernel *kernel;
	const char *name;
	void *const *args;
	int64_t *state;
	int64_t blocks;
	int threads; /* a multiple of PAWL_FIBER_WARP, up to PAWL_FIBER_MOST */
	/* Shared memory of the kernel outside of section pawl_shared; begin NULL: none. */
	char *shared_begin, *shared_end;
	enum pawl_fiber_order order;
};

/*
 * PAWL_INTERNAL, naming kernel and block, when the threads of a block wait for each other forever
 * or load what is not aligned.
 */
enum pawl_status pawl_fibers_run(const struct pawl_fiber_launch *launch, struct pawl_error *err);

/* For kernels, while they run. */

struct pawl_fiber_place {
	int thread, threads;
	int64_t block, blocks;
};
extern struct pawl_fiber_place pawl_fiber_place;

void pawl_fiber_sync(void);
float pawl_fiber_shuffle_xor(float x, int lanes);
void pawl_fiber_check_aligned(const void *address, uintptr_t bytes);

#pragma GCC visibility pop

#endif

/*
 * A CUDA driver with no GPU: a library with the functions of plugins/cuda_driver.def, whose device
 * is memory that the host cannot touch and whose kernels are run by fibers (tests/cuda/fibers.h).
 * Its code is what mock_nvrtc makes: a shared object of the generated text, compiled for the host.
 *
 * As the driver's, work of a stream is done when somebody waits for it, not before; copies from
 * memory that is not pinned are the exception.  An address that a kernel or a copy may not use is
 * CUDA_ERROR_ILLEGAL_ADDRESS from then on, whatever is called.  Tests find the state below by
 * dlsym(library, "pawl_mock").
 */
#ifndef PAWL_TESTS_CUDA_MOCK_H
#define PAWL_TESTS_CUDA_MOCK_H

#include "plugins/cuda_driver.h"
#include "tests/cuda/fibers.h"

enum pawl_mock_call {
#define PAWL_CUDA_FN(member, symbol, parameters) PAWL_MOCK_##member,
#include "plugins/cuda_driver.def"
	PAWL_MOCK_N_CALLS
};

struct pawl_mock {
	/* For tests to set. */
	int driver_version; /* 13000 */
	int n_devices;
	int64_t fails_in;   /* the call that fails next: 1 is the next one, 0: none */
	int fails_with;     /* 0: CUDA_ERROR_OUT_OF_MEMORY */
	int only_call;      /* of enum pawl_mock_call, which fails_in then counts alone; -1: all */
	bool stays_lost;    /* after it nothing succeeds any more */
	bool is_lost;       /* nothing does */
	bool hates_capture; /* kernels cannot be captured */
	int slow_call;      /* of enum pawl_mock_call, which takes slow_ns longer; -1: none */
	int64_t slow_ns;
	int64_t memory_bytes;
	enum pawl_fiber_order order;

	/* What has been done. */
	uint64_t n_calls, calls[PAWL_MOCK_N_CALLS];
	uint64_t kernels_run;
	uint64_t bytes_down;      /* that copies brought to the host */
	uint64_t pageable_copies; /* on behalf of memory that is not pinned */
	/* What there is. */
	int64_t contexts, streams, modules, graphs, execs, allocations, pinned;
	int64_t allocated_bytes;
	/* Freed twice, never made, used without a context, on the default stream. */
	uint64_t mistakes;
	char mistake[256]; /* the first */
};

/* What a compiled text exports, as pawl_mock_kernels up to a name that is NULL. */
struct pawl_mock_kernel {
	const char *name;
	pawl_fiber_kernel *run;
	int threads;
	int n_args; /* of the table that it is given, at most */
};

typedef void pawl_mock_shared_fn(char **begin, char **end);

#endif

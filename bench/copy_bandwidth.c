/*
 * copy_bandwidth MEGABYTES: the NVIDIA GPU that target cuda uses, and the GB/s of a copy of so much
 * of its memory to another place in it, again and again: bytes read and bytes written together, as
 * both pass the memory.  The median of the rounds; small copies stay in the cache of the GPU.
 *
 *	device NVIDIA H200, sm_90, 132 multiprocessors, driver of CUDA 13.0
 *	copy 4312.5 GB/s
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ir/parse.h"
#include "plugins/cuda_driver.h"
#include "runtime/clock.h"
#include "tools/median.h"

enum { ROUNDS = 9, COPIES = 8, MAX_MEGABYTES = 1 << 16 };

struct memory {
	CUstream stream;
	CUdeviceptr from, to;
	size_t n;
};

static CUresult
make(const struct pawl_cuda_calls *call, struct memory *m)
{
	CUresult result = call->stream_new(&m->stream, PAWL_CU_STREAM_NON_BLOCKING);

	if (!result)
		result = call->memory_alloc(&m->from, m->n);
	if (!result)
		result = call->memory_alloc(&m->to, m->n);
	if (!result)
		result = call->fill(m->from, 1, m->n, m->stream);
	if (!result)
		result = call->fill(m->to, 2, m->n, m->stream);
	return result ? result : call->stream_wait(m->stream);
}

static void
release(const struct pawl_cuda_calls *call, struct memory *m)
{
	if (m->to)
		call->memory_free(m->to);
	if (m->from)
		call->memory_free(m->from);
	if (m->stream)
		call->stream_free(m->stream);
}

static CUresult
copy(const struct pawl_cuda_calls *call, const struct memory *m)
{
	CUresult result = PAWL_CUDA_SUCCESS;

	for (int i = 0; i < COPIES && !result; i++)
		result = call->copy_within(m->to, m->from, m->n, m->stream);
	return result ? result : call->stream_wait(m->stream);
}

static CUresult
measure(const struct pawl_cuda_calls *call, struct memory *m, double *gbs)
{
	double rounds[ROUNDS], spread;
	CUresult result = make(call, m);

	/* The first is not counted. */
	if (!result)
		result = copy(call, m);
	for (int i = 0; i < ROUNDS && !result; i++) {
		double start = pawl_seconds();

		result = copy(call, m);
		rounds[i] = 1e-9 * 2 * COPIES * (double)m->n / (pawl_seconds() - start);
	}
	release(call, m);
	if (!result)
		*gbs = pawl_median(rounds, ROUNDS, &spread);
	return result;
}

int
main(int argc, char **argv)
{
	struct memory m = {.n = 0};
	struct pawl_cuda_driver driver;
	struct pawl_error err;
	int64_t megabytes;
	double gbs = 0;
	enum pawl_status status;

	if (argc != 2 || !pawl_parse_int(argv[1], strlen(argv[1]), &megabytes) || megabytes < 1 ||
		megabytes > MAX_MEGABYTES) {
		fprintf(stderr, "usage: copy_bandwidth MEGABYTES (1 to %d)\n", MAX_MEGABYTES);
		return 2;
	}
	m.n = (size_t)megabytes << 20;
	status = pawl_cuda_driver_open(&driver, &err);
	if (!status)
		status = pawl_cuda_enter(&driver, &err);
	if (!status) {
		printf("device %s, sm_%d%d, %d multiprocessors, driver of CUDA %d.%d\n", driver.name,
			driver.major, driver.minor, driver.n_multiprocessors, driver.version / 1000,
			driver.version % 1000 / 10);
		status = pawl_cuda_check(
			&driver, measure(&driver.call, &m, &gbs), "copying memory", &err);
		pawl_cuda_leave(&driver);
	}
	if (status) {
		fprintf(stderr, "copy_bandwidth: %s\n", err.text);
		return 1;
	}
	printf("copy %.1f GB/s\n", gbs);
	pawl_cuda_driver_close(&driver);
	errno = 0;
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "copy_bandwidth: standard output: %s\n", strerror(errno));
		return 1;
	}
	return 0;
}

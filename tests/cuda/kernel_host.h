/*
 * The layer of codegen/cuda/cuda_prelude.c for a host: what generated kernels are compiled against
 * in place of CUDA.  Only for generated text; short names are on purpose.
 *
 * PAWL_CASE, defined before each program's text, keeps the kernels of programs apart.
 */
#ifndef PAWL_TESTS_CUDA_KERNEL_HOST_H
#define PAWL_TESTS_CUDA_KERNEL_HOST_H

#include <math.h>

#include "ir/half.h"
#include "tests/cuda/fibers.h"

typedef int64_t i64;
typedef uint32_t u32;
typedef uint16_t u16;

#define PAWL_FN static inline __attribute__((unused))
/* Another one before a text keeps the shared memory of its kernels together. */
#define PAWL_SHARED_SECTION "pawl_shared"
#define PAWL_SHARED static __attribute__((section(PAWL_SHARED_SECTION)))
#define PAWL_ALIGNED __attribute__((aligned(16)))
#define PAWL_PASTE(a, b) a##_##b
#define PAWL_NAME(a, b) PAWL_PASTE(a, b)
#define PAWL_KERNEL(name, threads)                                                                 \
	static void PAWL_NAME(PAWL_CASE, name)(__attribute__((unused)) void *const *args,          \
		__attribute__((unused)) i64 *symbols)
#define PAWL_FENCE() ((void)0)
#define PAWL_UNROLL(times)
#define PAWL_SYNC() pawl_fiber_sync()
#define PAWL_THREAD (pawl_fiber_place.thread)
#define PAWL_THREADS (pawl_fiber_place.threads)
#define PAWL_BLOCK ((int)pawl_fiber_place.block)
#define PAWL_BLOCKS ((int)pawl_fiber_place.blocks)

static inline char *
pawl_global(void *address)
{
	return address;
}

static inline float
pawl_fma(float x, float y, float z)
{
	return fmaf(x, y, z);
}

static inline float
pawl_sqrt(float x)
{
	return sqrtf(x);
}

static inline float
pawl_shuffle_xor(float x, int lanes)
{
	return pawl_fiber_shuffle_xor(x, lanes);
}

/* Blocks run one after the other. */
static inline u32
pawl_add_and_read(u32 *at, u32 x)
{
	u32 was = *at;

	*at = was + x;
	return was;
}

static inline float
pawl_load_fresh(const float *from)
{
	return *from;
}

static inline int
pawl_dp4a(u32 a, u32 b, int sum)
{
	for (int i = 0; i < 32; i += 8)
		sum += (signed char)(a >> i) * (signed char)(b >> i);
	return sum;
}

static inline u16
pawl_load2(const void *from)
{
	u16 x;

	pawl_fiber_check_aligned(from, 2);
	memcpy(&x, from, 2);
	return x;
}

static inline u32
pawl_load4(const void *from)
{
	u32 x;

	pawl_fiber_check_aligned(from, 4);
	memcpy(&x, from, 4);
	return x;
}

static inline void
pawl_load16(const void *from, u32 *words)
{
	pawl_fiber_check_aligned(from, 16);
	memcpy(words, from, 16);
}

#endif

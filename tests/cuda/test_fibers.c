/* The fibers find what they are there to find: by kernels written by hand, wrong on purpose. */
#include "tests/cuda/test_fibers.h"

#include "tests/cuda/kernel_host.h"

#include <math.h>
#include <string.h>

enum { THREADS = 64 };

static float result[THREADS];

/* Runs on two blocks and gives what the second one left in result. */
static enum pawl_status
run(pawl_fiber_kernel *kernel, enum pawl_fiber_order order, struct pawl_error *err)
{
	struct pawl_fiber_launch launch = {
		.kernel = kernel, .name = "k", .blocks = 2, .threads = THREADS, .order = order};

	memset(result, 0, sizeof(result));
	return pawl_fibers_run(&launch, err);
}

#define KERNEL(name)                                                                               \
	static void name(__attribute__((unused)) void *const *args,                                \
		__attribute__((unused)) i64 *state)

/* Every thread reads what the next one wrote. */
KERNEL(neighbour)
{
	PAWL_SHARED float shared[THREADS];

	shared[PAWL_THREAD] = (float)(PAWL_THREAD + 100 * (int)PAWL_BLOCK);
	PAWL_SYNC();
	if (PAWL_BLOCK == 1)
		result[PAWL_THREAD] = shared[(PAWL_THREAD + 1) % THREADS];
}

KERNEL(neighbour_without_barrier)
{
	PAWL_SHARED float shared[THREADS];

	shared[PAWL_THREAD] = (float)PAWL_THREAD;
	result[PAWL_THREAD] = shared[(PAWL_THREAD + 1) % THREADS];
}

START_TEST(a_barrier_makes_all_orders_alike)
{
	struct pawl_error err;
	int order, i;

	for (order = 0; order < PAWL_FIBER_N_ORDERS; order++) {
		ck_assert_int_eq(run(neighbour, (enum pawl_fiber_order)order, &err), PAWL_OK);
		for (i = 0; i < THREADS; i++)
			ck_assert(result[i] == (float)((i + 1) % THREADS + 100));
	}
}
END_TEST

/* Shared memory is NaN at the start of every block, the second one too. */
START_TEST(a_missing_barrier_shows)
{
	struct pawl_error err;

	ck_assert_int_eq(run(neighbour_without_barrier, PAWL_FIBER_ASCENDING, &err), PAWL_OK);
	ck_assert(isnan(result[0]) && result[THREADS - 1] == 0);
	ck_assert_int_eq(run(neighbour_without_barrier, PAWL_FIBER_DESCENDING, &err), PAWL_OK);
	ck_assert(result[0] == 1 && isnan(result[THREADS - 1]));
}
END_TEST

KERNEL(shuffles)
{
	float x = (float)PAWL_THREAD;

	x = pawl_shuffle_xor(x, 1);
	result[PAWL_THREAD] = pawl_shuffle_xor(x, 16);
}

START_TEST(a_shuffle_exchanges_within_a_warp)
{
	struct pawl_error err;
	int order, i;

	for (order = 0; order < PAWL_FIBER_N_ORDERS; order++) {
		ck_assert_int_eq(run(shuffles, (enum pawl_fiber_order)order, &err), PAWL_OK);
		for (i = 0; i < THREADS; i++)
			ck_assert(result[i] == (float)(i ^ 17));
	}
}
END_TEST

KERNEL(some_leave_early)
{
	if (PAWL_BLOCK == 1 && PAWL_THREAD == 5)
		return;
	PAWL_SYNC();
}

KERNEL(some_shuffle)
{
	if (PAWL_THREAD == 40)
		PAWL_SYNC();
	else
		pawl_shuffle_xor(1.0f, 1);
}

START_TEST(waiting_forever_is_reported)
{
	struct pawl_error err;

	ck_assert_int_eq(run(some_leave_early, PAWL_FIBER_RANDOM, &err), PAWL_INTERNAL);
	ck_assert_str_eq(err.text,
		"kernel k, block 1: 63 threads wait at a barrier, 0 at a shuffle, 1 have ended");
	ck_assert_int_eq(run(some_shuffle, PAWL_FIBER_RANDOM, &err), PAWL_INTERNAL);
	ck_assert_str_eq(err.text,
		"kernel k, block 0: 1 threads wait at a barrier, 31 at a shuffle, 32 have ended");
	/* The machine is as good as new. */
	ck_assert_int_eq(run(neighbour, PAWL_FIBER_RANDOM, &err), PAWL_OK);
}
END_TEST

KERNEL(misaligned)
{
	static _Alignas(16) float numbers[8];
	u32 words[4];

	pawl_load16(numbers + 1, words);
	result[0] = (float)words[0];
}

START_TEST(a_misaligned_load_is_reported)
{
	struct pawl_error err;

	ck_assert_int_eq(run(misaligned, PAWL_FIBER_ASCENDING, &err), PAWL_INTERNAL);
	ck_assert_str_eq(err.text, "kernel k, block 0: a load is misaligned");
}
END_TEST

TCase *
pawl_fibers_tcase(void)
{
	TCase *tcase = tcase_create("fibers");

	tcase_add_test(tcase, a_barrier_makes_all_orders_alike);
	tcase_add_test(tcase, a_missing_barrier_shows);
	tcase_add_test(tcase, a_shuffle_exchanges_within_a_warp);
	tcase_add_test(tcase, waiting_forever_is_reported);
	tcase_add_test(tcase, a_misaligned_load_is_reported);
	return tcase;
}

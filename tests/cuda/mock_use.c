#include "tests/cuda/mock_use.h"

#include <dlfcn.h>
#include <stdlib.h>

struct pawl_error pawl_cuda_err;

static const char driver[] = PAWL_BUILD_DIR "/tests/.libs/mock_cuda.so";
static const char compiler[] = PAWL_BUILD_DIR "/tests/.libs/mock_nvrtc.so";

struct pawl_mock *
pawl_mock_use(void)
{
	void *library = dlopen(driver, RTLD_NOW | RTLD_LOCAL);
	struct pawl_mock *mock;

	ck_assert_msg(library != NULL, "%s", dlerror());
	mock = dlsym(library, "pawl_mock");
	ck_assert_ptr_nonnull(mock);
	setenv("PAWL_CUDA_DRIVER", driver, 1);
	setenv("PAWL_NVRTC", compiler, 1);
	setenv("PAWL_KERNEL_CACHE", "off", 1);
	return mock;
}

struct pawl_device *
pawl_mock_device(void)
{
	struct pawl_device *device;

	PAWL_CUDA_OK(pawl_device_open("cuda", NULL, &device, &pawl_cuda_err));
	return device;
}

static void
run_alone(struct pawl_team *team, void (*fn)(void *arg, int thread, int n_threads), void *arg)
{
	(void)team;
	fn(arg, 0, 1);
}

static void
wait_for_none(struct pawl_team *team, int thread)
{
	(void)team;
	(void)thread;
}

enum pawl_status
pawl_mock_bindings(struct pawl_plan *plan, struct pawl_bindings **out)
{
	static struct pawl_team alone = {
		.n_threads = 1, .run = run_alone, .barrier = wait_for_none};

	return pawl_bindings_new(plan, &alone, out, &pawl_cuda_err);
}

void
pawl_mock_check_end(const struct pawl_mock *mock)
{
	ck_assert_msg(!mock->mistakes, "%s", mock->mistake);
	ck_assert_int_eq(mock->contexts, 0);
	ck_assert_int_eq(mock->streams, 0);
	ck_assert_int_eq(mock->modules, 0);
	ck_assert_int_eq(mock->graphs, 0);
	ck_assert_int_eq(mock->execs, 0);
	ck_assert_int_eq(mock->allocations, 0);
	ck_assert_int_eq(mock->pinned, 0);
	ck_assert_int_eq(mock->allocated_bytes, 0);
}

bool
pawl_mock_is_long(void)
{
	const char *value = getenv("PAWL_TEST_LONG");

	return value && *value;
}

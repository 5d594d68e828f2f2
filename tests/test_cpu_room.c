/* The cpu target with little address space and little stack: refused or served, never killed. */
#include "plugins/cpu_room.h"

#include "ir/parse.h"
#include "runtime/device.h"
#include "runtime/plan.h"
#include "tests/skip.h"
#include "tests/suites.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char first[] = "pawl 1\ngraph @g stage values {\n%x = const {role = data} : f32[64]\n"
			    "%y = exp %x : f32[64]\noutput %y\n}\n";
static const char second[] = "pawl 1\ngraph @g stage values {\n%x = const {role = data} : f32[64]\n"
			     "%y = tanh %x : f32[64]\noutput %y\n}\n";

/* Kernels that 64 KiB of stack do not suffice to compile. */
static const char large[] =
	"pawl 1\ngraph @g stage values {\n%x = const {role = data} : f32[1, 256]\n"
	"%w = const : q4_k[64, 256]\n%k = const {role = kv} : f16[1, 2, 256, 16]@k16\n"
	"%v = const {role = kv} : f16[1, 2, 256, 16]\n%at = const {role = data} : i64[]\n"
	"%0 = matmul %x, %w : f32[1, 64]\n%q = reshape %0 : f32[1, 4, 16]\n"
	"%y = attention %q, %k, %v, %at {scale = 0.25} : f32[1, 4, 16]\noutput %y\n}\n";

static enum pawl_status
build(struct pawl_device *device, const char *text, struct pawl_error *err)
{
	struct pawl_plan_options options = {.no_reuse = false};
	struct pawl_plan *plan = NULL;
	struct pawl_graph *graph;
	enum pawl_status status = pawl_parse(text, strlen(text), "g", &graph, NULL, err);

	if (status)
		return status;
	status = pawl_plan_build(graph, device, &options, &plan, err);
	pawl_plan_unref(plan);
	pawl_graph_free(graph);
	return status;
}

/* Lets the process map n bytes more; n < 0: without bound. */
static void
allow(int64_t n)
{
	struct rlimit limit;
	long long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fscanf(file, "%lld", &pages), 1);
	fclose(file);
	ck_assert_int_eq(getrlimit(RLIMIT_AS, &limit), 0);
	limit.rlim_cur = n < 0 ? limit.rlim_max : (rlim_t)(pages * sysconf(_SC_PAGESIZE) + n);
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
}

START_TEST(without_address_space_the_compiler_is_not_called)
{
	struct pawl_device *device;
	struct pawl_error err = {0};

#ifdef PAWL_SANITIZERS
	pawl_skip("without_address_space_the_compiler_is_not_called",
		"a sanitizer takes all the address space there is");
	return;
#endif
	ck_assert_int_eq(pawl_device_open("cpu", NULL, &device, &err), PAWL_OK);
	allow((int64_t)PAWL_COMPILER_BYTES - (8 << 20));
	ck_assert_int_eq(build(device, first, &err), PAWL_ENVIRONMENT);
	ck_assert_msg(strstr(err.text, "256 MiB of address space") != NULL, "%s", err.text);
	allow(-1);
	ck_assert_msg(!build(device, first, &err), "%s", err.text);
	/* The compiler is there; the kernel that was made needs no room any more, another does. */
	allow((int64_t)PAWL_COMPILE_BYTES - (8 << 20));
	ck_assert_msg(!build(device, first, &err), "%s", err.text);
	ck_assert_int_eq(build(device, second, &err), PAWL_ENVIRONMENT);
	ck_assert_msg(strstr(err.text, "32 MiB of address space") != NULL, "%s", err.text);
	allow(-1);
	ck_assert_msg(!build(device, second, &err), "%s", err.text);
	pawl_device_unref(device);
}
END_TEST

struct small {
	struct pawl_device *device;
	struct pawl_error err;
	enum pawl_status status;
};

static void *
build_large(void *arg)
{
	struct small *small = arg;

	small->status = build(small->device, large, &small->err);
	return NULL;
}

START_TEST(a_caller_with_a_small_stack_may_compile)
{
	struct small small = {.status = PAWL_INTERNAL};
	pthread_attr_t attr;
	pthread_t thread;

#ifdef PAWL_SANITIZERS
	pawl_skip("a_caller_with_a_small_stack_may_compile", "a sanitizer makes frames large");
	return;
#endif
	ck_assert_int_eq(pawl_device_open("cpu", NULL, &small.device, &small.err), PAWL_OK);
	pthread_attr_init(&attr);
	ck_assert_int_eq(pthread_attr_setstacksize(&attr, 64 << 10), 0);
	ck_assert_int_eq(pthread_create(&thread, &attr, build_large, &small), 0);
	pthread_attr_destroy(&attr);
	pthread_join(thread, NULL);
	ck_assert_msg(!small.status, "%s", small.err.text);
	pawl_device_unref(small.device);
}
END_TEST

Suite *
pawl_cpu_room_suite(void)
{
	Suite *suite = suite_create("cpu_room");
	TCase *tcase = tcase_create("cpu_room");

	tcase_add_test(tcase, without_address_space_the_compiler_is_not_called);
	tcase_add_test(tcase, a_caller_with_a_small_stack_may_compile);
	suite_add_tcase(suite, tcase);
	return suite;
}

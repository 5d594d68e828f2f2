/* What target cuda says when it cannot be opened, and that it leaves nothing behind. */
#include <stdlib.h>
#include <string.h>

#include "ir/build.h"
#include "runtime/plan.h"
#include "tests/cuda/mock_use.h"

#define ERR (&pawl_cuda_err)

static void
expect_refusal(const char *wanted)
{
	struct pawl_device *device;

	memset(ERR, 0, sizeof(*ERR));
	ck_assert_int_eq(pawl_device_open("cuda", NULL, &device, ERR), PAWL_ENVIRONMENT);
	ck_assert_msg(strstr(ERR->text, wanted) != NULL, "%s", ERR->text);
}

START_TEST(a_driver_that_is_not_there)
{
	pawl_mock_use();
	setenv("PAWL_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
	expect_refusal("there is no CUDA driver: /nowhere/libcuda.so.1");
}
END_TEST

START_TEST(a_driver_without_a_function)
{
	pawl_mock_use();
	setenv("PAWL_CUDA_DRIVER", getenv("PAWL_NVRTC"), 1);
	expect_refusal("is no CUDA driver: it has no cuDriverGetVersion");
}
END_TEST

START_TEST(a_driver_that_is_too_old)
{
	struct pawl_mock *mock = pawl_mock_use();

	mock->driver_version = 11030;
	expect_refusal("is of CUDA 11.3, too old: 11.4 or later is needed");
	mock->driver_version = PAWL_CUDA_LEAST_DRIVER;
	pawl_device_unref(pawl_mock_device());
	pawl_mock_check_end(mock);
}
END_TEST

START_TEST(no_device)
{
	struct pawl_mock *mock = pawl_mock_use();

	mock->n_devices = 0;
	expect_refusal("there is no CUDA device (the driver, of CUDA 13.0, finds none)");
	pawl_mock_check_end(mock);
}
END_TEST

START_TEST(each_call_of_opening_fails_once)
{
	struct pawl_mock *mock = pawl_mock_use();
	enum pawl_status status = PAWL_OUT_OF_MEMORY;
	struct pawl_device *device;
	int64_t n;

	for (n = 1; status; n++) {
		mock->fails_in = n;
		status = pawl_device_open("cuda", NULL, &device, ERR);
		ck_assert(status == PAWL_OK || status == PAWL_OUT_OF_MEMORY ||
			  status == PAWL_ENVIRONMENT);
		if (!status)
			pawl_device_unref(device);
		pawl_mock_check_end(mock);
	}
	ck_assert_int_gt(n, 10);
}
END_TEST

static struct pawl_graph *
some_graph(void)
{
	const struct pawl_type type = pawl_type_make(PAWL_DTYPE_F32, 1, (const int64_t[]){8});
	struct pawl_graph *graph = pawl_graph_new("some");
	struct pawl_node *x = pawl_build_const(graph, PAWL_ROLE_DATA, "x", &type);

	pawl_graph_add_output(graph, pawl_build_binary(graph, PAWL_OP_ADD, x, x));
	ck_assert_msg(!graph->error.status, "%s", graph->error.text);
	return graph;
}

START_TEST(an_architecture_needs_no_driver_and_runs_nothing)
{
	static const float x[8];
	const struct pawl_target_options options = {.arch = "sm_80"};
	const struct pawl_plan_options plain = {.counters = NULL};
	struct pawl_graph *graph = some_graph();
	struct pawl_bindings *bindings;
	struct pawl_device *device;
	struct pawl_plan *plan;

	pawl_mock_use();
	setenv("PAWL_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
	PAWL_CUDA_OK(pawl_device_open("cuda", &options, &device, ERR));
	PAWL_CUDA_OK(pawl_plan_build(graph, device, &plain, &plan, ERR));
	ck_assert_str_eq(plan->code_info.variant, "sm_80");
	ck_assert_int_gt(plan->code_info.code_bytes, 0);
	PAWL_CUDA_OK(pawl_mock_bindings(plan, &bindings));
	pawl_bindings_offer(bindings, pawl_plan_find_slot(plan, PAWL_SLOT_DATA, "x"), x);
	ck_assert_int_eq(pawl_bindings_run(bindings, NULL, NULL, ERR), PAWL_UNSUPPORTED);
	ck_assert_str_eq(ERR->text,
		"target cuda was opened to compile for an architecture, not to run");
	pawl_bindings_free(bindings);
	pawl_plan_unref(plan);
	pawl_device_unref(device);
	pawl_graph_free(graph);
}
END_TEST

START_TEST(a_sum_is_run)
{
	static const float x[8] = {1, 2, 3, 4, 5, 6, 7, -8};
	struct pawl_mock *mock = pawl_mock_use();
	struct pawl_device *device = pawl_mock_device();
	const struct pawl_plan_options plain = {.counters = NULL};
	struct pawl_graph *graph = some_graph();
	struct pawl_bindings *bindings;
	struct pawl_plan *plan;
	const float *y;

	PAWL_CUDA_OK(pawl_plan_build(graph, device, &plain, &plan, ERR));
	PAWL_CUDA_OK(pawl_mock_bindings(plan, &bindings));
	for (int i = 0; i < 3; i++) {
		pawl_bindings_offer(
			bindings, pawl_plan_find_slot(plan, PAWL_SLOT_DATA, "x"), x);
		PAWL_CUDA_OK(pawl_bindings_run(bindings, NULL, NULL, ERR));
		y = pawl_bindings_output(bindings, 0, NULL);
		for (int j = 0; j < 8; j++)
			ck_assert(y[j] == 2 * x[j]);
	}
	pawl_bindings_free(bindings);
	pawl_plan_unref(plan);
	pawl_device_unref(device);
	pawl_graph_free(graph);
	pawl_mock_check_end(mock);
}
END_TEST

TCase *
pawl_cuda_open_tcase(void)
{
	TCase *tcase = tcase_create("open");

	tcase_add_test(tcase, a_driver_that_is_not_there);
	tcase_add_test(tcase, a_driver_without_a_function);
	tcase_add_test(tcase, a_driver_that_is_too_old);
	tcase_add_test(tcase, no_device);
	tcase_add_test(tcase, each_call_of_opening_fails_once);
	tcase_add_test(tcase, an_architecture_needs_no_driver_and_runs_nothing);
	tcase_add_test(tcase, a_sum_is_run);
	return tcase;
}

/*
 * The life of captured runs: what they point at changes, ends, or was never there; calls of the
 * driver fail.  Whatever happens, a step has the right logits or a typed error, the length says
 * which, and nothing is left behind or given back twice (the mock counts).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/build.h"
#include "runtime/clock.h"
#include "runtime/decoder.h"
#include "runtime/kv_cache.h"
#include "tests/cuda/mock_use.h"
#include "tests/tiny_model.h"

#define OK PAWL_CUDA_OK
#define ERR (&pawl_cuda_err)

enum { N_VOCAB = 40, CAPACITY = 32, STEPS = 4, SLOW_NS = 20000000 };

static struct pawl_mock *mock;
static struct pawl_tiny_model *original, *model; /* the weights of one never see a device */
static struct pawl_device *device;
static struct pawl_decoder *decoder;
static float wanted[STEPS][N_VOCAB]; /* after each of the tokens below, where nothing happens */

static struct pawl_decoder_options
options(void)
{
	return (struct pawl_decoder_options){.capacity = CAPACITY,
		.kv_dtype = PAWL_DTYPE_F16,
		.n_threads = 1,
		.prefill_chunk = 1};
}

static uint32_t
token(int64_t i)
{
	return (uint32_t)(11 * i + 2) % N_VOCAB;
}

static enum pawl_status
open_decoder(void)
{
	const struct pawl_decoder_options o = options();

	return pawl_decoder_new(
		pawl_tiny_model_source(model), device, &o, &decoder, ERR);
}

static enum pawl_status
step(int64_t i, const float **logits)
{
	return pawl_decoder_step(decoder, token(i), logits, ERR);
}

/* The token after i others. */
static void
expect_step(int64_t i)
{
	const float *logits;

	OK(step(i, &logits));
	ck_assert_int_eq(pawl_decoder_len(decoder), i + 1);
	ck_assert_mem_eq(logits, wanted[i], sizeof(wanted[i]));
}

static struct pawl_target_counters
counted(void)
{
	struct pawl_target_counters counters;

	pawl_device_counters(device, &counters);
	return counters;
}

static struct pawl_tiny_options
tiny_options(void)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();

	tiny.n_layers = 1;
	tiny.dtype = PAWL_DTYPE_F16;
	return tiny;
}

static void
begin(void)
{
	const struct pawl_tiny_options tiny = tiny_options();
	const float *logits;

	mock = pawl_mock_use();
	original = pawl_tiny_model_new(&tiny);
	model = pawl_tiny_model_twin(original, &tiny);
	device = pawl_mock_device();
	OK(open_decoder());
	for (int64_t i = 0; i < STEPS; i++) {
		OK(step(i, &logits));
		memcpy(wanted[i], logits, sizeof(wanted[i]));
	}
	pawl_decoder_free(decoder);
	OK(open_decoder());
}

static void
end(void)
{
	pawl_decoder_free(decoder);
	pawl_device_unref(device);
	pawl_tiny_model_free(model);
	pawl_mock_check_end(mock);
	pawl_tiny_model_free(original);
}

static struct pawl_kv_cache *
cache_of(struct pawl_inference_context *context, enum pawl_dtype dtype)
{
	struct pawl_kv_shape shape = *pawl_kv_cache_shape(pawl_decoder_cache(decoder));
	struct pawl_kv_cache *cache;

	shape.dtype = dtype;
	OK(pawl_kv_cache_with_capacity(context, &shape, &cache, ERR));
	return cache;
}

static struct pawl_disposition
last(void)
{
	struct pawl_decoder_stats stats;

	pawl_decoder_stats(decoder, &stats);
	return stats.last;
}

START_TEST(a_swapped_cache_keeps_the_capture)
{
	struct pawl_kv_cache *other;
	struct pawl_target_counters before, after;

	begin();
	expect_step(0);
	expect_step(1);
	other = cache_of(pawl_decoder_context(decoder), PAWL_DTYPE_F16);
	pawl_decoder_swap_cache(decoder, &other);
	before = counted();
	expect_step(0);
	ck_assert_int_eq(last().kind, PAWL_SESSION_REBOUND);
	after = counted();
	ck_assert_uint_eq(after.captures, before.captures);
	ck_assert_uint_eq(after.graph_launches, before.graph_launches + 1);
	ck_assert_uint_eq(after.uploads, before.uploads + 1);
	ck_assert_uint_eq(after.device_allocations, before.device_allocations);
	pawl_decoder_swap_cache(decoder, &other);
	expect_step(2);
	ck_assert_uint_eq(counted().captures, before.captures);
	/* The graph points at neither cache. */
	pawl_kv_cache_free(other);
	expect_step(3);
	ck_assert_uint_eq(counted().captures, before.captures);
	end();
}
END_TEST

START_TEST(a_stale_plan_takes_its_capture_with_it)
{
	struct pawl_kv_cache *other;
	int64_t execs;

	begin();
	expect_step(0);
	execs = mock->execs;
	other = cache_of(pawl_decoder_context(decoder), PAWL_DTYPE_F32);
	pawl_decoder_swap_cache(decoder, &other);
	OK(step(0, &(const float *){NULL}));
	ck_assert_int_eq(last().kind, PAWL_SESSION_DROPPED);
	ck_assert_int_eq(mock->execs, execs);
	pawl_decoder_swap_cache(decoder, &other);
	pawl_kv_cache_free(other);
	expect_step(1);
	ck_assert_int_eq(mock->execs, execs);
	end();
}
END_TEST

START_TEST(a_cache_on_the_host_is_refused)
{
	struct pawl_inference_context *context;
	struct pawl_kv_cache *other;
	struct pawl_device *ref;

	begin();
	expect_step(0);
	OK(pawl_device_open("ref", NULL, &ref, ERR));
	OK(pawl_inference_context_new(ref, 1, &context, ERR));
	other = cache_of(context, PAWL_DTYPE_F16);
	pawl_decoder_swap_cache(decoder, &other);
	ck_assert_int_eq(step(0, &(const float *){NULL}), PAWL_INVALID_ARGUMENT);
	ck_assert_msg(strstr(ERR->text, "is on host, the plan runs on cuda:0") != NULL, "%s",
		ERR->text);
	ck_assert_int_eq(last().kind, PAWL_SESSION_DROPPED);
	ck_assert_int_eq(last().refusal.kind, PAWL_REFUSAL_RESIDENCY_DIFFERS);
	pawl_decoder_swap_cache(decoder, &other);
	expect_step(1);
	pawl_kv_cache_free(other);
	pawl_inference_context_free(context);
	pawl_device_unref(ref);
	end();
}
END_TEST

START_TEST(a_cache_grows_and_forks)
{
	struct pawl_kv_cache *fork;
	uint64_t compiles;

	begin();
	expect_step(0);
	compiles = counted().kernel_compiles;
	OK(pawl_decoder_reserve(decoder, 2 * CAPACITY, ERR));
	expect_step(1);
	ck_assert_uint_eq(counted().kernel_compiles, compiles);
	OK(pawl_kv_cache_fork(pawl_decoder_cache(decoder), &fork, ERR));
	expect_step(2);
	pawl_decoder_swap_cache(decoder, &fork);
	expect_step(2);
	pawl_decoder_truncate(decoder, 1);
	expect_step(1);
	pawl_decoder_swap_cache(decoder, &fork);
	expect_step(3);
	pawl_kv_cache_free(fork);
	end();
}
END_TEST

START_TEST(what_cannot_be_captured_is_launched)
{
	struct pawl_target_counters before, after;

	begin();
	pawl_decoder_free(decoder);
	mock->hates_capture = true;
	OK(open_decoder());
	before = counted();
	for (int64_t i = 0; i < STEPS; i++)
		expect_step(i);
	after = counted();
	ck_assert_uint_eq(after.capture_failures, before.capture_failures + 1);
	ck_assert_str_eq(after.capture_fault,
		"capturing a run: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900)");
	ck_assert_uint_eq(after.captures, before.captures);
	ck_assert_uint_eq(after.graph_launches, before.graph_launches);
	ck_assert_uint_gt(after.launches, before.launches + STEPS);
	ck_assert_uint_eq(after.uploads, before.uploads + STEPS);
	end();
}
END_TEST

/* Of a step in which a call takes a while: the host's own part, and its wait. */
static void
time_slow_step(int64_t i, enum pawl_mock_call call, int64_t *host_ns, int64_t *waited_ns)
{
	struct pawl_decoder_stats before, after;
	int64_t start;

	mock->slow_call = (int)call;
	mock->slow_ns = SLOW_NS;
	pawl_decoder_stats(decoder, &before);
	start = pawl_nanoseconds();
	expect_step(i);
	*host_ns = pawl_nanoseconds() - start;
	pawl_decoder_stats(decoder, &after);
	*waited_ns = (int64_t)(after.counters.run_ns - before.counters.run_ns);
	*host_ns -= *waited_ns;
}

/* The least is asked for, as whatever else runs on the machine may make both longer. */
START_TEST(launches_are_the_host_s_work)
{
	int64_t host_ns, waited_ns;

	begin();
	expect_step(0);
	time_slow_step(1, PAWL_MOCK_graph_launch, &host_ns, &waited_ns);
	ck_assert_int_ge(host_ns, SLOW_NS);
	time_slow_step(2, PAWL_MOCK_copy_up, &host_ns, &waited_ns);
	ck_assert_int_ge(host_ns, SLOW_NS);
	time_slow_step(3, PAWL_MOCK_stream_wait, &host_ns, &waited_ns);
	ck_assert_int_ge(waited_ns, SLOW_NS);
	end();
}
END_TEST

START_TEST(a_failed_launch_advances_nothing)
{
	begin();
	expect_step(0);
	mock->only_call = PAWL_MOCK_graph_launch;
	mock->fails_with = PAWL_CUDA_ERROR_LAUNCH_FAILED;
	mock->fails_in = 1;
	ck_assert_int_eq(step(1, &(const float *){NULL}), PAWL_ENVIRONMENT);
	ck_assert_str_eq(ERR->text, "running a plan: CUDA_ERROR_LAUNCH_FAILED (719)");
	ck_assert_int_eq(pawl_decoder_len(decoder), 1);
	for (int64_t i = 1; i < STEPS; i++)
		expect_step(i);
	end();
}
END_TEST

START_TEST(a_failed_upload_loses_no_addresses)
{
	struct pawl_kv_cache *other;

	begin();
	expect_step(0);
	other = cache_of(pawl_decoder_context(decoder), PAWL_DTYPE_F16);
	pawl_decoder_swap_cache(decoder, &other);
	mock->only_call = PAWL_MOCK_copy_up;
	mock->fails_in = 1;
	ck_assert_int_eq(step(0, &(const float *){NULL}), PAWL_OUT_OF_MEMORY);
	expect_step(0);
	pawl_decoder_swap_cache(decoder, &other);
	expect_step(1);
	pawl_kv_cache_free(other);
	end();
}
END_TEST

START_TEST(a_driver_that_takes_no_kernels_is_named)
{
	begin();
	mock->only_call = PAWL_MOCK_module_load;
	mock->fails_with = PAWL_CUDA_ERROR_INVALID_IMAGE;
	mock->fails_in = 1;
	ck_assert_int_eq(step(0, &(const float *){NULL}), PAWL_ENVIRONMENT);
	ck_assert_str_eq(ERR->text,
		"loading kernels of NVRTC 13.0 by a driver of CUDA 13.0: "
		"CUDA_ERROR_INVALID_IMAGE (200)");
	expect_step(0);
	end();
}
END_TEST

/* What the device has done wrong once, it says for good. */
START_TEST(a_lost_device_says_so)
{
	begin();
	expect_step(0);
	mock->is_lost = true;
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(step(1, &(const float *){NULL}), PAWL_ENVIRONMENT);
		ck_assert_int_eq(pawl_decoder_len(decoder), 1);
	}
	end();
}
END_TEST

/* From a device to the end of a decoder; whether all of it worked, in which case it was right. */
static bool
whole_life(void)
{
	struct pawl_kv_cache *fork = NULL;
	const float *logits;
	bool works;

	decoder = NULL;
	if (pawl_device_open("cuda", NULL, &device, ERR))
		return false;
	works = !open_decoder() && !step(0, &logits) && !step(1, &logits) &&
		!pawl_kv_cache_fork(pawl_decoder_cache(decoder), &fork, ERR) && !step(2, &logits) &&
		!pawl_decoder_reserve(decoder, 2 * CAPACITY, ERR) && !step(3, &logits);
	if (works)
		ck_assert_mem_eq(logits, wanted[3], sizeof(wanted[3]));
	else
		ck_assert(ERR->status == PAWL_OUT_OF_MEMORY || ERR->status == PAWL_ENVIRONMENT);
	pawl_kv_cache_free(fork);
	pawl_decoder_free(decoder);
	pawl_device_unref(device);
	return works;
}

static void
fail_each(enum pawl_status with, bool for_good)
{
	const struct pawl_tiny_options tiny = tiny_options();
	int64_t n_failed = 0, first = 1 + with % 7, stride = pawl_mock_is_long() ? 1 : 23;

	begin();
	pawl_decoder_free(decoder);
	pawl_device_unref(device);
	pawl_tiny_model_free(model);
	for (int64_t n = first;; n += stride) {
		bool works;

		memset(ERR, 0, sizeof(*ERR));
		model = pawl_tiny_model_twin(original, &tiny);
		mock->fails_in = n;
		mock->fails_with = with == PAWL_ENVIRONMENT ? PAWL_CUDA_ERROR_LAUNCH_FAILED : 0;
		mock->stays_lost = for_good;
		works = whole_life();
		pawl_tiny_model_free(model);
		mock->is_lost = false;
		pawl_mock_check_end(mock);
		if (mock->fails_in > 0) {
			mock->fails_in = 0;
			ck_assert(works);
			break;
		}
		n_failed += !works;
	}
	ck_assert_int_gt(n_failed, 5);
	pawl_tiny_model_free(original);
}

START_TEST(each_call_fails_once)
{
	fail_each(PAWL_OUT_OF_MEMORY, false);
}
END_TEST

START_TEST(the_device_is_lost_at_each_call)
{
	fail_each(PAWL_ENVIRONMENT, true);
}
END_TEST

/* The guard itself: a run whose arguments are no memory of the device, or no longer. */

static struct pawl_plan *
plan_of_copy(void)
{
	const struct pawl_type type = pawl_type_make(PAWL_DTYPE_F32, 1, (const int64_t[]){8});
	const struct pawl_plan_options plain = {.counters = NULL};
	struct pawl_graph *graph = pawl_graph_new("some");
	struct pawl_node *x = pawl_build_const(graph, PAWL_ROLE_WEIGHT, "x", &type);
	struct pawl_plan *plan;

	pawl_graph_add_output(graph, pawl_build_binary(graph, PAWL_OP_ADD, x, x));
	OK(pawl_plan_build(graph, device, &plain, &plan, ERR));
	pawl_graph_free(graph);
	return plan;
}

static void
expect_illegal(bool is_host)
{
	const struct pawl_type type = pawl_type_make(PAWL_DTYPE_F32, 1, (const int64_t[]){8});
	struct pawl_storage *storage, *wrapped;
	static _Alignas(64) float host[8];
	struct pawl_bindings *bindings;
	struct pawl_plan *plan;

	mock = pawl_mock_use();
	device = pawl_mock_device();
	plan = plan_of_copy();
	OK(pawl_mock_bindings(plan, &bindings));
	OK(pawl_storage_new_on(device, NULL, &type, &storage, ERR));
	/* It does not keep what it points at. */
	OK(pawl_storage_wrap(&type, device->location, is_host ? (void *)host : storage->bytes,
		sizeof(host), NULL, NULL, &wrapped, ERR));
	OK(pawl_bindings_bind(
		bindings, pawl_plan_find_slot(plan, PAWL_SLOT_WEIGHT, "x"), wrapped, ERR));
	if (!is_host) {
		OK(pawl_bindings_run(bindings, NULL, NULL, ERR));
		OK(pawl_bindings_run(bindings, NULL, NULL, ERR));
		ck_assert_uint_eq(mock->mistakes, 0);
	}
	pawl_storage_unref(storage);
	ck_assert_int_eq(pawl_bindings_run(bindings, NULL, NULL, ERR), PAWL_ENVIRONMENT);
	ck_assert_str_eq(ERR->text, "running a plan: CUDA_ERROR_ILLEGAL_ADDRESS (700)");
	ck_assert_uint_eq(mock->mistakes, 1);
	/* For good. */
	ck_assert_int_eq(pawl_bindings_run(bindings, NULL, NULL, ERR), PAWL_ENVIRONMENT);
	pawl_bindings_free(bindings);
	pawl_storage_unref(wrapped);
	pawl_plan_unref(plan);
	pawl_device_unref(device);
	ck_assert_int_eq(mock->allocations, 0);
	ck_assert_int_eq(mock->execs, 0);
}

START_TEST(a_replay_over_freed_memory_is_noticed)
{
	expect_illegal(false);
}
END_TEST

START_TEST(a_kernel_over_host_memory_is_noticed)
{
	expect_illegal(true);
}
END_TEST

TCase *
pawl_cuda_life_tcase(void)
{
	TCase *tcase = tcase_create("life");

	tcase_add_test(tcase, a_swapped_cache_keeps_the_capture);
	tcase_add_test(tcase, a_stale_plan_takes_its_capture_with_it);
	tcase_add_test(tcase, a_cache_on_the_host_is_refused);
	tcase_add_test(tcase, a_cache_grows_and_forks);
	tcase_add_test(tcase, what_cannot_be_captured_is_launched);
	tcase_add_test(tcase, launches_are_the_host_s_work);
	tcase_add_test(tcase, a_failed_launch_advances_nothing);
	tcase_add_test(tcase, a_failed_upload_loses_no_addresses);
	tcase_add_test(tcase, a_driver_that_takes_no_kernels_is_named);
	tcase_add_test(tcase, a_lost_device_says_so);
	tcase_add_test(tcase, each_call_fails_once);
	tcase_add_test(tcase, the_device_is_lost_at_each_call);
	tcase_add_test(tcase, a_replay_over_freed_memory_is_noticed);
	tcase_add_test(tcase, a_kernel_over_host_memory_is_noticed);
	tcase_set_timeout(tcase, 0);
	return tcase;
}

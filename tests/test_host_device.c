/*
 * State through the ABI on a target with memory of its own, a GPU (a mock): caches, latents,
 * blocks, and what schedules them lie there.
 */
#include <stdlib.h>
#include <string.h>

#include "ir/eval.h"
#include "tests/decoding.h"
#include "tests/driven.h"
#include "tests/latent_runner.h"
#include "tests/skip.h"
#include "tests/suites.h"

enum { N_VOCAB = PAWL_DRIVEN_VOCAB, CAPACITY = PAWL_DRIVEN_CAPACITY };

static const struct pawl_api *api;
static struct pawl_driven d;

/* Whether the mock works here. */
static bool
has_device(const char *test)
{
#ifdef PAWL_SANITIZERS
	pawl_skip(test, "sanitizers do not know the stacks that the mock's kernels run on");
	return false;
#else
	(void)test;
	setenv("PAWL_CUDA_DRIVER", PAWL_BUILD_DIR "/tests/.libs/mock_cuda.so", 1);
	setenv("PAWL_NVRTC", PAWL_BUILD_DIR "/tests/.libs/mock_nvrtc.so", 1);
	api = pawl_test_host_api();
	return true;
#endif
}

static struct {
	unsigned char bytes[1 << 17];
	size_t n;
} file;

static int
keep(void *user, const void *bytes, size_t n)
{
	(void)user;
	ck_assert_uint_le(n, sizeof(file.bytes) - file.n);
	memcpy(file.bytes + file.n, bytes, n);
	file.n += n;
	return 0;
}

#define KV(name, type) "%" name " = const {role = kv} : " type "\n"
#define WRITE(n, name, type, dims)                                                                 \
	"%w" n " = write_slice %" name ", %x" n " {start = " dims "} : " type "\noutput %w" n "\n"

static void *
never_asked(void *user, const char *name, size_t n_bytes)
{
	(void)user;
	ck_abort_msg("%zu bytes for %s", n_bytes, name);
	return NULL;
}

/* Memory of the host is declined, and state is not shown where it does not lie. */
START_TEST(memory_of_the_host_is_declined)
{
	static const char text[] =
		"pawl 1\ngraph @g stage values {\n" KV("cache.k.0", "f32[1, 1, 16, 4]")
			KV("cache.v.0", "f32[1, 1, 16, 4]")
				"%x1 = const {role = data} : f32[1, 1, 1, 4]\n"
				"%x2 = const {role = data} : f32[1, 1, 1, 4]\n"
				"%y = neg %x1 : f32[1, 1, 1, 4]\n"
		WRITE("1", "cache.k.0", "f32[1, 1, 16, 4]", "[0, 0, 0, 0]")
		WRITE("2", "cache.v.0", "f32[1, 1, 16, 4]", "[0, 0, 3, 0]") "output %y\n}\n";
	static _Alignas(64) float memory[64];
	const struct pawl_cache_options options = {
		.struct_size = sizeof(options), .memory = never_asked};
	const float x[4] = {1, 2, 3, 4};
	struct pawl_host_context *gpu;
	struct pawl_host_session *session;
	struct pawl_host_cache *cache;
	struct pawl_host_graph *graph;
	struct pawl_host_plan *plan;
	const void *out = NULL;
	void *bytes = NULL;
	size_t n = 0;

	if (!has_device("memory_of_the_host_is_declined"))
		return;
	gpu = pawl_test_host_context("cuda", 1, NULL);
	PAWL_HOST_OK(api->graph_from_text(gpu, text, strlen(text), &graph));
	PAWL_HOST_OK(api->plan_compile(graph, &plan));
	PAWL_HOST_OK(api->session_create(plan, NULL, &session));
	pawl_test_host_refused(api->cache_create(plan, &options, &cache), PAWL_CODE_UNSUPPORTED,
		"target cuda has memory of its own");
	pawl_test_host_refused(
		api->session_bind(session, api->plan_find(plan, PAWL_BINDING_KV, "cache.k.0"),
			memory, sizeof(memory)),
		PAWL_CODE_UNSUPPORTED, "target cuda has memory of its own");
	PAWL_HOST_OK(api->cache_create(plan, NULL, &cache));
	PAWL_HOST_OK(api->session_use_cache(session, cache, NULL));
	pawl_test_host_refused(api->cache_memory(cache, "cache.k.0", &bytes, &n),
		PAWL_CODE_UNSUPPORTED, "not in host memory");
	for (int i = 1; i <= 2; i++)
		PAWL_HOST_OK(api->session_set(session,
			api->plan_find(plan, PAWL_BINDING_DATA, i == 1 ? "x1" : "x2"), x, 16));
	PAWL_HOST_OK(api->session_run(session, 1));
	pawl_test_host_refused(api->session_output(session, 0, &out, &n), PAWL_CODE_UNSUPPORTED,
		"memory of the target");
	PAWL_HOST_OK(api->session_output(session, 2, &out, &n));
	ck_assert_float_eq(((const float *)out)[3], -4);
	api->session_release(session);
	api->cache_release(cache);
	api->plan_release(plan);
	api->graph_release(graph);
	api->context_release(gpu);
}
END_TEST

/*
 * The bits of a fresh decoder on the same target, near those of the reference: float matmul has an
 * order of its own there.
 */
static void
expect(const float *logits, unsigned seed, int64_t n)
{
	const struct pawl_decoder_options options = pawl_test_decoder_options();
	float *near = pawl_test_fresh(d.tiny, &options, seed, n);
	struct pawl_host_decoder *decoder = pawl_driven_decoder(&d, 8);
	const float *wanted;

	PAWL_HOST_OK(api->decoder_append(decoder, pawl_driven_tokens(seed, 0, n), n, &wanted));
	for (int i = 0; i < N_VOCAB; i++) {
		ck_assert(pawl_eval_same(wanted[i], logits[i]));
		ck_assert_float_eq_tol(near[i], logits[i], 1e-3);
	}
	api->decoder_release(decoder);
	free(near);
}

/* On a GPU (a mock): a decoder and its snapshot. */
static void
decode_on_a_device(void)
{
	struct pawl_host_decoder *decoder = pawl_driven_decoder(&d, 8);
	struct pawl_host_decoder *other = pawl_driven_decoder(&d, 8);
	const float *logits = NULL;
	int64_t n = 0;

	PAWL_HOST_OK(api->decoder_append(decoder, pawl_driven_tokens(1, 0, 11), 11, &logits));
	expect(logits, 1, 11);
	PAWL_HOST_OK(api->decoder_save(decoder, pawl_driven_tokens(1, 0, 11), 11, keep, NULL));
	PAWL_HOST_OK(api->decoder_set_len(decoder, 5, NULL));
	PAWL_HOST_OK(api->decoder_reserve(decoder, CAPACITY + 1));
	PAWL_HOST_OK(api->decoder_append(decoder, pawl_driven_tokens(1, 5, 8), 8, &logits));
	expect(logits, 1, 13);
	PAWL_HOST_OK(api->decoder_restore(other, file.bytes, file.n, NULL, 0, &n));
	ck_assert_int_eq(n, 11);
	PAWL_HOST_OK(api->decoder_append(other, pawl_driven_tokens(1, 11, 1), 1, &logits));
	expect(logits, 1, 12);
	api->decoder_release(decoder);
	api->decoder_release(other);
}

/* Blocks that are shared, copied when they are written, evicted and put back. */
static void
batch_on_a_device(void)
{
	const struct pawl_pool_settings settings = {.struct_size = sizeof(settings),
		.n_blocks = 8,
		.block_size = 16,
		.max_blocks = 4,
		.prefill_chunk = 8};
	const struct pawl_scheduler_settings scheduled = {
		.struct_size = sizeof(scheduled), .max_batch = 2};
	const struct pawl_request_settings request = {.struct_size = sizeof(request),
		.prompt = pawl_driven_tokens(1, 0, 9),
		.n_prompt = 9,
		.max_new = 3};
	struct pawl_request_report report = {.struct_size = sizeof(report)};
	struct pawl_host_scheduler *scheduler;
	struct pawl_host_pool *pool;
	const float *logits = NULL;
	uint64_t both[2], handle, id;
	uint32_t next;
	int64_t n = 0;

	PAWL_HOST_OK(api->pool_create(d.model, &settings, &pool));
	PAWL_HOST_OK(api->pool_open(pool, &both[0]));
	PAWL_HOST_OK(api->pool_append(pool, both[0], pawl_driven_tokens(1, 0, 9), 9, &logits));
	expect(logits, 1, 9);
	PAWL_HOST_OK(api->pool_fork(pool, both[0], &both[1]));
	PAWL_HOST_OK(api->pool_append(pool, both[1], pawl_driven_tokens(1, 9, 1), 1, NULL));
	PAWL_HOST_OK(api->pool_evict(pool, both[0], &handle, &n));
	ck_assert_int_eq(n, 1);
	PAWL_HOST_OK(api->pool_restore(pool, handle));
	PAWL_HOST_OK(api->pool_append(pool, both[0], pawl_driven_tokens(1, 9, 1), 1, NULL));
	next = *pawl_driven_tokens(1, 10, 1);
	PAWL_HOST_OK(api->pool_step(pool, both, (uint32_t[]){next, next}, 2, &logits));
	expect(logits, 1, 11);
	expect(logits + N_VOCAB, 1, 11);
	for (int i = 0; i < 2; i++)
		PAWL_HOST_OK(api->pool_close(pool, both[i]));
	PAWL_HOST_OK(api->scheduler_create(pool, &scheduled, &scheduler));
	PAWL_HOST_OK(api->scheduler_submit(scheduler, &request, &id));
	while (api->scheduler_has_work(scheduler))
		PAWL_HOST_OK(api->scheduler_step(scheduler));
	PAWL_HOST_OK(api->scheduler_report(scheduler, id, &report));
	ck_assert_int_eq(report.finish, PAWL_SCHEDULED_LENGTH);
	api->scheduler_release(scheduler);
	api->pool_release(pool);
}

START_TEST(drivers_keep_state_on_a_device)
{
	if (!has_device("drivers_keep_state_on_a_device"))
		return;
	pawl_driven_begin(&d, "cuda", 1, NULL);
	decode_on_a_device();
	batch_on_a_device();
	pawl_driven_end(&d);
}
END_TEST

enum { N_WANTED = 7 };

/* After each of the first tokens of sequence 1, on the device. */
static float wanted[N_WANTED][N_VOCAB];

/* Those of a decoder. */
static void
want_a_decoders(void)
{
	struct pawl_host_decoder *decoder = pawl_driven_decoder(&d, 8);
	const float *logits;

	for (int64_t i = 0; i < N_WANTED; i++) {
		PAWL_HOST_OK(
			api->decoder_append(decoder, pawl_driven_tokens(1, i, 1), 1, &logits));
		memcpy(wanted[i], logits, sizeof(wanted[i]));
		expect(logits, 1, i + 1);
	}
	api->decoder_release(decoder);
}

/* Token i of sequence 1 by a session on a cache. */
static void
step(struct pawl_test_host *host, struct pawl_host_cache *cache, int64_t i)
{
	uint32_t token = pawl_test_token(1, i);
	const float *logits = pawl_test_host_step(host, cache, &token);

	for (int j = 0; j < N_VOCAB; j++)
		ck_assert(pawl_eval_same(wanted[i][j], logits[j]));
}

/* The old plan is stale for a cache that grew; a new one comes from its code. */
static void
regrow(struct pawl_test_host *host, struct pawl_host_cache *cache)
{
	struct pawl_cache_report report = {.struct_size = sizeof(report)};
	struct pawl_graph_request larger = host->request;
	struct pawl_host_graph *graph;
	struct pawl_host_plan *plan;

	larger.capacity *= 2;
	PAWL_HOST_OK(api->cache_reserve(cache, larger.capacity));
	pawl_test_host_refused(api->session_use_cache(host->session, cache, &report),
		PAWL_CODE_STALE, "max_seq_len");
	graph = pawl_test_host_graph(host->context, host->source, &larger);
	PAWL_HOST_OK(api->plan_regrow(host->plan, graph, &plan));
	api->session_release(host->session);
	PAWL_HOST_OK(api->session_create(plan, host->weights, &host->session));
	PAWL_HOST_OK(api->session_use_cache(host->session, cache, &report));
	ck_assert_int_eq(report.verdict, PAWL_CACHE_REBOUND);
	api->plan_release(plan);
	api->graph_release(graph);
}

/* Forks, goes back, saves, restores and grows. */
static void
keep_state(struct pawl_test_host *host)
{
	struct pawl_cache_report report = {.struct_size = sizeof(report)};
	struct pawl_host_cache *cache, *fork, *restored;
	uint32_t tokens[8];
	int64_t n;

	file.n = 0;
	PAWL_HOST_OK(api->cache_create(host->plan, NULL, &cache));
	PAWL_HOST_OK(api->cache_create(host->plan, NULL, &restored));
	PAWL_HOST_OK(api->session_use_cache(host->session, cache, NULL));
	for (int64_t i = 0; i < 5; i++)
		step(host, cache, i);
	PAWL_HOST_OK(api->cache_save(cache, 3, pawl_driven_tokens(1, 0, 5), 5, keep, NULL));
	PAWL_HOST_OK(api->cache_fork(cache, &fork));
	PAWL_HOST_OK(api->session_use_cache(host->session, fork, &report));
	ck_assert_int_eq(report.verdict, PAWL_CACHE_REBOUND);
	PAWL_HOST_OK(api->cache_set_len(fork, 3, NULL));
	step(host, fork, 3);
	PAWL_HOST_OK(api->session_use_cache(host->session, cache, NULL));
	step(host, cache, 5);
	PAWL_HOST_OK(api->cache_restore(restored, 3, file.bytes, file.n, tokens, 8, &n));
	ck_assert_int_eq(n, 5);
	PAWL_HOST_OK(api->session_use_cache(host->session, restored, NULL));
	step(host, restored, 5);
	regrow(host, cache);
	step(host, cache, 6);
	api->cache_release(restored);
	api->cache_release(fork);
	api->cache_release(cache);
}

START_TEST(sessions_keep_state_on_a_device)
{
	if (!has_device("sessions_keep_state_on_a_device"))
		return;
	pawl_driven_begin(&d, "cuda", 1, NULL);
	want_a_decoders();
	keep_state(&d.lender);
	pawl_driven_end(&d);
}
END_TEST

/* Near those of the reference, and the same whatever became of the cache. */
START_TEST(latents_lie_on_a_device)
{
	const struct pawl_graph_request request = {.n_tokens = 1,
		.capacity = CAPACITY,
		.kv_dtype = PAWL_DTYPE_F16,
		.logits = PAWL_LOGITS_LAST};
	const struct pawl_tiny_mla_options options = pawl_tiny_mla_defaults();
	const struct pawl_cache_options lent = {
		.struct_size = sizeof(lent), .memory = never_asked};
	struct pawl_tiny_mla *model = pawl_tiny_mla_new(&options);
	float near[N_WANTED][N_VOCAB];
	struct pawl_latent_runner runner;
	struct pawl_host_context *gpu;
	struct pawl_host_cache *cache;
	struct pawl_test_host host;
	void *bytes = NULL;
	size_t n;

	if (has_device("latents_lie_on_a_device")) {
		pawl_latent_runner_init(&runner, model, &pawl_latent_plain);
		pawl_latent_runner_feed(&runner, 1, 0, N_WANTED, near[0]);
		pawl_latent_runner_release(&runner);
		gpu = pawl_test_host_context("cuda", 1, NULL);
		pawl_test_host_init(&host, gpu, pawl_tiny_mla_source(model), &request);
		pawl_test_host_refused(api->cache_create(host.plan, &lent, &cache),
			PAWL_CODE_UNSUPPORTED, "target cuda has memory of its own");
		PAWL_HOST_OK(api->cache_create(host.plan, NULL, &cache));
		PAWL_HOST_OK(api->session_use_cache(host.session, cache, NULL));
		for (int64_t i = 0; i < N_WANTED; i++) {
			uint32_t token = pawl_test_token(1, i);

			memcpy(wanted[i], pawl_test_host_step(&host, cache, &token),
				sizeof(wanted[i]));
			for (int j = 0; j < N_VOCAB; j++)
				ck_assert_float_eq_tol(near[i][j], wanted[i][j], 1e-3);
		}
		pawl_test_host_refused(api->cache_memory(cache, "cache.0.0", &bytes, &n),
			PAWL_CODE_UNSUPPORTED, "not in host memory");
		api->cache_release(cache);
		keep_state(&host);
		pawl_test_host_release(&host);
		pawl_test_host_context_end(gpu);
	}
	pawl_tiny_mla_free(model);
}
END_TEST

/* Of another context, be it of the same target or not. */
START_TEST(caches_that_lie_elsewhere_are_refused)
{
	static const char *const targets[] = {"ref", "cuda"};
	struct pawl_cache_report report = {.struct_size = sizeof(report), .verdict = 77};
	struct pawl_host_cache *own, *cache;
	struct pawl_driven other;

	if (!has_device("caches_that_lie_elsewhere_are_refused"))
		return;
	pawl_driven_begin(&d, "cuda", 1, NULL);
	want_a_decoders();
	PAWL_HOST_OK(api->cache_create(d.lender.plan, NULL, &own));
	PAWL_HOST_OK(api->session_use_cache(d.lender.session, own, NULL));
	for (int i = 0; i < 2; i++) {
		pawl_driven_begin(&other, targets[i], 1, NULL);
		PAWL_HOST_OK(api->cache_create(other.lender.plan, NULL, &cache));
		pawl_test_host_refused(
			api->session_use_cache(d.lender.session, cache, &report),
			PAWL_CODE_INVALID_ARGUMENT, "of two contexts");
		ck_assert_int_eq(report.verdict, 77);
		step(&d.lender, own, i);
		api->cache_release(cache);
		pawl_driven_end(&other);
	}
	api->cache_release(own);
	pawl_driven_end(&d);
}
END_TEST

Suite *
pawl_host_device_suite(void)
{
	Suite *suite = suite_create("host_device");
	TCase *tcase = tcase_create("host_device");

	tcase_add_test(tcase, memory_of_the_host_is_declined);
	tcase_add_test(tcase, drivers_keep_state_on_a_device);
	tcase_add_test(tcase, sessions_keep_state_on_a_device);
	tcase_add_test(tcase, latents_lie_on_a_device);
	tcase_add_test(tcase, caches_that_lie_elsewhere_are_refused);
	suite_add_tcase(suite, tcase);
	return suite;
}

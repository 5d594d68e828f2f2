/*
 * What a host lends to Pawl: each service is used where it is there, and does without where it is
 * not.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "ir/eval.h"
#include "tests/decoding.h"
#include "tests/host_fixture.h"
#include "tests/suites.h"

enum { N_VOCAB = 40, CAPACITY = 64, N_TOKENS = 6 };

static const struct pawl_api *api;
static struct pawl_tiny_model *model;

static void
begin(void)
{
	const struct pawl_tiny_options options = pawl_tiny_defaults();

	api = pawl_test_host_api();
	model = pawl_tiny_model_new(&options);
}

static void
end(void)
{
	pawl_tiny_model_free(model);
}

static const struct pawl_graph_request request = {.n_tokens = 1,
	.capacity = CAPACITY,
	.kv_dtype = PAWL_DTYPE_F16,
	.logits = PAWL_LOGITS_LAST};

/* So that threads have something to share. */
static const char *
target(void)
{
#ifdef PAWL_TEST_HAS_KERNELS
	return "cpu";
#else
	return "ref";
#endif
}

/* N_TOKENS of sequence 1 in a context, which is released. */
static void
decode(struct pawl_host_context *context)
{
	const struct pawl_decoder_options options = pawl_test_decoder_options();
	float *wanted = pawl_test_fresh(model, &options, 1, N_TOKENS);
	struct pawl_host_cache *cache;
	struct pawl_test_host host;
	const float *logits = NULL;

	pawl_test_host_init(&host, context, pawl_tiny_model_source(model), &request);
	PAWL_HOST_OK(api->cache_create(host.plan, NULL, &cache));
	PAWL_HOST_OK(api->session_use_cache(host.session, cache, NULL));
	for (int64_t i = 0; i < N_TOKENS; i++) {
		uint32_t token = pawl_test_token(1, i);

		logits = pawl_test_host_step(&host, cache, &token);
	}
	for (int i = 0; i < N_VOCAB; i++)
		ck_assert(pawl_eval_same(wanted[i], logits[i]));
	free(wanted);
	api->cache_release(cache);
	pawl_test_host_release(&host);
	api->context_release(context);
}

struct log {
	char text[4096];
	int n, worst;
};

static void
write_log(void *user, int level, const char *message)
{
	struct log *log = user;

	ck_assert_ptr_null(strchr(message, '\n'));
	ck_assert_int_lt(level, 3);
	if (!log->n++ || level < log->worst)
		log->worst = level;
	if (strlen(log->text) + strlen(message) + 2 < sizeof(log->text))
		strcat(strcat(log->text, message), "\n");
}

START_TEST(lines_go_to_the_log)
{
	struct log log = {.n = 0};
	const struct pawl_services services = {
		.struct_size = sizeof(services), .user = &log, .log = write_log};

	decode(pawl_test_host_context("ref", 1, &services));
	ck_assert_int_gt(log.n, 0);
	ck_assert_int_eq(log.worst, 2);
	ck_assert_msg(
		strstr(log.text, "compiled: ") && strstr(log.text, "reference"), "%s", log.text);
}
END_TEST

/* Counts what is asked for; refuses after some. */
struct heap {
	atomic_llong n, n_free, bytes, most;
	long long n_until_none;
	size_t shift; /* bytes beyond what is aligned */
};

static void *
take(void *user, size_t n_bytes, size_t alignment)
{
	struct heap *heap = user;
	void *bytes;

	if (heap->n_until_none >= 0 && atomic_load(&heap->n) >= heap->n_until_none)
		return NULL;
	ck_assert_uint_eq(n_bytes % alignment, 0);
	ck_assert_uint_ge(alignment, 64);
	bytes = aligned_alloc(alignment, n_bytes + alignment);
	ck_assert_ptr_nonnull(bytes);
	memset(bytes, 0xee, n_bytes + alignment);
	atomic_fetch_add(&heap->n, 1);
	atomic_fetch_add(&heap->bytes, (long long)n_bytes);
	if (atomic_load(&heap->bytes) > atomic_load(&heap->most))
		atomic_store(&heap->most, atomic_load(&heap->bytes));
	return (char *)bytes + heap->shift;
}

static void
give(void *user, void *bytes, size_t n_bytes)
{
	struct heap *heap = user;

	memset(bytes, 0xdd, n_bytes);
	free((char *)bytes - (uintptr_t)bytes % 64);
	atomic_fetch_add(&heap->n_free, 1);
	atomic_fetch_sub(&heap->bytes, (long long)n_bytes);
}

static struct pawl_services
services_of(struct heap *heap)
{
	return (struct pawl_services){.struct_size = sizeof(struct pawl_services),
		.user = heap,
		.alloc = take,
		.free = give};
}

START_TEST(memory_comes_from_the_host)
{
	struct heap heap = {.n_until_none = -1};
	const struct pawl_services services = services_of(&heap);

	decode(pawl_test_host_context(target(), 1, &services));
	ck_assert_int_eq(atomic_load(&heap.n), atomic_load(&heap.n_free));
	ck_assert_int_eq(atomic_load(&heap.bytes), 0);
	/* The cache alone has 32 KiB, the rest comes on top. */
	ck_assert_int_gt(atomic_load(&heap.most), 2 * 2 * CAPACITY * 32 * 2);
}
END_TEST

START_TEST(memory_that_is_not_aligned_is_none)
{
	struct heap heap = {.n_until_none = -1};
	const struct pawl_services services = services_of(&heap);
	struct pawl_host_context *context = pawl_test_host_context("ref", 1, &services);
	struct pawl_host_cache *cache = NULL;
	struct pawl_test_host lender;
	long long n_before;

	pawl_test_host_init(&lender, context, pawl_tiny_model_source(model), &request);
	n_before = atomic_load(&heap.bytes);
	heap.shift = 8;
	pawl_test_host_refused(
		api->cache_create(lender.plan, NULL, &cache), PAWL_CODE_OUT_OF_MEMORY, "bytes");
	ck_assert_ptr_null(cache);
	ck_assert_int_eq(atomic_load(&heap.bytes), n_before);
	heap.shift = 0;
	PAWL_HOST_OK(api->cache_create(lender.plan, NULL, &cache));
	api->cache_release(cache);
	pawl_test_host_release(&lender);
	api->context_release(context);
	ck_assert_int_eq(atomic_load(&heap.bytes), 0);
}
END_TEST

/* Whichever allocation fails: a clear status, and nothing is left behind. */
START_TEST(every_allocation_may_fail)
{
	struct heap heap = {.n_until_none = -1};
	long long n_all;
	int n_failed = 0;

	for (long long n = -1; n < 64; n++) {
		const struct pawl_services services = services_of(&heap);
		struct pawl_host_context *context = pawl_test_host_context("ref", 1, &services);
		struct pawl_test_host lender;
		struct pawl_host_status *status;
		struct pawl_host_session *session = NULL;
		struct pawl_host_cache *cache = NULL;
		struct pawl_host_plan *plan = NULL;
		struct pawl_host_graph *graph;

		heap.n_until_none = -1;
		pawl_test_host_init(&lender, context, pawl_tiny_model_source(model), &request);
		graph = pawl_test_host_graph(context, pawl_tiny_model_source(model), &request);
		n_all = atomic_load(&heap.n);
		heap.n_until_none = n < 0 ? -1 : n_all + n;
		status = api->plan_compile(graph, &plan);
		if (!status)
			status = api->session_create(plan, lender.weights, &session);
		if (!status)
			status = api->cache_create(plan, NULL, &cache);
		if (!status)
			status = api->session_use_cache(session, cache, NULL);
		n_failed += status != NULL;
		if (status)
			pawl_test_host_refused(status, PAWL_CODE_OUT_OF_MEMORY, "");
		api->cache_release(cache);
		api->session_release(session);
		api->plan_release(plan);
		api->graph_release(graph);
		pawl_test_host_release(&lender);
		ck_assert_uint_eq(pawl_test_host_counter(context, "handles"), 1);
		api->context_release(context);
		ck_assert_int_eq(atomic_load(&heap.bytes), 0);
		if (n >= 0 && !status)
			break;
		ck_assert_int_lt(n, 63);
	}
	ck_assert_int_gt(n_failed, 3);
}
END_TEST

/* A host's pool in its simplest form: a thread for each part. */
struct threads {
	atomic_int n_calls, n_parts;
	int refuses, is_serial;
};

struct part {
	void (*fn)(void *arg, int64_t i);
	void *arg;
	int64_t i;
};

static void *
run_part(void *arg)
{
	struct part *part = arg;

	part->fn(part->arg, part->i);
	return NULL;
}

static int
parallel_for(void *user, int64_t n, void (*fn)(void *arg, int64_t i), void *arg)
{
	struct threads *threads = user;
	struct part parts[8];
	pthread_t ids[8];

	if (threads->refuses)
		return 1;
	ck_assert_int_le(n, 8);
	atomic_fetch_add(&threads->n_calls, 1);
	atomic_fetch_add(&threads->n_parts, (int)n);
	for (int64_t i = 0; i < n; i++) {
		parts[i] = (struct part){fn, arg, i};
		if (threads->is_serial)
			run_part(&parts[i]);
		else if (i)
			ck_assert_int_eq(pthread_create(&ids[i], NULL, run_part, &parts[i]), 0);
	}
	if (threads->is_serial)
		return 0;
	run_part(&parts[0]);
	for (int64_t i = 1; i < n; i++)
		pthread_join(ids[i], NULL);
	return 0;
}

START_TEST(threads_come_from_the_host)
{
	struct threads threads = {.n_calls = 0};
	const struct pawl_services services = {
		.struct_size = sizeof(services), .user = &threads, .parallel_for = parallel_for};
	struct pawl_host_context *context = pawl_test_host_context(target(), 3, &services);
	int n_tried = atomic_load(&threads.n_calls);

	ck_assert_int_gt(n_tried, 0);
	decode(context);
	ck_assert_int_ge(atomic_load(&threads.n_parts), 3 * n_tried);
#ifdef PAWL_TEST_HAS_KERNELS
	ck_assert_int_ge(atomic_load(&threads.n_calls), n_tried + N_TOKENS);
#endif
	/* One that refuses later: the caller works alone, with the same bits. */
	context = pawl_test_host_context(target(), 1, &services);
	threads.refuses = 1;
	decode(context);
}
END_TEST

START_TEST(parts_that_do_not_run_at_once_are_found_out)
{
	struct threads threads = {.is_serial = 1};
	const struct pawl_services services = {
		.struct_size = sizeof(services), .user = &threads, .parallel_for = parallel_for};
	const struct pawl_context_options options = {
		.struct_size = sizeof(options), .target = "ref", .n_threads = 2};
	struct pawl_host_context *context = NULL;

	pawl_test_host_refused(api->context_create(&services, &options, &context),
		PAWL_CODE_ENVIRONMENT, "2 parts at the same time");
	threads.refuses = 1;
	pawl_test_host_refused(api->context_create(&services, &options, &context),
		PAWL_CODE_ENVIRONMENT, "refuses 2 parts");
	ck_assert_ptr_null(context);
}
END_TEST

/* Says to give up from call n on. */
struct patience {
	int n, n_asked;
};

static int
is_aborted(void *user)
{
	struct patience *patience = user;

	return patience->n >= 0 && patience->n_asked++ >= patience->n;
}

/*
 * Whenever the host says so: the run ends with a status, the length stays, the next run goes right.
 */
START_TEST(a_host_may_give_up)
{
	const struct pawl_decoder_options options = pawl_test_decoder_options();
	struct patience patience = {.n = -1};
	const struct pawl_services services = {
		.struct_size = sizeof(services), .user = &patience, .is_aborted = is_aborted};
	struct pawl_host_context *context = pawl_test_host_context(target(), 2, &services);
	const uint32_t token = pawl_test_token(1, 0);
	float *wanted = pawl_test_fresh(model, &options, 1, 1);
	struct pawl_host_plan *plan = NULL;
	struct pawl_host_graph *graph;
	struct pawl_host_cache *cache;
	struct pawl_test_host host;
	const float *logits = NULL;
	int n;

	pawl_test_host_init(&host, context, pawl_tiny_model_source(model), &request);
	PAWL_HOST_OK(api->cache_create(host.plan, NULL, &cache));
	PAWL_HOST_OK(api->session_use_cache(host.session, cache, NULL));
	for (n = 0; n < 1000; n++) {
		struct pawl_host_status *status;

		patience = (struct patience){.n = n};
		status = pawl_test_host_try(&host, cache, &token, &logits);
		if (!status)
			break;
		pawl_test_host_refused(
			status, PAWL_CODE_ENVIRONMENT, n ? "told to stop" : "give up");
		ck_assert_int_eq(api->cache_len(cache), 0);
	}
#ifdef PAWL_TEST_HAS_KERNELS
	ck_assert_int_gt(n, 2); /* between steps too */
#endif
	ck_assert_int_gt(n, 1);
	ck_assert_int_lt(n, 1000);
	ck_assert_int_eq(api->cache_len(cache), 1);
	for (int i = 0; i < N_VOCAB; i++)
		ck_assert(pawl_eval_same(wanted[i], logits[i]));
	patience = (struct patience){.n = -1};
	graph = pawl_test_host_graph(context, pawl_tiny_model_source(model), &request);
	patience = (struct patience){.n = 0};
	pawl_test_host_refused(api->plan_compile(graph, &plan), PAWL_CODE_ENVIRONMENT, "give up");
	ck_assert_ptr_null(plan);
	ck_assert_uint_eq(pawl_test_host_counter(context, "runs.failed"), (uint64_t)n);
	free(wanted);
	api->graph_release(graph);
	api->cache_release(cache);
	pawl_test_host_release(&host);
	api->context_release(context);
}
END_TEST

/* Sessions of one plan and one set of weights, each in a thread with a cache of its own. */
struct worker {
	pthread_t thread;
	struct pawl_test_host host; /* a session of its own */
	unsigned seed;
	float logits[N_VOCAB];
};

static void *
work(void *arg)
{
	struct worker *w = arg;

	for (int round = 0; round < 5; round++) {
		struct pawl_host_cache *cache;
		const float *logits = NULL;

		PAWL_HOST_OK(api->session_create(w->host.plan, w->host.weights, &w->host.session));
		PAWL_HOST_OK(api->cache_create(w->host.plan, NULL, &cache));
		PAWL_HOST_OK(api->session_use_cache(w->host.session, cache, NULL));
		for (int64_t i = 0; i < N_TOKENS; i++) {
			uint32_t token = pawl_test_token(w->seed, i);

			logits = pawl_test_host_step(&w->host, cache, &token);
		}
		memcpy(w->logits, logits, sizeof(w->logits));
		api->cache_release(cache);
		api->session_release(w->host.session);
	}
	return NULL;
}

START_TEST(threads_share_a_plan)
{
	enum { N_WORKERS = 4 };
	const struct pawl_decoder_options options = pawl_test_decoder_options();
	struct pawl_host_context *context = pawl_test_host_context(target(), 1, NULL);
	struct worker workers[N_WORKERS];
	struct pawl_test_host host;

	pawl_test_host_init(&host, context, pawl_tiny_model_source(model), &request);
	for (unsigned i = 0; i < N_WORKERS; i++) {
		workers[i] = (struct worker){.host = host, .seed = i};
		ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (unsigned i = 0; i < N_WORKERS; i++) {
		float *wanted = pawl_test_fresh(model, &options, i, N_TOKENS);

		pthread_join(workers[i].thread, NULL);
		for (int j = 0; j < N_VOCAB; j++)
			ck_assert(pawl_eval_same(wanted[j], workers[i].logits[j]));
		free(wanted);
	}
	ck_assert_uint_eq(pawl_test_host_counter(context, "plans.compiled"), 1);
	ck_assert_uint_eq(pawl_test_host_counter(context, "runs"), 5 * N_WORKERS * N_TOKENS);
	pawl_test_host_release(&host);
	ck_assert_uint_eq(pawl_test_host_counter(context, "handles"), 1);
	api->context_release(context);
}
END_TEST

/* A context, a plan and whatever is made of them in each of several threads at once. */
static void *
decode_alone(void *arg)
{
	(void)arg;
	decode(pawl_test_host_context(target(), 1, NULL));
	return NULL;
}

START_TEST(threads_have_contexts_of_their_own)
{
	pthread_t threads[3];

	pawl_test_device(); /* of what is compared with, which is opened once */
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, decode_alone, NULL), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}
END_TEST

Suite *
pawl_host_services_suite(void)
{
	Suite *suite = suite_create("host_services");
	TCase *tcase = tcase_create("host_services");

	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, lines_go_to_the_log);
	tcase_add_test(tcase, memory_comes_from_the_host);
	tcase_add_test(tcase, memory_that_is_not_aligned_is_none);
	tcase_add_test(tcase, every_allocation_may_fail);
	tcase_add_test(tcase, threads_come_from_the_host);
	tcase_add_test(tcase, parts_that_do_not_run_at_once_are_found_out);
	tcase_add_test(tcase, a_host_may_give_up);
	tcase_add_test(tcase, threads_share_a_plan);
	tcase_add_test(tcase, threads_have_contexts_of_their_own);
	suite_add_tcase(suite, tcase);
	return suite;
}

/*
 * Sessions and caches through the ABI: everything that the runtime does with them, compared bit for
 * bit with a decoder of the runtime on the same model.
 */
#include <stdlib.h>
#include <string.h>

#include "ir/eval.h"
#include "tests/context_fixture.h"
#include "tests/decoding.h"
#include "tests/suites.h"

enum { N_VOCAB = 40, CAPACITY = 64, CHUNK = 8 };

static struct pawl_tiny_model *model;
static struct pawl_test_host host;

static struct pawl_graph_request
request_of(int64_t n_tokens, int64_t capacity)
{
	return (struct pawl_graph_request){.n_tokens = n_tokens,
		.capacity = capacity,
		.kv_dtype = PAWL_DTYPE_F16,
		.logits = PAWL_LOGITS_LAST};
}

static void
begin(void)
{
	const struct pawl_tiny_options options = pawl_tiny_defaults();
	const struct pawl_graph_request request = request_of(1, CAPACITY);

	begin_context();
	model = pawl_tiny_model_new(&options);
	pawl_test_host_init(&host, context, pawl_tiny_model_source(model), &request);
}

static void
end(void)
{
	pawl_test_host_release(&host);
	end_context();
	pawl_tiny_model_free(model);
}

static struct pawl_host_cache *
make_cache(const struct pawl_test_host *of)
{
	struct pawl_host_cache *cache;

	PAWL_HOST_OK(api->cache_create(of->plan, NULL, &cache));
	return cache;
}

/* Tokens of a sequence up to length n, one by one; the logits after the last. */
static const float *
feed(struct pawl_test_host *with, struct pawl_host_cache *cache, unsigned seed, int64_t n)
{
	const float *logits = NULL;

	PAWL_HOST_OK(api->session_use_cache(with->session, cache, NULL));
	for (int64_t i = api->cache_len(cache); i < n; i++) {
		uint32_t token = pawl_test_token(seed, i);

		logits = pawl_test_host_step(with, cache, &token);
	}
	return logits;
}

static void
expect(const float *logits, unsigned seed, int64_t n)
{
	struct pawl_decoder_options options = pawl_test_decoder_options();
	float *wanted;

	options.capacity = n > CAPACITY ? n : CAPACITY;
	wanted = pawl_test_fresh(model, &options, seed, n);
	ck_assert_ptr_nonnull(logits);
	for (int64_t i = 0; i < N_VOCAB; i++)
		ck_assert_msg(pawl_eval_same(wanted[i], logits[i]), "logit %d of %d tokens: %a, %a",
			(int)i, (int)n, (double)wanted[i], (double)logits[i]);
	free(wanted);
}

START_TEST(tokens_are_those_of_a_decoder)
{
	struct pawl_host_cache *cache = make_cache(&host);

	ck_assert_int_eq(api->cache_len(cache), 0);
	ck_assert_int_eq(api->cache_capacity(cache), CAPACITY);
	expect(feed(&host, cache, 1, 1), 1, 1);
	expect(feed(&host, cache, 1, 20), 1, 20);
	expect(feed(&host, cache, 1, CAPACITY), 1, CAPACITY);
	ck_assert_int_eq(api->cache_len(cache), CAPACITY);
	api->cache_release(cache);
	ck_assert_uint_eq(pawl_test_host_counter(context, "plans.compiled"), 1);
	ck_assert_uint_eq(pawl_test_host_counter(context, "runs"), CAPACITY);
	ck_assert_uint_eq(pawl_test_host_counter(context, "positions"), CAPACITY);
}
END_TEST

/* A plan of several tokens beside that of one, over one cache and one set of weights. */
START_TEST(prompts_go_in_chunks)
{
	const struct pawl_graph_request request = request_of(CHUNK, CAPACITY);
	struct pawl_host_cache *cache = make_cache(&host);
	struct pawl_test_host chunks;
	uint32_t tokens[CHUNK];

	pawl_test_host_init_like(&chunks, &host, &request);
	for (int64_t i = 0; i < CHUNK; i++)
		tokens[i] = pawl_test_token(1, i);
	PAWL_HOST_OK(api->session_use_cache(chunks.session, cache, NULL));
	expect(pawl_test_host_step(&chunks, cache, tokens), 1, CHUNK);
	expect(feed(&host, cache, 1, CHUNK + 5), 1, CHUNK + 5);
	pawl_test_host_release(&chunks);
	api->cache_release(cache);
}
END_TEST

START_TEST(caches_take_turns_on_one_session)
{
	struct pawl_cache_report report = {.struct_size = sizeof(report)};
	struct pawl_host_cache *caches[3];

	for (int i = 0; i < 3; i++)
		caches[i] = make_cache(&host);
	for (int64_t n = 1; n <= 12; n++)
		for (unsigned i = 0; i < 3; i++)
			expect(feed(&host, caches[i], i, n), i, n);
	ck_assert_uint_eq(pawl_test_host_counter(context, "plans.compiled"), 1);
	ck_assert_uint_eq(pawl_test_host_counter(context, "cache.rebound"), 36);
	PAWL_HOST_OK(api->session_use_cache(host.session, caches[2], &report));
	ck_assert_int_eq(report.verdict, PAWL_CACHE_KEPT);
	PAWL_HOST_OK(api->session_use_cache(host.session, caches[0], &report));
	ck_assert_int_eq(report.verdict, PAWL_CACHE_REBOUND);
	ck_assert_str_eq(report.reason, "none");
	ck_assert_str_eq(report.field, "none");
	for (int i = 0; i < 3; i++)
		api->cache_release(caches[i]);
}
END_TEST

/* A cache of another geometry is named by its first field, and the session goes on with its own. */
START_TEST(stale_caches_are_refused_by_field)
{
	static const struct {
		int64_t capacity;
		enum pawl_dtype dtype;
		const char *field, *counter;
		uint64_t held, asked;
	} cases[] = {
		{128, PAWL_DTYPE_F16, "max_seq_len", "cache.stale.max_seq_len", 64, 128},
		{64, PAWL_DTYPE_F32, "cache_dtype", "cache.stale.cache_dtype", PAWL_DTYPE_F16,
			PAWL_DTYPE_F32},
	};
	struct pawl_host_cache *cache = make_cache(&host);

	feed(&host, cache, 1, 5);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pawl_cache_report report = {.struct_size = sizeof(report)};
		struct pawl_graph_request request = request_of(1, cases[i].capacity);
		struct pawl_test_host larger;
		struct pawl_host_cache *other;

		request.kv_dtype = cases[i].dtype;
		pawl_test_host_init_like(&larger, &host, &request);
		other = make_cache(&larger);
		pawl_test_host_refused(api->session_use_cache(host.session, other, &report),
			PAWL_CODE_STALE, cases[i].field);
		ck_assert_int_eq(report.verdict, PAWL_CACHE_STALE);
		ck_assert_str_eq(report.field, cases[i].field);
		ck_assert_uint_eq(report.held, cases[i].held);
		ck_assert_uint_eq(report.asked, cases[i].asked);
		ck_assert_uint_eq(pawl_test_host_counter(context, cases[i].counter), 1);
		api->cache_release(other);
		pawl_test_host_release(&larger);
	}
	expect(feed(&host, cache, 1, 6), 1, 6);
	api->cache_release(cache);
}
END_TEST

/* The host's memory: Pawl asks for it, works in it and tells when it is done. */
struct lender {
	void *bytes[8];
	size_t n_bytes[8];
	char names[8][32];
	int n, n_returned, n_until_none; /* what is asked for after that is refused */
	int misaligned, overlapping;
};

static void *
lend(void *user, const char *name, size_t n_bytes)
{
	struct lender *lender = user;
	char *bytes;

	if (lender->n == lender->n_until_none)
		return NULL;
	ck_assert_int_lt(lender->n, 8);
	bytes = aligned_alloc(64, n_bytes + 64);
	ck_assert_ptr_nonnull(bytes);
	memset(bytes, 0xff, n_bytes + 64);
	strcpy(lender->names[lender->n], name);
	lender->n_bytes[lender->n] = n_bytes;
	lender->bytes[lender->n] = bytes;
	if (lender->overlapping && lender->n)
		return lender->bytes[lender->n++ - 1];
	lender->n++;
	return bytes + (lender->misaligned ? 4 : 0);
}

static void
returned(void *user, void *bytes)
{
	struct lender *lender = user;

	(void)bytes;
	lender->n_returned++;
}

static void
free_lent(struct lender *lender)
{
	for (int i = 0; i < lender->n; i++)
		free(lender->bytes[i]);
}

START_TEST(caches_lie_in_memory_of_the_host)
{
	struct lender lender = {.n_until_none = -1};
	const struct pawl_cache_options options = {sizeof(options), lend, returned, &lender};
	struct pawl_host_cache *cache;
	void *bytes;
	size_t n;

	PAWL_HOST_OK(api->cache_create(host.plan, &options, &cache));
	ck_assert_int_eq(lender.n, 4);
	ck_assert_str_eq(lender.names[0], "cache.k.0");
	ck_assert_str_eq(lender.names[3], "cache.v.1");
	expect(feed(&host, cache, 1, 20), 1, 20);
	/* What the last run wrote is there. */
	PAWL_HOST_OK(api->cache_memory(cache, "cache.v.1", &bytes, &n));
	ck_assert_ptr_eq(bytes, lender.bytes[3]);
	ck_assert_uint_eq(n, lender.n_bytes[3]);
	ck_assert_int_ne(((const unsigned char *)bytes)[0], 0xff);
	pawl_test_host_refused(api->cache_memory(cache, "cache.v.2", &bytes, &n),
		PAWL_CODE_INVALID_ARGUMENT, "cache.v.2");
	ck_assert_int_eq(lender.n_returned, 0);
	api->cache_release(cache); /* the session still has it */
	ck_assert_int_eq(lender.n_returned, 0);
	cache = make_cache(&host);
	PAWL_HOST_OK(api->session_use_cache(host.session, cache, NULL));
	ck_assert_int_eq(lender.n_returned, 4);
	api->cache_release(cache);
	free_lent(&lender);
}
END_TEST

START_TEST(memory_that_cannot_be_lent_is_returned)
{
	static const struct {
		struct lender lender;
		enum pawl_status_code code;
		const char *text;
	} cases[] = {
		{{.n_until_none = 2}, PAWL_CODE_OUT_OF_MEMORY, "cache.k.1"},
		{{.n_until_none = -1, .misaligned = 1}, PAWL_CODE_INVALID_ARGUMENT, "not aligned"},
		{{.n_until_none = -1, .overlapping = 1}, PAWL_CODE_INVALID_ARGUMENT,
			"shares memory with"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct lender lender = cases[i].lender;
		const struct pawl_cache_options options = {
			sizeof(options), lend, returned, &lender};
		struct pawl_host_cache *cache = NULL;

		pawl_test_host_refused(api->cache_create(host.plan, &options, &cache),
			cases[i].code, cases[i].text);
		ck_assert_ptr_null(cache);
		ck_assert_int_eq(lender.n_returned, lender.n);
		free_lent(&lender);
	}
}
END_TEST

/* The same memory without a cache: bound by name, lengths kept by the host. */
START_TEST(memory_is_bound_by_name)
{
	struct pawl_host_cache *lengths = make_cache(&host), *cache = make_cache(&host);
	struct pawl_binding binding = {.struct_size = sizeof(binding)};
	const float *logits = NULL;
	void *memory[4];
	int n = 0;

	for (int64_t i = 0; api->plan_binding(host.plan, i, &binding); i++) {
		if (binding.role != PAWL_BINDING_KV)
			continue;
		memory[n] = aligned_alloc(64, (size_t)binding.n_bytes);
		memset(memory[n], 0xff, (size_t)binding.n_bytes);
		PAWL_HOST_OK(
			api->session_bind(host.session, i, memory[n++], (size_t)binding.n_bytes));
	}
	ck_assert_int_eq(n, 4);
	for (int64_t i = 0; i < 10; i++) {
		const float *last = NULL;
		uint32_t token = pawl_test_token(3, i);

		pawl_test_host_refused(pawl_test_host_try(&host, lengths, &token, &last),
			PAWL_CODE_INVALID_ARGUMENT, "no cache");
		PAWL_HOST_OK(pawl_test_host_run(&host, i, 0, &token, &logits));
	}
	expect(logits, 3, 10);
	/* From there to a cache and back. */
	expect(feed(&host, cache, 4, 7), 4, 7);
	api->cache_release(lengths);
	api->cache_release(cache);
	api->session_release(host.session);
	PAWL_HOST_OK(api->session_create(host.plan, host.weights, &host.session));
	for (int i = 0; i < 4; i++)
		free(memory[i]);
}
END_TEST

START_TEST(caches_grow_and_plans_with_them)
{
	const struct pawl_graph_request request = request_of(1, 2 * CAPACITY);
	struct pawl_cache_report report = {.struct_size = sizeof(report)};
	struct lender lender = {.n_until_none = -1};
	const struct pawl_cache_options options = {sizeof(options), lend, returned, &lender};
	struct pawl_host_graph *graph = pawl_test_host_graph(context, host.source, &request);
	struct pawl_host_plan *larger;
	struct pawl_host_cache *cache;
	const float *logits = NULL;
	uint32_t token = 1;

	PAWL_HOST_OK(api->cache_create(host.plan, &options, &cache));
	feed(&host, cache, 1, CAPACITY);
	pawl_test_host_refused(
		pawl_test_host_run(&host, 0, 1, &token, &logits), PAWL_CODE_CAPACITY, "64");
	PAWL_HOST_OK(api->cache_reserve(cache, CAPACITY));
	ck_assert_int_eq(api->cache_capacity(cache), CAPACITY);
	PAWL_HOST_OK(api->cache_reserve(cache, CAPACITY + 50));
	ck_assert_int_eq(api->cache_capacity(cache), 2 * CAPACITY);
	ck_assert_int_eq(api->cache_len(cache), CAPACITY);
	pawl_test_host_refused(
		pawl_test_host_run(&host, 0, 1, &token, &logits), PAWL_CODE_STALE, "other memory");
	pawl_test_host_refused(api->session_use_cache(host.session, cache, &report),
		PAWL_CODE_STALE, "max_seq_len");
	api->session_release(host.session);
	ck_assert_int_eq(lender.n_returned, 4);
	PAWL_HOST_OK(api->plan_regrow(host.plan, graph, &larger));
	api->plan_release(host.plan);
	host.plan = larger;
	PAWL_HOST_OK(api->session_create(host.plan, host.weights, &host.session));
	expect(feed(&host, cache, 1, CAPACITY + 3), 1, CAPACITY + 3);
	ck_assert_uint_eq(pawl_test_host_counter(context, "plans.compiled"), 1);
	ck_assert_uint_eq(pawl_test_host_counter(context, "plans.regrown"), 1);
	pawl_test_host_refused(
		api->cache_reserve(cache, INT64_MAX / 2), PAWL_CODE_INVALID_ARGUMENT, "");
	pawl_test_host_refused(
		api->cache_reserve(cache, -1), PAWL_CODE_INVALID_ARGUMENT, "-1 positions");
	ck_assert_int_eq(api->cache_len(cache), CAPACITY + 3);
	api->graph_release(graph);
	api->cache_release(cache);
	free_lent(&lender);
}
END_TEST

START_TEST(forks_go_their_own_ways)
{
	struct pawl_host_cache *cache = make_cache(&host), *fork;
	const float *logits = NULL;
	uint32_t token = 1;

	feed(&host, cache, 1, 9);
	PAWL_HOST_OK(api->cache_fork(cache, &fork));
	ck_assert_int_eq(api->cache_len(fork), 9);
	pawl_test_host_refused(
		pawl_test_host_try(&host, cache, &token, &logits), PAWL_CODE_STALE, "other memory");
	PAWL_HOST_OK(api->session_use_cache(host.session, fork, NULL));
	for (int64_t i = 9; i < 14; i++) {
		token = pawl_test_token(2, i);
		pawl_test_host_step(&host, fork, &token);
	}
	expect(feed(&host, cache, 1, 15), 1, 15);
	api->cache_release(cache);
	ck_assert_int_eq(api->cache_len(fork), 14);
	PAWL_HOST_OK(api->cache_set_len(fork, 9, NULL));
	expect(feed(&host, fork, 1, 12), 1, 12);
	api->cache_release(fork);
}
END_TEST

START_TEST(lengths_go_back_and_forth)
{
	struct pawl_host_cache *cache = make_cache(&host);
	int64_t len = -1;

	feed(&host, cache, 1, 12);
	PAWL_HOST_OK(api->cache_set_len(cache, 5, &len));
	ck_assert_int_eq(len, 5);
	PAWL_HOST_OK(api->cache_set_len(cache, 12, &len)); /* what was there still is */
	expect(feed(&host, cache, 1, 13), 1, 13);
	PAWL_HOST_OK(api->cache_set_len(cache, 3, NULL));
	expect(feed(&host, cache, 1, 8), 1, 8);
	len = -1;
	pawl_test_host_refused(
		api->cache_set_len(cache, CAPACITY + 1, &len), PAWL_CODE_CAPACITY, "64");
	pawl_test_host_refused(
		api->cache_set_len(cache, -1, &len), PAWL_CODE_INVALID_ARGUMENT, "-1");
	ck_assert_int_eq(len, -1);
	ck_assert_int_eq(api->cache_len(cache), 8);
	api->cache_release(cache);
}
END_TEST

/* A snapshot in memory. */
struct file {
	unsigned char bytes[1 << 17];
	size_t n, room; /* the sink refuses what is beyond */
};

static int
write_to(void *user, const void *bytes, size_t n)
{
	struct file *file = user;

	if (n > file->room - file->n)
		return 1;
	memcpy(file->bytes + file->n, bytes, n);
	file->n += n;
	return 0;
}

START_TEST(snapshots_are_taken_and_restored)
{
	enum { MODEL = 77, N = 11 };
	static struct file file = {.room = sizeof(file.bytes)}, small = {.room = 100};
	struct pawl_host_cache *cache = make_cache(&host), *other = make_cache(&host);
	uint32_t tokens[N], got[N] = {0};
	int64_t n = 0;

	for (int64_t i = 0; i < N; i++)
		tokens[i] = pawl_test_token(1, i);
	feed(&host, cache, 1, N);
	pawl_test_host_refused(api->cache_save(cache, MODEL, tokens, N, write_to, &small),
		PAWL_CODE_ENVIRONMENT, "the sink refused");
	pawl_test_host_refused(api->cache_save(cache, MODEL, tokens, N - 1, write_to, &file),
		PAWL_CODE_INVALID_ARGUMENT, "");
	PAWL_HOST_OK(api->cache_save(cache, MODEL, tokens, N, write_to, &file));
	feed(&host, other, 2, 4);
	pawl_test_host_refused(api->cache_restore(other, MODEL + 1, file.bytes, file.n, got, N, &n),
		PAWL_CODE_INVALID_ARGUMENT, "model");
	pawl_test_host_refused(api->cache_restore(other, MODEL, file.bytes, file.n - 1, got, N, &n),
		PAWL_CODE_INVALID_FILE, "");
	pawl_test_host_refused(api->cache_restore(other, MODEL, file.bytes, 40, got, N, &n),
		PAWL_CODE_INVALID_FILE, "ends early");
	file.bytes[file.n / 2] ^= 1;
	pawl_test_host_refused(api->cache_restore(other, MODEL, file.bytes, file.n, got, N, &n),
		PAWL_CODE_INVALID_FILE, "damaged");
	file.bytes[file.n / 2] ^= 1;
	ck_assert_int_eq(n, 0);
	ck_assert_uint_eq(got[1], 0);
	expect(feed(&host, other, 2, 5), 2, 5);
	PAWL_HOST_OK(api->cache_restore(other, MODEL, file.bytes, file.n, got, 2, &n));
	ck_assert_int_eq(n, N);
	ck_assert_mem_eq(got, tokens, 2 * sizeof(*got));
	ck_assert_uint_eq(got[2], 0);
	ck_assert_int_eq(api->cache_len(other), N);
	expect(feed(&host, other, 1, N + 4), 1, N + 4);
	api->cache_release(cache);
	api->cache_release(other);
}
END_TEST

START_TEST(memory_is_told_before)
{
	const struct pawl_graph_request request = request_of(CHUNK, CAPACITY);
	struct pawl_memory_needs one = {.struct_size = sizeof(one)}, both = one;
	struct pawl_host_plan *plans[2] = {host.plan};
	struct pawl_test_host chunks;

	pawl_test_host_init_like(&chunks, &host, &request);
	plans[1] = chunks.plan;
	PAWL_HOST_OK(api->plans_forecast(plans, 1, &one));
	PAWL_HOST_OK(api->plans_forecast(plans, 2, &both));
	ck_assert_int_eq(one.kv, 2 * 2 * CAPACITY * 32 * 2);
	ck_assert_int_eq(both.kv, one.kv);
	ck_assert_int_eq(both.weights, one.weights);
	ck_assert_int_gt(one.read, 0);
	ck_assert_int_gt(both.scratch, one.scratch);
	ck_assert_int_gt(one.scratch, 0);
	ck_assert_int_gt(one.data, 0);
	one.struct_size = 48;
	pawl_test_host_refused(
		api->plans_forecast(plans, 1, &one), PAWL_CODE_INVALID_ARGUMENT, "struct_size");
	pawl_test_host_release(&chunks);
}
END_TEST

Suite *
pawl_host_session_suite(void)
{
	Suite *suite = suite_create("host_session");
	TCase *tcase = tcase_create("host_session");

	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, tokens_are_those_of_a_decoder);
	tcase_add_test(tcase, prompts_go_in_chunks);
	tcase_add_test(tcase, caches_take_turns_on_one_session);
	tcase_add_test(tcase, stale_caches_are_refused_by_field);
	tcase_add_test(tcase, caches_lie_in_memory_of_the_host);
	tcase_add_test(tcase, memory_that_cannot_be_lent_is_returned);
	tcase_add_test(tcase, memory_is_bound_by_name);
	tcase_add_test(tcase, caches_grow_and_plans_with_them);
	tcase_add_test(tcase, forks_go_their_own_ways);
	tcase_add_test(tcase, lengths_go_back_and_forth);
	tcase_add_test(tcase, snapshots_are_taken_and_restored);
	tcase_add_test(tcase, memory_is_told_before);
	suite_add_tcase(suite, tcase);
	return suite;
}

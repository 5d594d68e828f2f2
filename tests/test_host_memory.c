/*
 * Memory through the ABI: caches in memory that the host lends, their growth, state that is bound
 * by name, and how much a plan takes, told before.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/host_session_fixture.h"
#include "tests/suites.h"

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
pawl_host_memory_suite(void)
{
	Suite *suite = suite_create("host_memory");
	TCase *tcase = tcase_create("host_memory");

	tcase_add_checked_fixture(tcase, begin_session, end_session);
	tcase_add_test(tcase, caches_lie_in_memory_of_the_host);
	tcase_add_test(tcase, memory_that_cannot_be_lent_is_returned);
	tcase_add_test(tcase, memory_is_bound_by_name);
	tcase_add_test(tcase, caches_grow_and_plans_with_them);
	tcase_add_test(tcase, memory_is_told_before);
	suite_add_tcase(suite, tcase);
	return suite;
}

/*
 * Sessions and caches through the ABI: everything that the runtime does with them, compared bit for
 * bit with a decoder of the runtime on the same model.
 */
#include <string.h>

#include "tests/host_session_fixture.h"
#include "tests/suites.h"

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

Suite *
pawl_host_session_suite(void)
{
	Suite *suite = suite_create("host_session");
	TCase *tcase = tcase_create("host_session");

	tcase_add_checked_fixture(tcase, begin_session, end_session);
	tcase_add_test(tcase, tokens_are_those_of_a_decoder);
	tcase_add_test(tcase, prompts_go_in_chunks);
	tcase_add_test(tcase, caches_take_turns_on_one_session);
	tcase_add_test(tcase, stale_caches_are_refused_by_field);
	tcase_add_test(tcase, forks_go_their_own_ways);
	tcase_add_test(tcase, lengths_go_back_and_forth);
	tcase_add_test(tcase, snapshots_are_taken_and_restored);
	suite_add_tcase(suite, tcase);
	return suite;
}

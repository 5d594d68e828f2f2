/*
 * Structs of older and newer hosts: every size that matters for each struct that crosses the
 * border, up against memory that may not be touched.
 */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "plugins/host_struct.h"
#include "tests/driven_fixture.h"
#include "tests/suites.h"

enum { MOST = 1 << 16, ROOM = 2 * MOST, BEYOND = 0xee };

static struct pawl_host_cache *cache;
static struct pawl_host_pool *pool, *scheduled;
static struct pawl_host_scheduler *scheduler;
static struct pawl_host_speculation *speculation;
static struct pawl_host_decoder *decoder;
static uint64_t request;
static uint32_t token;
static unsigned char *guard; /* the first byte that may not be touched */

static const struct pawl_services services = {0};
static const struct pawl_context_options context_options = {.target = "ref", .n_threads = 1};
static const struct pawl_weight_options weight_options = {0};
static const struct pawl_cache_options cache_options = {0};
static struct pawl_model_options model_options;
static const struct pawl_decoder_settings decoder_settings = {.capacity = 64};
static const struct pawl_pool_settings pool_settings = {
	.n_blocks = 4, .block_size = 16, .max_blocks = 4};
static const struct pawl_scheduler_settings scheduler_settings = {.max_batch = 1};
static const struct pawl_request_settings request_settings = {
	.prompt = &token, .n_prompt = 1, .max_new = 1};
static const struct pawl_speculation_settings speculation_settings = {.n_guess = 1};

/* The last `n` bytes before the guard, at least the size itself: value, and more where it ends. */
static void *
place(const void *value, size_t n_value, size_t n)
{
	size_t n_there = n > MOST ? sizeof(n) : n < sizeof(n) ? sizeof(n) : n;
	unsigned char *at = guard - n_there;

	memset(at, BEYOND, n_there);
	memcpy(at, value, n_there < n_value ? n_there : n_value);
	memcpy(at, &n, sizeof(n));
	return at;
}

static void *
given(const void *value, size_t n_value)
{
	return place(value, n_value, n_value);
}

static void
begin(void)
{
	unsigned char *room = mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert(room != MAP_FAILED);
	guard = room + ROOM;
	ck_assert_int_eq(mprotect(guard, 4096, PROT_NONE), 0);
	begin_driven();
	model_options = pawl_driven_options(&d);
	PAWL_HOST_OK(api->cache_create(d.lender.plan, NULL, &cache));
	PAWL_HOST_OK(api->decoder_create(
		d.model, given(&decoder_settings, sizeof(decoder_settings)), &decoder));
	PAWL_HOST_OK(api->pool_create(d.model, given(&pool_settings, sizeof(pool_settings)), &pool));
	PAWL_HOST_OK(api->pool_create(
		d.model, given(&pool_settings, sizeof(pool_settings)), &scheduled));
	PAWL_HOST_OK(api->scheduler_create(scheduled,
		given(&scheduler_settings, sizeof(scheduler_settings)), &scheduler));
	PAWL_HOST_OK(api->scheduler_submit(
		scheduler, given(&request_settings, sizeof(request_settings)), &request));
	PAWL_HOST_OK(api->speculation_create(decoder,
		given(&speculation_settings, sizeof(speculation_settings)), &speculation));
}

static void
end(void)
{
	api->speculation_release(speculation);
	api->scheduler_release(scheduler);
	api->pool_release(scheduled);
	api->pool_release(pool);
	api->decoder_release(decoder);
	api->cache_release(cache);
	end_driven();
	munmap(guard - ROOM, ROOM + 4096);
}

static int
is_wrong_size(size_t n, size_t first)
{
	return n < first || n % 8 || n > MOST;
}

/* Sizes from 0 up, also those that end inside of a member; then large and absurd ones; 0 ends. */
static size_t
next_size(size_t n)
{
	static const size_t more[] = {
		256, 257, MOST - 8, MOST, MOST + 8, (size_t)INT64_MAX, SIZE_MAX - 7, SIZE_MAX};

	if (n < 160)
		return n + 1;
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		if (n < more[i])
			return more[i];
	return 0;
}

#define TAKES(name, release, kind, ...)                                                            \
	static struct pawl_host_status *take_##name(const void *at)                                \
	{                                                                                          \
		struct kind *made = NULL;                                                          \
		struct pawl_host_status *status = __VA_ARGS__;                                     \
		ck_assert(!status == (made != NULL));                                              \
		api->release(made);                                                                \
		return status;                                                                     \
	}
TAKES(services, context_release, pawl_host_context,
	api->context_create(at, &(struct pawl_context_options){sizeof(context_options), "ref", 1, 16},
		&made))
TAKES(context, context_release, pawl_host_context, api->context_create(NULL, at, &made))
TAKES(weights, weights_release, pawl_host_weights, api->weights_create(d.context, at, &made))
TAKES(cache, cache_release, pawl_host_cache, api->cache_create(d.lender.plan, at, &made))
TAKES(model, model_release, pawl_host_model,
	api->model_create(d.context, d.lender.weights, at, &made))
TAKES(decoder, decoder_release, pawl_host_decoder, api->decoder_create(d.model, at, &made))
TAKES(pool, pool_release, pawl_host_pool, api->pool_create(d.model, at, &made))
TAKES(scheduler, scheduler_release, pawl_host_scheduler, api->scheduler_create(pool, at, &made))
TAKES(speculation, speculation_release, pawl_host_speculation,
	api->speculation_create(decoder, at, &made))

static struct pawl_host_status *
take_request(const void *at)
{
	uint64_t id;
	struct pawl_host_status *status = api->scheduler_submit(scheduler, at, &id);

	if (!status)
		PAWL_HOST_OK(api->scheduler_cancel(scheduler, id));
	return status;
}

START_TEST(structs_of_any_size_come_in)
{
	const struct {
		const char *name;
		struct pawl_host_status *(*take)(const void *at);
		const void *value;
		size_t n;
	} all[] = {{"services", take_services, &services, sizeof(services)},
		{"context", take_context, &context_options, sizeof(context_options)},
		{"weights", take_weights, &weight_options, sizeof(weight_options)},
		{"cache", take_cache, &cache_options, sizeof(cache_options)},
		{"model", take_model, &model_options, sizeof(model_options)},
		{"decoder", take_decoder, &decoder_settings, sizeof(decoder_settings)},
		{"pool", take_pool, &pool_settings, sizeof(pool_settings)},
		{"scheduler", take_scheduler, &scheduler_settings, sizeof(scheduler_settings)},
		{"request", take_request, &request_settings, sizeof(request_settings)},
		{"speculation", take_speculation, &speculation_settings,
			sizeof(speculation_settings)}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		int n_taken = 0;
		size_t n = 0;

		do {
			struct pawl_host_status *status =
				all[i].take(place(all[i].value, all[i].n, n));

			if (is_wrong_size(n, all[i].n)) {
				pawl_test_host_refused(
					status, PAWL_CODE_INVALID_ARGUMENT, "struct_size");
			} else {
				pawl_test_host_ok(status, all[i].name);
				n_taken++;
			}
		} while ((n = next_size(n)));
		ck_assert_int_ge(n_taken, 4);
	}
}
END_TEST

/* A status that says that the size is wrong, as an answer. */
static int
is_given(struct pawl_host_status *status)
{
	if (status)
		pawl_test_host_refused(status, PAWL_CODE_INVALID_ARGUMENT, "struct_size");
	return !status;
}

static int
give_counter(void *at)
{
	return api->context_counter(d.context, 1, at);
}

static int
give_scheduler_counter(void *at)
{
	return api->scheduler_counter(scheduler, 1, at);
}

static int
give_speculation_counter(void *at)
{
	return api->speculation_counter(speculation, 1, at);
}

static int
give_binding(void *at)
{
	return api->plan_binding(d.lender.plan, 0, at);
}

static int
give_needs(void *at)
{
	return is_given(api->plans_forecast(&d.lender.plan, 1, at));
}

static int
give_cache_report(void *at)
{
	return is_given(api->session_use_cache(d.lender.session, cache, at));
}

static int
give_request_report(void *at)
{
	return is_given(api->scheduler_report(scheduler, request, at));
}

/* Nothing but what is known is written, then 0; nothing at all where the size is wrong. */
START_TEST(structs_of_any_size_go_out)
{
	const struct {
		int (*give)(void *at);
		size_t n;
	} all[] = {{give_counter, sizeof(struct pawl_counter)},
		{give_scheduler_counter, sizeof(struct pawl_counter)},
		{give_speculation_counter, sizeof(struct pawl_counter)},
		{give_binding, sizeof(struct pawl_binding)},
		{give_needs, sizeof(struct pawl_memory_needs)},
		{give_cache_report, sizeof(struct pawl_cache_report)},
		{give_request_report, sizeof(struct pawl_request_report)}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		size_t n = 0;

		do {
			unsigned char *at = place("", 0, n);
			int n_unlike = 0, ok = all[i].give(at);

			ck_assert_int_eq(ok, !is_wrong_size(n, all[i].n));
			ck_assert_mem_eq(at, &n, sizeof(n));
			for (unsigned char *byte = at + sizeof(n); byte < guard; byte++) {
				size_t offset = (size_t)(byte - at);

				n_unlike += *byte != BEYOND;
				if (ok && offset >= all[i].n)
					ck_assert_int_eq(*byte, 0);
			}
			ck_assert(ok ? n_unlike : !n_unlike);
		} while ((n = next_size(n)));
	}
}
END_TEST

/*
 * A struct that grew from two members to four, and hosts from before, between and after: each side
 * keeps to what both know.
 */
START_TEST(structs_that_grew_come_and_go)
{
	enum { FIRST = 16, KNOWN = 32 };
	static const uint64_t theirs[6] = {0, 1, 2, 3, 4, 5}, ours[4] = {99, 11, 12, 13};

	for (size_t n = FIRST; n <= sizeof(theirs); n += 8) {
		size_t n_both = n < KNOWN ? n / 8 : KNOWN / 8;
		uint64_t known[4] = {7, 7, 7, 7}, *at = place(theirs, sizeof(theirs), n);

		ck_assert(pawl_host_read(known, KNOWN, FIRST, at));
		for (size_t i = 1; i < KNOWN / 8; i++)
			ck_assert_uint_eq(known[i], i < n_both ? theirs[i] : 0);
		ck_assert(pawl_host_write(at, FIRST, ours, KNOWN));
		ck_assert_uint_eq(at[0], n);
		for (size_t i = 1; i < n / 8; i++)
			ck_assert_uint_eq(at[i], i < n_both ? ours[i] : 0);
	}
}
END_TEST

Suite *
pawl_host_sizes_suite(void)
{
	Suite *suite = suite_create("host_sizes");
	TCase *tcase = tcase_create("host_sizes");

	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, structs_of_any_size_come_in);
	tcase_add_test(tcase, structs_of_any_size_go_out);
	tcase_add_test(tcase, structs_that_grew_come_and_go);
	suite_add_tcase(suite, tcase);
	return suite;
}

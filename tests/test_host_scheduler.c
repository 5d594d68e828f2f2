/* Requests over a pool through the ABI: each gives what a decoder gives for it alone. */
#include <stdlib.h>
#include <string.h>

#include "ir/eval.h"
#include "tests/driven_fixture.h"
#include "tests/suites.h"

enum { N_VOCAB = PAWL_DRIVEN_VOCAB, N_REQUESTS = 4, MOST_NEW = 30, N_BLOCKS = 5 };

/* A request and what follows its prompt when a decoder has it alone. */
struct wanted {
	unsigned seed; /* equal ones begin with equal tokens */
	int64_t n_prompt, n_new;
	uint64_t id;
	uint32_t tokens[MOST_NEW];
	float logits[MOST_NEW][N_VOCAB];
	int64_t n_seen;
};

static struct pawl_host_pool *pool;
static struct wanted wanted[N_REQUESTS];
static int n_events[PAWL_SCHEDULED_ENDED + 1];

static void
decode_alone(struct wanted *w)
{
	const struct pawl_decoder_settings settings = {
		.struct_size = sizeof(settings), .capacity = PAWL_DRIVEN_CAPACITY};
	struct pawl_host_decoder *decoder;
	const float *logits;

	PAWL_HOST_OK(api->decoder_create(d.model, &settings, &decoder));
	PAWL_HOST_OK(api->decoder_append(decoder, pawl_driven_tokens(w->seed, 0, w->n_prompt),
		w->n_prompt, &logits));
	for (int64_t i = 0; i < w->n_new; i++) {
		memcpy(w->logits[i], logits, sizeof(w->logits[i]));
		w->tokens[i] = pawl_driven_likeliest(logits);
		PAWL_HOST_OK(api->decoder_append(decoder, &w->tokens[i], 1, &logits));
	}
	api->decoder_release(decoder);
}

static void
begin(void)
{
	static const struct wanted all[N_REQUESTS] = {{.seed = 1, .n_prompt = 20, .n_new = 20},
		{.seed = 2, .n_prompt = 5, .n_new = 30}, {.seed = 1, .n_prompt = 18, .n_new = 9},
		{.seed = 3, .n_prompt = 30, .n_new = 17}};
	const struct pawl_pool_settings settings = {.struct_size = sizeof(settings),
		.n_blocks = N_BLOCKS,
		.block_size = 16,
		.max_blocks = 4,
		.prefill_chunk = 8};

	begin_driven();
	memcpy(wanted, all, sizeof(wanted));
	memset(n_events, 0, sizeof(n_events));
	for (int i = 0; i < N_REQUESTS; i++)
		decode_alone(&wanted[i]);
	PAWL_HOST_OK(api->pool_create(d.model, &settings, &pool));
}

static void
end(void)
{
	api->pool_release(pool);
	end_driven();
}

static void
on_event(void *user, const struct pawl_scheduled_event *event)
{
	ck_assert_ptr_eq(user, wanted);
	ck_assert_uint_eq(event->struct_size, sizeof(*event));
	n_events[event->kind]++;
	for (struct wanted *w = wanted; w < wanted + N_REQUESTS; w++) {
		if (w->id != event->request || event->kind != PAWL_SCHEDULED_TOKEN)
			continue;
		ck_assert_uint_eq(event->token, w->tokens[w->n_seen]);
		for (int i = 0; i < N_VOCAB; i++)
			ck_assert(pawl_eval_same(event->logits[i], w->logits[w->n_seen][i]));
		w->n_seen++;
	}
}

static struct pawl_host_scheduler *
make(int64_t max_batch, int64_t optimistic, int64_t max_prefixes)
{
	const struct pawl_scheduler_settings settings = {.struct_size = sizeof(settings),
		.max_batch = max_batch,
		.optimistic = optimistic,
		.max_prefixes = max_prefixes,
		.event = on_event,
		.user = wanted};
	struct pawl_host_scheduler *scheduler;

	PAWL_HOST_OK(api->scheduler_create(pool, &settings, &scheduler));
	return scheduler;
}

static struct pawl_request_settings
request_of(const struct wanted *w)
{
	return (struct pawl_request_settings){.struct_size = sizeof(struct pawl_request_settings),
		.prompt = pawl_driven_tokens(w->seed, 0, w->n_prompt),
		.n_prompt = w->n_prompt,
		.max_new = w->n_new,
		.priority = 1};
}

static uint64_t
counter(const struct pawl_host_scheduler *scheduler, const char *name)
{
	struct pawl_counter found = {.struct_size = sizeof(found)};

	for (int64_t i = 0; api->scheduler_counter(scheduler, i, &found); i++)
		if (!strcmp(found.name, name))
			return found.value;
	ck_abort_msg("no counter %s", name);
	return 0;
}

static struct pawl_request_report
report_of(const struct pawl_host_scheduler *scheduler, uint64_t request)
{
	struct pawl_request_report report = {.struct_size = sizeof(report)};

	PAWL_HOST_OK(api->scheduler_report(scheduler, request, &report));
	return report;
}

static void
run(struct pawl_host_scheduler *scheduler)
{
	for (int i = 0; api->scheduler_has_work(scheduler); i++) {
		ck_assert_int_lt(i, 500);
		PAWL_HOST_OK(api->scheduler_step(scheduler));
	}
}

/* The prompt of a request that ran is there for the next that begins so. */
static void
share_prefix(struct pawl_host_scheduler *scheduler)
{
	for (int i = 0; i <= 2; i += 2) {
		struct pawl_request_settings request = request_of(&wanted[i]);

		PAWL_HOST_OK(api->scheduler_submit(scheduler, &request, &wanted[i].id));
		wanted[i].n_seen = 0;
		run(scheduler);
		ck_assert_int_eq(wanted[i].n_seen, wanted[i].n_new);
	}
	ck_assert_int_eq(report_of(scheduler, wanted[2].id).n_shared, 16);
}

/* More than the pool has room for, so that some are evicted, and beginnings that are shared. */
START_TEST(requests_give_what_they_give_alone)
{
	for (int64_t batch = 1; batch <= 8; batch *= 2) {
		struct pawl_host_scheduler *scheduler = make(batch, 1, 2);

		for (int i = 0; i < N_REQUESTS; i++) {
			struct pawl_request_settings request = request_of(&wanted[i]);

			request.priority = i % 3;
			PAWL_HOST_OK(api->scheduler_submit(scheduler, &request, &wanted[i].id));
			wanted[i].n_seen = 0;
		}
		run(scheduler);
		for (int i = 0; i < N_REQUESTS; i++) {
			struct pawl_request_report report = report_of(scheduler, wanted[i].id);

			ck_assert_int_eq(report.phase, PAWL_SCHEDULED_FINISHED);
			ck_assert_int_eq(report.finish, PAWL_SCHEDULED_LENGTH);
			ck_assert_int_eq(report.n_prompt, wanted[i].n_prompt);
			ck_assert_int_eq(report.n_new, wanted[i].n_new);
			ck_assert_mem_eq(report.tokens, wanted[i].tokens,
				(size_t)report.n_new * sizeof(uint32_t));
			ck_assert_int_eq(wanted[i].n_seen, wanted[i].n_new);
			ck_assert_ptr_null(report.error);
			ck_assert_int_gt(report.finish_step, report.admit_step);
		}
		ck_assert_uint_eq(counter(scheduler, "finished.length"), N_REQUESTS);
		share_prefix(scheduler);
		for (uint64_t id; (id = api->scheduler_finished(scheduler));)
			PAWL_HOST_OK(api->scheduler_forget(scheduler, id));
		ck_assert_uint_eq(counter(scheduler, "requests.finished"), 0);
		PAWL_HOST_OK(api->scheduler_drop_prefixes(scheduler));
		ck_assert_uint_eq(counter(scheduler, "blocks.free"), N_BLOCKS);
		api->scheduler_release(scheduler);
		ck_assert_int_eq(api->pool_free_blocks(pool), N_BLOCKS);
	}
	ck_assert_int_eq(n_events[PAWL_SCHEDULED_ENDED], 4 * (N_REQUESTS + 2));
	ck_assert_int_gt(n_events[PAWL_SCHEDULED_SUSPENDED], 0);
}
END_TEST

static int
sample(void *user, const float *logits, uint32_t *token)
{
	int *n = user;

	if (!*n)
		return 1;
	*token = --*n == 1 ? N_VOCAB : pawl_driven_likeliest(logits);
	return 0;
}

START_TEST(requests_end_in_each_way)
{
	struct pawl_host_scheduler *scheduler = make(4, 0, 0);
	struct pawl_request_settings request = request_of(&wanted[0]);
	uint64_t ended, cancelled, failed, wrong;
	int none = 0, some = 4;

	/* The fourth token ends it, unless it is among the first three. */
	request.eos = &wanted[0].tokens[3];
	request.n_eos = 1;
	PAWL_HOST_OK(api->scheduler_submit(scheduler, &request, &ended));
	request = request_of(&wanted[1]);
	PAWL_HOST_OK(api->scheduler_submit(scheduler, &request, &cancelled));
	request.sample = sample;
	request.user = &none;
	PAWL_HOST_OK(api->scheduler_submit(scheduler, &request, &failed));
	request.user = &some;
	PAWL_HOST_OK(api->scheduler_submit(scheduler, &request, &wrong));
	PAWL_HOST_OK(api->scheduler_cancel(scheduler, cancelled));
	pawl_test_host_refused(api->scheduler_cancel(scheduler, cancelled),
		PAWL_CODE_INVALID_ARGUMENT, "is finished");
	run(scheduler);
	ck_assert_int_eq(report_of(scheduler, ended).finish, PAWL_SCHEDULED_EOS);
	ck_assert_int_le(report_of(scheduler, ended).n_new, 3);
	ck_assert_int_eq(report_of(scheduler, cancelled).finish, PAWL_SCHEDULED_CANCELLED);
	ck_assert_int_eq(report_of(scheduler, failed).finish, PAWL_SCHEDULED_ERROR);
	ck_assert_str_eq(report_of(scheduler, failed).error, "the host chose no token");
	ck_assert_int_eq(report_of(scheduler, wrong).finish, PAWL_SCHEDULED_ERROR);
	ck_assert_ptr_nonnull(strstr(report_of(scheduler, wrong).error, "token 40"));
	ck_assert_int_eq(report_of(scheduler, wrong).n_new, 2);
	/* What the sampler of a request took is given back with it, or with the scheduler. */
	PAWL_HOST_OK(api->scheduler_forget(scheduler, failed));
	ck_assert_uint_eq(counter(scheduler, "finished.error"), 2);
	ck_assert_uint_eq(counter(scheduler, "requests.finished"), 3);
	api->scheduler_release(scheduler);
}
END_TEST

START_TEST(requests_are_kept_out_and_let_in)
{
	struct pawl_host_scheduler *scheduler = make(4, 0, 0);
	struct pawl_request_settings request = request_of(&wanted[1]);
	uint64_t id;

	PAWL_HOST_OK(api->scheduler_submit(scheduler, &request, &id));
	wanted[1].id = id;
	for (int i = 0; i < 4; i++)
		PAWL_HOST_OK(api->scheduler_step(scheduler));
	ck_assert_int_eq(report_of(scheduler, id).phase, PAWL_SCHEDULED_DECODING);
	PAWL_HOST_OK(api->scheduler_evict(scheduler, id));
	ck_assert_int_eq(report_of(scheduler, id).phase, PAWL_SCHEDULED_EVICTED);
	ck_assert_uint_eq(counter(scheduler, "blocks.free"), N_BLOCKS);
	ck_assert_int_eq(api->scheduler_has_work(scheduler), 0);
	PAWL_HOST_OK(api->scheduler_restore(scheduler, id));
	run(scheduler);
	ck_assert_int_eq(report_of(scheduler, id).n_restores, 1);
	ck_assert_int_eq(wanted[1].n_seen, wanted[1].n_new);
	api->scheduler_release(scheduler);
}
END_TEST

START_TEST(a_pool_has_one_master)
{
	struct pawl_scheduler_settings settings = {.struct_size = sizeof(settings), .max_batch = 4};
	struct pawl_host_scheduler *scheduler, *other = NULL;
	struct pawl_request_settings request = request_of(&wanted[0]);
	uint64_t sequence, id;
	const float *logits;

	PAWL_HOST_OK(api->pool_open(pool, &sequence));
	PAWL_HOST_OK(api->pool_append(pool, sequence, pawl_driven_tokens(1, 0, 3), 3, NULL));
	pawl_test_host_refused(api->scheduler_create(pool, &settings, &other),
		PAWL_CODE_INVALID_ARGUMENT, "1 of 5 blocks of the pool are in use");
	PAWL_HOST_OK(api->pool_set_len(pool, sequence, 0));
	scheduler = make(4, 0, 0);
	pawl_test_host_refused(api->scheduler_create(pool, &settings, &other),
		PAWL_CODE_INVALID_ARGUMENT, "a scheduler has the pool");
	ck_assert_ptr_null(other);
	pawl_test_host_refused(
		api->pool_append(pool, sequence, pawl_driven_tokens(1, 0, 3), 3, NULL),
		PAWL_CODE_INVALID_ARGUMENT, "a scheduler has the pool");
	pawl_test_host_refused(
		api->pool_step(pool, &sequence, pawl_driven_tokens(1, 0, 1), 1, &logits),
		PAWL_CODE_INVALID_ARGUMENT, "a scheduler has the pool");
	pawl_test_host_refused(api->pool_close(pool, sequence), PAWL_CODE_INVALID_ARGUMENT,
		"a scheduler has the pool");
	ck_assert_int_eq(api->pool_len(pool, sequence), 0);
	/* In the middle of a request: its blocks are free, and the pool is the host's again. */
	PAWL_HOST_OK(api->scheduler_submit(scheduler, &request, &id));
	PAWL_HOST_OK(api->scheduler_step(scheduler));
	ck_assert_int_lt(api->pool_free_blocks(pool), N_BLOCKS);
	api->scheduler_release(scheduler);
	ck_assert_int_eq(api->pool_free_blocks(pool), N_BLOCKS);
	PAWL_HOST_OK(api->pool_append(pool, sequence, pawl_driven_tokens(1, 0, 3), 3, &logits));
	pawl_driven_expect(&d, logits, 1, 3);
	PAWL_HOST_OK(api->pool_close(pool, sequence));
	/* The pool stays as long as its scheduler. */
	scheduler = make(4, 0, 0);
	api->pool_release(pool);
	pool = NULL;
	PAWL_HOST_OK(api->scheduler_submit(scheduler, &request, &id));
	run(scheduler);
	ck_assert_mem_eq(report_of(scheduler, id).tokens, wanted[0].tokens,
		(size_t)wanted[0].n_new * sizeof(uint32_t));
	api->scheduler_release(scheduler);
}
END_TEST

START_TEST(settings_out_of_range_are_refused)
{
	struct pawl_scheduler_settings settings = {.struct_size = sizeof(settings), .max_batch = 3};
	struct pawl_host_scheduler *scheduler = NULL;
	struct pawl_request_settings cases[8];
	static const char *const texts[8] = {"struct_size", "prompt or eos is NULL", "is empty",
		"max_new is 0", "priority is 4", "priority is -1", "token 0 of eos is 40",
		"prompt or eos is NULL"};
	uint32_t unknown = N_VOCAB;
	uint64_t id = 0;

	pawl_test_host_invalid(api->scheduler_create(pool, &settings, &scheduler),
		"max_batch is 3");
	settings.max_batch = 8;
	settings.max_prefixes = -1;
	pawl_test_host_invalid(api->scheduler_create(pool, &settings, &scheduler), "max_prefixes");
	settings.struct_size = 40;
	pawl_test_host_invalid(api->scheduler_create(pool, &settings, &scheduler), "struct_size");
	ck_assert_ptr_null(scheduler);
	scheduler = make(8, 1, 0);
	for (int i = 0; i < 8; i++)
		cases[i] = request_of(&wanted[0]);
	cases[0].struct_size = 72;
	cases[1].prompt = NULL;
	cases[2].n_prompt = 0;
	cases[3].max_new = 0;
	cases[4].priority = 4;
	cases[5].priority = -1;
	cases[6].eos = &unknown;
	cases[6].n_eos = 1;
	cases[7].n_eos = 1;
	for (int i = 0; i < 8; i++)
		pawl_test_host_invalid(api->scheduler_submit(scheduler, &cases[i], &id), texts[i]);
	cases[0] = request_of(&wanted[0]);
	cases[0].max_new = 64 - 20 + 2;
	pawl_test_host_refused(api->scheduler_submit(scheduler, &cases[0], &id), PAWL_CODE_CAPACITY,
		"a prompt of 20 and 46 new tokens");
	ck_assert_uint_eq(id, 0);
	ck_assert_int_eq(api->scheduler_has_work(scheduler), 0);
	api->scheduler_release(scheduler);
}
END_TEST

START_TEST(wrong_handles_and_requests_are_refused)
{
	struct pawl_request_report report = {.struct_size = sizeof(report)};
	struct pawl_counter found = {.struct_size = sizeof(found)};
	struct pawl_host_scheduler *scheduler = make(8, 1, 0);
	struct pawl_request_settings request = request_of(&wanted[0]);
	uint64_t id = 0;

	for (int i = 0; i < 2; i++) {
		void *no = i ? (void *)pool : NULL;

		pawl_test_host_invalid(api->scheduler_submit(no, &request, &id), "no scheduler");
		pawl_test_host_invalid(api->scheduler_cancel(no, 1), "no scheduler");
		pawl_test_host_invalid(api->scheduler_evict(no, 1), "no scheduler");
		pawl_test_host_invalid(api->scheduler_restore(no, 1), "no scheduler");
		pawl_test_host_invalid(api->scheduler_step(no), "no scheduler");
		pawl_test_host_invalid(api->scheduler_report(no, 1, &report), "no scheduler");
		pawl_test_host_invalid(api->scheduler_forget(no, 1), "no scheduler");
		pawl_test_host_invalid(api->scheduler_drop_prefixes(no), "no scheduler");
		ck_assert_int_eq(api->scheduler_has_work(no), 0);
		ck_assert_uint_eq(api->scheduler_finished(no), 0);
		ck_assert_int_eq(api->scheduler_counter(no, 0, &found), 0);
		api->scheduler_release(no);
	}
	pawl_test_host_invalid(api->scheduler_submit(scheduler, NULL, &id), "NULL");
	pawl_test_host_invalid(api->scheduler_submit(scheduler, &request, NULL), "NULL");
	pawl_test_host_invalid(api->scheduler_report(scheduler, 1, NULL), "NULL");
	pawl_test_host_invalid(api->scheduler_cancel(scheduler, UINT64_MAX), "not known");
	pawl_test_host_invalid(api->scheduler_evict(scheduler, 0), "not known");
	pawl_test_host_invalid(api->scheduler_restore(scheduler, 0), "not known");
	pawl_test_host_invalid(api->scheduler_report(scheduler, 0, &report), "not known");
	pawl_test_host_invalid(api->scheduler_forget(scheduler, 0), "not known");
	PAWL_HOST_OK(api->scheduler_submit(scheduler, &request, &id));
	pawl_test_host_invalid(api->scheduler_forget(scheduler, id), "not finished");
	report.struct_size = sizeof(report) - 4;
	pawl_test_host_invalid(api->scheduler_report(scheduler, id, &report), "struct_size");
	ck_assert_int_eq(api->scheduler_counter(scheduler, -1, &found), 0);
	ck_assert_int_eq(api->scheduler_counter(scheduler, INT64_MAX, &found), 0);
	ck_assert_int_eq(api->scheduler_counter(scheduler, 0, NULL), 0);
	api->scheduler_release(scheduler);
}
END_TEST

START_TEST(a_step_that_fails_may_be_made_again)
{
	struct pawl_host_scheduler *scheduler = make(4, 1, 0);
	struct pawl_request_settings request = request_of(&wanted[1]);
	uint64_t id;

	PAWL_HOST_OK(api->scheduler_submit(scheduler, &request, &id));
	d.fails = 1;
	pawl_test_host_refused(api->scheduler_step(scheduler), PAWL_CODE_ENVIRONMENT, "no graph");
	ck_assert_int_eq(report_of(scheduler, id).n_new, 0);
	d.fails = 0;
	run(scheduler);
	ck_assert_mem_eq(report_of(scheduler, id).tokens, wanted[1].tokens,
		(size_t)wanted[1].n_new * sizeof(uint32_t));
	api->scheduler_release(scheduler);
}
END_TEST

Suite *
pawl_host_scheduler_suite(void)
{
	Suite *suite = suite_create("host_scheduler");
	TCase *tcase = tcase_create("host_scheduler");

	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, requests_give_what_they_give_alone);
	tcase_add_test(tcase, requests_end_in_each_way);
	tcase_add_test(tcase, requests_are_kept_out_and_let_in);
	tcase_add_test(tcase, a_pool_has_one_master);
	tcase_add_test(tcase, settings_out_of_range_are_refused);
	tcase_add_test(tcase, wrong_handles_and_requests_are_refused);
	tcase_add_test(tcase, a_step_that_fails_may_be_made_again);
	suite_add_tcase(suite, tcase);
	return suite;
}

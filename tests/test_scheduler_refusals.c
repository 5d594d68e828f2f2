/* What a scheduler refuses: requests, settings and numbers of requests. */
#include "runtime/scheduler.h"

#include "runtime/memory.h"
#include "tests/scheduler_fixture.h"
#include "tests/suites.h"

#include <string.h>

static struct pawl_sched_test *const t = &pawl_sched_test;

START_TEST(requests_are_checked)
{
	static const uint32_t bad[] = {1, 2, PAWL_SCHED_VOCAB};
	const struct pawl_request_options good = pawl_sched_request(&t->wanted[0]);
	struct {
		int64_t n_prompt, max_new, n_eos;
		enum pawl_priority priority;
		const uint32_t *prompt;
		enum pawl_status status;
		const char *text;
	} cases[] = {
		{0, 1, 0, 1, good.prompt, PAWL_INVALID_ARGUMENT, "the prompt is empty"},
		{-1, 1, 0, 1, good.prompt, PAWL_INVALID_ARGUMENT, "the prompt is empty"},
		{5, 0, 0, 1, good.prompt, PAWL_INVALID_ARGUMENT, "max_new is 0"},
		{5, INT64_MIN, 0, 1, good.prompt, PAWL_INVALID_ARGUMENT, "max_new is -9"},
		{5, 1, -1, 1, good.prompt, PAWL_INVALID_ARGUMENT, "n_eos is -1"},
		{5, 1, 41, 1, good.prompt, PAWL_INVALID_ARGUMENT, "n_eos is 41, not in 0 .. 40"},
		{5, 1, 0, 4, good.prompt, PAWL_INVALID_ARGUMENT, "priority is 4"},
		{5, 1, 3, 1, good.prompt, PAWL_INVALID_ARGUMENT, "token 2 of eos is 40"},
		{3, 1, 0, 1, bad, PAWL_INVALID_ARGUMENT, "token 2 of the prompt is 40, the model"},
		{5, 61, 0, 1, good.prompt, PAWL_CAPACITY,
			"a prompt of 5 and 61 new tokens do not fit in the 64 positions"},
		{65, 1, 0, 1, good.prompt, PAWL_CAPACITY, "a prompt of 65 and 1 new"},
		{INT64_MAX, INT64_MAX, 0, 1, good.prompt, PAWL_CAPACITY, "do not fit"},
		{1, INT64_MAX, 0, 1, good.prompt, PAWL_CAPACITY, "do not fit"},
	};
	uint64_t id = 7;

	pawl_sched_make();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pawl_request_options request = good;

		request.prompt = cases[i].prompt;
		request.n_prompt = cases[i].n_prompt;
		request.max_new = cases[i].max_new;
		request.eos = bad;
		request.n_eos = cases[i].n_eos;
		request.priority = cases[i].priority;
		ck_assert_int_eq(pawl_scheduler_submit(t->scheduler, &request, &id, &t->err),
			cases[i].status);
		ck_assert_msg(strstr(t->err.text, cases[i].text), "'%s' lacks '%s'", t->err.text,
			cases[i].text);
	}
	ck_assert_uint_eq(id, 7);
	ck_assert(!pawl_scheduler_has_work(t->scheduler));
	ck_assert_uint_eq(pawl_scheduler_finished(t->scheduler), 0);
}
END_TEST

START_TEST(options_are_checked)
{
	static const struct pawl_scheduler_options cases[] = {
		{.max_batch = 0},
		{.max_batch = 3},
		{.max_batch = 16},
		{.max_batch = -8},
		{.max_batch = 1, .max_prefixes = -1},
		{.max_batch = 1, .max_prefixes = 13},
		{.max_batch = 1, .admission = (enum pawl_admission)2},
	};
	static const char *const texts[] = {"max_batch is 0", "max_batch is 3", "max_batch is 16",
		"max_batch is -8", "max_prefixes is -1", "max_prefixes is 13, not in 0 .. 12",
		"admission is 2"};
	struct pawl_scheduler *made = NULL;

	pawl_sched_make();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_int_eq(pawl_scheduler_new(t->decoder, &cases[i], &made, &t->err),
			PAWL_INVALID_ARGUMENT);
		ck_assert_msg(
			strstr(t->err.text, texts[i]), "'%s' lacks '%s'", t->err.text, texts[i]);
	}
	ck_assert_ptr_null(made);
	pawl_memory_fail_after(_i);
	ck_assert_int_eq(
		pawl_scheduler_new(t->decoder, &t->options, &made, &t->err), PAWL_OUT_OF_MEMORY);
	pawl_memory_fail_after(-1);
}
END_TEST

START_TEST(unknown_requests_are_refused)
{
	struct pawl_request_info info;
	uint64_t id;

	pawl_sched_make();
	id = pawl_sched_submit(5);
	ck_assert_int_eq(pawl_scheduler_reap(t->scheduler, id, &t->err), PAWL_INVALID_ARGUMENT);
	ck_assert_msg(strstr(t->err.text, "is not finished"), "%s", t->err.text);
	pawl_sched_complete_all();
	pawl_sched_must(pawl_scheduler_reap(t->scheduler, id, &t->err));
	ck_assert_int_eq(pawl_scheduler_reap(t->scheduler, id, &t->err), PAWL_INVALID_ARGUMENT);
	ck_assert_msg(strstr(t->err.text, "is not known"), "%s", t->err.text);
	ck_assert_int_eq(
		pawl_scheduler_info(t->scheduler, id, &info, &t->err), PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(pawl_scheduler_cancel(t->scheduler, 0, &t->err), PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(pawl_scheduler_evict(t->scheduler, id, &t->err), PAWL_INVALID_ARGUMENT);
}
END_TEST

Suite *
pawl_scheduler_refusals_suite(void)
{
	Suite *suite = suite_create("scheduler_refusals");
	TCase *tcase = tcase_create("scheduler_refusals");

	tcase_set_timeout(tcase, 60);
	tcase_add_unchecked_fixture(tcase, pawl_sched_begin_all, pawl_sched_end_all);
	tcase_add_checked_fixture(tcase, pawl_sched_begin, pawl_sched_end);
	tcase_add_test(tcase, requests_are_checked);
	tcase_add_loop_test(tcase, options_are_checked, 0, 2);
	tcase_add_test(tcase, unknown_requests_are_refused);
	suite_add_tcase(suite, tcase);
	return suite;
}

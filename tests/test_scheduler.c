/*
 * Requests over one paged decoder: the tokens and logits of each are those of the request alone,
 * whatever the policy, the pool and the fate of the others.
 */
#include "runtime/scheduler.h"

#include "runtime/memory.h"
#include "tests/scheduler_fixture.h"
#include "tests/suites.h"

#include <stdlib.h>
#include <string.h>

static struct pawl_sched_test *const t = &pawl_sched_test;

START_TEST(each_is_as_alone)
{
	int64_t evictions;

	t->paged.n_blocks = _i & 1 ? 5 : 32;
	t->options.admission = _i & 2 ? PAWL_ADMIT_OPTIMISTIC : PAWL_ADMIT_RESERVED;
	t->options.max_prefixes = _i & 4 ? 2 : 0;
	t->options.max_batch = 1 << (_i >> 3);
	pawl_sched_make();
	/* The first four together, the others one a step. */
	for (int i = 0; i < PAWL_SCHED_WANTED; i++) {
		pawl_sched_submit(i);
		if (i >= 4)
			pawl_sched_step();
	}
	pawl_sched_complete_all();
	evictions = pawl_sched_stats().evictions;
	ck_assert_msg((evictions > 0) == ((_i & 3) == 3), "%d evictions", (int)evictions);
	ck_assert_int_eq(pawl_sched_stats().restores + pawl_sched_stats().recomputes, evictions);
	ck_assert_int_eq(t->n_events[PAWL_REQUEST_ENDED], PAWL_SCHED_WANTED);
	pawl_sched_check_all_returns();
}
END_TEST

/* One block of all positions is a contiguous cache for each. */
START_TEST(contiguous_caches_are_one_block_each)
{
	t->paged.block_size = 64;
	t->paged.max_blocks = 1;
	t->paged.n_blocks = 3;
	t->options.admission = _i ? PAWL_ADMIT_OPTIMISTIC : PAWL_ADMIT_RESERVED;
	pawl_sched_make();
	for (int i = 0; i < PAWL_SCHED_WANTED; i++)
		pawl_sched_submit(i);
	pawl_sched_complete_all();
	ck_assert_int_eq(pawl_sched_stats().evictions, 0);
	ck_assert_int_eq(pawl_sched_stats().peak_blocks, 3);
}
END_TEST

/* Nothing is asked for but room: every option that may be left out is. */
START_TEST(by_default_a_kind_of_step_is_planned_once)
{
	struct pawl_decoder_stats stats;
	uint64_t id;

	t->paged = (struct pawl_paged_options){
		.n_blocks = 12, .block_size = 16, .max_blocks = 4, .kv_dtype = PAWL_DTYPE_F16};
	t->options = (struct pawl_scheduler_options){
		.max_batch = 1, .event = t->options.event};
	pawl_sched_make();
	id = pawl_sched_submit(4);
	pawl_sched_complete_all();
	ck_assert_int_gt(pawl_sched_info(id).n_new, 10);
	pawl_paged_decoder_stats(t->decoder, &stats);
	ck_assert_int_gt(pawl_sched_stats().decode_runs, 10);
	/* The cache, chunks of a prompt, a token. */
	ck_assert_uint_eq(stats.counters.optimizes, 1 + 1 + 1);
	ck_assert_uint_eq(pawl_counters_rebuilds(&stats.counters), 0);
	ck_assert_uint_eq(stats.counters.rebinds, 0);
}
END_TEST

/* Four at a time, whose lengths differ, join and leave. */
START_TEST(a_thousand_tokens_in_one_plan_a_bucket)
{
	static const int lasting[] = {6, 3, 2, 9, 0, 4, 1, 5};
	struct pawl_decoder_stats before, after;
	uint64_t allocations = 0;
	int n = 0, warm = 12;

	t->paged.n_blocks = 16;
	pawl_sched_make();
	while (pawl_sched_stats().n_finished[PAWL_FINISH_LENGTH] < 60) {
		uint64_t at;

		while (t->n_tracked - pawl_sched_stats().n_finished[PAWL_FINISH_LENGTH] < 4)
			pawl_sched_submit(lasting[n++ % 8]);
		at = pawl_memory_allocations();
		pawl_sched_step();
		if (pawl_sched_stats().n_finished[PAWL_FINISH_LENGTH] >= warm)
			allocations += pawl_memory_allocations() - at;
		else
			pawl_paged_decoder_stats(t->decoder, &before);
	}
	pawl_paged_decoder_stats(t->decoder, &after);
	ck_assert_int_ge(t->n_events[PAWL_REQUEST_TOKEN], 1000);
	ck_assert_uint_eq(allocations, 0);
	/* The cache; a chunk; batches of 1, 2, 4. */
	ck_assert_uint_eq(after.counters.optimizes, 5);
	ck_assert_uint_eq(before.counters.optimizes, 5);
	ck_assert_uint_eq(pawl_counters_rebuilds(&after.counters), 0);
	ck_assert_int_eq(after.n_sessions, 4);
	ck_assert_int_eq(pawl_sched_stats().evictions, 0);
	while (pawl_scheduler_has_work(t->scheduler))
		pawl_sched_step();
	for (int i = 0; i < t->n_tracked; i++)
		pawl_sched_check_complete(t->tracked[i].id);
}
END_TEST

START_TEST(a_long_prompt_delays_by_a_chunk)
{
	uint64_t decoding, prompt;

	pawl_sched_make();
	decoding = pawl_sched_submit(6);
	pawl_sched_step();
	prompt = pawl_sched_submit(7);
	for (int i = 1; i <= 8; i++) {
		struct pawl_scheduler_stats before = pawl_sched_stats();

		ck_assert_int_eq(pawl_sched_info(decoding).n_new, i);
		pawl_sched_step();
		ck_assert_int_le(pawl_sched_stats().prompt_runs, before.prompt_runs + 3);
		ck_assert_int_le(pawl_sched_stats().tokens_fed, before.tokens_fed + 8 + 2);
		ck_assert_int_eq(pawl_sched_info(prompt).phase,
			i < 8 ? PAWL_REQUEST_PREFILLING : PAWL_REQUEST_DECODING);
	}
	pawl_sched_complete_all();
}
END_TEST

/* The room that a short prompt leaves in a chunk is no use to a long one. */
START_TEST(a_long_prompt_waits_for_a_whole_chunk)
{
	pawl_sched_make();
	pawl_sched_submit(0);
	pawl_sched_submit(4);
	pawl_sched_step();
	ck_assert_int_eq(pawl_sched_stats().prompt_runs, 1);
	pawl_sched_step();
	ck_assert_int_eq(pawl_sched_stats().prompt_runs, 2);
	ck_assert_int_eq(pawl_sched_stats().tokens_fed, 4 + 8 + 2);
	pawl_sched_complete_all();
}
END_TEST

START_TEST(those_that_decode_take_turns)
{
	static const int which[] = {0, 2, 3, 6};

	t->options.max_batch = _i;
	pawl_sched_make();
	for (int i = 0; i < 4; i++)
		pawl_sched_submit(which[i]);
	while (pawl_sched_stats().n_requests[PAWL_REQUEST_DECODING] < 4)
		pawl_sched_step();
	for (int i = 0; i < 3; i++) {
		int64_t before[4];

		for (int j = 0; j < 4; j++)
			before[j] = pawl_sched_info(t->tracked[j].id).n_new;
		for (int j = 0; j < 4 / _i; j++)
			pawl_sched_step();
		for (int j = 0; j < 4; j++)
			ck_assert_int_eq(pawl_sched_info(t->tracked[j].id).n_new, before[j] + 1);
	}
	pawl_sched_complete_all();
}
END_TEST

START_TEST(reserved_waits_and_nobody_overtakes)
{
	uint64_t first, large, small;

	t->paged.n_blocks = 5;
	t->options.admission = PAWL_ADMIT_RESERVED;
	pawl_sched_make();
	first = pawl_sched_submit(2); /* 35 positions: 3 blocks */
	pawl_sched_step();
	large = pawl_sched_submit(4); /* 54: 4 blocks */
	small = pawl_sched_submit(0); /* 1 block, which is free */
	pawl_sched_step();
	ck_assert_int_eq(pawl_sched_info(first).admit_step, 1);
	ck_assert_int_eq(pawl_sched_info(large).phase, PAWL_REQUEST_WAITING);
	ck_assert_int_eq(pawl_sched_info(small).phase, PAWL_REQUEST_WAITING);
	pawl_sched_complete_all();
	ck_assert_int_eq(pawl_sched_info(large).admit_step, pawl_sched_info(first).finish_step + 1);
	ck_assert_int_ge(pawl_sched_info(small).admit_step, pawl_sched_info(large).admit_step);
	ck_assert_int_eq(pawl_sched_stats().evictions, 0);
	ck_assert_int_le(pawl_sched_stats().peak_blocks, 5);
}
END_TEST

/* The last token that is generated needs no position. */
START_TEST(a_full_pool_is_enough)
{
	t->paged.n_blocks = 4;
	t->options.admission = _i ? PAWL_ADMIT_OPTIMISTIC : PAWL_ADMIT_RESERVED;
	pawl_sched_make();
	pawl_sched_submit(7); /* 63 and 2 */
	pawl_sched_submit(8); /* 64 and 1 */
	pawl_sched_complete_all();
	ck_assert_int_eq(pawl_sched_stats().peak_blocks, 4);
}
END_TEST

START_TEST(priority_decides_the_order)
{
	uint64_t low, normal, critical, high;

	t->paged.n_blocks = 4;
	t->options.admission = PAWL_ADMIT_RESERVED;
	pawl_sched_make();
	low = pawl_sched_submit_with(4, PAWL_PRIORITY_LOW);
	normal = pawl_sched_submit_with(4, PAWL_PRIORITY_NORMAL);
	critical = pawl_sched_submit_with(4, PAWL_PRIORITY_CRITICAL);
	pawl_sched_step();
	high = pawl_sched_submit_with(4, PAWL_PRIORITY_HIGH);
	pawl_sched_complete_all();
	ck_assert_int_lt(pawl_sched_info(critical).finish_step, pawl_sched_info(high).admit_step);
	ck_assert_int_lt(pawl_sched_info(high).finish_step, pawl_sched_info(normal).admit_step);
	ck_assert_int_lt(pawl_sched_info(normal).finish_step, pawl_sched_info(low).admit_step);
	ck_assert_uint_eq(pawl_scheduler_finished(t->scheduler), critical);
}
END_TEST

START_TEST(prefixes_are_shared)
{
	uint64_t cold, warm, longer, other, alone;
	int64_t fed;
	struct pawl_request_options request = pawl_sched_request(&t->wanted[4]);

	t->options.max_prefixes = 1;
	pawl_sched_make();
	cold = pawl_sched_submit(4);
	pawl_sched_complete_all();
	fed = pawl_sched_stats().tokens_fed;
	ck_assert_int_eq(pawl_sched_stats().n_prefixes, 1);
	ck_assert_int_eq(pawl_sched_free_blocks(), t->paged.n_blocks - 2);
	warm = pawl_sched_submit(4);
	longer = pawl_sched_submit(9); /* the first 34 of the same tokens */
	pawl_sched_step();
	/* 40 + 15 positions are 4 blocks, two of them there already. */
	ck_assert_int_eq(pawl_sched_free_blocks(), t->paged.n_blocks - 4);
	pawl_sched_complete_all();
	ck_assert_int_eq(pawl_sched_info(cold).n_shared, 0);
	ck_assert_int_eq(pawl_sched_info(warm).n_shared, 32);
	ck_assert_int_eq(pawl_sched_info(longer).n_shared, 32);
	ck_assert_int_eq(pawl_sched_stats().tokens_shared, 64);
	ck_assert_int_eq(pawl_sched_stats().tokens_fed - fed, 40 - 32 + 14 + 34 - 32 + 19);
	ck_assert_int_eq(pawl_sched_stats().n_prefixes, 1);
	/* One that asks for none gets and leaves none; another takes the only place. */
	request.no_sharing = true;
	alone = pawl_sched_submit_as(4, &request);
	pawl_sched_complete_all();
	ck_assert_int_eq(pawl_sched_info(alone).n_shared, 0);
	other = pawl_sched_submit(8);
	pawl_sched_complete_all();
	ck_assert_int_eq(pawl_sched_info(other).n_shared, 0);
	ck_assert_int_eq(pawl_sched_stats().n_prefixes, 1);
	cold = pawl_sched_submit(4);
	other = pawl_sched_submit(8); /* at most all but the last token */
	pawl_sched_complete_all();
	ck_assert_int_eq(pawl_sched_info(cold).n_shared, 0);
	ck_assert_int_eq(pawl_sched_info(other).n_shared, 48);
	pawl_sched_check_all_returns();
}
END_TEST

START_TEST(a_token_of_eos_ends)
{
	const struct pawl_sched_wanted *w = &t->wanted[6];
	struct pawl_request_options request = pawl_sched_request(w);
	uint32_t eos[2] = {39, w->tokens[w->n_prompt + 3]};
	int64_t first = 0;
	uint64_t id;

	pawl_sched_make();
	while (w->tokens[w->n_prompt + first] != eos[0] && w->tokens[w->n_prompt + first] != eos[1])
		first++;
	request.eos = eos;
	request.n_eos = 2;
	id = pawl_sched_submit_as(6, &request);
	pawl_sched_must(pawl_scheduler_run_to_completion(t->scheduler, &t->err));
	ck_assert_str_eq(pawl_finish_name(pawl_sched_info(id).finish), "eos");
	ck_assert_int_eq(pawl_sched_info(id).n_new, first);
	pawl_sched_check_all_returns();
}
END_TEST

struct sampler {
	int n;
	int fails_at, strays_at;
};

static enum pawl_status
sample(void *arg, const float *logits, uint32_t *token, struct pawl_error *error)
{
	struct sampler *sampler = arg;

	if (sampler->n == sampler->fails_at)
		return pawl_fail(error, PAWL_INVALID_ARGUMENT, "no token to my taste");
	*token = sampler->n++ == sampler->strays_at ? PAWL_SCHED_VOCAB : pawl_sched_largest(logits);
	return PAWL_OK;
}

START_TEST(an_error_ends_its_request_only)
{
	struct sampler samplers[] = {{0, 2, -1}, {0, -1, 3}, {0, -1, -1}};
	uint64_t ids[3], other;

	pawl_sched_make();
	other = pawl_sched_submit(2);
	for (int i = 0; i < 3; i++) {
		struct pawl_request_options request = pawl_sched_request(&t->wanted[6]);

		request.sample = sample;
		request.arg = &samplers[i];
		ids[i] = pawl_sched_submit_as(6, &request);
	}
	pawl_sched_must(pawl_scheduler_run_to_completion(t->scheduler, &t->err));
	pawl_sched_check_complete(other);
	pawl_sched_check_complete(ids[2]);
	for (int i = 0; i < 2; i++) {
		struct pawl_request_info info = pawl_sched_info(ids[i]);

		ck_assert_str_eq(pawl_finish_name(info.finish), "error");
		ck_assert_int_eq(info.error->status, PAWL_INVALID_ARGUMENT);
		ck_assert_str_eq(
			info.error->text, i ? "the sampler chose token 40, the model has 40"
					    : "no token to my taste");
		ck_assert_int_eq(info.n_new, 2 + i);
	}
	pawl_sched_check_all_returns();
}
END_TEST

/* So many that walking along all of them for each would not end before the case's time. */
START_TEST(many_requests_come_and_go)
{
	enum { N = 1 << 17 };
	uint64_t *ids = calloc(N, sizeof(*ids));
	struct pawl_request_options request = pawl_sched_request(&t->wanted[0]);
	struct pawl_request_info info;

	pawl_sched_make();
	for (int i = 0; i < N; i++) {
		request.priority = (enum pawl_priority)(i % 4);
		pawl_sched_must(
			pawl_scheduler_submit(t->scheduler, &request, &ids[i], &t->err));
	}
	/* From both ends to the middle. */
	for (int i = 0; i < N; i++)
		pawl_sched_must(pawl_scheduler_cancel(
			t->scheduler, ids[i % 2 ? N - 1 - i / 2 : i / 2], &t->err));
	ck_assert(!pawl_scheduler_has_work(t->scheduler));
	for (int i = 0; i < N; i++) {
		uint64_t id = ids[i % 2 ? N - 1 - i / 2 : i / 2];

		ck_assert_uint_eq(pawl_scheduler_finished(t->scheduler), id);
		pawl_sched_must(pawl_scheduler_info(t->scheduler, id, &info, &t->err));
		ck_assert_int_eq(info.finish, PAWL_FINISH_CANCELLED);
		pawl_sched_must(pawl_scheduler_reap(t->scheduler, id, &t->err));
	}
	ck_assert_uint_eq(pawl_scheduler_finished(t->scheduler), 0);
	free(ids);
}
END_TEST

Suite *
pawl_scheduler_suite(void)
{
	Suite *suite = suite_create("scheduler");
	TCase *tcase = tcase_create("scheduler");

	tcase_set_timeout(tcase, 60);
	tcase_add_unchecked_fixture(tcase, pawl_sched_begin_all, pawl_sched_end_all);
	tcase_add_checked_fixture(tcase, pawl_sched_begin, pawl_sched_end);
	tcase_add_loop_test(tcase, each_is_as_alone, 0, 32);
	tcase_add_test(tcase, by_default_a_kind_of_step_is_planned_once);
	tcase_add_loop_test(tcase, contiguous_caches_are_one_block_each, 0, 2);
	tcase_add_test(tcase, a_thousand_tokens_in_one_plan_a_bucket);
	tcase_add_test(tcase, a_long_prompt_delays_by_a_chunk);
	tcase_add_test(tcase, a_long_prompt_waits_for_a_whole_chunk);
	tcase_add_loop_test(tcase, those_that_decode_take_turns, 1, 3);
	tcase_add_test(tcase, reserved_waits_and_nobody_overtakes);
	tcase_add_loop_test(tcase, a_full_pool_is_enough, 0, 2);
	tcase_add_test(tcase, priority_decides_the_order);
	tcase_add_test(tcase, prefixes_are_shared);
	tcase_add_test(tcase, a_token_of_eos_ends);
	tcase_add_test(tcase, an_error_ends_its_request_only);
	tcase_add_test(tcase, many_requests_come_and_go);
	suite_add_tcase(suite, tcase);
	return suite;
}

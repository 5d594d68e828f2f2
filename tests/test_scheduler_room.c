/* Who has blocks: eviction, restoring, cancellation, and what nobody can give. */
#include "runtime/scheduler.h"

#include "runtime/memory.h"
#include "tests/scheduler_fixture.h"
#include "tests/suites.h"

#include <string.h>

static struct pawl_sched_test *const t = &pawl_sched_test;

START_TEST(higher_priority_displaces)
{
	uint64_t low, high, equal;

	t->paged.n_blocks = 4;
	t->options.admission = _i ? PAWL_ADMIT_OPTIMISTIC : PAWL_ADMIT_RESERVED;
	pawl_sched_make();
	low = pawl_sched_submit_with(4, PAWL_PRIORITY_LOW);
	for (int i = 0; i < 8; i++)
		pawl_sched_step();
	equal = pawl_sched_submit_with(4, PAWL_PRIORITY_LOW);
	pawl_sched_step();
	ck_assert_int_eq(pawl_sched_info(low).n_evictions, 0);
	high = pawl_sched_submit_with(4, PAWL_PRIORITY_HIGH);
	pawl_sched_step();
	ck_assert_int_eq(pawl_sched_info(low).n_evictions, _i);
	ck_assert_int_eq(
		pawl_sched_info(high).phase, _i ? PAWL_REQUEST_PREFILLING : PAWL_REQUEST_WAITING);
	pawl_sched_complete_all();
	ck_assert_int_eq(pawl_sched_info(low).n_restores, _i);
	ck_assert_int_gt(pawl_sched_info(equal).admit_step, pawl_sched_info(low).finish_step);
}
END_TEST

/* The last of the order goes first, and comes back. */
START_TEST(pressure_evicts_the_last)
{
	uint64_t a, b, c;

	t->paged.n_blocks = 4;
	pawl_sched_make();
	a = pawl_sched_submit(3); /* 30 positions */
	b = pawl_sched_submit(2); /* 35 */
	c = pawl_sched_submit(0); /* 16 */
	pawl_sched_step();
	pawl_sched_complete_all();
	ck_assert_int_eq(pawl_sched_info(a).n_evictions, 0);
	ck_assert_int_gt(pawl_sched_info(b).n_evictions + pawl_sched_info(c).n_evictions, 0);
	ck_assert_int_eq(pawl_sched_stats().recomputes, 0);
	ck_assert_int_eq(pawl_sched_stats().restores, pawl_sched_stats().evictions);
	ck_assert_int_eq(pawl_sched_stats().peak_blocks, 4);
}
END_TEST

enum { AT_ONCE, WAITING, PREFILLING, DECODING, EVICTED, EVICTED_BY_HAND, N_POINTS };

START_TEST(cancel_in_every_phase)
{
	uint64_t others[2], id;
	int64_t n_free;

	t->paged.n_blocks = _i == PREFILLING ? 7 : 5;
	t->options.admission = _i == WAITING ? PAWL_ADMIT_RESERVED : PAWL_ADMIT_OPTIMISTIC;
	pawl_sched_make();
	others[0] = pawl_sched_submit(6);
	others[1] = pawl_sched_submit(2);
	pawl_sched_step();
	id = pawl_sched_submit(_i == PREFILLING || _i == WAITING ? 4 : 3);
	for (int i = 0; i < 100 && _i != AT_ONCE; i++) {
		enum pawl_request_phase phase = pawl_sched_info(id).phase;

		if (i && _i == WAITING && phase == PAWL_REQUEST_WAITING)
			break;
		if ((_i == PREFILLING && i > 2 && phase == PAWL_REQUEST_PREFILLING) ||
			(_i >= DECODING && phase == PAWL_REQUEST_DECODING) ||
			phase == PAWL_REQUEST_EVICTED)
			break;
		pawl_sched_step();
	}
	if (_i == EVICTED)
		while (pawl_sched_info(id).phase != PAWL_REQUEST_EVICTED)
			pawl_sched_step();
	if (_i == EVICTED_BY_HAND)
		pawl_sched_must(pawl_scheduler_evict(t->scheduler, id, &t->err));
	ck_assert_str_eq(pawl_request_phase_name(pawl_sched_info(id).phase),
		((const char *[]){
			"waiting", "waiting", "prefilling", "decoding", "evicted", "evicted"})[_i]);
	n_free = pawl_sched_free_blocks();
	pawl_sched_must(pawl_scheduler_cancel(t->scheduler, id, &t->err));
	if (_i == PREFILLING || _i == DECODING)
		ck_assert_int_gt(pawl_sched_free_blocks(), n_free);
	else
		ck_assert_int_eq(pawl_sched_free_blocks(), n_free);
	ck_assert_int_eq(pawl_paged_decoder_evicted_bytes(t->decoder), 0);
	ck_assert_str_eq(pawl_finish_name(pawl_sched_info(id).finish), "cancelled");
	ck_assert_int_eq(pawl_scheduler_cancel(t->scheduler, id, &t->err), PAWL_INVALID_ARGUMENT);
	ck_assert_msg(strstr(t->err.text, "is finished"), "%s", t->err.text);
	pawl_sched_must(pawl_scheduler_run_to_completion(t->scheduler, &t->err));
	pawl_sched_check_complete(others[0]);
	pawl_sched_check_complete(others[1]);
	pawl_sched_check_all_returns();
}
END_TEST

START_TEST(cancelling_a_thousand_times_leaks_nothing)
{
	t->options.max_prefixes = 2;
	t->options.event = NULL;
	pawl_sched_make();
	for (int i = 0; i < 1000; i++) {
		struct pawl_request_options request =
			pawl_sched_request(&t->wanted[i % PAWL_SCHED_WANTED]);
		uint64_t id;

		pawl_sched_must(pawl_scheduler_submit(t->scheduler, &request, &id, &t->err));
		for (int j = 0; j < i % 5; j++)
			pawl_sched_must(pawl_scheduler_step(t->scheduler, &t->err));
		if (i % 7 == 3)
			pawl_sched_must(pawl_scheduler_evict(t->scheduler, id, &t->err));
		pawl_scheduler_cancel(t->scheduler, id, NULL);
		pawl_sched_must(pawl_scheduler_reap(t->scheduler, id, &t->err));
	}
	pawl_sched_check_all_returns();
}
END_TEST

START_TEST(evicted_by_hand_comes_back_by_hand)
{
	uint64_t id, other;

	pawl_sched_make();
	id = pawl_sched_submit(2);
	other = pawl_sched_submit(0);
	for (int i = 0; i < 6; i++)
		pawl_sched_step();
	pawl_sched_must(pawl_scheduler_evict(t->scheduler, id, &t->err));
	pawl_sched_must(pawl_scheduler_evict(t->scheduler, id, &t->err));
	ck_assert_int_eq(pawl_sched_stats().evictions, 1);
	ck_assert_int_gt(pawl_sched_stats().bytes_evicted, 0);
	pawl_sched_must(pawl_scheduler_run_to_completion(t->scheduler, &t->err));
	pawl_sched_check_complete(other);
	ck_assert(!pawl_scheduler_has_work(t->scheduler));
	ck_assert_str_eq(pawl_request_phase_name(pawl_sched_info(id).phase), "evicted");
	ck_assert_int_eq(pawl_sched_free_blocks(), t->paged.n_blocks);
	pawl_sched_must(pawl_scheduler_restore(t->scheduler, id, &t->err));
	pawl_sched_complete_all();
	ck_assert_int_eq(pawl_sched_info(id).n_restores, 1);
	ck_assert_int_eq(pawl_scheduler_evict(t->scheduler, id, &t->err), PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(pawl_scheduler_restore(t->scheduler, id, &t->err), PAWL_INVALID_ARGUMENT);
}
END_TEST

/* Evicted requests share a block that nobody can free but by computing it anew. */
START_TEST(shared_blocks_are_no_deadlock)
{
	uint64_t a, b, high;

	t->paged.n_blocks = 4;
	t->options.max_prefixes = 2;
	pawl_sched_make();
	a = pawl_sched_submit_with(1, PAWL_PRIORITY_LOW);
	for (int i = 0; i < 3; i++)
		pawl_sched_step();
	b = pawl_sched_submit_with(1, PAWL_PRIORITY_LOW);
	pawl_sched_step();
	ck_assert_int_eq(pawl_sched_info(b).n_shared, 16);
	ck_assert_int_eq(pawl_sched_free_blocks(), 1);
	high = pawl_sched_submit_with(7, PAWL_PRIORITY_HIGH);
	pawl_sched_complete_all();
	ck_assert_int_eq(pawl_sched_info(a).n_recomputes, 1);
	ck_assert_int_eq(pawl_sched_info(b).n_recomputes, 1);
	ck_assert_int_eq(pawl_sched_stats().restores, 0);
	ck_assert_int_lt(pawl_sched_info(high).finish_step, pawl_sched_info(a).finish_step);
	pawl_sched_check_all_returns();
}
END_TEST

/* Without memory to keep the bytes, they are computed anew. */
START_TEST(eviction_without_memory_recomputes)
{
	t->paged.n_blocks = 4;
	pawl_sched_make();
	pawl_sched_submit(3);
	pawl_sched_submit(2);
	pawl_sched_submit(0);
	while (!pawl_sched_stats().recomputes) {
		/* Once all plans are there, evictions are all that allocates. */
		if (pawl_sched_stats().step > 12)
			pawl_memory_fail_after(0);
		pawl_sched_step();
		pawl_memory_fail_after(-1);
	}
	ck_assert_int_eq(pawl_sched_stats().evictions, 0);
	pawl_sched_complete_all();
	pawl_sched_check_all_returns();
}
END_TEST

/* Blocks that others took behind the scheduler's back: an error of the request, no hang. */
START_TEST(a_pool_that_others_fill_is_an_error)
{
	struct pawl_kv_session_id foreign;
	uint64_t grows, waits, fits;

	t->paged.n_blocks = 5;
	pawl_sched_make();
	pawl_sched_must(pawl_paged_decoder_open(t->decoder, &foreign, &t->err));
	pawl_sched_must(pawl_paged_decoder_prefill(
		t->decoder, foreign, t->wanted[8].tokens, 64, NULL, &t->err));
	grows = pawl_sched_submit(6);
	waits = pawl_sched_submit(4);
	fits = pawl_sched_submit(5);
	pawl_sched_must(pawl_scheduler_run_to_completion(t->scheduler, &t->err));
	ck_assert_str_eq(pawl_sched_info(grows).error->text,
		"1 more blocks are needed, 0 of 5 are free and no other request has any");
	ck_assert_int_eq(pawl_sched_info(grows).error->status, PAWL_CAPACITY);
	ck_assert_int_eq(pawl_sched_info(waits).error->status, PAWL_CAPACITY);
	ck_assert_int_eq(pawl_sched_info(fits).error->status, PAWL_CAPACITY);
	pawl_sched_must(pawl_paged_decoder_close(t->decoder, foreign, &t->err));
	t->n_tracked = 0;
	pawl_sched_submit(4);
	pawl_sched_complete_all();
}
END_TEST

Suite *
pawl_scheduler_room_suite(void)
{
	Suite *suite = suite_create("scheduler_room");
	TCase *tcase = tcase_create("scheduler_room");

	tcase_set_timeout(tcase, 60);
	tcase_add_unchecked_fixture(tcase, pawl_sched_begin_all, pawl_sched_end_all);
	tcase_add_checked_fixture(tcase, pawl_sched_begin, pawl_sched_end);
	tcase_add_loop_test(tcase, higher_priority_displaces, 0, 2);
	tcase_add_test(tcase, pressure_evicts_the_last);
	tcase_add_loop_test(tcase, cancel_in_every_phase, 0, N_POINTS);
	tcase_add_test(tcase, cancelling_a_thousand_times_leaks_nothing);
	tcase_add_test(tcase, evicted_by_hand_comes_back_by_hand);
	tcase_add_test(tcase, shared_blocks_are_no_deadlock);
	tcase_add_test(tcase, eviction_without_memory_recomputes);
	tcase_add_test(tcase, a_pool_that_others_fill_is_an_error);
	suite_add_tcase(suite, tcase);
	return suite;
}

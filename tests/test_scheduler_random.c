/*
 * Random operations on a scheduler while allocations fail: what fails changes nothing, every
 * request that gets to its end has the tokens and logits of itself alone, and all blocks come back.
 * PAWL_TEST_OPERATIONS of them for each seed, or some for make check.
 */
#include "runtime/scheduler.h"

#include "ir/random_parts.h"
#include "runtime/memory.h"
#include "tests/paged_state.h"
#include "tests/scheduler_fixture.h"
#include "tests/suites.h"

#include <stdio.h>
#include <stdlib.h>

enum { N_SEEDS = 6, N_OPERATIONS = 1500 };

static struct pawl_sched_test *const t = &pawl_sched_test;
static uint64_t state;
static int n_starved, n_done, n_cancelled;

static int
below(int n)
{
	return (int)(pawl_random_next(&state) % (uint64_t)n);
}

static void
starve_at_times(void)
{
	if (!below(3))
		pawl_memory_fail_after(below(below(4) ? 4 : 200));
}

/* Of a call that changes nothing when it fails. */
static enum pawl_status
settle(enum pawl_status status, uint64_t digest)
{
	pawl_memory_fail_after(-1);
	if (status)
		ck_assert_uint_eq(pawl_test_paged_state(t->decoder), digest);
	n_starved += status == PAWL_OUT_OF_MEMORY;
	return status;
}

static struct pawl_sched_tracked *
any(void)
{
	return &t->tracked[below(t->n_tracked)];
}

static void
submit_one(void)
{
	static const int alike[] = {1, 8, 4, 9}; /* beginnings that are equal in pairs */
	struct pawl_sched_tracked *one = &t->tracked[t->n_tracked];
	struct pawl_request_options request;
	uint64_t digest = pawl_test_paged_state(t->decoder);
	enum pawl_status status;

	one->wanted = &t->wanted[below(2) ? alike[below(4)] : below(PAWL_SCHED_WANTED)];
	request = pawl_sched_request(one->wanted);
	request.priority = (enum pawl_priority)below(4);
	request.no_sharing = !below(5);
	starve_at_times();
	status = settle(pawl_scheduler_submit(t->scheduler, &request, &one->id, &t->err), digest);
	if (status) {
		ck_assert_int_eq(status, PAWL_OUT_OF_MEMORY);
		return;
	}
	one->n_seen = 0;
	t->n_tracked++;
}

/* It is complete or was cancelled; forgets it. */
static void
reap_one(struct pawl_sched_tracked *one)
{
	struct pawl_request_info info = pawl_sched_info(one->id);

	if (info.finish == PAWL_FINISH_CANCELLED) {
		n_cancelled++;
	} else {
		n_done++;
		pawl_sched_check_complete(one->id);
	}
	pawl_sched_must(pawl_scheduler_reap(t->scheduler, one->id, &t->err));
	*one = t->tracked[--t->n_tracked];
}

static void
reap_finished(void)
{
	uint64_t id;

	while ((id = pawl_scheduler_finished(t->scheduler)))
		for (int i = t->n_tracked; i-- > 0;)
			if (t->tracked[i].id == id) {
				reap_one(&t->tracked[i]);
				break;
			}
}

static void
operate(void)
{
	uint64_t digest = pawl_test_paged_state(t->decoder);
	enum pawl_status status;
	uint64_t id;

	if (!t->n_tracked) {
		submit_one();
		return;
	}
	id = any()->id;
	switch (below(24)) {
	case 0:
	case 1:
	case 2:
		if (t->n_tracked < 12)
			submit_one();
		break;
	case 3:
		pawl_scheduler_cancel(t->scheduler, id, NULL);
		break;
	case 4:
	case 5:
		starve_at_times();
		settle(pawl_scheduler_evict(t->scheduler, id, &t->err), digest);
		break;
	case 6:
	case 7:
	case 8:
		settle(pawl_scheduler_restore(t->scheduler, id, &t->err), digest);
		break;
	case 9:
		reap_finished();
		break;
	case 10:
		pawl_scheduler_release_prefixes(t->scheduler);
		break;
	default:
		starve_at_times();
		status = pawl_scheduler_step(t->scheduler, &t->err);
		pawl_memory_fail_after(-1);
		ck_assert_msg(!status || status == PAWL_OUT_OF_MEMORY, "%s", t->err.text);
		n_starved += status == PAWL_OUT_OF_MEMORY;
		break;
	}
}

START_TEST(whatever_happens)
{
	const char *asked = getenv("PAWL_TEST_OPERATIONS");
	int64_t n = asked ? strtoll(asked, NULL, 10) : N_OPERATIONS;
	struct pawl_scheduler_stats stats;

	state = (uint64_t)_i;
	t->paged.n_blocks = 5 + 2 * _i;
	t->options.max_prefixes = 1 + _i % 3;
	t->options.max_batch = 1 << _i % 4;
	t->options.admission = _i % 3 ? PAWL_ADMIT_OPTIMISTIC : PAWL_ADMIT_RESERVED;
	pawl_sched_make();
	while (n--)
		operate();
	for (int i = 0; i < t->n_tracked; i++)
		pawl_scheduler_restore(t->scheduler, t->tracked[i].id, NULL);
	pawl_sched_must(pawl_scheduler_run_to_completion(t->scheduler, &t->err));
	reap_finished();
	ck_assert_int_eq(t->n_tracked, 0);
	pawl_scheduler_stats(t->scheduler, &stats);
	ck_assert_int_gt(n_starved, 0);
	ck_assert_int_gt(n_done, 20);
	ck_assert_int_gt(n_cancelled, 5);
	ck_assert_int_gt(stats.evictions, 0);
	ck_assert_int_gt(stats.restores, 0);
	ck_assert_int_gt(stats.tokens_shared, 0);
	if (asked)
		printf("%d requests done, %d cancelled, %d operations without memory\n", n_done,
			n_cancelled, n_starved);
	pawl_sched_check_all_returns();
}
END_TEST

Suite *
pawl_scheduler_random_suite(void)
{
	Suite *suite = suite_create("scheduler_random");
	TCase *tcase = tcase_create("scheduler_random");

	tcase_set_timeout(tcase, getenv("PAWL_TEST_OPERATIONS") ? 3600 : 60);
	tcase_add_unchecked_fixture(tcase, pawl_sched_begin_all, pawl_sched_end_all);
	tcase_add_checked_fixture(tcase, pawl_sched_begin, pawl_sched_end);
	tcase_add_loop_test(tcase, whatever_happens, 0, N_SEEDS);
	suite_add_tcase(suite, tcase);
	return suite;
}

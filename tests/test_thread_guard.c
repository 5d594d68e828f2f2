/* The number of threads that runs have, told from times that are made up here. */
#include "runtime/thread_guard.h"

#include "tests/suites.h"

#include <check.h>

enum { MS = 1000000 };

static const char work, other_work;

/* A core of a machine of 2 is shared: a run of one thread takes 3 ms, of two 10 ms with 7 asleep. */
static void
crowded_run(struct pawl_thread_guard *guard)
{
	if (guard->active == 1)
		pawl_thread_guard_note(guard, &work, 3 * MS, 0);
	else
		pawl_thread_guard_note(guard, &work, 10 * MS, 7 * MS);
}

/* It is not: 2 ms with two threads. */
static void
quiet_run(struct pawl_thread_guard *guard)
{
	pawl_thread_guard_note(guard, &work, guard->active == 1 ? 3 * MS : 2 * MS, 0);
}

START_TEST(quiet_runs_keep_all_threads)
{
	struct pawl_thread_guard guard;

	pawl_thread_guard_init(&guard, 2, 2);
	for (int i = 0; i < 1000; i++) {
		quiet_run(&guard);
		ck_assert_int_eq(guard.active, 2);
		/* Now and then something else runs for a moment. */
		if (i % 10 == 0)
			crowded_run(&guard);
		ck_assert_int_eq(guard.active, 2);
	}
	ck_assert_uint_eq(guard.n_step_backs, 0);
}
END_TEST

START_TEST(a_taken_core_is_left_and_taken_back)
{
	struct pawl_thread_guard guard;
	int n_wide = 0;

	pawl_thread_guard_init(&guard, 2, 2);
	for (int i = 0; i < 2; i++)
		crowded_run(&guard);
	ck_assert_int_eq(guard.active, 1);
	for (int i = 0; i < 2000; i++) {
		n_wide += guard.active == 2;
		crowded_run(&guard);
	}
	ck_assert_uint_eq(guard.n_step_backs, 1);
	/* It goes on trying, less and less often, and knows after one run. */
	ck_assert_int_ge(n_wide, 4);
	ck_assert_int_le(n_wide, 8);
	for (int i = 0; i < 600; i++)
		quiet_run(&guard);
	ck_assert_int_eq(guard.active, 2);
	for (int i = 0; i < 100; i++) {
		quiet_run(&guard);
		ck_assert_int_eq(guard.active, 2);
	}
}
END_TEST

/*
 * Another process has the second core by turns of some milliseconds: two threads are faster for a few
 * runs, then slower for a few, and slower on the whole.
 */
START_TEST(a_core_that_comes_and_goes_is_left)
{
	struct pawl_thread_guard guard;
	int n_wide = 0;

	pawl_thread_guard_init(&guard, 2, 2);
	for (int i = 0; i < 4000; i++) {
		if (i == 256)
			ck_assert_int_le(n_wide, 80);
		n_wide += guard.active == 2;
		if (i % 11 < 7)
			quiet_run(&guard);
		else
			crowded_run(&guard);
	}
	ck_assert_int_le(n_wide, 250);
	/* It is there again for good. */
	for (int i = 0; i < 600; i++)
		quiet_run(&guard);
	ck_assert_int_eq(guard.active, 2);
	/* And taken again much later: that is seen as at first. */
	for (int i = 0; i < 600; i++)
		quiet_run(&guard);
	for (int i = 0; i < 2; i++)
		crowded_run(&guard);
	ck_assert_int_eq(guard.active, 1);
	for (int i = 0; i < 100; i++)
		quiet_run(&guard);
	ck_assert_int_eq(guard.active, 2);
}
END_TEST

/* What is told from how long a run takes is told of runs that do the same. */
START_TEST(other_work_is_not_compared)
{
	struct pawl_thread_guard guard;

	/* Short runs of another kind come in between; the core is left as it is without them. */
	pawl_thread_guard_init(&guard, 2, 2);
	for (int i = 0; i < 12; i++) {
		crowded_run(&guard);
		pawl_thread_guard_note(&guard, &other_work, MS / 10, guard.active == 1 ? 0 : MS / 10);
	}
	ck_assert_int_eq(guard.active, 1);
	ck_assert_uint_eq(guard.n_step_backs, 1);
	/* A trial that began with them ends without a verdict when they do. */
	pawl_thread_guard_init(&guard, 2, 2);
	for (int i = 0; i < 2; i++)
		pawl_thread_guard_note(&guard, &other_work, MS, MS);
	ck_assert(guard.is_trial && guard.active == 1);
	for (int i = 0; i < 8; i++)
		quiet_run(&guard);
	ck_assert(!guard.is_trial && guard.active == 2);
	for (int i = 0; i < 2; i++)
		crowded_run(&guard);
	ck_assert_int_eq(guard.active, 1);
}
END_TEST

START_TEST(waiting_that_fewer_threads_do_not_mend_is_borne)
{
	struct pawl_thread_guard guard;
	int n_narrow = 0;

	pawl_thread_guard_init(&guard, 2, 2);
	for (int i = 0; i < 4000; i++) {
		n_narrow += guard.active == 1;
		/* Steps of a single unit: one waits for the other, and yet two are faster. */
		pawl_thread_guard_note(&guard, &work, guard.active == 1 ? 12 * MS : 8 * MS,
			guard.active == 1 ? 0 : 4 * MS);
	}
	ck_assert_int_eq(guard.active, 2);
	ck_assert_uint_eq(guard.n_step_backs, 0);
	ck_assert_int_le(n_narrow, 60);
}
END_TEST

START_TEST(several_cores_are_left)
{
	struct pawl_thread_guard guard;
	int n_right = 0;

	pawl_thread_guard_init(&guard, 8, 8);
	/* Three of eight cores are taken: five threads are best. */
	for (int i = 0; i < 2000; i++) {
		int n = guard.active;

		pawl_thread_guard_note(&guard, &work, n > 5 ? 20 * MS : 15 * MS / n, n > 5 ? 15 * MS * n : 0);
		n_right += n == 5;
	}
	/* From 8 by 1, 2 and 4 to 4, and from there up. */
	ck_assert_int_ge(n_right, 1500);
	pawl_thread_guard_init(&guard, 1, 1);
	pawl_thread_guard_note(&guard, &work, 10 * MS, 9 * MS);
	pawl_thread_guard_note(&guard, &work, 10 * MS, 9 * MS);
	ck_assert_int_eq(guard.active, 1);
}
END_TEST

/*
 * Runs of a millisecond of work for each CPU there is, and of a microsecond more for each thread beyond
 * them; returns the runs until there are no more threads than CPUs.
 */
static int
runs_until_narrow(struct pawl_thread_guard *guard, int n_threads, int n_cpus)
{
	int n = 0;

	pawl_thread_guard_init(guard, n_threads, n_cpus);
	for (; guard->active > n_cpus; n++) {
		int64_t ns = MS / n_cpus + 1000 * guard->active;

		ck_assert_int_lt(n, 100);
		pawl_thread_guard_note(
			guard, &work, ns, ns * (guard->active - n_cpus) / guard->active * (guard->active - 1));
	}
	return n;
}

START_TEST(threads_beyond_the_cpus_are_left_at_once)
{
	struct pawl_thread_guard guard;

	/* Halved, and halved again. */
	ck_assert_int_eq(runs_until_narrow(&guard, 64, 1), 6);
	ck_assert_int_eq(guard.active, 1);
	ck_assert_uint_eq(guard.n_step_backs, 6);
	ck_assert_int_eq(runs_until_narrow(&guard, 1024, 1), 10);
	ck_assert_int_eq(runs_until_narrow(&guard, 300, 4), 6);
	ck_assert_int_eq(guard.active, 4);
	ck_assert_int_eq(runs_until_narrow(&guard, 3, 2), 1);
	ck_assert_int_eq(guard.active, 2);
	/* More than the CPUs are tried again, and left again by the first run that shows it. */
	for (int i = 0; i < 2000; i++) {
		int n = guard.active;

		ck_assert_int_le(n, 3);
		pawl_thread_guard_note(&guard, &work, n > 2 ? 10 * MS : 6 * MS / n, n > 2 ? 7 * MS * n : 0);
	}
	ck_assert_int_eq(guard.active, 2);
	/* As long as they are not asleep they stay: what they wait for may be no CPU. */
	pawl_thread_guard_init(&guard, 8, 2);
	for (int i = 0; i < 100; i++)
		pawl_thread_guard_note(&guard, &work, MS, 7 * (MS / 4));
	ck_assert_int_eq(guard.active, 8);
}
END_TEST

/* Centuries: a trial goes on as it would with milliseconds. */
START_TEST(the_longest_runs_are_compared)
{
	const int64_t longest = INT64_MAX;
	struct pawl_thread_guard guard;

	pawl_thread_guard_init(&guard, 2, 2);
	for (int i = 0; i < 2; i++)
		pawl_thread_guard_note(&guard, &work, longest, longest);
	ck_assert(guard.is_trial);
	for (int i = 0; i < 3; i++) {
		pawl_thread_guard_note(&guard, &work, longest / 2, 0);
		ck_assert_int_eq(guard.n_trials, i + 1);
	}
	pawl_thread_guard_note(&guard, &work, 5, 0);
	/* The mean of the four, a quarter shorter. */
	ck_assert(!guard.is_trial);
	ck_assert_int_eq(guard.active, 1);
}
END_TEST

Suite *
pawl_thread_guard_suite(void)
{
	Suite *suite = suite_create("thread_guard");
	TCase *tcase = tcase_create("thread_guard");

	tcase_add_test(tcase, quiet_runs_keep_all_threads);
	tcase_add_test(tcase, a_taken_core_is_left_and_taken_back);
	tcase_add_test(tcase, a_core_that_comes_and_goes_is_left);
	tcase_add_test(tcase, other_work_is_not_compared);
	tcase_add_test(tcase, waiting_that_fewer_threads_do_not_mend_is_borne);
	tcase_add_test(tcase, several_cores_are_left);
	tcase_add_test(tcase, threads_beyond_the_cpus_are_left_at_once);
	tcase_add_test(tcase, the_longest_runs_are_compared);
	suite_add_tcase(suite, tcase);
	return suite;
}

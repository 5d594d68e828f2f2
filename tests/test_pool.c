/* Teams of threads: who takes part, who sleeps, forks and signals. */
#include "runtime/pool.h"

#include "tests/skip.h"
#include "tests/suites.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_THREADS = 8 };

static struct pawl_error err;

struct job {
	struct pawl_team *team;
	atomic_int n_calls;
	atomic_int rounds[64];
	int n_threads;
	bool failed;
	pthread_t ids[MAX_THREADS];
	bool is_blocked[MAX_THREADS];
};

/* Every thread counts itself in each round; after the barrier all must have been counted. */
static void
meet(void *arg, int thread, int n_threads)
{
	struct job *job = arg;

	atomic_fetch_add(&job->n_calls, 1);
	job->ids[thread] = pthread_self();
	for (int i = 0; i < 64; i++) {
		atomic_fetch_add(&job->rounds[i], 1);
		job->team->barrier(job->team, thread);
		if (atomic_load(&job->rounds[i]) != n_threads)
			job->failed = true;
	}
}

static void
meet_once(struct pawl_pool *pool)
{
	struct job job = {.team = pawl_pool_team(pool)};

	job.team->run(job.team, meet, &job);
	ck_assert_int_eq(atomic_load(&job.n_calls), job.team->n_threads);
	ck_assert(!job.failed);
	ck_assert(pthread_equal(job.ids[0], pthread_self()));
	for (int i = 1; i < job.team->n_threads; i++)
		ck_assert(!pthread_equal(job.ids[i], pthread_self()));
}

START_TEST(all_threads_meet)
{
	int n_threads = _i;
	struct pawl_pool *pool;

	ck_assert_int_eq(pawl_pool_new(n_threads, &pool, &err), PAWL_OK);
	ck_assert_int_eq(pawl_pool_team(pool)->n_threads, n_threads);
	for (int i = 0; i < 100; i++)
		meet_once(pool);
	/* Long enough for every worker to have gone to sleep. */
	usleep(20000);
	meet_once(pool);
	pawl_pool_free(pool);
}
END_TEST

/* A worker whose core is taken away in some runs: nobody but it is late. */
struct slow_job {
	struct pawl_team *team;
	bool is_slow;
	atomic_int n_threads, n_calls;
};

static void
be_late(void *arg, int thread, int n_threads)
{
	struct slow_job *job = arg;

	atomic_store(&job->n_threads, n_threads);
	atomic_fetch_add(&job->n_calls, 1);
	if (thread == n_threads - 1 && thread > 0 && job->is_slow)
		usleep(4000);
	job->team->barrier(job->team, thread);
}

static int
run_late(struct pawl_pool *pool, const void *work, bool is_slow, int n_runs)
{
	struct slow_job job = {.team = pawl_pool_team(pool), .is_slow = is_slow};

	job.team->work = work;
	for (int i = 0; i < n_runs; i++) {
		atomic_store(&job.n_calls, 0);
		job.team->run(job.team, be_late, &job);
		ck_assert_int_eq(atomic_load(&job.n_calls), atomic_load(&job.n_threads));
	}
	return atomic_load(&job.n_threads);
}

START_TEST(a_pool_steps_back_from_a_core_that_was_taken)
{
	struct pawl_pool *pool;

	unsetenv("PAWL_DEBUG");
	ck_assert_int_eq(pawl_pool_new(2, &pool, &err), PAWL_OK);
	/* What has no name is not compared. */
	ck_assert_int_eq(run_late(pool, NULL, true, 12), 2);
	ck_assert_int_eq(run_late(pool, &err, true, 7), 1);
	ck_assert_uint_eq(pawl_pool_step_backs(pool), 1);
	pawl_pool_free(pool);
	setenv("PAWL_DEBUG", "all-threads", 1);
	ck_assert_int_eq(pawl_pool_new(2, &pool, &err), PAWL_OK);
	ck_assert_int_eq(run_late(pool, &err, true, 12), 2);
	pawl_pool_free(pool);
}
END_TEST

/* Runs of changing numbers of threads: workers that wake late miss none that counts them. */
START_TEST(every_thread_that_counts_takes_part)
{
	struct pawl_pool *pool;

	unsetenv("PAWL_DEBUG");
	ck_assert_int_eq(pawl_pool_new(4, &pool, &err), PAWL_OK);
	for (int i = 0; i < 40; i++) {
		run_late(pool, &err, true, 1 + i % 5);
		run_late(pool, &err, false, 30);
	}
	pawl_pool_free(pool);
}
END_TEST

START_TEST(unused_pool_ends)
{
	struct pawl_pool *pool;

	ck_assert_int_eq(pawl_pool_new(4, &pool, &err), PAWL_OK);
	pawl_pool_free(pool);
	pawl_pool_free(NULL);
}
END_TEST

START_TEST(thread_counts_out_of_range)
{
	struct pawl_pool *pool;

	ck_assert_int_eq(pawl_pool_new(0, &pool, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(pawl_pool_new(PAWL_MAX_THREADS + 1, &pool, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "1025 threads asked for; 1 to 1024 are possible");
}
END_TEST

START_TEST(forked_child_gets_workers_of_its_own)
{
	struct pawl_pool *pool;
	int status;
	pid_t pid;

#ifdef __SANITIZE_THREAD__
	pawl_skip("forked_child_gets_workers_of_its_own", "no threads after fork under TSan");
	return;
#endif
	ck_assert_int_eq(pawl_pool_new(3, &pool, &err), PAWL_OK);
	meet_once(pool);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		struct job job = {.team = pawl_pool_team(pool)};
		bool ok;

		alarm(20);
		job.team->run(job.team, meet, &job);
		ok = !job.failed && atomic_load(&job.n_calls) == 3;
		pawl_pool_free(pool);
		_exit(ok ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	meet_once(pool);
	pawl_pool_free(pool);
}
END_TEST

START_TEST(forked_child_may_free_a_pool_it_never_ran)
{
	struct pawl_pool *pool;
	int status;
	pid_t pid;

	ck_assert_int_eq(pawl_pool_new(3, &pool, &err), PAWL_OK);
	meet_once(pool);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		alarm(20);
		pawl_pool_free(pool);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	pawl_pool_free(pool);
}
END_TEST

static void
look_at_signals(void *arg, int thread, int n_threads)
{
	struct job *job = arg;
	sigset_t now;

	(void)n_threads;
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	job->is_blocked[thread] = sigismember(&now, SIGINT) == 1 &&
				  sigismember(&now, SIGCHLD) == 1 &&
				  sigismember(&now, SIGUSR1) == 1;
}

START_TEST(signals_are_blocked_in_workers_only)
{
	struct pawl_pool *pool;
	struct job job = {0};
	cpu_set_t before, after;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(before), &before), 0);
	ck_assert_int_eq(pawl_pool_new(3, &pool, &err), PAWL_OK);
	job.team = pawl_pool_team(pool);
	job.team->run(job.team, look_at_signals, &job);
	ck_assert(!job.is_blocked[0]);
	ck_assert(job.is_blocked[1]);
	ck_assert(job.is_blocked[2]);
	ck_assert_int_eq(sched_getaffinity(0, sizeof(after), &after), 0);
	ck_assert(CPU_EQUAL(&before, &after));
	pawl_pool_free(pool);
}
END_TEST

/* Threads of this process that neither sleep nor are the caller. */
static int
n_awake(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	int n = 0;

	ck_assert_ptr_nonnull(tasks);
	while ((task = readdir(tasks))) {
		char path[300], line[512] = "", *state;
		FILE *file;

		if (task->d_name[0] == '.' || atoi(task->d_name) == gettid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/stat", task->d_name);
		file = fopen(path, "r");
		ck_assert_ptr_nonnull(file);
		ck_assert_ptr_nonnull(fgets(line, sizeof(line), file));
		fclose(file);
		state = strrchr(line, ')');
		ck_assert_ptr_nonnull(state);
		n += state[2] != 'S';
	}
	closedir(tasks);
	return n;
}

START_TEST(workers_sleep_between_runs)
{
	struct pawl_pool *pool;
	int n = -1;

	ck_assert_int_eq(pawl_pool_new(4, &pool, &err), PAWL_OK);
	meet_once(pool);
	for (int i = 0; i < 5000 && n != 0; i++) {
		usleep(1000);
		n = n_awake();
	}
	ck_assert_int_eq(n, 0);
	meet_once(pool);
	pawl_pool_free(pool);
}
END_TEST

START_TEST(ranges_cover_everything_once)
{
	static const int64_t units[] = {0, 1, 2, 3, 7, 64, 1000, 12345678901};

	for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++)
		for (int n = 1; n <= 9; n++) {
			int64_t at = 0, least = INT64_MAX, most = 0;

			for (int t = 0; t < n; t++) {
				int64_t first, last;

				pawl_pool_range(units[u], t, n, &first, &last);
				ck_assert_int_eq(first, at);
				ck_assert_int_ge(last, first);
				least = last - first < least ? last - first : least;
				most = last - first > most ? last - first : most;
				at = last;
			}
			ck_assert_int_eq(at, units[u]);
			ck_assert_int_le(most - least, 1);
		}
}
END_TEST

Suite *
pawl_pool_suite(void)
{
	Suite *suite = suite_create("pool");
	TCase *tcase = tcase_create("pool");

	tcase_add_loop_test(tcase, all_threads_meet, 1, MAX_THREADS + 1);
	tcase_add_test(tcase, a_pool_steps_back_from_a_core_that_was_taken);
	tcase_add_test(tcase, every_thread_that_counts_takes_part);
	tcase_add_test(tcase, unused_pool_ends);
	tcase_add_test(tcase, thread_counts_out_of_range);
	tcase_add_test(tcase, forked_child_gets_workers_of_its_own);
	tcase_add_test(tcase, forked_child_may_free_a_pool_it_never_ran);
	tcase_add_test(tcase, signals_are_blocked_in_workers_only);
	tcase_add_test(tcase, workers_sleep_between_runs);
	tcase_add_test(tcase, ranges_cover_everything_once);
	suite_add_tcase(suite, tcase);
	return suite;
}

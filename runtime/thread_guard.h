/*
 * How many threads the next run of a pool should have.
 *
 * Threads that meet at barriers are as fast as the slowest: when something else takes a core, a team of
 * two falls below one thread alone.  A run is disturbed when more than a quarter of its time was
 * spent asleep at barriers.  After two of them in a row some runs with a thread less are tried; it stays
 * so when they are faster, else two less are tried later, then four.  A thread more is tried again after
 * some runs, later each time, until all of them have run for long without being disturbed.  More
 * threads than CPUs are halved by any disturbed run, without a trial.  Results do not depend on the
 * number of threads.
 *
 * No clock is read here.  One thread at a time.
 */
#ifndef PAWL_RUNTIME_THREAD_GUARD_H
#define PAWL_RUNTIME_THREAD_GUARD_H

#include <stdbool.h>
#include <stdint.h>

struct pawl_thread_guard {
	int most;         /* threads of the pool */
	int n_cpus;       /* that they may run on */
	int active;       /* of the next run, 1 .. most */
	const void *work; /* what runs are compared by */
	int n_others;     /* runs of other work in a row */
	int n_disturbed;  /* runs in a row */
	int64_t n_calm;   /* of all threads since two in a row were */
	int step;         /* threads fewer in the next trial of fewer */
	int64_t run_ns;   /* of late, at this number of threads */
	int64_t pause;    /* runs until something else may be tried */
	int64_t patience; /* the pause after the next trial that does not pay */
	/* A trial of another number of threads. */
	bool is_trial;
	int before, n_trials;
	int64_t before_ns, trial_ns;
	uint64_t n_step_backs; /* to fewer threads, for good or until more pay */
};

void pawl_thread_guard_init(struct pawl_thread_guard *guard, int n_threads, int n_cpus);

/*
 * After a run of guard->active threads: how long it took, how long threads slept at its barriers.  Times
 * are compared among runs of the same work only, a name that is never followed.
 */
void pawl_thread_guard_note(
	struct pawl_thread_guard *guard, const void *work, int64_t run_ns, int64_t asleep_ns);

#endif

#include "runtime/thread_guard.h"

enum {
	LEAST_ASLEEP_NS = 300000, /* below it a wait is no sign of a busy core */
	TRIAL_RUNS = 4,
	SHORTEST_PAUSE = 16,
	LONGEST_PAUSE = 512
};

void
pawl_thread_guard_init(struct pawl_thread_guard *guard, int n_threads, int n_cpus)
{
	*guard = (struct pawl_thread_guard){.most = n_threads,
		.n_cpus = n_cpus,
		.active = n_threads,
		.step = 1,
		.patience = SHORTEST_PAUSE};
}

static void
try_threads(struct pawl_thread_guard *guard, int n_threads)
{
	guard->is_trial = true;
	guard->before = guard->active;
	guard->before_ns = guard->run_ns;
	guard->n_trials = 0;
	guard->trial_ns = 0;
	guard->n_disturbed = 0;
	guard->active = n_threads;
}

static void
halve_threads(struct pawl_thread_guard *guard)
{
	int half = guard->active / 2;

	guard->active = half > guard->n_cpus ? half : guard->n_cpus;
	guard->run_ns = 0;
	guard->n_disturbed = 0;
	guard->pause = guard->patience;
	guard->n_step_backs++;
}

static void
end_trial(struct pawl_thread_guard *guard)
{
	int64_t mean = guard->trial_ns / guard->n_trials;
	/* One sixteenth faster, or it is not worth a change. */
	bool pays = mean < guard->before_ns - guard->before_ns / 16;

	guard->is_trial = false;
	if (pays) {
		guard->n_step_backs += guard->active < guard->before;
		guard->step = 1;
		guard->run_ns = mean;
		guard->pause = guard->patience = SHORTEST_PAUSE;
		return;
	}
	if (guard->active < guard->before)
		guard->step = guard->active > 1 ? 2 * guard->step : 1;
	guard->active = guard->before;
	guard->run_ns = guard->before_ns;
	guard->pause = guard->patience;
	if (guard->patience < LONGEST_PAUSE)
		guard->patience *= 2;
}

static void
note_trial(struct pawl_thread_guard *guard, int64_t run_ns)
{
	guard->trial_ns += run_ns;
	guard->n_trials++;
	/* One run that took as long as all of them may is enough to know. */
	if (guard->n_trials == TRIAL_RUNS || guard->trial_ns > TRIAL_RUNS * guard->before_ns)
		end_trial(guard);
}

void
pawl_thread_guard_note(struct pawl_thread_guard *guard, int64_t run_ns, int64_t asleep_ns)
{
	/* So that sums of a trial's runs stay in range. */
	const int64_t longest = INT64_MAX / TRIAL_RUNS;
	/* On average of those that could wait. */
	int64_t asleep = guard->active > 1 ? asleep_ns / (guard->active - 1) : 0;
	bool is_crowded = guard->active > guard->n_cpus;
	bool is_disturbed = asleep > run_ns / 4 && (is_crowded || asleep > LEAST_ASLEEP_NS);

	if (guard->most == 1)
		return;
	run_ns = run_ns < longest ? run_ns : longest;
	if (guard->is_trial) {
		note_trial(guard, run_ns);
		return;
	}
	if (is_crowded && is_disturbed) {
		halve_threads(guard);
		return;
	}
	guard->run_ns = guard->run_ns ? guard->run_ns + (run_ns - guard->run_ns) / 4 : run_ns;
	guard->n_disturbed = is_disturbed ? guard->n_disturbed + 1 : 0;
	if (guard->pause > 0) {
		guard->pause--;
		return;
	}
	if (guard->n_disturbed >= 2 && guard->active > 1)
		try_threads(guard, guard->active > guard->step ? guard->active - guard->step : 1);
	else if (guard->active < guard->most && !is_disturbed)
		try_threads(guard, guard->active + 1);
}

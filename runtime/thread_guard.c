#include "runtime/thread_guard.h"

enum {
	LEAST_ASLEEP_NS = 300000, /* below it a wait is no sign of a busy core */
	TRIAL_RUNS = 4,
	SHORTEST_PAUSE = 64,
	LONGEST_PAUSE = 512,
	OTHER_RUNS = 8 /* in a row, until they are what is compared */
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
lengthen_patience(struct pawl_thread_guard *guard)
{
	if (guard->patience < LONGEST_PAUSE)
		guard->patience *= 2;
}

static void
end_trial(struct pawl_thread_guard *guard)
{
	int64_t mean = guard->trial_ns / guard->n_trials;
	/* One sixteenth faster, or it is not worth a change. */
	bool pays = mean < guard->before_ns - guard->before_ns / 16;

	guard->is_trial = false;
	if (pays) {
		bool is_back = guard->active < guard->before;

		guard->n_step_backs += is_back;
		guard->step = 1;
		guard->run_ns = mean;
		/* A core that was free for a moment may be taken again: that is watched at once. */
		guard->pause = is_back ? guard->patience : 0;
		if (!is_back)
			lengthen_patience(guard);
		return;
	}
	if (guard->active < guard->before)
		guard->step = guard->active > 1 ? 2 * guard->step : 1;
	guard->active = guard->before;
	guard->run_ns = guard->before_ns;
	guard->pause = guard->patience;
	lengthen_patience(guard);
}

/*
 * Whether the trial's runs so far are enough to know: with fewer threads, which may still be much slower
 * than those that were disturbed, as long as all of them may take; with more, half as long again.
 */
static bool
is_lost(const struct pawl_thread_guard *guard)
{
	if (guard->active < guard->before)
		return guard->trial_ns > TRIAL_RUNS * guard->before_ns;
	return guard->trial_ns / guard->n_trials > guard->before_ns + guard->before_ns / 2;
}

static void
note_trial(struct pawl_thread_guard *guard, int64_t run_ns)
{
	guard->trial_ns += run_ns;
	guard->n_trials++;
	if (guard->n_trials == TRIAL_RUNS || is_lost(guard))
		end_trial(guard);
}

/* Whether the run is of the work that runs are compared by, which it may become. */
static bool
is_compared(struct pawl_thread_guard *guard, const void *work)
{
	if (guard->work && guard->work != work && ++guard->n_others < OTHER_RUNS)
		return false;
	guard->n_others = 0;
	if (guard->work == work)
		return true;
	guard->work = work;
	guard->run_ns = 0;
	if (guard->is_trial)
		guard->active = guard->before;
	guard->is_trial = false;
	return true;
}

void
pawl_thread_guard_note(
	struct pawl_thread_guard *guard, const void *work, int64_t run_ns, int64_t asleep_ns)
{
	/* So that sums of a trial's runs stay in range. */
	const int64_t longest = INT64_MAX / TRIAL_RUNS;
	/* On average of those that could wait. */
	int64_t asleep = guard->active > 1 ? asleep_ns / (guard->active - 1) : 0;
	bool is_crowded = guard->active > guard->n_cpus;
	bool is_disturbed = asleep > run_ns / 4 && (is_crowded || asleep > LEAST_ASLEEP_NS);

	if (guard->most == 1)
		return;
	if (!is_compared(guard, work)) {
		guard->n_disturbed += is_disturbed;
		return;
	}
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
	guard->n_calm = guard->active < guard->most || guard->n_disturbed >= 2 ? 0 : guard->n_calm + 1;
	if (guard->n_calm == LONGEST_PAUSE)
		guard->patience = SHORTEST_PAUSE;
	if (guard->pause > 0) {
		guard->pause--;
		return;
	}
	if (guard->n_disturbed >= 2 && guard->active > 1)
		try_threads(guard, guard->active > guard->step ? guard->active - guard->step : 1);
	else if (guard->active < guard->most && !is_disturbed)
		try_threads(guard, guard->active + 1);
}

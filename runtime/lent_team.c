#include "runtime/lent_team.h"

#include <sched.h>

#include "runtime/clock.h"
#include "runtime/gate.h"
#include "runtime/memory.h"

/* That the parts of the trial wait for each other. */
#define PATIENCE_NS INT64_C(2000000000)

struct pawl_lent_team {
	struct pawl_team team;   /* first: a team is its owner */
	struct pawl_block block; /* its own */
	struct pawl_parallel_for lent;
	struct pawl_meeting meeting;
	int n_active, spins;
	void (*fn)(void *arg, int thread, int n_threads);
	void *arg;
};

static void
barrier(struct pawl_team *team, int thread)
{
	struct pawl_lent_team *lent = (struct pawl_lent_team *)team;

	(void)thread;
	pawl_meeting_wait(&lent->meeting, lent->n_active, lent->spins);
}

static void
part(void *arg, int64_t i)
{
	struct pawl_lent_team *lent = arg;

	lent->fn(lent->arg, (int)i, lent->n_active);
}

static void
run(struct pawl_team *team, void (*fn)(void *arg, int thread, int n_threads), void *arg)
{
	struct pawl_lent_team *lent = (struct pawl_lent_team *)team;

	lent->fn = fn;
	lent->arg = arg;
	lent->n_active = team->n_threads;
	if (team->n_threads > 1 && !lent->lent.run(lent->lent.user, lent->n_active, part, lent))
		return;
	lent->n_active = 1;
	fn(arg, 0, 1);
}

struct trial {
	int n;
	atomic_int n_begun, n_failed;
};

static void
try_part(void *arg, int64_t i)
{
	struct trial *trial = arg;
	int64_t start = pawl_nanoseconds();

	(void)i;
	atomic_fetch_add(&trial->n_begun, 1);
	while (atomic_load(&trial->n_begun) < trial->n) {
		if (pawl_nanoseconds() - start > PATIENCE_NS || atomic_load(&trial->n_failed)) {
			atomic_fetch_add(&trial->n_failed, 1);
			return;
		}
		sched_yield();
	}
}

static enum pawl_status
try(const struct pawl_parallel_for *lent, int n_threads, struct pawl_error *err)
{
	struct trial trial = {.n = n_threads};

	if (n_threads == 1)
		return PAWL_OK;
	if (lent->run(lent->user, n_threads, try_part, &trial))
		return pawl_fail(err, PAWL_ENVIRONMENT, "parallel_for refuses %d parts", n_threads);
	if (atomic_load(&trial.n_failed) || atomic_load(&trial.n_begun) != n_threads)
		return pawl_fail(err, PAWL_ENVIRONMENT,
			"parallel_for does not run %d parts at the same time", n_threads);
	return PAWL_OK;
}

enum pawl_status
pawl_lent_team_new(const struct pawl_parallel_for *lent, int n_threads, struct pawl_lent_team **out,
	struct pawl_error *err)
{
	enum pawl_status status = try(lent, n_threads, err);
	struct pawl_lent_team *team;
	struct pawl_block block;

	if (!status)
		status = pawl_block_init(&block, sizeof(*team), err);
	if (status)
		return status;
	team = block.bytes;
	team->block = block;
	team->team = (struct pawl_team){
		.n_threads = n_threads, .run = run, .barrier = barrier};
	team->lent = *lent;
	team->spins = pawl_spins_of(n_threads);
	*out = team;
	return PAWL_OK;
}

void
pawl_lent_team_free(struct pawl_lent_team *lent)
{
	struct pawl_block block;

	if (!lent)
		return;
	block = lent->block;
	pawl_block_release(&block);
}

struct pawl_team *
pawl_lent_team_team(struct pawl_lent_team *lent)
{
	return &lent->team;
}

/*
 * A team on somebody else's threads: a host that has a pool lends it, and Pawl starts none.
 */
#ifndef PAWL_RUNTIME_LENT_TEAM_H
#define PAWL_RUNTIME_LENT_TEAM_H

#include "codegen/target.h"

/*
 * Calls part(arg, i) for i of 0 .. n - 1, all at the same time, since they wait for each other, and
 * returns 0 when all have returned; anything else when it has called none, and the run has one
 * thread then.  n is at most the threads of the team.
 */
struct pawl_parallel_for {
	int (*run)(void *user, int64_t n, void (*part)(void *arg, int64_t i), void *arg);
	void *user;
};

struct pawl_lent_team;

/*
 * n_threads is 1 .. PAWL_MAX_THREADS.  Tries it first: PAWL_ENVIRONMENT when it refuses, or when
 * the parts have not all begun after some seconds.
 */
enum pawl_status pawl_lent_team_new(const struct pawl_parallel_for *lent, int n_threads,
	struct pawl_lent_team **out, struct pawl_error *err);
/* NULL is allowed. */
void pawl_lent_team_free(struct pawl_lent_team *lent);
struct pawl_team *pawl_lent_team_team(struct pawl_lent_team *lent);

#endif

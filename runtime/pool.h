/*
 * A pool of persistent worker threads: the struct pawl_team that compiled code runs on.
 *
 * The caller of run() is thread 0; its affinity and signal mask are left alone.  Workers block all
 * signals, wait by spinning for some microseconds and then sleep on a futex, so that nothing burns
 * between tokens.  They start at the first run() that needs them, and again in a forked child
 * (which inherits no threads).  When a worker cannot be started, every run goes on with the threads
 * there are.  While something else takes a core away, runs have fewer threads
 * (runtime/thread_guard.h), unless PAWL_DEBUG says all-threads.  One run() at a time; a pool belongs to one thread at a time.
 */
#ifndef PAWL_RUNTIME_POOL_H
#define PAWL_RUNTIME_POOL_H

#include "codegen/target.h"

enum { PAWL_MAX_THREADS = 1024 };

struct pawl_pool;

/* n_threads is 1 .. PAWL_MAX_THREADS and counts the caller. */
enum pawl_status pawl_pool_new(int n_threads, struct pawl_pool **out, struct pawl_error *err);
/* Ends the workers.  NULL is allowed. */
void pawl_pool_free(struct pawl_pool *pool);

/* How often runs went over to fewer threads. */
uint64_t pawl_pool_step_backs(const struct pawl_pool *pool);

/*
 * Valid as long as the pool.  n_threads of the team may shrink when the system refuses threads,
 * never grow; a run may have fewer.
 */
struct pawl_team *pawl_pool_team(struct pawl_pool *pool);

/*
 * The part of `units` work units that falls to a thread: [*first, *last).  Parts are contiguous,
 * differ by at most one unit, and cover everything once.
 */
void pawl_pool_range(int64_t units, int thread, int n_threads, int64_t *first, int64_t *last);

#endif

#include "runtime/pool.h"

#include "ir/debug.h"
#include "runtime/clock.h"
#include "runtime/cpu_count.h"
#include "runtime/gate.h"
#include "runtime/memory.h"
#include "runtime/thread_guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { STACK_BYTES = 1 << 20 };

struct worker {
	struct pawl_pool *pool;
	pthread_t thread;
	int index;
};

struct pawl_pool {
	struct pawl_team team; /* first: a team is its pool */
	struct pawl_block block; /* the pool's own */
	struct pawl_gate start; /* opens when there is work, or the end */
	struct pawl_meeting meeting;
	void (*fn)(void *arg, int thread, int n_threads); /* NULL: end */
	void *arg;
	int spins;
	int n_active; /* threads of this run */
	bool uses_all;
	struct pawl_thread_guard guard;
	int n_started; /* workers running, in the process of fork_generation */
	unsigned fork_generation;
	struct worker *workers; /* team.n_threads - 1 */
};

static atomic_uint fork_generation;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void
after_fork(void)
{
	atomic_fetch_add(&fork_generation, 1);
}

static void
watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork);
}

static void
barrier(struct pawl_team *team, int thread)
{
	struct pawl_pool *pool = (struct pawl_pool *)team;

	(void)thread;
	pawl_meeting_wait(&pool->meeting, pool->n_active, pool->spins);
}

/*
 * The phase of the start gate holds the number of threads of the run, so that a worker that wakes
 * late takes part in the run of that very number or in none: a run waits for those it counts, and
 * goes on without the others.
 */
enum { ACTIVE_BITS = 11 };

_Static_assert(PAWL_MAX_THREADS < 1 << ACTIVE_BITS, "a phase holds the number of threads");

static void
start_run(struct pawl_pool *pool, int n_active)
{
	unsigned number = atomic_load(&pool->start.phase) >> ACTIVE_BITS;

	pawl_gate_open(&pool->start, (number + 1) << ACTIVE_BITS | (unsigned)n_active);
}

static void *
work(void *arg)
{
	struct worker *worker = arg;
	struct pawl_pool *pool = worker->pool;
	unsigned phase = 0;

	for (;;) {
		int n_active;

		pawl_gate_wait(&pool->start, phase, pool->spins);
		phase = atomic_load(&pool->start.phase);
		n_active = (int)(phase & ((1u << ACTIVE_BITS) - 1));
		if (worker->index >= n_active)
			continue;
		if (!pool->fn)
			return NULL;
		pool->fn(pool->arg, worker->index, n_active);
		barrier(&pool->team, worker->index);
	}
}

/* Starts the workers; as many as the system gives. */
static void
start_workers(struct pawl_pool *pool)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int n = 0;

	pool->fork_generation = atomic_load(&fork_generation);
	atomic_store(&pool->start.phase, 0);
	atomic_store(&pool->start.n_asleep, 0);
	atomic_store(&pool->meeting.gate.n_asleep, 0);
	atomic_store(&pool->meeting.n_arrived, 0);
	pool->spins = pawl_spins_of(pool->team.n_threads);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (!pthread_attr_init(&attr)) {
		pthread_attr_setstacksize(&attr, STACK_BYTES);
		while (n < pool->team.n_threads - 1 &&
			!pthread_create(&pool->workers[n].thread, &attr, work, &pool->workers[n]))
			n++;
		pthread_attr_destroy(&attr);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pool->n_started = n;
	pool->team.n_threads = n + 1;
	pawl_thread_guard_init(&pool->guard, n + 1, pawl_affinity_cpus());
}

static void
run(struct pawl_team *team, void (*fn)(void *arg, int thread, int n_threads), void *arg)
{
	struct pawl_pool *pool = (struct pawl_pool *)team;
	int64_t start, asleep;

	if (team->n_threads > 1 &&
		(!pool->n_started || pool->fork_generation != atomic_load(&fork_generation)))
		start_workers(pool);
	pool->n_active = pool->uses_all ? team->n_threads : pool->guard.active;
	start = pawl_nanoseconds();
	asleep = atomic_load_explicit(&pool->meeting.gate.asleep_ns, memory_order_relaxed);
	if (pool->n_active == 1) {
		fn(arg, 0, 1);
	} else {
		pool->fn = fn;
		pool->arg = arg;
		start_run(pool, pool->n_active);
		fn(arg, 0, pool->n_active);
		barrier(team, 0);
	}
	asleep = atomic_load_explicit(&pool->meeting.gate.asleep_ns, memory_order_relaxed) - asleep;
	if (team->work)
		pawl_thread_guard_note(&pool->guard, team->work, pawl_nanoseconds() - start, asleep);
}

enum pawl_status
pawl_pool_new(int n_threads, struct pawl_pool **out, struct pawl_error *err)
{
	struct pawl_block block;
	struct pawl_pool *pool;
	enum pawl_status status;

	if (n_threads < 1 || n_threads > PAWL_MAX_THREADS)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"%d threads asked for; 1 to %d are possible", n_threads, PAWL_MAX_THREADS);
	pthread_once(&fork_once, watch_forks);
	status = pawl_block_init(&block, sizeof(*pool), err);
	if (status)
		return status;
	pool = block.bytes;
	pool->block = block;
	pool->workers = pawl_memory_zalloc((size_t)n_threads, sizeof(*pool->workers));
	if (!pool->workers) {
		pawl_block_release(&block);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for %d threads", n_threads);
	}
	pool->team = (struct pawl_team){
		.n_threads = n_threads, .run = run, .barrier = barrier};
	pool->n_active = n_threads;
	pool->uses_all = pawl_debug(PAWL_DEBUG_ALL_THREADS);
	pawl_thread_guard_init(&pool->guard, n_threads, pawl_affinity_cpus());
	for (int i = 0; i < n_threads - 1; i++)
		pool->workers[i] = (struct worker){.pool = pool, .index = i + 1};
	*out = pool;
	return PAWL_OK;
}

void
pawl_pool_free(struct pawl_pool *pool)
{
	struct pawl_block block;

	if (!pool)
		return;
	if (pool->n_started && pool->fork_generation == atomic_load(&fork_generation)) {
		pool->fn = NULL;
		start_run(pool, pool->n_started + 1);
		for (int i = 0; i < pool->n_started; i++)
			pthread_join(pool->workers[i].thread, NULL);
	}
	pawl_memory_free(pool->workers);
	block = pool->block;
	pawl_block_release(&block);
}

uint64_t
pawl_pool_step_backs(const struct pawl_pool *pool)
{
	return pool->guard.n_step_backs;
}

struct pawl_team *
pawl_pool_team(struct pawl_pool *pool)
{
	return &pool->team;
}

void
pawl_pool_range(int64_t units, int thread, int n_threads, int64_t *first, int64_t *last)
{
	int64_t share = units / n_threads, extra = units % n_threads;

	*first = share * thread + (thread < extra ? thread : extra);
	*last = *first + share + (thread < extra);
}

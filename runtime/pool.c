#include "runtime/pool.h"

#include "runtime/cpu_count.h"
#include "runtime/memory.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* About 50 microseconds of pauses; none to speak of when threads outnumber CPUs. */
enum { SPINS = 2000, SPINS_CROWDED = 20, STACK_BYTES = 1 << 20 };

/* A word that threads wait to see changed. */
struct gate {
	_Alignas(64) atomic_uint phase;
	atomic_uint n_asleep;
};

struct worker {
	struct pawl_pool *pool;
	pthread_t thread;
	int index;
};

struct pawl_pool {
	struct pawl_team team; /* first: a team is its pool */
	struct gate start;     /* opens when there is work, or the end */
	struct gate meeting;   /* opens when the last thread has reached the barrier */
	_Alignas(64) atomic_uint n_arrived;
	void (*fn)(void *arg, int thread, int n_threads); /* NULL: end */
	void *arg;
	int spins;
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
pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static void
gate_open(struct gate *gate)
{
	atomic_fetch_add(&gate->phase, 1);
	if (atomic_load(&gate->n_asleep))
		syscall(SYS_futex, &gate->phase, FUTEX_WAKE_PRIVATE, PAWL_MAX_THREADS, NULL, NULL,
			0);
}

static void
gate_wait(struct gate *gate, unsigned phase, int spins)
{
	for (int i = 0; i < spins; i++) {
		if (atomic_load_explicit(&gate->phase, memory_order_acquire) != phase)
			return;
		pause_cpu();
	}
	/* Announced before the kernel compares the word, so that gate_open cannot miss a sleeper.
	 */
	atomic_fetch_add(&gate->n_asleep, 1);
	while (atomic_load(&gate->phase) == phase)
		syscall(SYS_futex, &gate->phase, FUTEX_WAIT_PRIVATE, phase, NULL, NULL, 0);
	atomic_fetch_sub(&gate->n_asleep, 1);
}

static void
barrier(struct pawl_team *team, int thread)
{
	struct pawl_pool *pool = (struct pawl_pool *)team;
	unsigned n = (unsigned)team->n_threads, phase;

	(void)thread;
	if (n == 1)
		return;
	phase = atomic_load(&pool->meeting.phase);
	if (atomic_fetch_add(&pool->n_arrived, 1) + 1 == n) {
		atomic_store(&pool->n_arrived, 0);
		gate_open(&pool->meeting);
	} else {
		gate_wait(&pool->meeting, phase, pool->spins);
	}
}

static void *
work(void *arg)
{
	struct worker *worker = arg;
	struct pawl_pool *pool = worker->pool;
	unsigned phase = 0;

	for (;; phase++) {
		gate_wait(&pool->start, phase, pool->spins);
		if (!pool->fn)
			return NULL;
		if (worker->index < pool->team.n_threads) {
			pool->fn(pool->arg, worker->index, pool->team.n_threads);
			barrier(&pool->team, worker->index);
		}
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
	atomic_store(&pool->meeting.n_asleep, 0);
	atomic_store(&pool->n_arrived, 0);
	pool->spins = pool->team.n_threads <= pawl_affinity_cpus() ? SPINS : SPINS_CROWDED;
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
}

static void
run(struct pawl_team *team, void (*fn)(void *arg, int thread, int n_threads), void *arg)
{
	struct pawl_pool *pool = (struct pawl_pool *)team;

	if (team->n_threads > 1 &&
		(!pool->n_started || pool->fork_generation != atomic_load(&fork_generation)))
		start_workers(pool);
	if (team->n_threads == 1) {
		fn(arg, 0, 1);
		return;
	}
	pool->fn = fn;
	pool->arg = arg;
	gate_open(&pool->start);
	fn(arg, 0, team->n_threads);
	barrier(team, 0);
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
	pool->workers = pawl_memory_zalloc((size_t)n_threads, sizeof(*pool->workers));
	if (!pool->workers) {
		pawl_block_release(&block);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for %d threads", n_threads);
	}
	pool->team = (struct pawl_team){n_threads, run, barrier};
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
		gate_open(&pool->start);
		for (int i = 0; i < pool->n_started; i++)
			pthread_join(pool->workers[i].thread, NULL);
	}
	pawl_memory_free(pool->workers);
	block = (struct pawl_block){.bytes = pool, .n_bytes = sizeof(*pool)};
	pawl_block_release(&block);
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

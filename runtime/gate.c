#include "runtime/gate.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/clock.h"
#include "runtime/cpu_count.h"

/* About 50 microseconds of pauses. */
enum { SPINS = 2000, SPINS_CROWDED = 20 };

static void
pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

void
pawl_gate_open(struct pawl_gate *gate, unsigned phase)
{
	atomic_store(&gate->phase, phase);
	if (atomic_load(&gate->n_asleep))
		syscall(SYS_futex, &gate->phase, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void
pawl_gate_wait(struct pawl_gate *gate, unsigned phase, int spins)
{
	int64_t start;

	for (int i = 0; i < spins; i++) {
		if (atomic_load_explicit(&gate->phase, memory_order_acquire) != phase)
			return;
		pause_cpu();
	}
	/*
	 * Announced before the kernel compares the word, so that pawl_gate_open misses no sleeper.
	 */
	start = pawl_nanoseconds();
	atomic_fetch_add(&gate->n_asleep, 1);
	while (atomic_load(&gate->phase) == phase)
		syscall(SYS_futex, &gate->phase, FUTEX_WAIT_PRIVATE, phase, NULL, NULL, 0);
	atomic_fetch_sub(&gate->n_asleep, 1);
	atomic_fetch_add_explicit(
		&gate->asleep_ns, pawl_nanoseconds() - start, memory_order_relaxed);
}

void
pawl_meeting_wait(struct pawl_meeting *meeting, int n, int spins)
{
	unsigned phase = atomic_load(&meeting->gate.phase);

	if (n == 1)
		return;
	if (atomic_fetch_add(&meeting->n_arrived, 1) + 1 == (unsigned)n) {
		atomic_store(&meeting->n_arrived, 0);
		pawl_gate_open(&meeting->gate, phase + 1);
	} else {
		pawl_gate_wait(&meeting->gate, phase, spins);
	}
}

int
pawl_spins_of(int n_threads)
{
	return n_threads <= pawl_affinity_cpus() ? SPINS : SPINS_CROWDED;
}

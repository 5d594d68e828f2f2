/*
 * Threads that wait for each other: by spinning for some microseconds, then asleep on a futex, so
 * that nothing burns between tokens.
 */
#ifndef PAWL_RUNTIME_GATE_H
#define PAWL_RUNTIME_GATE_H

#include <stdatomic.h>
#include <stdint.h>

/* A word that threads wait to see changed. */
struct pawl_gate {
	_Alignas(64) atomic_uint phase;
	atomic_uint n_asleep;
	atomic_llong asleep_ns; /* all that threads have slept here */
};

void pawl_gate_open(struct pawl_gate *gate, unsigned phase);
void pawl_gate_wait(struct pawl_gate *gate, unsigned phase, int spins);

/* Opens when the last of n threads has come.  Zeroed: nobody has. */
struct pawl_meeting {
	struct pawl_gate gate;
	_Alignas(64) atomic_uint n_arrived;
};

void pawl_meeting_wait(struct pawl_meeting *meeting, int n, int spins);

/* Rounds of spinning for a team of n: next to none when threads outnumber CPUs. */
int pawl_spins_of(int n_threads);

#endif

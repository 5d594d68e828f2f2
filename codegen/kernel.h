/*
 * What a compiled kernel is: an object that exports one function a phase and its scratch need.
 *
 * A phase is a set of independent units (codegen/launch.h counts them).  A call executes units
 * begin .. end - 1 with begin < end; calls on disjoint ranges may run at once, each with scratch
 * memory of its own.  All units of a phase must be done before the next phase starts.
 *
 * args are the step's pointers in the order of its args; symbols the program's values; scratch
 * is aligned to 64 bytes and may hold anything before and after.  The caller has entered the
 * environment of ir/fpenv.h.
 *
 * An output may lie exactly where an input lies that the same element reads, and must overlap
 * no other input.
 */
#ifndef PAWL_CODEGEN_KERNEL_H
#define PAWL_CODEGEN_KERNEL_H

#include <stdint.h>

enum { PAWL_MAX_PHASES = 2 };

typedef void pawl_kernel_fn(
	void *const *args, const int64_t *symbols, int64_t begin, int64_t end, void *scratch);

/* Names of the symbols of an object: the phases' functions, an int64_t of bytes a thread needs. */
#define PAWL_KERNEL_PHASE_0 "pawl_phase0"
#define PAWL_KERNEL_PHASE_1 "pawl_phase1"
#define PAWL_KERNEL_SCRATCH "pawl_scratch_bytes"

#endif

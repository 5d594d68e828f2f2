/* What tests/emit-aarch64 writes and tests/aarch64/run_steps.c runs: the steps of programs. */
#ifndef PAWL_TESTS_AARCH64_STEP_TABLE_H
#define PAWL_TESTS_AARCH64_STEP_TABLE_H

#include "codegen/kernel.h"

/* A kernel to run on the memory of a program. */
struct pawl_step_run {
	const char *name;
	pawl_kernel_fn *phases[PAWL_MAX_PHASES]; /* NULL behind the last one */
	const int64_t *scratch_bytes;
	int64_t units[PAWL_MAX_PHASES];
	const int64_t *args; /* of the step, as offsets into the memory */
	int n_args;
};

/* Bytes that must be as in the memory afterwards. */
struct pawl_byte_range {
	const char *name;
	int64_t offset, n_bytes;
};

/* The memory before and after lies in the files NAME.before and NAME.after. */
struct pawl_program_run {
	const char *name;
	int64_t n_bytes;
	const int64_t *symbols;
	const struct pawl_step_run *steps;
	int n_steps;
	const struct pawl_byte_range *results;
	int n_results;
};

extern const struct pawl_program_run pawl_program_runs[];
extern const int pawl_n_program_runs;

#endif

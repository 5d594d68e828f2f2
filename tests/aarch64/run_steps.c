/*
 * Runs the kernels of a table on the memory in the folder argv[1] and compares what they leave.
 * Compiled for AArch64 and run by an emulator; the last line is "N passed, N failed, N skipped".
 */
#include "ir/fpenv.h"
#include "tests/aarch64/step_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ARGS = 256 };

static char *
make(int64_t n_bytes)
{
	size_t n = ((size_t)n_bytes / 64 + 1) * 64;
	char *memory = aligned_alloc(64, n);

	if (!memory)
		exit(99);
	memset(memory, 0xff, n);
	return memory;
}

static char *
read_memory(const char *folder, const struct pawl_program_run *program, const char *when)
{
	char *memory = make(program->n_bytes), path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s.%s", folder, program->name, when);
	file = fopen(path, "rb");
	if (!file || fread(memory, 1, (size_t)program->n_bytes, file) != (size_t)program->n_bytes) {
		printf("cannot read %s\n", path);
		exit(99);
	}
	fclose(file);
	return memory;
}

/* In halves, as two threads would. */
static void
run_step(const struct pawl_program_run *program, const struct pawl_step_run *step, char *memory)
{
	char *scratch = make(*step->scratch_bytes);
	void *args[MAX_ARGS];

	for (int i = 0; i < step->n_args; i++)
		args[i] = memory + step->args[i];
	for (int i = 0; i < PAWL_MAX_PHASES && step->phases[i]; i++) {
		int64_t half = step->units[i] / 2;

		if (half > 0)
			step->phases[i](args, program->symbols, 0, half, scratch);
		if (half < step->units[i])
			step->phases[i](args, program->symbols, half, step->units[i], scratch);
	}
	free(scratch);
}

static int
is_same(const struct pawl_program_run *program, const struct pawl_byte_range *range,
	const char *got, const char *want)
{
	for (int64_t i = range->offset; i < range->offset + range->n_bytes; i++) {
		if (got[i] == want[i])
			continue;
		printf("FAILED: %s: %s: byte %lld of %lld is 0x%02x, not 0x%02x\n", program->name,
			range->name, (long long)(i - range->offset), (long long)range->n_bytes,
			(unsigned char)got[i], (unsigned char)want[i]);
		return 0;
	}
	return 1;
}

int
main(int argc, char **argv)
{
	int n_passed = 0, n_failed = 0;

	for (int p = 0; argc == 2 && p < pawl_n_program_runs; p++) {
		const struct pawl_program_run *program = &pawl_program_runs[p];
		char *memory = read_memory(argv[1], program, "before");
		char *want = read_memory(argv[1], program, "after");
		uint32_t saved = pawl_fpenv_enter();

		for (int i = 0; i < program->n_steps; i++)
			run_step(program, &program->steps[i], memory);
		pawl_fpenv_leave(saved);
		for (int i = 0; i < program->n_results; i++) {
			if (is_same(program, &program->results[i], memory, want))
				n_passed++;
			else
				n_failed++;
		}
		free(memory);
		free(want);
	}
	printf("%d passed, %d failed, 0 skipped\n", n_passed, n_failed);
	return n_failed || !n_passed;
}

/*
 * The step interpreter: executes a program (passes/step.h) op by op.  The result of every op of
 * a body is computed whole into scratch memory, then copied to where the op's outs say, so
 * that a step's outs may overlap its inputs in the way that op-by-op execution allows.
 *
 * Nothing here allocates; thread-safe over different scratch.
 */
#ifndef PAWL_CODEGEN_REF_STEP_H
#define PAWL_CODEGEN_REF_STEP_H

#include "ir/status.h"
#include "passes/step.h"

/*
 * Whether the interpreter can execute the program, and the bytes of scratch that it needs
 * (aligned to 64).  PAWL_UNSUPPORTED names a step and its op.
 */
enum pawl_status pawl_ref_program_check(
	const struct pawl_program *program, int64_t *scratch_bytes, struct pawl_error *err);

/*
 * Runs all steps in order.  args: n_args pointers; symbols: n_symbols values.  To be called in
 * the environment of ir/fpenv.h.
 *
 * PAWL_SYMBOL: a symbol out of range or not divisible.  PAWL_CAPACITY: a start or index beyond
 * the limit of an access.  PAWL_INVALID_ARGUMENT: a negative start.
 * Symbols and every start that no step of the program computes are checked before anything
 * is written.
 */
enum pawl_status pawl_ref_program_run(const struct pawl_program *program, void *const *args,
	const int64_t *symbols, void *scratch, struct pawl_error *err);

#endif

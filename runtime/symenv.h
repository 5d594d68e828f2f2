/*
 * SymEnv: the values of a plan's symbols during one step.  Write-once: the same value again is
 * fine, another one is a conflict.  A value must lie in the symbol's range and be a multiple of its
 * divisor.  Every failure is PAWL_SYMBOL, names the symbol and the values, and changes nothing.
 * Belongs to one thread at a time.
 */
#ifndef PAWL_RUNTIME_SYMENV_H
#define PAWL_RUNTIME_SYMENV_H

#include "ir/status.h"
#include "passes/step.h"

struct pawl_symenv {
	const struct pawl_program_symbol
		*symbols; /* n; belong to the plan, which must outlive this */
	int32_t n;
	int64_t *values;
	bool *is_bound;
};

/* PAWL_OUT_OF_MEMORY. */
enum pawl_status pawl_symenv_init(struct pawl_symenv *env,
	const struct pawl_program_symbol *symbols, int32_t n, struct pawl_error *err);
void pawl_symenv_release(struct pawl_symenv *env);
/* Unbinds all. */
void pawl_symenv_clear(struct pawl_symenv *env);

enum pawl_status pawl_symenv_bind(
	struct pawl_symenv *env, int32_t symbol, int64_t value, struct pawl_error *err);
/* An unknown name is PAWL_SYMBOL too. */
enum pawl_status pawl_symenv_bind_name(
	struct pawl_symenv *env, const char *name, int64_t value, struct pawl_error *err);
/* PAWL_SYMBOL when unbound. */
enum pawl_status pawl_symenv_get(
	const struct pawl_symenv *env, int32_t symbol, int64_t *out, struct pawl_error *err);
/* PAWL_SYMBOL naming the first symbol that is unbound. */
enum pawl_status pawl_symenv_check_bound(const struct pawl_symenv *env, struct pawl_error *err);

#endif

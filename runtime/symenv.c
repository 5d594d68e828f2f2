#include "runtime/symenv.h"

#include "ir/each_token.h"
#include "runtime/memory.h"

#include <inttypes.h>
#include <string.h>

enum pawl_status
pawl_symenv_init(struct pawl_symenv *env, const struct pawl_program_symbol *symbols, int32_t n,
	struct pawl_error *err)
{
	*env = (struct pawl_symenv){.symbols = symbols, .n = n};
	env->values = pawl_memory_zalloc((size_t)n, sizeof(*env->values));
	env->is_bound = pawl_memory_zalloc((size_t)n, sizeof(*env->is_bound));
	if (!env->values || !env->is_bound) {
		pawl_symenv_release(env);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for %d symbols", n);
	}
	return PAWL_OK;
}

void
pawl_symenv_release(struct pawl_symenv *env)
{
	pawl_memory_free(env->values);
	pawl_memory_free(env->is_bound);
	*env = (struct pawl_symenv){0};
}

PAWL_EACH_TOKEN void
pawl_symenv_clear(struct pawl_symenv *env)
{
	for (int32_t i = 0; i < env->n; i++) {
		env->is_bound[i] = false;
		env->values[i] = 0;
	}
}

PAWL_EACH_TOKEN enum pawl_status
pawl_symenv_bind(struct pawl_symenv *env, int32_t symbol, int64_t value, struct pawl_error *err)
{
	const struct pawl_program_symbol *s;

	if (symbol < 0 || symbol >= env->n)
		return pawl_fail(
			err, PAWL_SYMBOL, "there is no symbol number %d among %d", symbol, env->n);
	s = &env->symbols[symbol];
	if (env->is_bound[symbol] && env->values[symbol] != value)
		return pawl_fail(err, PAWL_SYMBOL,
			"symbol %s is bound to %" PRId64 " in this step and cannot become %" PRId64,
			s->name, env->values[symbol], value);
	if (value < s->min || value > s->max)
		return pawl_fail(err, PAWL_SYMBOL,
			"symbol %s = %" PRId64 " is outside its range %" PRId64 " to %" PRId64,
			s->name, value, s->min, s->max);
	if (s->multiple > 1 && value % s->multiple)
		return pawl_fail(err, PAWL_SYMBOL,
			"symbol %s = %" PRId64 " is not a multiple of %" PRId64, s->name, value,
			s->multiple);
	env->values[symbol] = value;
	env->is_bound[symbol] = true;
	return PAWL_OK;
}

enum pawl_status
pawl_symenv_bind_name(
	struct pawl_symenv *env, const char *name, int64_t value, struct pawl_error *err)
{
	for (int32_t i = 0; i < env->n; i++)
		if (!strcmp(env->symbols[i].name, name))
			return pawl_symenv_bind(env, i, value, err);
	return pawl_fail(err, PAWL_SYMBOL, "the plan has no symbol %s", name);
}

enum pawl_status
pawl_symenv_get(const struct pawl_symenv *env, int32_t symbol, int64_t *out, struct pawl_error *err)
{
	if (symbol < 0 || symbol >= env->n)
		return pawl_fail(
			err, PAWL_SYMBOL, "there is no symbol number %d among %d", symbol, env->n);
	if (!env->is_bound[symbol])
		return pawl_fail(
			err, PAWL_SYMBOL, "symbol %s is unbound", env->symbols[symbol].name);
	*out = env->values[symbol];
	return PAWL_OK;
}

PAWL_EACH_TOKEN enum pawl_status
pawl_symenv_check_bound(const struct pawl_symenv *env, struct pawl_error *err)
{
	for (int32_t i = 0; i < env->n; i++)
		if (!env->is_bound[i])
			return pawl_fail(
				err, PAWL_SYMBOL, "symbol %s is unbound", env->symbols[i].name);
	return PAWL_OK;
}

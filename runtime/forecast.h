/*
 * What a run will take, told from its plans before the first token: before weights are packed, a
 * cache is made or anything is bound.
 */
#ifndef PAWL_RUNTIME_FORECAST_H
#define PAWL_RUNTIME_FORECAST_H

#include "runtime/kv_cache.h"
#include "runtime/plan.h"

/* Bytes. */
struct pawl_memory_forecast {
	int64_t weights; /* packed matrices and copied vectors; each once, whatever the plans */
	int64_t mapped;  /* weights read where their source has them, so far as they are read */
	int64_t kv;
	int64_t scratch; /* temporaries and outputs of each plan, memory of each thread */
	int64_t data;    /* token data and literals */
	int64_t code;    /* all kernels that the plans' device holds, these plans' among them; a cache
			    needs one more, of some hundred bytes */
};

/*
 * For a session on each of the plans, over one cache of that shape (NULL: none), run by n_threads.
 * weights + kv + scratch + data is to the byte what pawl_memory_block_bytes grows by when all of that
 * is there, beside the few hundred bytes of the team of threads.  PAWL_OUT_OF_MEMORY.
 */
enum pawl_status pawl_forecast_memory(const struct pawl_plan *const *plans, int n_plans,
	const struct pawl_kv_shape *shape, int n_threads, struct pawl_memory_forecast *out,
	struct pawl_error *err);

int64_t pawl_forecast_total(const struct pawl_memory_forecast *forecast);

#endif

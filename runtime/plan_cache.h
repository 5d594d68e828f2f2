/*
 * Plans by validity key, so that sessions of one model share them.  Holds the most recently used
 * ones, a bounded number.  Any thread.
 */
#ifndef PAWL_RUNTIME_PLAN_CACHE_H
#define PAWL_RUNTIME_PLAN_CACHE_H

#include "runtime/plan.h"

struct pawl_plan_cache;

enum { PAWL_MAX_CACHED_PLANS = 1 << 16 };

/* 1 <= capacity <= PAWL_MAX_CACHED_PLANS plans, or PAWL_INVALID_ARGUMENT. */
enum pawl_status pawl_plan_cache_new(
	int capacity, struct pawl_plan_cache **out, struct pawl_error *err);
/* NULL is allowed. */
void pawl_plan_cache_free(struct pawl_plan_cache *cache);

/* A reference to the plan whose key equals in every field; NULL when there is none. */
struct pawl_plan *pawl_plan_cache_find(
	struct pawl_plan_cache *cache, const struct pawl_plan_key *key);
/* Takes a reference; the least recently used plan makes room. */
void pawl_plan_cache_put(struct pawl_plan_cache *cache, struct pawl_plan *plan);

#endif

#include "runtime/plan_cache.h"

#include "runtime/memory.h"

#include <pthread.h>

struct pawl_plan_cache {
	pthread_mutex_t lock;
	int n, capacity;
	struct pawl_plan **plans; /* most recently used first */
};

enum pawl_status
pawl_plan_cache_new(int capacity, struct pawl_plan_cache **out, struct pawl_error *err)
{
	struct pawl_plan_cache *cache;

	if (capacity < 1 || capacity > PAWL_MAX_CACHED_PLANS)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a cache of %d plans; 1 to %d are possible", capacity,
			PAWL_MAX_CACHED_PLANS);
	cache = pawl_memory_zalloc(1, sizeof(*cache));
	if (cache)
		cache->plans = pawl_memory_zalloc((size_t)capacity, sizeof(struct pawl_plan *));
	if (!cache || !cache->plans) {
		pawl_memory_free(cache);
		return pawl_fail(
			err, PAWL_OUT_OF_MEMORY, "no memory for a cache of %d plans", capacity);
	}
	cache->capacity = capacity;
	pthread_mutex_init(&cache->lock, NULL);
	*out = cache;
	return PAWL_OK;
}

void
pawl_plan_cache_free(struct pawl_plan_cache *cache)
{
	if (!cache)
		return;
	for (int i = 0; i < cache->n; i++)
		pawl_plan_unref(cache->plans[i]);
	pthread_mutex_destroy(&cache->lock);
	pawl_memory_free(cache->plans);
	pawl_memory_free(cache);
}

/* Puts plan, which was at place i or nowhere (i = n), to the front. */
static void
to_front(struct pawl_plan_cache *cache, struct pawl_plan *plan, int i)
{
	for (; i > 0; i--)
		cache->plans[i] = cache->plans[i - 1];
	cache->plans[0] = plan;
}

static int
find(const struct pawl_plan_cache *cache, const struct pawl_plan_key *key)
{
	const struct pawl_kv_alloc_id any = {0};
	int i;

	for (i = 0; i < cache->n; i++)
		if (pawl_plan_validity(&cache->plans[i]->key, any, key, any).validity == PAWL_VALID)
			break;
	return i;
}

struct pawl_plan *
pawl_plan_cache_find(struct pawl_plan_cache *cache, const struct pawl_plan_key *key)
{
	struct pawl_plan *plan = NULL;
	int i;

	pthread_mutex_lock(&cache->lock);
	i = find(cache, key);
	if (i < cache->n) {
		plan = pawl_plan_ref(cache->plans[i]);
		to_front(cache, plan, i);
	}
	pthread_mutex_unlock(&cache->lock);
	return plan;
}

void
pawl_plan_cache_put(struct pawl_plan_cache *cache, struct pawl_plan *plan)
{
	struct pawl_plan *gone = NULL;
	int i;

	pthread_mutex_lock(&cache->lock);
	i = find(cache, &plan->key);
	if (i < cache->n || cache->n == cache->capacity) {
		i = i < cache->n ? i : cache->n - 1;
		gone = cache->plans[i];
	} else {
		cache->n++;
	}
	to_front(cache, pawl_plan_ref(plan), i);
	pthread_mutex_unlock(&cache->lock);
	pawl_plan_unref(gone);
}

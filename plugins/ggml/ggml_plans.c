#include "plugins/ggml/ggml_plans.h"

#include <pthread.h>

#include "plugins/ggml/ggml_counters.h"
#include "runtime/memory.h"

/* Hashes without a plan stay known, to tell a plan that is built again. */
enum { MOST_HASHES = 1024 };

struct entry {
	uint64_t hash;
	struct pawl_plan *plan; /* NULL: dropped, or never built */
	struct pawl_error *error; /* why it could not be built, NULL: it could */
	uint64_t last_used;
	struct entry *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries;
static int n_entries, n_plans;
static int64_t n_bytes; /* of plans */
static int most_plans = PAWL_GGML_MOST_PLANS;
static int64_t most_bytes = PAWL_GGML_MOST_BYTES;
static uint64_t now;

static void
drop(struct entry *entry)
{
	n_plans--;
	n_bytes -= pawl_plan_bytes(entry->plan);
	pawl_plan_unref(entry->plan);
	entry->plan = NULL;
	atomic_fetch_sub(&pawl_ggml_counters.plans, 1);
	atomic_fetch_add(&pawl_ggml_counters.evicted, 1);
}

/* The entry that was used longest ago, of those with a plan or of all; NULL: there is none. */
static struct entry **
find_oldest(bool with_plan)
{
	struct entry **at, **oldest = NULL;

	for (at = &entries; *at; at = &(*at)->next)
		if ((!with_plan || (*at)->plan) &&
			(!oldest || (*at)->last_used < (*oldest)->last_used))
			oldest = at;
	return oldest;
}

/* Keeps within the bounds, and the plan that was used last in any case. */
static void
drop_oldest(void)
{
	while (n_plans > 1 && (n_plans > most_plans || n_bytes > most_bytes))
		drop(*find_oldest(true));
}

static void
forget_oldest(void)
{
	struct entry **oldest = find_oldest(false), *entry = *oldest;

	*oldest = entry->next;
	if (entry->plan)
		drop(entry);
	pawl_memory_free(entry->error);
	pawl_memory_free(entry);
	n_entries--;
}

static enum pawl_status
build(struct entry *entry, bool is_new, const struct pawl_graph *graph, struct pawl_device *device,
	struct pawl_error *err)
{
	const struct pawl_plan_options options = {.no_reuse = false};
	enum pawl_status status;

	status = pawl_plan_build(graph, device, &options, &entry->plan, err);
	if (status) {
		entry->error = pawl_memory_zalloc(1, sizeof(*entry->error));
		if (entry->error)
			*entry->error = *err;
		return status;
	}
	n_plans++;
	n_bytes += pawl_plan_bytes(entry->plan);
	atomic_fetch_add(&pawl_ggml_counters.plans, 1);
	atomic_fetch_add(&pawl_ggml_counters.optimizes, 1);
	if (!is_new)
		atomic_fetch_add(&pawl_ggml_counters.rebuilds, 1);
	return PAWL_OK;
}

static enum pawl_status
get(uint64_t hash, const struct pawl_graph *graph, struct pawl_device *device, struct pawl_plan **out,
	struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;
	struct entry *entry;
	bool is_new;

	for (entry = entries; entry && entry->hash != hash; entry = entry->next)
		;
	is_new = !entry;
	if (is_new) {
		if (n_entries == MOST_HASHES)
			forget_oldest();
		entry = pawl_memory_zalloc(1, sizeof(*entry));
		if (!entry)
			return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a plan");
		entry->hash = hash;
		entry->next = entries;
		entries = entry;
		n_entries++;
		atomic_fetch_add(&pawl_ggml_counters.shapes, 1);
	}
	entry->last_used = ++now;
	if (entry->error)
		return pawl_fail(err, entry->error->status, "%s", entry->error->text);
	if (!entry->plan)
		status = build(entry, is_new, graph, device, err);
	if (status)
		return status;
	*out = pawl_plan_ref(entry->plan);
	drop_oldest();
	return PAWL_OK;
}

void
pawl_ggml_plans_limit(int plans, int64_t bytes)
{
	pthread_mutex_lock(&lock);
	most_plans = plans;
	most_bytes = bytes;
	drop_oldest();
	pthread_mutex_unlock(&lock);
}

enum pawl_status
pawl_ggml_plans_get(uint64_t hash, const struct pawl_graph *graph, struct pawl_device *device,
	struct pawl_plan **out, struct pawl_error *err)
{
	struct pawl_error own;
	enum pawl_status status;

	pthread_mutex_lock(&lock);
	status = get(hash, graph, device, out, err ? err : &own);
	pthread_mutex_unlock(&lock);
	return status;
}

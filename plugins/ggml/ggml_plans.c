#include "plugins/ggml/ggml_plans.h"

#include <pthread.h>

#include "plugins/ggml/ggml_counters.h"
#include "runtime/memory.h"

enum { MOST_PLANS = 128 };

struct entry {
	uint64_t hash;
	struct pawl_plan *plan; /* NULL: dropped, or never built */
	struct pawl_error *error; /* why it could not be built, NULL: it could */
	uint64_t last_used;
	struct entry *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries;
static uint64_t now;

static void
drop_oldest(void)
{
	struct entry *entry, *oldest = NULL;
	int n = 0;

	for (entry = entries; entry; entry = entry->next) {
		if (!entry->plan)
			continue;
		n++;
		if (!oldest || entry->last_used < oldest->last_used)
			oldest = entry;
	}
	if (n < MOST_PLANS)
		return;
	pawl_plan_unref(oldest->plan);
	oldest->plan = NULL;
}

static enum pawl_status
build(struct entry *entry, bool is_new, const struct pawl_graph *graph, struct pawl_device *device,
	struct pawl_error *err)
{
	const struct pawl_plan_options options = {.no_reuse = false};
	enum pawl_status status;

	drop_oldest();
	status = pawl_plan_build(graph, device, &options, &entry->plan, err);
	if (status) {
		entry->error = pawl_memory_zalloc(1, sizeof(*entry->error));
		if (entry->error)
			*entry->error = *err;
		return status;
	}
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
		entry = pawl_memory_zalloc(1, sizeof(*entry));
		if (!entry)
			return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a plan");
		entry->hash = hash;
		entry->next = entries;
		entries = entry;
		atomic_fetch_add(&pawl_ggml_counters.shapes, 1);
	}
	if (entry->error)
		return pawl_fail(err, entry->error->status, "%s", entry->error->text);
	if (!entry->plan)
		status = build(entry, is_new, graph, device, err);
	if (status)
		return status;
	entry->last_used = ++now;
	*out = pawl_plan_ref(entry->plan);
	return PAWL_OK;
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

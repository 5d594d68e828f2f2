#include <pthread.h>
#include <stdio.h>

#include "plugins/host_api.h"

enum { COUNTER_1 = 24, NAME_BYTES = 48, N_PLAIN = 14 };

_Static_assert(sizeof(struct pawl_counter) >= COUNTER_1, "structs only grow");

static const char *const plain[N_PLAIN] = {"plans.compiled", "plans.regrown", "kernels.compiled",
	"kernels.read", "runs", "runs.failed", "run_ns", "positions", "bytes_bound", "handles",
	"cache.kept", "cache.rebound", "cache.stale", "cache.refused"};

static char stale_names[PAWL_N_KEY_FIELDS][NAME_BYTES];
static char refused_names[PAWL_N_REFUSALS][NAME_BYTES];
static pthread_once_t names_once = PTHREAD_ONCE_INIT;

static void
make_names(void)
{
	for (int i = 0; i < PAWL_N_KEY_FIELDS; i++)
		snprintf(stale_names[i], NAME_BYTES, "cache.stale.%s",
			pawl_key_field_name((enum pawl_key_field)i));
	for (int i = 0; i < PAWL_N_REFUSALS; i++)
		snprintf(refused_names[i], NAME_BYTES, "cache.refused.%s",
			pawl_refusal_name((enum pawl_refusal_kind)i));
}

static uint64_t
plain_value(const struct pawl_host_context *context, int64_t i)
{
	const struct pawl_host_counts *counts = &context->counts;
	struct pawl_target_counters target;

	pawl_device_counters(context->device, &target);
	return (const uint64_t[N_PLAIN]){
		atomic_load(&counts->plans),
		atomic_load(&counts->regrown),
		target.kernel_compiles,
		target.kernels_read,
		atomic_load(&counts->runs),
		atomic_load(&counts->failed_runs),
		atomic_load(&counts->run_ns),
		atomic_load(&counts->positions),
		atomic_load(&counts->bytes_bound),
		atomic_load(&counts->handles),
		atomic_load(&counts->verdicts[PAWL_CACHE_KEPT]),
		atomic_load(&counts->verdicts[PAWL_CACHE_REBOUND]),
		atomic_load(&counts->verdicts[PAWL_CACHE_STALE]),
		atomic_load(&counts->verdicts[PAWL_CACHE_REFUSED]),
	}[i];
}

int
pawl_host_context_counter(struct pawl_host_context *context, int64_t i, struct pawl_counter *out)
{
	struct pawl_counter counter = {0};

	if (!pawl_host_is(context, PAWL_HOST_CONTEXT) || !out || i < 0)
		return 0;
	pthread_once(&names_once, make_names);
	if (i < N_PLAIN) {
		counter.name = plain[i];
		counter.value = plain_value(context, i);
	} else if (i < N_PLAIN + PAWL_N_KEY_FIELDS) {
		counter.name = stale_names[i - N_PLAIN];
		counter.value = atomic_load(&context->counts.stale[i - N_PLAIN]);
	} else if (i < N_PLAIN + PAWL_N_KEY_FIELDS + PAWL_N_REFUSALS - 1) {
		/* The first refusal is that there is none. */
		i -= N_PLAIN + PAWL_N_KEY_FIELDS - 1;
		counter.name = refused_names[i];
		counter.value = atomic_load(&context->counts.refused[i]);
	} else {
		return 0;
	}
	return pawl_host_write(out, COUNTER_1, &counter, sizeof(counter));
}

#include "plugins/ggml/ggml_counters.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MOST_OPS = 64 };

struct pawl_ggml_counters pawl_ggml_counters;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	char name[32];
	uint64_t n;
} declined[MOST_OPS];
static int n_declined;

void
pawl_ggml_count_declined(const char *op)
{
	int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < n_declined && strcmp(declined[i].name, op); i++)
		;
	if (i == n_declined && i < MOST_OPS)
		snprintf(declined[n_declined++].name, sizeof(declined[0].name), "%s", op);
	if (i < MOST_OPS)
		declined[i].n++;
	pthread_mutex_unlock(&lock);
}

const char *
pawl_ggml_counters_text(char *out, size_t n)
{
	size_t at = 0;
	int i;

#define PAWL_GGML_COUNTER_ROW(name, doc)                                                           \
	if (at < n)                                                                                \
		at += (size_t)snprintf(out + at, n - at, "%s%s %" PRIu64, at ? ", " : "", #name,   \
			atomic_load(&pawl_ggml_counters.name));
	PAWL_GGML_COUNTERS
#undef PAWL_GGML_COUNTER_ROW
	pthread_mutex_lock(&lock);
	for (i = 0; i < n_declined && at < n; i++)
		at += (size_t)snprintf(out + at, n - at, "%s %s %" PRIu64,
			i ? "," : "; declined:", declined[i].name, declined[i].n);
	pthread_mutex_unlock(&lock);
	return out;
}

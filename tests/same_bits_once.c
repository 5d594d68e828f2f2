/* A model plans once: many sequences that come and go, and caches that take turns. */
#include "tests/same_bits.h"

#include "runtime/decoder.h"
#include "runtime/memory.h"
#include "runtime/scheduler.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { N_TOKENS = 1000, SIDE_BY_SIDE = 4, MAX_REQUESTS = 128, N_CACHES = 8, N_SWITCHES = 8000 };

static struct pawl_same_bits *const t = &pawl_same_bits;

static uint64_t first_id;
static int sequence_of[MAX_REQUESTS]; /* by request - first_id */
static int n_seen[MAX_REQUESTS];
static int64_t n_tokens;

/* What a request's tokens come from, as long as it is known. */
static void
see(void *arg, const struct pawl_request_event *event)
{
	int i = (int)(event->id - first_id);

	(void)arg;
	if (event->kind != PAWL_REQUEST_TOKEN)
		return;
	if (n_seen[i] <= PAWL_KNOWN_STEPS)
		pawl_same_logits(
			"a request among others", sequence_of[i], n_seen[i], event->logits);
	n_seen[i]++;
	n_tokens++;
}

static void
submit(struct pawl_scheduler *scheduler, int n)
{
	static const int64_t lasting[] = {31, 9, 44, 20, 12, 53, 27};
	const struct pawl_known_sequence *known = &t->known[n % PAWL_KNOWN_SEQUENCES];
	const struct pawl_request_options request = {
		.prompt = known->tokens, .n_prompt = known->n_prompt, .max_new = lasting[n % 7]};
	uint64_t id;

	sequence_of[n] = n % PAWL_KNOWN_SEQUENCES;
	pawl_same_must(pawl_scheduler_submit(scheduler, &request, &id, &t->err));
	if (!n)
		first_id = id;
	pawl_same_count("id of a request", (int64_t)(id - first_id), n);
}

static int64_t
n_finished(const struct pawl_scheduler *scheduler)
{
	struct pawl_scheduler_stats stats;

	pawl_scheduler_stats(scheduler, &stats);
	return stats.n_finished[PAWL_FINISH_LENGTH];
}

/* Four at a time, whose lengths differ, join and leave. */
void
pawl_same_thousand_tokens(void)
{
	const struct pawl_paged_options paged = {
		.n_blocks = 24, .block_size = 16, .max_blocks = 6, .kv_dtype = PAWL_DTYPE_F16};
	const struct pawl_scheduler_options options = {.max_batch = 8, .event = see};
	struct pawl_paged_decoder *decoder;
	struct pawl_scheduler *scheduler;
	struct pawl_decoder_stats warm = {0}, stats;
	uint64_t allocations = 0;
	int n = 0;

	n_tokens = 0;
	memset(n_seen, 0, sizeof(n_seen));
	pawl_same_must(pawl_paged_decoder_new(t->source, t->device, &paged, &decoder, &t->err));
	pawl_same_must(pawl_scheduler_new(decoder, &options, &scheduler, &t->err));
	while (n_tokens < N_TOKENS || pawl_scheduler_has_work(scheduler)) {
		uint64_t before;

		/* The first join one by one. */
		while (n_tokens < N_TOKENS && n - n_finished(scheduler) < SIDE_BY_SIDE &&
			(n >= SIDE_BY_SIDE || n_tokens >= 2 * n))
			submit(scheduler, n++);
		before = pawl_memory_allocations();
		pawl_same_must(pawl_scheduler_step(scheduler, &t->err));
		if (n_finished(scheduler) < SIDE_BY_SIDE)
			pawl_paged_decoder_stats(decoder, &warm);
		else
			allocations += pawl_memory_allocations() - before;
	}
	pawl_paged_decoder_stats(decoder, &stats);
	if (t->tells)
		printf("%" PRId64 " tokens of %d sequences, %d side by side: %" PRIu64
		       " optimizes, %" PRIu64 " rebuilds, %" PRIu64 " allocations once warm\n",
			n_tokens, n, SIDE_BY_SIDE, stats.counters.optimizes,
			pawl_counters_rebuilds(&stats.counters), allocations);
	pawl_same_count("all requests", n_finished(scheduler), n);
	/* A chunk; batches of 1, 2 and 4; and once for the cache itself. */
	pawl_same_count("plans held", stats.n_sessions, 4);
	pawl_same_count("optimizes", (int64_t)stats.counters.optimizes, 4 + 1);
	pawl_same_count("optimizes when warm", (int64_t)warm.counters.optimizes, 4 + 1);
	pawl_same_count("kernels compiled since",
		(int64_t)(stats.kernel_compiles - warm.kernel_compiles), 0);
	pawl_same_count("rebuilds", (int64_t)pawl_counters_rebuilds(&stats.counters), 0);
	pawl_same_count("allocations once warm", (int64_t)allocations, 0);
	pawl_scheduler_free(scheduler);
	pawl_paged_decoder_free(decoder);
}

/* Of this thread at work. */
static double
seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Each cache is the next one's successor in the decoder, which has the last. */
static void
time_switches(struct pawl_decoder *decoder, struct pawl_kv_cache **caches)
{
	double start = seconds();

	for (int i = 0; i < N_SWITCHES; i++) {
		pawl_decoder_swap_cache(decoder, &caches[i % (N_CACHES - 1)]);
		pawl_same_must(
			pawl_decoder_prepare(decoder, 1, PAWL_LOGITS_LAST, NULL, &t->err));
	}
	if (t->tells)
		printf("a switch among %d caches of one shape: %.2f microseconds\n", N_CACHES,
			1e6 * (seconds() - start) / N_SWITCHES);
}

/* Eight sessions take turns, token by token. */
void
pawl_same_turns(void)
{
	const struct pawl_decoder_options options = {.capacity = PAWL_KNOWN_CAPACITY,
		.kv_dtype = PAWL_DTYPE_F16,
		.precision = PAWL_PRECISION_A16,
		.plans = t->plans};
	struct pawl_kv_cache *caches[N_CACHES] = {NULL};
	struct pawl_decoder_stats before, after;
	struct pawl_decoder *decoder;
	const float *logits;

	pawl_same_must(pawl_decoder_new(t->source, t->device, &options, &decoder, &t->err));
	for (int i = 0; i < N_CACHES; i++) {
		const struct pawl_known_sequence *known = &t->known[i % PAWL_KNOWN_SEQUENCES];

		if (i)
			pawl_same_must(pawl_kv_cache_with_capacity(pawl_decoder_context(decoder),
				pawl_kv_cache_shape(pawl_decoder_cache(decoder)), &caches[i],
				&t->err));
		if (i)
			pawl_decoder_swap_cache(decoder, &caches[i]);
		pawl_same_must(pawl_decoder_prefill(
			decoder, known->tokens, known->n_prompt, &logits, &t->err));
		if (i)
			pawl_decoder_swap_cache(decoder, &caches[i]);
	}
	pawl_decoder_stats(decoder, &before);
	for (int step = 0; step < 3; step++)
		for (int i = 0; i < N_CACHES; i++) {
			int sequence = i % PAWL_KNOWN_SEQUENCES;

			if (i)
				pawl_decoder_swap_cache(decoder, &caches[i]);
			pawl_same_must(pawl_decoder_step(
				decoder, pawl_known_token(sequence, step), &logits, &t->err));
			pawl_same_logits("taking turns", sequence, step + 1, logits);
			if (i)
				pawl_decoder_swap_cache(decoder, &caches[i]);
		}
	pawl_decoder_stats(decoder, &after);
	pawl_same_count("optimizes of taking turns",
		(int64_t)(after.counters.optimizes - before.counters.optimizes), 0);
	pawl_same_count("rebuilds of taking turns",
		(int64_t)pawl_counters_rebuilds(&after.counters), 0);
	pawl_same_count("rebinds of taking turns",
		(int64_t)(after.counters.rebinds - before.counters.rebinds), 3 * N_CACHES);
	time_switches(decoder, caches + 1);
	for (int i = 0; i < N_CACHES; i++)
		pawl_kv_cache_free(caches[i]);
	pawl_decoder_free(decoder);
}

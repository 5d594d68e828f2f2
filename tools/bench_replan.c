#include "tools/bench_replan.h"

#include "runtime/paged_decoder.h"
#include "runtime/clock.h"
#include "tools/median.h"

#include <inttypes.h>
#include <stdio.h>

enum { MAX_REPEATS = 100, N_REPLANNED = 4, CAPACITY = 512, BLOCK = 16, N_WAYS = 4 };
enum { N_CACHES = 8, N_SWITCHES = 1000 };

static const char *const names[N_WAYS] = {
	"contiguous, plan held",
	"contiguous, replanned every token",
	"paged, plan held",
	"paged, replanned every token",
};

/* One of the ways to decode: a decoder of either kind. */
struct way {
	struct pawl_decoder *decoder;
	struct pawl_paged_decoder *paged;
	struct pawl_kv_session_id session;
	int64_t n; /* tokens a round */
	double seconds[MAX_REPEATS]; /* a token */
};

static enum pawl_status
open_way(struct pawl_engine *engine, int i, struct way *way, struct pawl_error *err)
{
	const struct pawl_model_source *source = pawl_model_source(engine->model);
	const struct pawl_decoder_options contiguous = {
		.capacity = CAPACITY,
		.kv_dtype = pawl_engine_kv_dtype(&engine->options),
		.precision = (enum pawl_precision)engine->options.precision,
		.n_threads = (int)engine->options.threads,
		.replan = i % 2,
	};
	const struct pawl_paged_options paged = {
		.n_blocks = CAPACITY / BLOCK,
		.block_size = BLOCK,
		.max_blocks = CAPACITY / BLOCK,
		.kv_dtype = contiguous.kv_dtype,
		.precision = contiguous.precision,
		.n_threads = contiguous.n_threads,
		.policy = i % 2 ? PAWL_PAGED_REPLAN : PAWL_PAGED_PLAN_ONCE,
	};
	enum pawl_status status;

	if (i < 2)
		return pawl_decoder_new(source, engine->device, &contiguous, &way->decoder, err);
	status = pawl_paged_decoder_new(source, engine->device, &paged, &way->paged, err);
	return status ? status : pawl_paged_decoder_open(way->paged, &way->session, err);
}

static enum pawl_status
step(struct way *way, struct pawl_error *err)
{
	const struct pawl_paged_row row = {way->session, 0};
	const float *logits;

	return way->decoder ? pawl_decoder_step(way->decoder, 0, &logits, err)
			    : pawl_paged_decoder_step(way->paged, &row, 1, &logits, err);
}

/* From an empty cache, so that every round attends over the same positions. */
static enum pawl_status
time_round(struct way *way, int64_t n, double *seconds, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;
	double start;

	if (way->decoder)
		pawl_decoder_truncate(way->decoder, 0);
	else
		status = pawl_kv_block_pool_truncate(
			pawl_paged_decoder_pool(way->paged), way->session, 0, err);
	start = pawl_seconds();
	for (int64_t i = 0; i < n && !status; i++)
		status = step(way, err);
	*seconds = (pawl_seconds() - start) / (double)n;
	return status;
}

/*
 * Seconds that a held plan takes to go over to another cache, among N_CACHES of one shape, each the
 * last one's successor.  Rebuilds would be seen: they take a thousand times as long.
 */
static enum pawl_status
time_switches(struct pawl_decoder *decoder, double *seconds, struct pawl_error *err)
{
	struct pawl_kv_cache *caches[N_CACHES - 1] = {NULL};
	enum pawl_status status = pawl_decoder_prepare(decoder, 1, PAWL_LOGITS_LAST, NULL, err);
	double start;

	for (int i = 0; i < N_CACHES - 1 && !status; i++)
		status = pawl_kv_cache_with_capacity(pawl_decoder_context(decoder),
			pawl_kv_cache_shape(pawl_decoder_cache(decoder)), &caches[i], err);
	start = pawl_seconds();
	for (int i = 0; i < N_SWITCHES && !status; i++) {
		pawl_decoder_swap_cache(decoder, &caches[i % (N_CACHES - 1)]);
		status = pawl_decoder_prepare(decoder, 1, PAWL_LOGITS_LAST, NULL, err);
	}
	*seconds = (pawl_seconds() - start) / N_SWITCHES;
	for (int i = 0; i < N_CACHES - 1; i++)
		pawl_kv_cache_free(caches[i]);
	return status;
}

static enum pawl_status
measure(struct pawl_engine *engine, struct way *ways, int64_t n, int64_t repeats,
	struct pawl_progress *progress, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;
	double warm;

	for (int i = 0; i < N_WAYS && !status; i++) {
		ways[i].n = i % 2 ? N_REPLANNED : n;
		status = open_way(engine, i, &ways[i], err);
		if (!status)
			status = time_round(&ways[i], 2, &warm, err);
	}
	for (int64_t round = 0; round < repeats && !status; round++) {
		pawl_progress_stage(progress, "measuring", round + 1, repeats);
		for (int i = 0; i < N_WAYS && !status; i++)
			status = time_round(&ways[i], ways[i].n, &ways[i].seconds[round], err);
	}
	return status;
}

static void
print(const double *seconds, const double *spread, int64_t repeats, double switching)
{
	char range[PAWL_SPREAD_BYTES];

	printf("%-36s%14s%10s\n", "one token", "microseconds", "times");
	for (int i = 0; i < N_WAYS; i++)
		printf("%-36s%9.0f +- %3s%10.2f\n", names[i], 1e6 * seconds[i],
			pawl_spread_text(spread[i], repeats, 0, range),
			seconds[i] / seconds[i / 2 * 2]);
	printf("%-36s%11.2f\n", "a switch to another cache", 1e6 * switching);
}

enum pawl_status
pawl_bench_replan(struct pawl_engine *engine, int64_t n, int64_t repeats,
	struct pawl_progress *progress, struct pawl_json *json, cJSON *rows, struct pawl_error *err)
{
	struct way ways[N_WAYS] = {{.decoder = NULL}};
	double seconds[N_WAYS], spread[N_WAYS], switching = 0;
	cJSON *object;
	enum pawl_status status;

	if (n > CAPACITY)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"-n %" PRId64 " with --replan: up to %d tokens", n, CAPACITY);
	status = pawl_engine_open_device(engine, err);
	if (!status)
		status = measure(engine, ways, n, repeats, progress, err);
	if (!status)
		status = time_switches(ways[0].decoder, &switching, err);
	for (int i = 0; i < N_WAYS; i++) {
		pawl_decoder_free(ways[i].decoder);
		pawl_paged_decoder_free(ways[i].paged);
	}
	if (status)
		return status;
	for (int i = 0; i < N_WAYS; i++)
		seconds[i] = pawl_median(ways[i].seconds, (int)repeats, &spread[i]);
	if (!rows) {
		print(seconds, spread, repeats, switching);
		return pawl_flush_output(err);
	}
	for (int i = 0; i < N_WAYS; i++) {
		object = pawl_json_object(json, rows, NULL);
		pawl_json_string(json, object, "way", names[i]);
		pawl_json_real(json, object, "token_s", seconds[i]);
		pawl_json_real(json, object, "spread", spread[i]);
		pawl_json_real(json, object, "times", seconds[i] / seconds[i / 2 * 2]);
	}
	object = pawl_json_object(json, rows, NULL);
	pawl_json_string(json, object, "way", "a switch to another cache");
	pawl_json_real(json, object, "switch_s", switching);
	return PAWL_OK;
}

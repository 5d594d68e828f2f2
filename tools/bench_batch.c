#include "tools/bench_batch.h"

#include "runtime/paged_decoder.h"
#include "runtime/clock.h"
#include "tools/median.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_REPEATS = 100, BLOCK = 16 };

_Static_assert((int)PAWL_BENCH_MAX_BATCH == (int)PAWL_MAX_BATCH, "all batches there are");

/* A batch of the list, measured. */
struct batch {
	int64_t n_sequences;
	double tps[MAX_REPEATS];
};

struct run {
	struct pawl_paged_decoder *decoder;
	struct pawl_kv_session_id sessions[PAWL_MAX_BATCH];
	int64_t depth, n, n_vocab;
};

static uint32_t
token(const struct run *run, int64_t i)
{
	return (uint32_t)((uint64_t)i * 2654435761u % (uint64_t)run->n_vocab);
}

/* Sequences of `depth` positions, each of other tokens. */
static enum pawl_status
fill(struct run *run, struct pawl_error *err)
{
	uint32_t *ids = malloc((size_t)(run->depth + 1) * sizeof(*ids));
	enum pawl_status status = PAWL_OK;

	if (!ids)
		return pawl_fail(
			err, PAWL_OUT_OF_MEMORY, "no memory for %" PRId64 " tokens", run->depth);
	for (int i = 0; i < PAWL_MAX_BATCH && !status; i++) {
		for (int64_t j = 0; j < run->depth; j++)
			ids[j] = token(run, i * run->depth + j);
		status = pawl_paged_decoder_open(run->decoder, &run->sessions[i], err);
		if (!status && run->depth)
			status = pawl_paged_decoder_prefill(
				run->decoder, run->sessions[i], ids, run->depth, NULL, err);
	}
	free(ids);
	return status;
}

/* The paged decoder has no limit of its own to the positions of a sequence. */
static enum pawl_status
check_context(
	const struct pawl_engine *engine, int64_t depth, int64_t n, struct pawl_error *err)
{
	int64_t made_for = pawl_model_info(engine->model)->n_ctx;

	return depth + n <= made_for ? PAWL_OK
				     : pawl_fail(err, PAWL_CAPACITY,
					       "%" PRId64 " positions are needed, the model was "
					       "made for %" PRId64,
					       depth + n, made_for);
}

static enum pawl_status
start(struct pawl_engine *engine, struct run *run, struct pawl_error *err)
{
	int64_t blocks = (run->depth + run->n + BLOCK - 1) / BLOCK;
	const struct pawl_paged_options options = {
		.n_blocks = blocks * PAWL_MAX_BATCH,
		.block_size = BLOCK,
		.max_blocks = blocks,
		.kv_dtype = pawl_engine_kv_dtype(&engine->options),
		.precision = (enum pawl_precision)engine->options.precision,
		.n_threads = (int)engine->options.threads,
	};
	enum pawl_status status = pawl_engine_open_device(engine, err);

	if (!status)
		status = pawl_paged_decoder_new(pawl_model_source(engine->model), engine->device,
			&options, &run->decoder, err);
	if (status)
		return status;
	run->n_vocab = pawl_paged_decoder_n_vocab(run->decoder);
	return fill(run, err);
}

/* n tokens for each of the first sequences; all are then as long as before. */
static enum pawl_status
time_round(struct run *run, int64_t n_sequences, int64_t n, double *tps, struct pawl_error *err)
{
	struct pawl_kv_block_pool *pool = pawl_paged_decoder_pool(run->decoder);
	struct pawl_paged_row rows[PAWL_MAX_BATCH];
	enum pawl_status status = PAWL_OK;
	double begin = pawl_seconds();
	const float *logits;

	for (int64_t i = 0; i < n && !status; i++) {
		for (int64_t j = 0; j < n_sequences; j++)
			rows[j] = (struct pawl_paged_row){run->sessions[j], token(run, i + j)};
		status = pawl_paged_decoder_step(run->decoder, rows, n_sequences, &logits, err);
	}
	*tps = (double)(n * n_sequences) / (pawl_seconds() - begin);
	for (int64_t j = 0; j < n_sequences && !status; j++)
		status = pawl_kv_block_pool_truncate(pool, run->sessions[j], run->depth, err);
	return status;
}

static enum pawl_status
measure(struct run *run, struct batch *batches, int n_batches, int64_t repeats,
	struct pawl_progress *progress, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;
	double warm;

	for (int i = 0; i < n_batches && !status; i++)
		status = time_round(
			run, batches[i].n_sequences, run->n < 4 ? run->n : 4, &warm, err);
	for (int64_t round = 0; round < repeats && !status; round++) {
		pawl_progress_stage(progress, "measuring", round + 1, repeats);
		for (int i = 0; i < n_batches && !status; i++)
			status = time_round(run, batches[i].n_sequences, run->n,
				&batches[i].tps[round], err);
	}
	return status;
}

static void
report(const struct run *run, const struct pawl_engine *engine, struct batch *batches,
	int n_batches, int64_t repeats, struct pawl_json *json, cJSON *rows)
{
	if (!rows)
		printf("sequences   depth  decode %4" PRId64 " tok/s   one of them\n", run->n);
	for (int i = 0; i < n_batches; i++) {
		double spread, tps = pawl_median(batches[i].tps, (int)repeats, &spread);
		char range[PAWL_SPREAD_BYTES];
		cJSON *object;

		if (!rows) {
			printf("%9" PRId64 "%8" PRId64 "%12.1f +- %5s%14.1f\n",
				batches[i].n_sequences, run->depth, tps,
				pawl_spread_text(spread, repeats, 1, range),
				tps / (double)batches[i].n_sequences);
			continue;
		}
		object = pawl_json_object(json, rows, NULL);
		pawl_json_real(json, object, "sequences", (double)batches[i].n_sequences);
		pawl_json_real(json, object, "threads", (double)engine->options.threads);
		pawl_json_real(json, object, "depth", (double)run->depth);
		pawl_json_real(json, object, "n_generate", (double)run->n);
		pawl_json_real(json, object, "decode_tps", tps);
		pawl_json_real(json, object, "decode_spread", spread);
	}
}

enum pawl_status
pawl_bench_batch(struct pawl_engine *engine, const struct pawl_ints *list, int64_t depth,
	int64_t n, int64_t repeats, struct pawl_progress *progress, struct pawl_json *json,
	cJSON *rows, struct pawl_error *err)
{
	struct run run = {.depth = depth, .n = n};
	enum pawl_status status = check_context(engine, depth, n, err);
	struct batch *batches;

	if (status)
		return status;
	batches = calloc((size_t)list->n, sizeof(*batches));
	if (!batches)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a list of batches");
	for (int i = 0; i < list->n; i++)
		batches[i].n_sequences = list->items[i];
	status = start(engine, &run, err);
	if (!status)
		status = measure(&run, batches, list->n, repeats, progress, err);
	pawl_paged_decoder_free(run.decoder);
	if (!status) {
		report(&run, engine, batches, list->n, repeats, json, rows);
		status = rows ? PAWL_OK : pawl_flush_output(err);
	}
	free(batches);
	return status;
}

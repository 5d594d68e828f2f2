/*
 * Every way to keep the state of a real model gives the logits of a contiguous cache, bit for bit.
 * Prints a line for each comparison that failed, then how many passed.
 *
 *	model-state MODEL TARGET
 */
#include "models/model.h"
#include "runtime/decoder.h"
#include "runtime/paged_decoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_SEQUENCES = 3, N_STEPS = 6, BLOCK = 16, MAX_PROMPT = 40 };

static const int64_t prompt_lengths[N_SEQUENCES] = {37, 16, 5};

static struct pawl_model *model;
static struct pawl_device *device;
static const struct pawl_model_source *source;
static struct pawl_error err;
static uint32_t prompts[N_SEQUENCES][MAX_PROMPT];
static uint32_t tokens[N_SEQUENCES][N_STEPS];
static float *expected[N_SEQUENCES][N_STEPS + 1]; /* after the prompt, after each token */
static int n_passed, n_failed;

static void
must(enum pawl_status status)
{
	if (status != PAWL_OK) {
		fprintf(stderr, "model-state: %s\n", err.text);
		exit(1);
	}
}

static size_t
row_bytes(void)
{
	return (size_t)source->n_vocab * sizeof(float);
}

static float *
keep(const float *logits)
{
	float *copy = malloc(row_bytes());

	if (!copy)
		exit(1);
	return memcpy(copy, logits, row_bytes());
}

static uint32_t
likeliest(const float *logits)
{
	uint32_t best = 0;

	for (int64_t i = 1; i < source->n_vocab; i++)
		if (logits[i] > logits[best])
			best = (uint32_t)i;
	return best;
}

static void
check(const char *name, int sequence, int step, const float *logits)
{
	if (!memcmp(logits, expected[sequence][step], row_bytes())) {
		n_passed++;
		return;
	}
	n_failed++;
	printf("FAILED: %s: sequence %d, token %d: logit 0 is %.9g, not %.9g\n", name, sequence,
		step, logits[0], expected[sequence][step][0]);
}

/* Alone, contiguous, greedy. */
static void
expect(void)
{
	const struct pawl_decoder_options options = {
		.capacity = 64, .kv_dtype = PAWL_DTYPE_F16, .precision = PAWL_PRECISION_A16};

	for (int i = 0; i < N_SEQUENCES; i++) {
		struct pawl_decoder *decoder;
		const float *logits;

		for (int64_t j = 0; j < prompt_lengths[i]; j++)
			prompts[i][j] = (uint32_t)(((j + 7) * (131 + 17 * i) + 5) % 40000);
		must(pawl_decoder_new(source, device, &options, &decoder, &err));
		must(pawl_decoder_prefill(decoder, prompts[i], prompt_lengths[i], &logits, &err));
		for (int step = 0;; step++) {
			expected[i][step] = keep(logits);
			if (step == N_STEPS)
				break;
			tokens[i][step] = likeliest(logits);
			must(pawl_decoder_step(decoder, tokens[i][step], &logits, &err));
		}
		pawl_decoder_free(decoder);
	}
}

static struct pawl_paged_decoder *
new_paged(int64_t block_size, enum pawl_paged_policy policy)
{
	const struct pawl_paged_options options = {
		.n_blocks = 12 * BLOCK / block_size + (block_size > BLOCK),
		.block_size = block_size,
		.max_blocks = 4 * BLOCK / block_size + (block_size > 4 * BLOCK),
		.kv_dtype = PAWL_DTYPE_F16,
		.policy = policy,
	};
	struct pawl_paged_decoder *decoder;
	struct pawl_kv_cache *cache;

	must(pawl_paged_decoder_new(source, device, &options, &decoder, &err));
	cache = pawl_paged_decoder_cache(decoder);
	/* What is not written must not be read. */
	for (int32_t i = 0; i < 2 * source->n_layers; i++) {
		struct pawl_kv_layer_id id = {i / 2, (enum pawl_kv_slot)(i % 2)};
		struct pawl_storage *storage = pawl_kv_cache_storage(cache, id);

		memset(storage->bytes, 0xff, (size_t)storage->n_bytes);
	}
	return decoder;
}

static void
open_and_prefill(const char *name, struct pawl_paged_decoder *decoder, int sequence,
	struct pawl_kv_session_id *out)
{
	const float *logits;

	must(pawl_paged_decoder_open(decoder, out, &err));
	must(pawl_paged_decoder_prefill(
		decoder, *out, prompts[sequence], prompt_lengths[sequence], &logits, &err));
	check(name, sequence, 0, logits);
}

/* All sequences take their next token in one run. */
static void
step_all(const char *name, struct pawl_paged_decoder *decoder,
	const struct pawl_kv_session_id *sessions, int step)
{
	struct pawl_paged_row rows[N_SEQUENCES];
	const float *logits;

	for (int i = 0; i < N_SEQUENCES; i++)
		rows[i] = (struct pawl_paged_row){sessions[i], tokens[i][step]};
	must(pawl_paged_decoder_step(decoder, rows, N_SEQUENCES, &logits, &err));
	for (int i = 0; i < N_SEQUENCES; i++)
		check(name, i, step + 1, logits + i * source->n_vocab);
}

static void
check_batch(const char *name, int64_t block_size, enum pawl_paged_policy policy, int n_steps)
{
	struct pawl_paged_decoder *decoder = new_paged(block_size, policy);
	struct pawl_kv_session_id sessions[N_SEQUENCES];

	for (int i = 0; i < N_SEQUENCES; i++)
		open_and_prefill(name, decoder, i, &sessions[i]);
	for (int step = 0; step < n_steps; step++)
		step_all(name, decoder, sessions, step);
	pawl_paged_decoder_free(decoder);
}

/* Forked, evicted and restored, guessed wrong and cut, between the steps of a batch. */
static void
check_moves(void)
{
	struct pawl_paged_decoder *decoder = new_paged(BLOCK, PAWL_PAGED_PLAN_ONCE);
	struct pawl_kv_block_pool *pool = pawl_paged_decoder_pool(decoder);
	struct pawl_kv_session_id sessions[N_SEQUENCES], fork;
	struct pawl_kv_evict_report report;
	const uint32_t wrong[] = {17, 4, 99, 12345};
	uint32_t guess[4];
	const float *logits;

	for (int i = 0; i < N_SEQUENCES; i++)
		open_and_prefill("moves", decoder, i, &sessions[i]);
	must(pawl_kv_block_pool_fork(pool, sessions[2], &fork, &err));
	step_all("beside a fork", decoder, sessions, 0);
	must(pawl_paged_decoder_close(decoder, sessions[2], &err));
	must(pawl_paged_decoder_prefill(decoder, fork, tokens[2], 1, &logits, &err));
	check("a fork", 2, 1, logits);
	sessions[2] = fork;
	must(pawl_paged_decoder_evict(decoder, sessions[0], &report, &err));
	must(pawl_paged_decoder_restore(decoder, report.handle, &err));
	step_all("restored", decoder, sessions, 1);
	/* One right, three wrong. */
	guess[0] = tokens[0][2];
	memcpy(guess + 1, wrong, 3 * sizeof(*wrong));
	must(pawl_paged_decoder_extend(decoder, sessions[0], guess, 4, &logits, &err));
	check("a guess", 0, 3, logits);
	must(pawl_kv_block_pool_truncate(pool, sessions[0], prompt_lengths[0] + 2, &err));
	for (int step = 2; step < 4; step++)
		step_all("cut back", decoder, sessions, step);
	/* All right. */
	must(pawl_paged_decoder_extend(decoder, sessions[1], tokens[1] + 4, 2, &logits, &err));
	check("a right guess", 1, 5, logits);
	check("a right guess", 1, 6, logits + source->n_vocab);
	pawl_paged_decoder_free(decoder);
}

int
main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: model-state MODEL TARGET\n");
		return 2;
	}
	must(pawl_model_open(argv[1], &model, &err));
	must(pawl_device_open(argv[2], NULL, &device, &err));
	source = pawl_model_source(model);
	expect();
	check_batch("blocks of 16", 16, PAWL_PAGED_PLAN_ONCE, N_STEPS);
	check_batch("blocks of 64", 64, PAWL_PAGED_PLAN_ONCE, 2);
	check_batch("replanned", 32, PAWL_PAGED_REPLAN, 1);
	check_moves();
	for (int i = 0; i < N_SEQUENCES; i++)
		for (int step = 0; step <= N_STEPS; step++)
			free(expected[i][step]);
	pawl_device_unref(device);
	pawl_model_free(model);
	printf("%d passed, %d failed, 0 skipped\n", n_passed, n_failed);
	return n_failed != 0;
}

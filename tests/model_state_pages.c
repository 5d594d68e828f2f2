/* Sequences of a real model in a pool of blocks: batches, and what moves blocks between steps. */
#include "tests/model_state.h"

#include "runtime/paged_decoder.h"

#include <string.h>

enum { BLOCK = 16 };

static struct pawl_model_state *const t = &pawl_model_state;

static struct pawl_paged_decoder *
new_paged(int64_t block_size, enum pawl_paged_policy policy)
{
	const struct pawl_paged_options options = {
		.n_blocks = 16 * BLOCK / block_size,
		.block_size = block_size,
		.max_blocks = 4 * BLOCK / block_size,
		.kv_dtype = PAWL_DTYPE_F16,
		.policy = policy,
		.plans = policy == PAWL_PAGED_REPLAN ? NULL : t->plans,
	};
	struct pawl_paged_decoder *decoder;
	struct pawl_kv_cache *cache;

	pawl_known_must(
		pawl_paged_decoder_new(t->source, t->device, &options, &decoder, &t->err));
	cache = pawl_paged_decoder_cache(decoder);
	/* What is not written must not be read. */
	for (int32_t i = 0; i < 2 * t->source->n_layers; i++) {
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
	const struct pawl_known_sequence *known = &t->known[sequence];
	const float *logits;

	pawl_known_must(pawl_paged_decoder_open(decoder, out, &t->err));
	pawl_known_must(pawl_paged_decoder_prefill(
		decoder, *out, known->tokens, known->n_prompt, &logits, &t->err));
	pawl_known_compare(name, sequence, 0, logits);
}

/* n of these sequences take their next token in one run. */
static void
step_some(const char *name, struct pawl_paged_decoder *decoder,
	const struct pawl_kv_session_id *sessions, const int *sequences, int n, int step)
{
	struct pawl_paged_row rows[PAWL_KNOWN_SEQUENCES];
	const float *logits;

	for (int i = 0; i < n; i++)
		rows[i] = (struct pawl_paged_row){
			sessions[sequences[i]], pawl_known_token(sequences[i], step)};
	pawl_known_must(pawl_paged_decoder_step(decoder, rows, n, &logits, &t->err));
	for (int i = 0; i < n; i++)
		pawl_known_compare(
			name, sequences[i], step + 1, logits + i * t->source->n_vocab);
}

static void
step_all(const char *name, struct pawl_paged_decoder *decoder,
	const struct pawl_kv_session_id *sessions, int step)
{
	static const int all[] = {0, 1, 2, 3};

	step_some(name, decoder, sessions, all, PAWL_KNOWN_SEQUENCES, step);
}

static void
check_batch(const char *name, int64_t block_size, enum pawl_paged_policy policy, int n_steps)
{
	struct pawl_paged_decoder *decoder = new_paged(block_size, policy);
	struct pawl_kv_session_id sessions[PAWL_KNOWN_SEQUENCES];

	for (int i = 0; i < PAWL_KNOWN_SEQUENCES; i++)
		open_and_prefill(name, decoder, i, &sessions[i]);
	for (int step = 0; step < n_steps; step++)
		step_all(name, decoder, sessions, step);
	pawl_paged_decoder_free(decoder);
}

/* One by one in pages; then two of the same length together. */
static void
check_rows(void)
{
	static const int pair[] = {3, 1};
	struct pawl_paged_decoder *decoder = new_paged(BLOCK, PAWL_PAGED_PLAN_ONCE);
	struct pawl_kv_session_id sessions[PAWL_KNOWN_SEQUENCES];

	open_and_prefill("paged", decoder, 1, &sessions[1]);
	open_and_prefill("paged", decoder, 3, &sessions[3]);
	for (int step = 0; step < PAWL_KNOWN_STEPS / 2; step++) {
		step_some("paged", decoder, sessions, &pair[0], 1, step);
		step_some("paged", decoder, sessions, &pair[1], 1, step);
	}
	for (int step = PAWL_KNOWN_STEPS / 2; step < PAWL_KNOWN_STEPS; step++)
		step_some("a batch of equal lengths", decoder, sessions, pair, 2, step);
	pawl_paged_decoder_free(decoder);
}

/* Forked, evicted and restored, guessed wrong and cut, between the steps of a batch. */
static void
check_moves(void)
{
	struct pawl_paged_decoder *decoder = new_paged(BLOCK, PAWL_PAGED_PLAN_ONCE);
	struct pawl_kv_block_pool *pool = pawl_paged_decoder_pool(decoder);
	struct pawl_kv_session_id sessions[PAWL_KNOWN_SEQUENCES], fork;
	struct pawl_kv_evict_report report;
	const uint32_t wrong[] = {17, 4, 99, 12345};
	uint32_t guess[4];
	const float *logits;

	for (int i = 0; i < PAWL_KNOWN_SEQUENCES; i++)
		open_and_prefill("moves", decoder, i, &sessions[i]);
	pawl_known_must(pawl_kv_block_pool_fork(pool, sessions[2], &fork, &t->err));
	step_all("beside a fork", decoder, sessions, 0);
	pawl_known_must(pawl_paged_decoder_close(decoder, sessions[2], &t->err));
	guess[0] = pawl_known_token(2, 0);
	pawl_known_must(
		pawl_paged_decoder_prefill(decoder, fork, guess, 1, &logits, &t->err));
	pawl_known_compare("a fork", 2, 1, logits);
	sessions[2] = fork;
	pawl_known_must(pawl_paged_decoder_evict(decoder, sessions[0], &report, &t->err));
	pawl_known_must(pawl_paged_decoder_restore(decoder, report.handle, &t->err));
	step_all("restored", decoder, sessions, 1);
	/* One right, three wrong. */
	guess[0] = pawl_known_token(0, 2);
	memcpy(guess + 1, wrong, 3 * sizeof(*wrong));
	pawl_known_must(
		pawl_paged_decoder_extend(decoder, sessions[0], guess, 4, &logits, &t->err));
	pawl_known_compare("a guess", 0, 3, logits);
	pawl_known_must(pawl_kv_block_pool_truncate(
		pool, sessions[0], t->known[0].n_prompt + 2, &t->err));
	for (int step = 2; step < 4; step++)
		step_all("cut back", decoder, sessions, step);
	pawl_paged_decoder_free(decoder);
}

static void
check_guesses(void)
{
	struct pawl_paged_decoder *decoder = new_paged(BLOCK, PAWL_PAGED_PLAN_ONCE);

	for (int right = 0; right <= PAWL_KNOWN_GUESS; right++) {
		struct pawl_known_guess guess = {right % PAWL_KNOWN_SEQUENCES, right};
		struct pawl_paged_sequence sequence = {.decoder = decoder};
		const struct pawl_speculative_target target = pawl_speculative_paged(&sequence);

		open_and_prefill("guesses in pages", decoder, guess.sequence, &sequence.session);
		pawl_known_follow("guesses in pages", &target, &guess);
		pawl_known_must(
			pawl_paged_decoder_close(decoder, sequence.session, &t->err));
	}
	pawl_paged_decoder_free(decoder);
}

void
pawl_check_pages(void)
{
	check_batch("blocks of 16", 16, PAWL_PAGED_PLAN_ONCE, PAWL_KNOWN_STEPS);
	check_batch("blocks of 64", 64, PAWL_PAGED_PLAN_ONCE, 2);
	check_batch("replanned", 32, PAWL_PAGED_REPLAN, 1);
	check_rows();
	check_moves();
	check_guesses();
}

/* Sequences in a pool of blocks: batches, and what moves blocks between steps. */
#include "tests/same_bits.h"

#include "runtime/paged_decoder.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16 };

static struct pawl_same_bits *const t = &pawl_same_bits;

/* What is not written must not be read. */
static void
poison(struct pawl_storage *storage)
{
	void *bytes = malloc((size_t)storage->n_bytes);

	pawl_same_must(bytes ? PAWL_OK : PAWL_OUT_OF_MEMORY);
	memset(bytes, 0xff, (size_t)storage->n_bytes);
	pawl_same_must(pawl_storage_write_all(storage, bytes, &t->err));
	free(bytes);
}

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

	pawl_same_must(
		pawl_paged_decoder_new(t->source, t->device, &options, &decoder, &t->err));
	cache = pawl_paged_decoder_cache(decoder);
	for (int32_t i = 0; i < 2 * t->source->n_layers; i++) {
		struct pawl_kv_layer_id id = {i / 2, (enum pawl_kv_slot)(i % 2)};

		poison(pawl_kv_cache_storage(cache, id));
	}
	return decoder;
}

static void
open_and_prefill(const char *name, struct pawl_paged_decoder *decoder, int sequence,
	struct pawl_kv_session_id *out)
{
	const struct pawl_known_sequence *known = &t->known[sequence];
	const float *logits;

	pawl_same_must(pawl_paged_decoder_open(decoder, out, &t->err));
	pawl_same_must(pawl_paged_decoder_prefill(
		decoder, *out, known->tokens, known->n_prompt, &logits, &t->err));
	pawl_same_logits(name, sequence, 0, logits);
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
	pawl_same_must(pawl_paged_decoder_step(decoder, rows, n, &logits, &t->err));
	for (int i = 0; i < n; i++)
		pawl_same_logits(
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
check_ragged(const char *name, int64_t block_size, enum pawl_paged_policy policy, int n_steps)
{
	struct pawl_paged_decoder *decoder = new_paged(block_size, policy);
	struct pawl_kv_session_id sessions[PAWL_KNOWN_SEQUENCES];

	for (int i = 0; i < PAWL_KNOWN_SEQUENCES; i++)
		open_and_prefill(name, decoder, i, &sessions[i]);
	for (int step = 0; step < n_steps; step++)
		step_all(name, decoder, sessions, step);
	pawl_paged_decoder_free(decoder);
}

void
pawl_same_ragged(void)
{
	check_ragged("blocks of 16", 16, PAWL_PAGED_PLAN_ONCE, PAWL_KNOWN_STEPS);
	check_ragged("blocks of 64", 64, PAWL_PAGED_PLAN_ONCE, 2);
}

void
pawl_same_paged_replanned(void)
{
	check_ragged("replanned", 32, PAWL_PAGED_REPLAN, 1);
}

/* Two sequences in one pool, one row a run. */
void
pawl_same_paged(void)
{
	static const int sequences[] = {0, 2};
	struct pawl_paged_decoder *decoder = new_paged(BLOCK, PAWL_PAGED_PLAN_ONCE);
	struct pawl_kv_session_id sessions[PAWL_KNOWN_SEQUENCES];

	for (int i = 0; i < 2; i++)
		open_and_prefill("paged", decoder, sequences[i], &sessions[sequences[i]]);
	for (int step = 0; step < PAWL_KNOWN_STEPS; step++)
		for (int i = 0; i < 2; i++)
			step_some("paged", decoder, sessions, &sequences[i], 1, step);
	pawl_paged_decoder_free(decoder);
}

/* Two sequences of one length. */
void
pawl_same_batched(void)
{
	static const int pair[] = {3, 1};
	struct pawl_paged_decoder *decoder = new_paged(BLOCK, PAWL_PAGED_PLAN_ONCE);
	struct pawl_kv_session_id sessions[PAWL_KNOWN_SEQUENCES];

	for (int i = 0; i < 2; i++)
		open_and_prefill("batched", decoder, pair[i], &sessions[pair[i]]);
	for (int step = 0; step < PAWL_KNOWN_STEPS; step++)
		step_some("batched", decoder, sessions, pair, 2, step);
	pawl_paged_decoder_free(decoder);
}

/* A fork stays behind, then goes on in place of the original. */
void
pawl_same_paged_forked(void)
{
	struct pawl_paged_decoder *decoder = new_paged(BLOCK, PAWL_PAGED_PLAN_ONCE);
	struct pawl_kv_session_id sessions[PAWL_KNOWN_SEQUENCES], fork;
	static const int third = 2;

	for (int i = 0; i < PAWL_KNOWN_SEQUENCES; i++)
		open_and_prefill("before a fork", decoder, i, &sessions[i]);
	pawl_same_must(pawl_kv_block_pool_fork(
		pawl_paged_decoder_pool(decoder), sessions[third], &fork, &t->err));
	step_all("beside a fork", decoder, sessions, 0);
	pawl_same_must(pawl_paged_decoder_close(decoder, sessions[third], &t->err));
	sessions[third] = fork;
	step_some("a fork", decoder, sessions, &third, 1, 0);
	for (int step = 1; step < 4; step++)
		step_all("a fork among others", decoder, sessions, step);
	pawl_paged_decoder_free(decoder);
}

/* Between its steps, while another sequence takes the blocks it had. */
void
pawl_same_evicted(void)
{
	static const int others[] = {1, 2}, first = 0;
	struct pawl_paged_decoder *decoder = new_paged(BLOCK, PAWL_PAGED_PLAN_ONCE);
	struct pawl_kv_session_id sessions[PAWL_KNOWN_SEQUENCES];
	struct pawl_kv_evict_report report;

	open_and_prefill("before eviction", decoder, 0, &sessions[0]);
	open_and_prefill("before eviction", decoder, 1, &sessions[1]);
	step_some("before eviction", decoder, sessions, &first, 1, 0);
	pawl_same_must(pawl_paged_decoder_evict(decoder, sessions[0], &report, &t->err));
	open_and_prefill("in the place of an evicted one", decoder, 2, &sessions[2]);
	step_some("in the place of an evicted one", decoder, sessions, others, 2, 0);
	pawl_same_must(pawl_paged_decoder_restore(decoder, report.handle, &t->err));
	for (int step = 1; step < 4; step++) {
		step_some("restored", decoder, sessions, &first, 1, step);
		step_some("beside a restored one", decoder, sessions, others, 2, step);
	}
	pawl_paged_decoder_free(decoder);
}

void
pawl_same_paged_guessed(void)
{
	struct pawl_paged_decoder *decoder = new_paged(BLOCK, PAWL_PAGED_PLAN_ONCE);

	for (int right = 0; right <= PAWL_KNOWN_GUESS; right++) {
		struct pawl_known_guess guess = {right % PAWL_KNOWN_SEQUENCES, right};
		struct pawl_paged_sequence sequence = {.decoder = decoder};
		const struct pawl_speculative_target target = pawl_speculative_paged(&sequence);

		open_and_prefill("guesses in pages", decoder, guess.sequence, &sequence.session);
		pawl_same_follow("guesses in pages", &target, &guess);
		pawl_same_must(pawl_paged_decoder_close(decoder, sequence.session, &t->err));
	}
	pawl_paged_decoder_free(decoder);
}

#include "tests/same_bits.h"

#include "runtime/decoder.h"
#include "runtime/plan_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pawl_same_bits pawl_same_bits;

static struct pawl_same_bits *const t = &pawl_same_bits;

void
pawl_same_must(enum pawl_status status)
{
	if (status != PAWL_OK) {
		fprintf(stderr, "%s\n", t->err.text);
		exit(1);
	}
}

static size_t
row_bytes(void)
{
	return (size_t)t->source->n_vocab * sizeof(float);
}

uint32_t
pawl_known_token(int sequence, int step)
{
	return t->known[sequence].tokens[t->known[sequence].n_prompt + step];
}

void
pawl_same_logits(const char *name, int sequence, int step, const float *logits)
{
	const float *wanted = t->known[sequence].logits[step];

	if (!memcmp(logits, wanted, row_bytes())) {
		t->n_passed++;
		return;
	}
	t->n_failed++;
	printf("FAILED: %s: sequence %d, step %d: logit 0 is %.9g, not %.9g\n", name, sequence, step,
		(double)logits[0], (double)wanted[0]);
}

void
pawl_same_count(const char *name, int64_t got, int64_t wanted)
{
	if (got == wanted) {
		t->n_passed++;
		return;
	}
	t->n_failed++;
	printf("FAILED: %s: %" PRId64 ", not %" PRId64 "\n", name, got, wanted);
}

static enum pawl_status
propose(void *ctx, const uint32_t *tokens, int64_t n, int64_t most, uint32_t *out, int64_t *n_out,
	struct pawl_error *err)
{
	const struct pawl_known_guess *guess = ctx;
	const struct pawl_known_sequence *known = &t->known[guess->sequence];

	if (memcmp(tokens, known->tokens, (size_t)n * sizeof(*tokens)))
		return pawl_fail(err, PAWL_INTERNAL, "a guess about another sequence");
	for (int64_t i = 0; i < most; i++) {
		int64_t at = n + i;
		uint32_t next = at < known->n_prompt + PAWL_KNOWN_STEPS ? known->tokens[at] : 0;

		out[i] = i < guess->right ? next : (next + 1) % (uint32_t)t->source->n_vocab;
	}
	*n_out = most;
	return PAWL_OK;
}

struct pawl_proposer
pawl_known_proposer(struct pawl_known_guess *guess)
{
	return (struct pawl_proposer){guess, propose};
}

void
pawl_same_follow(const char *name, const struct pawl_speculative_target *target,
	struct pawl_known_guess *guess)
{
	const struct pawl_known_sequence *known = &t->known[guess->sequence];
	const struct pawl_proposer proposer = pawl_known_proposer(guess);
	struct pawl_speculative *s;
	const float *logits;

	pawl_same_must(pawl_speculative_new(
		target, &proposer, PAWL_KNOWN_GUESS, PAWL_KNOWN_CAPACITY, &s, &t->err));
	pawl_same_must(pawl_speculative_begin(s, known->tokens, known->n_prompt, &t->err));
	for (int step = 0; step < PAWL_KNOWN_STEPS; step++) {
		pawl_same_must(pawl_speculative_step(
			s, pawl_known_token(guess->sequence, step), &logits, &t->err));
		pawl_same_logits(name, guess->sequence, step + 1, logits);
	}
	pawl_same_count("runs with guesses", (int64_t)pawl_speculative_stats(s).runs,
		(PAWL_KNOWN_STEPS + guess->right) / (guess->right + 1));
	pawl_speculative_settle(s);
	pawl_same_count("length after guesses", target->len(target->ctx),
		known->n_prompt + PAWL_KNOWN_STEPS);
	pawl_speculative_free(s);
}

static uint32_t
likeliest(const float *logits)
{
	uint32_t best = 0;

	for (int64_t i = 1; i < t->source->n_vocab; i++)
		if (logits[i] > logits[best])
			best = (uint32_t)i;
	return best;
}

/* Alone, contiguous, greedy. */
static void
learn(int sequence, int64_t n_prompt)
{
	const struct pawl_decoder_options options = {.capacity = PAWL_KNOWN_CAPACITY,
		.kv_dtype = PAWL_DTYPE_F16,
		.precision = PAWL_PRECISION_A16,
		.plans = t->plans};
	struct pawl_known_sequence *known = &t->known[sequence];
	struct pawl_decoder *decoder;
	const float *logits;

	known->n_prompt = n_prompt;
	for (int64_t i = 0; i < n_prompt; i++)
		known->tokens[i] = (uint32_t)(((i + 7) * (131 + 17 * sequence) + 5) %
					 (t->source->n_vocab < 40000 ? t->source->n_vocab : 40000));
	pawl_same_must(pawl_decoder_new(t->source, t->device, &options, &decoder, &t->err));
	pawl_same_must(pawl_decoder_prefill(decoder, known->tokens, n_prompt, &logits, &t->err));
	for (int step = 0;; step++) {
		known->logits[step] = malloc(row_bytes());
		if (!known->logits[step])
			exit(1);
		memcpy(known->logits[step], logits, row_bytes());
		if (step == PAWL_KNOWN_STEPS)
			break;
		known->tokens[n_prompt + step] = likeliest(logits);
		pawl_same_must(pawl_decoder_step(
			decoder, pawl_known_token(sequence, step), &logits, &t->err));
	}
	pawl_decoder_free(decoder);
}

void
pawl_same_begin(const struct pawl_model_source *source, struct pawl_device *device)
{
	static const int64_t lengths[PAWL_KNOWN_SEQUENCES] = {PAWL_KNOWN_MAX_PROMPT, 16, 5, 16};

	*t = (struct pawl_same_bits){.source = source, .device = device};
	pawl_same_must(pawl_plan_cache_new(64, &t->plans, &t->err));
	for (int i = 0; i < PAWL_KNOWN_SEQUENCES; i++)
		learn(i, lengths[i]);
}

void
pawl_same_end(void)
{
	for (int i = 0; i < PAWL_KNOWN_SEQUENCES; i++)
		for (int step = 0; step <= PAWL_KNOWN_STEPS; step++)
			free(t->known[i].logits[step]);
	pawl_plan_cache_free(t->plans);
}

#include "runtime/propose.h"

#include "runtime/memory.h"

#include <string.h>

struct pawl_draft {
	struct pawl_decoder *decoder;
	int64_t capacity;
	uint32_t *tokens; /* capacity; as many as the cache is long are in it */
};

enum pawl_status
pawl_draft_new(struct pawl_decoder *decoder, struct pawl_draft **out, struct pawl_error *err)
{
	struct pawl_draft *draft = pawl_memory_zalloc(1, sizeof(*draft));
	int64_t capacity = pawl_decoder_capacity(decoder);

	if (draft)
		draft->tokens = pawl_memory_zalloc((size_t)capacity, sizeof(*draft->tokens));
	if (!draft || !draft->tokens) {
		pawl_memory_free(draft);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a draft");
	}
	draft->decoder = decoder;
	draft->capacity = capacity;
	pawl_decoder_truncate(decoder, 0);
	*out = draft;
	return PAWL_OK;
}

void
pawl_draft_free(struct pawl_draft *draft)
{
	if (!draft)
		return;
	pawl_memory_free(draft->tokens);
	pawl_memory_free(draft);
}

static uint32_t
likeliest(const float *logits, int64_t n)
{
	int64_t best = 0;

	for (int64_t i = 1; i < n; i++)
		if (logits[i] > logits[best])
			best = i;
	return (uint32_t)best;
}

/* Leaves in the cache what tokens begin with, at most all but the last: that one brings the logits.
 */
static int64_t
keep_common(struct pawl_draft *draft, const uint32_t *tokens, int64_t n)
{
	int64_t common = 0, most = pawl_decoder_len(draft->decoder);

	if (most > n - 1)
		most = n - 1;
	while (common < most && draft->tokens[common] == tokens[common])
		common++;
	pawl_decoder_truncate(draft->decoder, common);
	return pawl_decoder_len(draft->decoder); /* less, where rings go back less far */
}

static enum pawl_status
draw_up(void *ctx, const uint32_t *tokens, int64_t n, int64_t most, uint32_t *guess,
	int64_t *n_guess, struct pawl_error *err)
{
	struct pawl_draft *draft = ctx;
	int64_t n_vocab = pawl_decoder_n_vocab(draft->decoder), common;
	const float *logits;
	enum pawl_status status;

	*n_guess = 0;
	if (n > draft->capacity)
		return PAWL_OK;
	common = keep_common(draft, tokens, n);
	memcpy(draft->tokens + common, tokens + common, (size_t)(n - common) * sizeof(*tokens));
	status = pawl_decoder_prefill(draft->decoder, tokens + common, n - common, &logits, err);
	while (!status) {
		int64_t end = n + *n_guess;

		guess[(*n_guess)++] = likeliest(logits, n_vocab);
		if (*n_guess == most || end == draft->capacity)
			break;
		draft->tokens[end] = guess[*n_guess - 1];
		status = pawl_decoder_step(draft->decoder, draft->tokens[end], &logits, err);
	}
	return status;
}

struct pawl_proposer
pawl_draft_proposer(struct pawl_draft *draft)
{
	return (struct pawl_proposer){draft, draw_up};
}

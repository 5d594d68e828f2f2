#include "tests/story.h"

#include "tests/decoding.h"

#include <check.h>
#include <string.h>

static uint32_t
likeliest(const float *logits)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < PAWL_STORY_VOCAB; i++)
		if (logits[i] > logits[best])
			best = i;
	return best;
}

void
pawl_story_tell(struct pawl_story *story, const struct pawl_tiny_model *model)
{
	const struct pawl_decoder_options options = pawl_test_decoder_options();
	struct pawl_decoder *decoder = pawl_test_decoder(model, &options);
	const float *logits = pawl_test_prefill(decoder, 1, 0, PAWL_STORY_PROMPT);
	struct pawl_error err;

	for (int i = 0; i < PAWL_STORY_PROMPT; i++)
		story->tokens[i] = pawl_test_token(1, i);
	for (int i = 0; i < PAWL_STORY_STEPS; i++) {
		uint32_t token = likeliest(logits);

		ck_assert_int_eq(pawl_decoder_step(decoder, token, &logits, &err), PAWL_OK);
		story->tokens[PAWL_STORY_PROMPT + i] = token;
		memcpy(story->plain[i], logits, sizeof(story->plain[i]));
	}
	pawl_decoder_free(decoder);
}

void
pawl_story_follow(const struct pawl_story *story, struct pawl_speculative *s, int first, int last)
{
	for (int i = first; i < last; i++) {
		struct pawl_error err;
		const float *logits = NULL;

		ck_assert_int_eq(pawl_speculative_step(
					 s, story->tokens[PAWL_STORY_PROMPT + i], &logits, &err),
			PAWL_OK);
		ck_assert_mem_eq(logits, story->plain[i], sizeof(story->plain[i]));
	}
}

static enum pawl_status
follow_script(void *ctx, const uint32_t *tokens, int64_t n, int64_t most, uint32_t *guess,
	int64_t *n_guess, struct pawl_error *err)
{
	struct pawl_script *script = ctx;
	const uint32_t *next = script->story->tokens + n;

	script->calls++;
	if (script->fail)
		return pawl_fail(err, script->fail, "no guess");
	ck_assert_int_le(n, PAWL_STORY_PROMPT + PAWL_STORY_STEPS);
	ck_assert_mem_eq(tokens, script->story->tokens, (size_t)n * sizeof(*tokens));
	for (int64_t i = 0; i < most; i++)
		guess[i] = i < script->right ? next[i]
			   : script->outside ? PAWL_STORY_VOCAB
					     : (next[i] + 1) % PAWL_STORY_VOCAB;
	*n_guess = most;
	return PAWL_OK;
}

struct pawl_proposer
pawl_script_proposer(struct pawl_script *script)
{
	return (struct pawl_proposer){script, follow_script};
}

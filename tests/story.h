/*
 * A sequence that plain decoding of a tiny model gives, for tests that decode it another way: its
 * tokens, its logits, and guesses that are right as far as a test wants.
 */
#ifndef PAWL_TESTS_STORY_H
#define PAWL_TESTS_STORY_H

#include "runtime/speculative.h"
#include "tests/tiny_model.h"

enum { PAWL_STORY_PROMPT = 12, PAWL_STORY_STEPS = 30, PAWL_STORY_VOCAB = 40 };

struct pawl_story {
	/* The prompt, the likeliest token each time, and some more that nobody chose. */
	uint32_t tokens[PAWL_STORY_PROMPT + PAWL_STORY_STEPS + PAWL_MAX_GUESS];
	float plain[PAWL_STORY_STEPS][PAWL_STORY_VOCAB]; /* after each token behind the prompt */
};

void pawl_story_tell(struct pawl_story *story, const struct pawl_tiny_model *model);

/* Steps first .. last - 1 behind the prompt, bit for bit. */
void pawl_story_follow(
	const struct pawl_story *story, struct pawl_speculative *s, int first, int last);

/* Guesses the story, wrong from guess `right` on; asserts that it is asked about the story. */
struct pawl_script {
	const struct pawl_story *story;
	int64_t right, calls;
	enum pawl_status fail;
	bool outside; /* wrong is no token of the model */
};
struct pawl_proposer pawl_script_proposer(struct pawl_script *script);

#endif

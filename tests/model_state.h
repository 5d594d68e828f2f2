/*
 * What the parts of tests/model-state share: the model, sequences whose tokens and logits are known
 * because each was run alone in a contiguous cache, and the count of comparisons.  Everything ends
 * the program where it does not work.
 */
#ifndef PAWL_TESTS_MODEL_STATE_H
#define PAWL_TESTS_MODEL_STATE_H

#include "runtime/model_source.h"
#include "runtime/propose.h"
#include "runtime/speculative.h"

enum {
	PAWL_KNOWN_SEQUENCES = 4, /* of different lengths but for the last, which is as long as one */
	PAWL_KNOWN_STEPS = 12,
	PAWL_KNOWN_MAX_PROMPT = 37,
	PAWL_KNOWN_CAPACITY = 64, /* holds any of them and a guess */
	PAWL_KNOWN_GUESS = 4
};

struct pawl_known_sequence {
	int64_t n_prompt;
	uint32_t tokens[PAWL_KNOWN_MAX_PROMPT + PAWL_KNOWN_STEPS]; /* greedy after the prompt */
	float *logits[PAWL_KNOWN_STEPS + 1];                       /* after the prompt, each step */
};

struct pawl_model_state {
	const struct pawl_model_source *source;
	struct pawl_device *device;
	struct pawl_plan_cache *plans; /* of all decoders that plan once */
	const char *folder;            /* for files */
	struct pawl_known_sequence known[PAWL_KNOWN_SEQUENCES];
	struct pawl_error err;
	int n_passed, n_failed;
};

extern struct pawl_model_state pawl_model_state;

void pawl_known_must(enum pawl_status status);
/* The token of a step of a sequence. */
uint32_t pawl_known_token(int sequence, int step);
/* Whether these are the logits after the prompt (step 0) or after a step (from 1 on), bit for bit. */
void pawl_known_compare(const char *name, int sequence, int step, const float *logits);
void pawl_known_count(const char *name, int64_t got, int64_t wanted);

/* Guesses the sequence, wrong from guess `right` on. */
struct pawl_known_guess {
	int sequence;
	int64_t right;
};
struct pawl_proposer pawl_known_proposer(struct pawl_known_guess *guess);
/* All steps of a sequence whose prompt the target has, guesses of PAWL_KNOWN_GUESS tokens. */
void pawl_known_follow(const char *name, const struct pawl_speculative_target *target,
	struct pawl_known_guess *guess);

/* The parts. */
void pawl_check_one_cache(void);
void pawl_check_pages(void);
void pawl_check_plan_once(void);

#endif

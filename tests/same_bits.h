/*
 * Every way to keep the state of a model gives the logits of a contiguous cache, bit for bit, and
 * plans once: for the tiny models of each family (test_same_bits.c) and for a real one
 * (model_state.c).
 *
 * There are sequences whose tokens and logits are known because each was run alone in a contiguous
 * cache.  What is not equal is counted and gets a line on stdout; what does not work ends the
 * program.
 */
#ifndef PAWL_TESTS_SAME_BITS_H
#define PAWL_TESTS_SAME_BITS_H

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

struct pawl_same_bits {
	const struct pawl_model_source *source;
	struct pawl_device *device;
	struct pawl_plan_cache *plans; /* of all decoders that plan once */
	struct pawl_known_sequence known[PAWL_KNOWN_SEQUENCES];
	struct pawl_error err;
	bool tells; /* what long runs came to, on stdout */
	int n_passed, n_failed;
};

extern struct pawl_same_bits pawl_same_bits;

/* Learns the sequences.  Source and device must outlive it. */
void pawl_same_begin(const struct pawl_model_source *source, struct pawl_device *device);
void pawl_same_end(void);

void pawl_same_must(enum pawl_status status);
/* The token of a step of a sequence. */
uint32_t pawl_known_token(int sequence, int step);
/* Whether these are the logits after the prompt (step 0) or a step (from 1 on), bit for bit. */
void pawl_same_logits(const char *name, int sequence, int step, const float *logits);
void pawl_same_count(const char *name, int64_t got, int64_t wanted);

/* Guesses the sequence, wrong from guess `right` on. */
struct pawl_known_guess {
	int sequence;
	int64_t right;
};
struct pawl_proposer pawl_known_proposer(struct pawl_known_guess *guess);
/* All steps of a sequence whose prompt the target has, guesses of PAWL_KNOWN_GUESS tokens. */
void pawl_same_follow(const char *name, const struct pawl_speculative_target *target,
	struct pawl_known_guess *guess);

/* Of one sequence at a time, in a contiguous cache. */
void pawl_same_replanned(void);
void pawl_same_forked(void);
void pawl_same_restored(void);
void pawl_same_guessed(void);
void pawl_same_ring(void);

/* In pages. */
void pawl_same_paged(void);
void pawl_same_paged_replanned(void);
void pawl_same_batched(void);
void pawl_same_ragged(void);
void pawl_same_paged_forked(void);
void pawl_same_evicted(void);
void pawl_same_paged_guessed(void);

/* Optimizes, rebuilds and allocations of long runs. */
void pawl_same_thousand_tokens(void);
void pawl_same_turns(void);

#endif

/*
 * Chooses the next token from logits.
 *
 * temp <= 0 takes the largest logit, the lowest id of equal ones, and draws nothing.  Otherwise, in
 * this order: top_k keeps the k largest; top_p the fewest whose probabilities (of those kept, at
 * temperature 1) add up to it; min_p those of at least min_p times the largest probability; then
 * one is drawn at the temperature.  The same options and logits give the same tokens on every
 * machine.  One thread at a time.
 */
#ifndef PAWL_TOOLS_SAMPLER_H
#define PAWL_TOOLS_SAMPLER_H

#include "ir/status.h"

#include <stdint.h>

struct pawl_sampler_options {
	double temp;
	int64_t top_k; /* 0: all */
	double top_p;  /* 1: all */
	double min_p;  /* 0: all */
	uint64_t seed;
};

struct pawl_sampler;

/* PAWL_INVALID_ARGUMENT for a NaN or a probability outside of 0 .. 1. */
enum pawl_status pawl_sampler_new(const struct pawl_sampler_options *options, int64_t n_vocab,
	struct pawl_sampler **out, struct pawl_error *err);
/* NULL is allowed. */
void pawl_sampler_free(struct pawl_sampler *sampler);

/* PAWL_INVALID_ARGUMENT, naming the token, when a logit is not finite.  Allocates nothing. */
enum pawl_status pawl_sampler_pick(
	struct pawl_sampler *sampler, const float *logits, uint32_t *token, struct pawl_error *err);

#endif

/* Prompt in, tokens out, with what is to be known about how it went. */
#ifndef PAWL_TOOLS_GENERATE_H
#define PAWL_TOOLS_GENERATE_H

#include "models/token_list.h"
#include "runtime/speculative.h"
#include "tools/engine.h"
#include "tools/output.h"
#include "tools/progress.h"
#include "tools/sampler.h"

#include <stdbool.h>

enum pawl_generation_end {
	PAWL_ENDED_BY_TOKEN, /* one that ends a generation */
	PAWL_ENDED_BY_LENGTH,
	PAWL_ENDED_BY_CONTEXT /* as long, and no longer because the context is full */
};

struct pawl_generate_options {
	int64_t n; /* at most so many tokens */
	bool fills_context; /* n is what the context has room for */
	bool ignore_end; /* go on after a token that ends a generation */
	struct pawl_sampler_options sampler;
	struct pawl_speculative *speculative; /* on the engine's decoder; NULL: no guesses */
};

struct pawl_generation {
	int64_t n_prompt;
	int64_t n_restored; /* of the prompt, in the cache already */
	struct pawl_token_list tokens; /* without the one that ended it */
	enum pawl_generation_end end;
	double start; /* pawl_seconds() when the command began */
	double prompt_seconds, decode_seconds; /* without building plans */
	double first_token_seconds; /* from start */
	int64_t n_steps;            /* tokens appended after the prompt */
	struct pawl_decoder_stats stats;
	uint64_t step_allocations, step_bytes_bound; /* of these steps together */
	struct pawl_speculative_stats speculation;   /* runs: n_steps without guesses */
};

/*
 * Appends the prompt, as far as the engine's decoder does not hold it, then one token after the
 * other; each is printed on stdout at once, in whole characters.  progress is ended before the
 * first of them.
 */
enum pawl_status pawl_generate(struct pawl_engine *engine, const struct pawl_token_list *prompt,
	const struct pawl_generate_options *options, struct pawl_progress *progress,
	struct pawl_generation *out, struct pawl_error *err);

/* The line of --stats. */
void pawl_generation_note(const struct pawl_engine *engine, const struct pawl_generation *g);
/* The object of --stats-json. */
enum pawl_status pawl_generation_write(const struct pawl_engine *engine,
	const struct pawl_generation *g, struct pawl_output *out, struct pawl_error *err);

#endif

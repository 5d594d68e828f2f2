/* How well a model foretells given tokens, measured in windows as llama-perplexity does it. */
#ifndef PAWL_TOOLS_PERPLEXITY_H
#define PAWL_TOOLS_PERPLEXITY_H

#include "tools/engine.h"
#include "tools/progress.h"

/* Of the smallest window one token is scored. */
enum { PAWL_PERPLEXITY_LEAST_WINDOW = 3 };

struct pawl_perplexity {
	int64_t window; /* tokens; what is left at the end is not evaluated */
	int64_t chunk;  /* tokens in a run; 0: the runtime's choice */
	bool exact;     /* by pawl_exact_eval, with a chunk */

	int64_t n_windows, n_scored;
	double nll; /* sum of -log p of the tokens that are scored, in nats */
};

/*
 * Each window begins with an empty cache; BOS takes the place of its first token where the model's
 * tokenizer puts one in front of texts, and the tokens of its second half are scored but for the
 * first of them.  tokens are ids of the model; engine->model must have its tokenizer.
 * PAWL_INVALID_ARGUMENT when n tokens fill no window.
 */
enum pawl_status pawl_perplexity_measure(struct pawl_perplexity *p, struct pawl_engine *engine,
	const uint32_t *tokens, int64_t n, struct pawl_progress *progress, struct pawl_error *err);

#endif

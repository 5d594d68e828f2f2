/*
 * Guesses how a sequence of tokens goes on, for runtime/speculative.h to judge.  A wrong guess
 * costs time and changes no result.
 */
#ifndef PAWL_RUNTIME_PROPOSE_H
#define PAWL_RUNTIME_PROPOSE_H

#include "runtime/decoder.h"

struct pawl_proposer {
	void *ctx;
	/*
	 * What may follow tokens[0 .. n), n >= 1: writes at most `most` >= 1 tokens to guess and
	 * gives their number, which may be 0.  Calls need not be about one sequence.
	 */
	enum pawl_status (*propose)(void *ctx, const uint32_t *tokens, int64_t n, int64_t most,
		uint32_t *guess, int64_t *n_guess, struct pawl_error *err);
};

/*
 * What followed the last time that the sequence ended so: the longest of its last `least` to `most`
 * tokens that stand somewhere before, the latest place of those, and on from there.  Where that
 * reaches the end of the sequence it goes on in the guess, so that a period is repeated.  A call
 * takes time in proportion to n.
 */
struct pawl_lookup {
	int64_t least, most; /* 1 <= least <= most */
};
/* The lookup must outlive the proposer. */
struct pawl_proposer pawl_lookup_proposer(struct pawl_lookup *lookup);

/*
 * The likeliest tokens by a smaller model of the same vocabulary.  It keeps in the decoder's cache
 * what one call has in common with the next, and guesses nothing where the capacity ends.
 */
struct pawl_draft;

/* The decoder must outlive the draft, which uses it from now on, whatever is in its cache. */
enum pawl_status pawl_draft_new(
	struct pawl_decoder *decoder, struct pawl_draft **out, struct pawl_error *err);
/* NULL is allowed. */
void pawl_draft_free(struct pawl_draft *draft);
struct pawl_proposer pawl_draft_proposer(struct pawl_draft *draft);

#endif

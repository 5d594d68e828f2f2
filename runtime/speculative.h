/*
 * Speculative decoding: one run of the target computes a token and a guess of what follows it; as
 * far as the caller then goes where the guess went, its logits are there already.
 *
 * pawl_speculative_step is pawl_decoder_step with the same results, bit for bit, for every guess:
 * the caller chooses each token from the logits as it always does, the likeliest or a drawn one,
 * and needs no other rule of acceptance.
 *
 *   pawl_decoder_prefill(decoder, prompt, n, &logits);
 *   pawl_speculative_begin(s, prompt, n);
 *   for (...)
 *           pawl_speculative_step(s, choose(logits), &logits);
 *   pawl_speculative_settle(s);
 *
 * A run has 1 + n_guess rows or one, so that there are two plans (in pages one for each bucket of
 * tokens).  Where there is no room for 1 + n_guess positions, tokens go one by one.  Between calls
 * the target may be ahead by what is not judged yet; settle, and any step that goes elsewhere,
 * takes that back.  After an error nothing has advanced and the same call may be made again.
 * Belongs to one thread at a time.
 */
#ifndef PAWL_RUNTIME_SPECULATIVE_H
#define PAWL_RUNTIME_SPECULATIVE_H

#include "runtime/paged_decoder.h"
#include "runtime/propose.h"

/* A sequence in a cache, whatever the kind of cache. */
struct pawl_speculative_target {
	void *ctx;
	int64_t n_vocab, max_rows; /* max_rows: of one run */
	/*
	 * Appends n tokens in a run that is filled up to `rows` >= n where that saves a plan;
	 * logits after each, [n][n_vocab], valid until the next call.
	 */
	enum pawl_status (*extend)(void *ctx, const uint32_t *tokens, int64_t n, int64_t rows,
		const float **logits, struct pawl_error *err);
	/* Keeps the first n positions of more. */
	void (*truncate)(void *ctx, int64_t n);
	int64_t (*len)(void *ctx);
	bool (*has_room)(void *ctx, int64_t rows);
};

/* Over rings a run has no more rows than they take. */
struct pawl_speculative_target pawl_speculative_decoder(struct pawl_decoder *decoder);

struct pawl_paged_sequence {
	struct pawl_paged_decoder *decoder;
	struct pawl_kv_session_id session;
};
/*
 * The sequence must outlive the target.  What is not judged yet holds blocks of the pool: settle
 * before other sequences are to have them.
 */
struct pawl_speculative_target pawl_speculative_paged(struct pawl_paged_sequence *sequence);

enum { PAWL_MAX_GUESS = 31 };

struct pawl_speculative;

/*
 * For sequences of at most `capacity` tokens.  n_guess is at most PAWL_MAX_GUESS, and 1 + n_guess
 * at most the target's max_rows.  Target and proposer must outlive it.
 */
enum pawl_status pawl_speculative_new(const struct pawl_speculative_target *target,
	const struct pawl_proposer *proposer, int64_t n_guess, int64_t capacity,
	struct pawl_speculative **out, struct pawl_error *err);
/* NULL is allowed. */
void pawl_speculative_free(struct pawl_speculative *s);

/*
 * The target has these tokens and no others: a prompt, or what is left after a rollback.
 * PAWL_INVALID_ARGUMENT when its length is another one.
 */
enum pawl_status pawl_speculative_begin(
	struct pawl_speculative *s, const uint32_t *tokens, int64_t n, struct pawl_error *err);
/* Appends a token; *logits are those after it, valid until the next call. */
enum pawl_status pawl_speculative_step(
	struct pawl_speculative *s, uint32_t token, const float **logits, struct pawl_error *err);
/*
 * The target has exactly the tokens that were appended; what was guessed beyond is forgotten.  A
 * target whose length others have changed meanwhile stays as it is.
 */
void pawl_speculative_settle(struct pawl_speculative *s);

struct pawl_speculative_stats {
	uint64_t proposed; /* tokens guessed and computed */
	uint64_t accepted; /* those of them that were then asked for */
	uint64_t runs;     /* of the target */
};
struct pawl_speculative_stats pawl_speculative_stats(const struct pawl_speculative *s);

#endif

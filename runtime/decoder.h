/*
 * The driver of a model: one cache, and a held session for each number of tokens and kind of logits
 * in use.
 *
 * A prompt goes through sessions of `prefill_chunk` tokens without logits and ends in the session
 * of one token, which then serves decoding; neither drops the other.  A generation of any length
 * optimizes as often as there are plans: cache, chunk, single token.  A chunk that is not full
 * is filled up; what the surplus rows write lies beyond cached_len and means nothing.
 *
 * After an error nothing has advanced: the same call may be made again, and whatever is run instead
 * has the bits it would have had.  Length and all that is seen from there are as before, in rings
 * too, which a call of several runs copies before it overwrites that; what lies beyond the length
 * may differ, and a ring may go back less far.  Belongs to one thread at a time.
 */
#ifndef PAWL_RUNTIME_DECODER_H
#define PAWL_RUNTIME_DECODER_H

#include "runtime/decode_session.h"
#include "runtime/inference_context.h"
#include "runtime/kv_snapshot.h"
#include "runtime/model_source.h"
#include "runtime/session_set.h"

struct pawl_decoder;

struct pawl_decoder_options {
	int64_t capacity; /* positions, rounded up to a multiple of 16 */
	/* f32, which is 0, f16, bf16 or q8_0; f16 halves the memory and is what the tool takes. */
	enum pawl_dtype kv_dtype;
	enum pawl_precision precision; /* 0: a16 */
	int n_threads;                 /* 0: pawl_default_threads */
	int64_t prefill_chunk;         /* 0: PAWL_PREFILL_CHUNK */
	/*
	 * Layers with a window keep, in place of capacity positions, a ring for runs of prefill_chunk
	 * tokens or of ring_rollback + 1 (pawl_decoder_extend), all but one of which may be taken back.
	 */
	bool rings;
	int64_t ring_rollback;
	bool replan;                   /* optimize anew for every run; for comparison */
	bool no_reuse;                 /* every temporary gets memory of its own */
	struct pawl_plan_cache *plans; /* shared with other decoders, or NULL; must outlive this */
	const struct pawl_run_hooks *hooks; /* copied; NULL: none */
	/* NULL, or called with each plan that was built. */
	void (*built)(void *arg, const struct pawl_plan *plan);
	void *arg;
};

/*
 * The rings that a decoder with these options has: none where they are not asked for, no layer has a
 * window, or they would hold no less than everything.  PAWL_INVALID_ARGUMENT where none is large enough.
 */
enum pawl_status pawl_decoder_rings(const struct pawl_model_source *source,
	const struct pawl_decoder_options *options, struct pawl_kv_rings *out,
	struct pawl_error *err);

enum pawl_status pawl_decoder_new(const struct pawl_model_source *source,
	struct pawl_device *device, const struct pawl_decoder_options *options,
	struct pawl_decoder **out, struct pawl_error *err);
/* NULL is allowed. */
void pawl_decoder_free(struct pawl_decoder *decoder);

/*
 * Appends n >= 1 tokens.  *logits (may be NULL) are those after the last one, n_vocab of them,
 * valid until the next call.  PAWL_CAPACITY, naming both sizes, before anything is computed when
 * they do not all fit; PAWL_INVALID_ARGUMENT for an id that the model does not have.
 */
enum pawl_status pawl_decoder_prefill(struct pawl_decoder *decoder, const uint32_t *tokens,
	int64_t n, const float **logits, struct pawl_error *err);
/* The same for one token. */
enum pawl_status pawl_decoder_step(
	struct pawl_decoder *decoder, uint32_t token, const float **logits, struct pawl_error *err);

/*
 * The same with the id of the largest logit, the lowest of equal ones: chosen where the model runs,
 * so that a device sends four bytes.  PAWL_INVALID_ARGUMENT when one is not a number; the tokens are
 * appended nevertheless.
 */
enum pawl_status pawl_decoder_prefill_greedy(struct pawl_decoder *decoder, const uint32_t *tokens,
	int64_t n, uint32_t *next, struct pawl_error *err);
enum pawl_status pawl_decoder_step_greedy(
	struct pawl_decoder *decoder, uint32_t token, uint32_t *next, struct pawl_error *err);

/*
 * Appends n >= 1 tokens in one run of `rows` >= n, which must fit; *logits are those after each of
 * the n, [n][n_vocab], valid until the next call.  One number of rows is one plan, whatever n is.
 */
enum pawl_status pawl_decoder_extend(struct pawl_decoder *decoder, const uint32_t *tokens,
	int64_t n, int64_t rows, const float **logits, struct pawl_error *err);

/*
 * Appends n >= 1 tokens in chunks and gives the logits of every position in order.  row is called
 * with a position and n_vocab values; a status other than PAWL_OK ends the call with it.
 */
enum pawl_status pawl_decoder_eval(struct pawl_decoder *decoder, const uint32_t *tokens, int64_t n,
	enum pawl_status (*row)(
		void *arg, int64_t position, const float *logits, struct pawl_error *err),
	void *arg, struct pawl_error *err);

int64_t pawl_decoder_len(const struct pawl_decoder *decoder);
int64_t pawl_decoder_capacity(const struct pawl_decoder *decoder);
int64_t pawl_decoder_n_vocab(const struct pawl_decoder *decoder);
/*
 * Room for n positions at least (pawl_kv_cache_reserve).  The next step of each kind regrows its
 * plan from the code it has: counters.regrows, neither an optimize nor a compile.  Where a plan sees
 * the capacity (a mask, rings: passes/regrow.h) it is built anew, and counted so; rings do not grow.
 */
enum pawl_status pawl_decoder_reserve(
	struct pawl_decoder *decoder, int64_t n, struct pawl_error *err);
/*
 * The cache to and from a snapshot (runtime/kv_snapshot.h) under the model's fingerprint and the
 * precision of activations.  PAWL_UNSUPPORTED when the model source has no fingerprint.
 */
enum pawl_status pawl_decoder_save(const struct pawl_decoder *decoder, const uint32_t *tokens,
	int64_t n_tokens, const struct pawl_kv_snapshot_sink *to, struct pawl_error *err);
enum pawl_status pawl_decoder_restore(struct pawl_decoder *decoder,
	const struct pawl_kv_snapshot *snapshot, struct pawl_error *err);
/*
 * Forgets what lies at n and beyond; plans and storages stay.  An n below 0 or not below the length
 * changes nothing.  With rings, further back than they hold
 * is all (pawl_kv_cache_truncate_to).
 */
void pawl_decoder_truncate(struct pawl_decoder *decoder, int64_t n);

/* A step owns the cache first (pawl_kv_cache_own): the first one after a fork copies what is cached. */
struct pawl_kv_cache *pawl_decoder_cache(struct pawl_decoder *decoder);
/*
 * Exchanges the cache with *cache.  The next step of each session finds out whether it can be
 * rebound or must be rebuilt.
 */
void pawl_decoder_swap_cache(struct pawl_decoder *decoder, struct pawl_kv_cache **cache);
struct pawl_inference_context *pawl_decoder_context(struct pawl_decoder *decoder);

/*
 * Makes sure there is a session for that kind of step and gives its plan (no reference; valid until
 * the next call).  The session is valid for the present cache.
 */
enum pawl_status pawl_decoder_prepare(struct pawl_decoder *decoder, int64_t n_tokens,
	enum pawl_logits logits, const struct pawl_plan **plan, struct pawl_error *err);

/*
 * Makes sure of the session of one token with logits after it and has its runs add to step_ns
 * (struct pawl_run), one sum for each step of its plan; NULL ends that.  A session that takes its
 * place times nothing.  PAWL_UNSUPPORTED on a target that does not time steps.
 */
enum pawl_status pawl_decoder_time_steps(
	struct pawl_decoder *decoder, int64_t *step_ns, struct pawl_error *err);

void pawl_decoder_stats(const struct pawl_decoder *decoder, struct pawl_decoder_stats *out);

#endif

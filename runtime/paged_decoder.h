/*
 * The driver of a model for many sequences over one pool of blocks: a step decodes a batch of them,
 * each at its own length, in one plan.
 *
 * Which blocks a sequence has, who shares them and where new ones come from is the business of
 * runtime/kv_block_pool.h; this adds the bytes, the plans and the order in which both change.
 * Sequences are the pool's sessions.  Logits are bit for bit those of the sequence alone in a
 * contiguous cache, whoever is in the batch and wherever the blocks lie.
 *
 * A step of n sequences runs in the plan of the bucket above (1, 2, 4, 8 rows); surplus rows are
 * idle and write nothing.  Prompts go in chunks of one sequence.  One block of as many positions as a
 * sequence may have gives each sequence a contiguous cache of its own; batches are the same.
 *
 * After an error all is as before: lengths, blocks and their order, and the bytes of every position
 * that some sequence has; the same call may be made again.  Belongs to one thread at a time.
 */
#ifndef PAWL_RUNTIME_PAGED_DECODER_H
#define PAWL_RUNTIME_PAGED_DECODER_H

#include "runtime/kv_block_pool.h"
#include "runtime/session_set.h"

struct pawl_paged_decoder;

enum { PAWL_MAX_BATCH = 8 };

enum pawl_paged_policy {
	PAWL_PAGED_PLAN_ONCE, /* hold each plan */
	PAWL_PAGED_REPLAN     /* optimize anew for every step; for comparison */
};

struct pawl_paged_options {
	int64_t n_blocks;
	int64_t block_size; /* positions, a multiple of 16 */
	int64_t max_blocks; /* of one sequence; at most n_blocks */
	enum pawl_dtype kv_dtype; /* as in runtime/decoder.h; 0 is f32, twice the memory of f16 */
	enum pawl_precision precision; /* 0: a16 */
	int n_threads;         /* 0: pawl_default_threads */
	int64_t prefill_chunk; /* 0: PAWL_PREFILL_CHUNK */
	enum pawl_paged_policy policy;
	struct pawl_plan_cache *plans; /* shared with other decoders, or NULL; must outlive this */
	const struct pawl_run_hooks *hooks; /* copied; NULL: none */
	/* NULL, or called with each plan that was built. */
	void (*built)(void *arg, const struct pawl_plan *plan);
	void *arg;
};

/* PAWL_INVALID_ARGUMENT names the option that is out of range. */
enum pawl_status pawl_paged_decoder_new(const struct pawl_model_source *source,
	struct pawl_device *device, const struct pawl_paged_options *options,
	struct pawl_paged_decoder **out, struct pawl_error *err);
/* NULL is allowed. */
void pawl_paged_decoder_free(struct pawl_paged_decoder *decoder);

/* As given, with the chunk that was chosen. */
const struct pawl_paged_options *pawl_paged_decoder_options(
	const struct pawl_paged_decoder *decoder);

/*
 * For what moves no bytes: lengths, sharing (fork, splice, prefixes), truncate.  Not for append,
 * eviction, restoring and copies, nor to close a session that has evicted blocks.
 *
 * pawl_kv_block_pool_fork is how a sequence branches; it takes no block.  The run of whichever of the
 * two writes first copies their last block if that is partly filled, and needs a block more for it.
 */
struct pawl_kv_block_pool *pawl_paged_decoder_pool(struct pawl_paged_decoder *decoder);
/* The cache that holds the blocks. */
struct pawl_kv_cache *pawl_paged_decoder_cache(struct pawl_paged_decoder *decoder);
struct pawl_inference_context *pawl_paged_decoder_context(struct pawl_paged_decoder *decoder);

enum pawl_status pawl_paged_decoder_open(struct pawl_paged_decoder *decoder,
	struct pawl_kv_session_id *out, struct pawl_error *err);
/* Also frees what was evicted of it. */
enum pawl_status pawl_paged_decoder_close(struct pawl_paged_decoder *decoder,
	struct pawl_kv_session_id session, struct pawl_error *err);

/* A token to be appended to a sequence. */
struct pawl_paged_row {
	struct pawl_kv_session_id session;
	uint32_t token;
};

/*
 * One token for each of 1 <= n <= PAWL_MAX_BATCH different sequences.  *logits: [n][n_vocab] in the
 * order of the rows, valid until the next call.  PAWL_CAPACITY before anything changes when the pool
 * has too few blocks (naming need, have and a sequence that must copy a shared one) or a sequence
 * would be too long; PAWL_INVALID_ARGUMENT for an id that the model does not have, a sequence named
 * twice, not open or evicted.
 */
enum pawl_status pawl_paged_decoder_step(struct pawl_paged_decoder *decoder,
	const struct pawl_paged_row *rows, int64_t n, const float **logits, struct pawl_error *err);

/*
 * Appends n >= 1 tokens to one sequence.  *logits (may be NULL) are those after the last one.
 */
enum pawl_status pawl_paged_decoder_prefill(struct pawl_paged_decoder *decoder,
	struct pawl_kv_session_id session, const uint32_t *tokens, int64_t n, const float **logits,
	struct pawl_error *err);

/*
 * Appends the first *taken of n >= 1 tokens in one run without logits, for a prompt that goes piece
 * by piece beside other work: a chunk of them, or one where few are left.
 */
enum pawl_status pawl_paged_decoder_feed(struct pawl_paged_decoder *decoder,
	struct pawl_kv_session_id session, const uint32_t *tokens, int64_t n, int64_t *taken,
	struct pawl_error *err);

/*
 * Appends 1 <= n <= PAWL_MAX_BATCH tokens in one run and gives the logits after each: [n][n_vocab].
 * With pawl_kv_block_pool_truncate, what verifying a guess takes.
 */
enum pawl_status pawl_paged_decoder_extend(struct pawl_paged_decoder *decoder,
	struct pawl_kv_session_id session, const uint32_t *tokens, int64_t n, const float **logits,
	struct pawl_error *err);

/* Whether n more tokens of one sequence would not be refused for want of blocks or length. */
bool pawl_paged_decoder_has_room(
	struct pawl_paged_decoder *decoder, struct pawl_kv_session_id session, int64_t n);
int64_t pawl_paged_decoder_n_vocab(const struct pawl_paged_decoder *decoder);

/*
 * Takes the blocks of a sequence that nobody else owns out of the pool and keeps their bytes;
 * report as of pawl_kv_block_pool_evict.  PAWL_OUT_OF_MEMORY before anything changes.
 *
 * Shared blocks stay, whether or not their other owners are evicted too: of two forks that share all
 * they have, evicting both frees nothing (n_freed 0), and both may still be run.  To get such
 * blocks back close all but one of the sequences and evict that, keeping the tokens of the others to
 * prefill them again; prefixes that hold them must be released.
 */
enum pawl_status pawl_paged_decoder_evict(struct pawl_paged_decoder *decoder,
	struct pawl_kv_session_id session, struct pawl_kv_evict_report *report,
	struct pawl_error *err);
/*
 * Puts them back, bit for bit; until then the sequence is refused by every run if anything was freed.
 * PAWL_CAPACITY keeps the handle and the bytes.
 */
enum pawl_status pawl_paged_decoder_restore(struct pawl_paged_decoder *decoder,
	struct pawl_kv_handle_id handle, struct pawl_error *err);
/* Bytes kept outside of the pool. */
int64_t pawl_paged_decoder_evicted_bytes(const struct pawl_paged_decoder *decoder);

/*
 * Appends the first n_blocks blocks of a prefix to a sequence at whose end they did not stand before,
 * which must have a length that is a multiple of block_size.  Keys are turned by the distance, so
 * that the result is near that of computing them there, not equal (pawl_kv_block_shift), and what
 * the tokens saw before them is what they saw in the prefix.  PAWL_UNSUPPORTED for a cache of q8_0.
 */
enum pawl_status pawl_paged_decoder_append_shifted(struct pawl_paged_decoder *decoder,
	struct pawl_kv_prefix_id prefix, int64_t n_blocks, struct pawl_kv_session_id session,
	struct pawl_error *err);

void pawl_paged_decoder_stats(
	const struct pawl_paged_decoder *decoder, struct pawl_decoder_stats *out);

#endif

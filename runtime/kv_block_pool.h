/*
 * The bookkeeping of a paged KV cache: which session holds which blocks, and how many owners each
 * block has.  It knows no bytes and no device: whoever owns the bytes copies them as told here.
 *
 * A block is room for block_size tokens, K and V of all layers.  A session is a list of slots; slot
 * i holds its tokens [i * block_size, (i + 1) * block_size) and is resident in a block or
 * externalized (evicted).  All slots but the last are full.  Owners of a block are sessions,
 * prefixes and pending copies; it is free when it has none.  Since K carries positions, a shared
 * block stands at the same slot index in all its owners.
 *
 * Free blocks are a stack, block 0 on top at first.  What gives blocks back pushes them from the
 * last to the first, so that taking them back in that order restores the stack.
 *
 * Every function that fails leaves the pool as it was, down to the order of the stack.
 * PAWL_INVALID_ARGUMENT: a number out of range, or an id that is not alive (the text names both);
 * PAWL_CAPACITY: too few free blocks, naming need and have; PAWL_OUT_OF_MEMORY: the lists could not
 * grow.  Ids come from one process-wide counter and never come back, hence belong to one pool, one
 * kind and one object.  What only gives back (close, truncate, commit, abort, undo, release)
 * allocates nothing.  Pointers returned are valid until the pool changes.  One thread at a time.
 */
#ifndef PAWL_RUNTIME_KV_BLOCK_POOL_H
#define PAWL_RUNTIME_KV_BLOCK_POOL_H

#include "ir/status.h"

#include <stdbool.h>
#include <stdint.h>

#define PAWL_MAX_KV_BLOCKS (INT64_C(1) << 24)

struct pawl_kv_block_pool;

struct pawl_kv_pool_geometry {
	int64_t n_layers, n_blocks, block_size; /* block_size in tokens */
	int64_t n_kv_heads, row_bytes; /* row_bytes: of a position of one head, in K or V */
};

struct pawl_kv_session_id {
	uint64_t value;
};

/* Of what was evicted in one go. */
struct pawl_kv_handle_id {
	uint64_t value;
};

struct pawl_kv_prefix_id {
	uint64_t value;
};

/* Of a pending copy; 0: there is nothing to copy. */
struct pawl_kv_copy_id {
	uint64_t value;
};

/* --- pool: kv_block_pool.c --- */

/*
 * PAWL_INVALID_ARGUMENT, naming the field, for a size below 1, more than PAWL_MAX_KV_BLOCKS
 * blocks, or bytes beyond INT64_MAX.  Takes 12 bytes a block.
 */
enum pawl_status pawl_kv_block_pool_new(const struct pawl_kv_pool_geometry *geometry,
	struct pawl_kv_block_pool **out, struct pawl_error *err);
/* NULL is allowed.  Ends all that lives in the pool. */
void pawl_kv_block_pool_free(struct pawl_kv_block_pool *pool);

const struct pawl_kv_pool_geometry *pawl_kv_block_pool_geometry(
	const struct pawl_kv_block_pool *pool);
int64_t pawl_kv_block_pool_block_bytes(const struct pawl_kv_block_pool *pool);
/* In tokens. */
int64_t pawl_kv_block_pool_capacity(const struct pawl_kv_block_pool *pool);
int64_t pawl_kv_block_pool_free_blocks(const struct pawl_kv_block_pool *pool);
/* Bytes of all blocks with an owner, each counted once. */
int64_t pawl_kv_block_pool_bytes_resident(const struct pawl_kv_block_pool *pool);
/* Owners of a block; -1 when it is out of range. */
int64_t pawl_kv_block_pool_owners(const struct pawl_kv_block_pool *pool, int64_t block);
/* Blocks that added tokens take after current ones, none shared; -1 for negative or absurd counts.
 */
int64_t pawl_kv_block_pool_blocks_required(
	const struct pawl_kv_block_pool *pool, int64_t current, int64_t added);
/* Of all that later behaviour depends on, the order of the stack included; for tests. */
uint64_t pawl_kv_block_pool_digest(const struct pawl_kv_block_pool *pool);

/* --- sessions: kv_block_session.c --- */

/* Empty.  Makes room in its list for max_tokens (0: none yet; never more than the pool holds). */
enum pawl_status pawl_kv_block_pool_open(struct pawl_kv_block_pool *pool, int64_t max_tokens,
	struct pawl_kv_session_id *out, struct pawl_error *err);
/*
 * A new session that shares all blocks of session, the tail too: whichever of them writes there
 * first must break it (see copies).  PAWL_INVALID_ARGUMENT, naming the slot, when one is
 * externalized.
 */
enum pawl_status pawl_kv_block_pool_fork(struct pawl_kv_block_pool *pool,
	struct pawl_kv_session_id session, struct pawl_kv_session_id *out, struct pawl_error *err);
/* Discards it, with its handles and pending copies.  In any order, in any phase. */
enum pawl_status pawl_kv_block_pool_close(
	struct pawl_kv_block_pool *pool, struct pawl_kv_session_id session, struct pawl_error *err);

/*
 * n more tokens are about to be written.  PAWL_INVALID_ARGUMENT when the last slot is partly filled
 * and shared or externalized, since the write would be seen by others or go nowhere; also while a
 * copy of the last slot, or one that appends, is pending.  n = 0 changes and refuses nothing.
 * pawl_kv_block_pool_truncate to the old length takes it back exactly.
 */
enum pawl_status pawl_kv_block_pool_append(struct pawl_kv_block_pool *pool,
	struct pawl_kv_session_id session, int64_t n, struct pawl_error *err);
/*
 * Keeps the first n tokens.  Slots behind them leave their handles and end their pending copies;
 * when something is cut, pending copies that append end too.
 */
enum pawl_status pawl_kv_block_pool_truncate(struct pawl_kv_block_pool *pool,
	struct pawl_kv_session_id session, int64_t n, struct pawl_error *err);

struct pawl_kv_append {
	struct pawl_kv_session_id session;
	int64_t n; /* tokens */
};

/*
 * Blocks that all these appends need together, with those for breaking shared tails in this order,
 * each committed before the next is reserved.  Changes nothing.  No session may stand there twice.
 */
enum pawl_status pawl_kv_block_pool_blocks_to_append(const struct pawl_kv_block_pool *pool,
	const struct pawl_kv_append *appends, int64_t n_appends, int64_t *need,
	struct pawl_error *err);

/* Shares slots [from, to) of src, which must be resident, with dst, which must hold the from slots
 * before them and nothing else.  The last of them may be a partly filled tail. */
enum pawl_status pawl_kv_block_pool_splice(struct pawl_kv_block_pool *pool,
	struct pawl_kv_session_id src, int64_t from, int64_t to, struct pawl_kv_session_id dst,
	struct pawl_error *err);
/* The first n_blocks slots, all full, for a dst that is empty. */
enum pawl_status pawl_kv_block_pool_splice_prefix(struct pawl_kv_block_pool *pool,
	struct pawl_kv_session_id src, int64_t n_blocks, struct pawl_kv_session_id dst,
	struct pawl_error *err);

/* Tokens; -1 when the session is not open. */
int64_t pawl_kv_block_pool_session_len(
	const struct pawl_kv_block_pool *pool, struct pawl_kv_session_id session);
/* Slots; -1 when the session is not open. */
int64_t pawl_kv_block_pool_session_slots(
	const struct pawl_kv_block_pool *pool, struct pawl_kv_session_id session);
/* The block of a slot, -1 when it is externalized. */
enum pawl_status pawl_kv_block_pool_slot(const struct pawl_kv_block_pool *pool,
	struct pawl_kv_session_id session, int64_t slot, int32_t *block, struct pawl_error *err);
/* Does the next append have to break the last slot first?  False when the session is not open. */
bool pawl_kv_block_pool_tail_is_shared(
	const struct pawl_kv_block_pool *pool, struct pawl_kv_session_id session);
/*
 * Blocks in the order of the slots, then zeros up to cap.  PAWL_CAPACITY, naming both, when there
 * are more than cap; PAWL_INVALID_ARGUMENT, naming the slot, when one is externalized.  A failure
 * leaves the table alone.
 */
enum pawl_status pawl_kv_block_pool_block_table(const struct pawl_kv_block_pool *pool,
	struct pawl_kv_session_id session, uint32_t *table, int64_t cap, struct pawl_error *err);

/* --- evict and restore: kv_block_evict.c --- */

enum pawl_kv_fidelity { PAWL_KV_LOSSY, PAWL_KV_EXACT };
enum pawl_kv_state_kind { PAWL_KV_STATE_BLOCKS };

struct pawl_kv_evict_report {
	int64_t n_freed, n_still_shared;
	struct pawl_kv_handle_id handle;
};

/* A slot of a handle; block is -1 unless a restore is pending. */
struct pawl_kv_evicted_slot {
	int64_t slot;
	int32_t block;
};

struct pawl_kv_handle_info {
	struct pawl_kv_session_id session;
	enum pawl_kv_fidelity fidelity;
	enum pawl_kv_state_kind kind;
	bool is_pending;
	int64_t n_slots;
	const struct pawl_kv_evicted_slot *slots; /* ascending */
};

/*
 * Slots whose block has one owner are externalized and their blocks freed; others stay and are
 * counted as still shared, even if all their owners are evicted in turn.  Copy the bytes before (of
 * slots whose block has one owner).  Always gives a handle, of no slots when nothing was freed, which lives until it is restored or its session closes.  fidelity says whether
 * the bytes are kept or are to be computed anew, and is only recorded.  A slot that is out of
 * range, named twice or already externalized is an error.
 */
enum pawl_status pawl_kv_block_pool_evict_blocks(struct pawl_kv_block_pool *pool,
	struct pawl_kv_session_id session, const int64_t *slots, int64_t n,
	enum pawl_kv_fidelity fidelity, struct pawl_kv_evict_report *report,
	struct pawl_error *err);
/* Slots [from, to), leaving out those that are externalized already. */
enum pawl_status pawl_kv_block_pool_evict_range(struct pawl_kv_block_pool *pool,
	struct pawl_kv_session_id session, int64_t from, int64_t to, enum pawl_kv_fidelity fidelity,
	struct pawl_kv_evict_report *report, struct pawl_error *err);
/* All slots. */
enum pawl_status pawl_kv_block_pool_evict(struct pawl_kv_block_pool *pool,
	struct pawl_kv_session_id session, enum pawl_kv_fidelity fidelity,
	struct pawl_kv_evict_report *report, struct pawl_error *err);

enum pawl_status pawl_kv_block_pool_handle(const struct pawl_kv_block_pool *pool,
	struct pawl_kv_handle_id handle, struct pawl_kv_handle_info *out, struct pawl_error *err);

/*
 * Restoring in two phases, so that a failed write of the bytes loses nothing: reserve takes blocks
 * for the slots of the handle, commit makes the slots resident there and ends the handle, abort
 * gives the blocks back and leaves the handle as before reserve.
 */
enum pawl_status pawl_kv_block_pool_restore_reserve(
	struct pawl_kv_block_pool *pool, struct pawl_kv_handle_id handle, struct pawl_error *err);
enum pawl_status pawl_kv_block_pool_restore_commit(
	struct pawl_kv_block_pool *pool, struct pawl_kv_handle_id handle, struct pawl_error *err);
enum pawl_status pawl_kv_block_pool_restore_abort(
	struct pawl_kv_block_pool *pool, struct pawl_kv_handle_id handle, struct pawl_error *err);
/* Reserve and commit, for bytes that are computed anew.  PAWL_CAPACITY keeps the handle. */
enum pawl_status pawl_kv_block_pool_restore(
	struct pawl_kv_block_pool *pool, struct pawl_kv_handle_id handle, struct pawl_error *err);

/* --- copies: kv_block_copy.c --- */

struct pawl_kv_block_copy {
	int32_t from, to;
};

struct pawl_kv_copy_info {
	struct pawl_kv_session_id session;
	int64_t slot;  /* of the first block */
	int64_t shift; /* K turns by so many positions; 0: the bytes as they are */
	int64_t n_blocks;
	const struct pawl_kv_block_copy *blocks;
};

/*
 * Copying in two phases: reserve takes fresh blocks and holds the old ones, the caller copies the
 * bytes as pawl_kv_block_pool_copy says, then commit puts the fresh blocks into the session and
 * abort gives them back.  Until then the session reads as before.
 *
 * Copy on write of one slot: *out is 0 when its block has one owner.  PAWL_INVALID_ARGUMENT when
 * the slot is externalized or such a copy is already pending.
 */
enum pawl_status pawl_kv_block_pool_cow_reserve(struct pawl_kv_block_pool *pool,
	struct pawl_kv_session_id session, int64_t slot, struct pawl_kv_copy_id *out,
	struct pawl_error *err);
/*
 * A prefix at another position: its first n_blocks blocks go to the end of session, which must
 * hold exactly offset tokens, a multiple of block_size.  K shifts by offset, V is copied.
 */
enum pawl_status pawl_kv_block_pool_shift_reserve(struct pawl_kv_block_pool *pool,
	struct pawl_kv_prefix_id prefix, int64_t n_blocks, struct pawl_kv_session_id session,
	int64_t offset, struct pawl_kv_copy_id *out, struct pawl_error *err);
enum pawl_status pawl_kv_block_pool_copy(const struct pawl_kv_block_pool *pool,
	struct pawl_kv_copy_id copy, struct pawl_kv_copy_info *out, struct pawl_error *err);
enum pawl_status pawl_kv_block_pool_copy_commit(
	struct pawl_kv_block_pool *pool, struct pawl_kv_copy_id copy, struct pawl_error *err);
enum pawl_status pawl_kv_block_pool_copy_abort(
	struct pawl_kv_block_pool *pool, struct pawl_kv_copy_id copy, struct pawl_error *err);
/*
 * Takes a committed copy on write back, when what it was for has failed: slot stands in `block`
 * again, which somebody must still own, and the block it was given, which must be its alone, is free.
 */
enum pawl_status pawl_kv_block_pool_copy_undo(struct pawl_kv_block_pool *pool,
	struct pawl_kv_session_id session, int64_t slot, int32_t block, struct pawl_error *err);

/* --- prefixes: kv_block_prefix.c --- */

/*
 * What the content of a block depends on beside the model.  Keys are equal when all of it is:
 * tokens as 32-bit ids, adapter and salt as texts, each in its own place (NULL: none, which is
 * not the empty text).
 */
struct pawl_kv_prefix_key {
	const uint32_t *tokens;
	int64_t n_tokens;
	const char *adapter;
	const char *salt;
};

/*
 * Registers the first key->n_tokens tokens of session (whole blocks, at least one, all resident)
 * under a copy of the key.  The prefix owns the blocks by itself: they stay when the session is
 * evicted or closed.  Equal keys may be registered several times.
 */
enum pawl_status pawl_kv_block_pool_register_prefix(struct pawl_kv_block_pool *pool,
	struct pawl_kv_session_id session, const struct pawl_kv_prefix_key *key,
	struct pawl_kv_prefix_id *out, struct pawl_error *err);
enum pawl_status pawl_kv_block_pool_release_prefix(
	struct pawl_kv_block_pool *pool, struct pawl_kv_prefix_id prefix, struct pawl_error *err);
/* Its blocks in order; NULL when the prefix is not alive. */
const int32_t *pawl_kv_block_pool_prefix_blocks(
	const struct pawl_kv_block_pool *pool, struct pawl_kv_prefix_id prefix, int64_t *n);

struct pawl_kv_prefix_match {
	struct pawl_kv_prefix_id prefix;
	int64_t n_blocks;
};

/*
 * The prefix that shares most whole blocks with the key, from the first on; the oldest of equal
 * ones.  False when none shares one.  To have a token left to run, leave out the last one.
 */
bool pawl_kv_block_pool_find_prefix(const struct pawl_kv_block_pool *pool,
	const struct pawl_kv_prefix_key *key, struct pawl_kv_prefix_match *out);
/* Shares the first n_blocks blocks of the prefix with dst, which must be empty. */
enum pawl_status pawl_kv_block_pool_splice_prefix_from(struct pawl_kv_block_pool *pool,
	struct pawl_kv_prefix_id prefix, int64_t n_blocks, struct pawl_kv_session_id dst,
	struct pawl_error *err);

#endif

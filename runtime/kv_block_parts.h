/* What the files of the KV block pool share; nobody else's business but that of its tests. */
#ifndef PAWL_RUNTIME_KV_BLOCK_PARTS_H
#define PAWL_RUNTIME_KV_BLOCK_PARTS_H

#include "runtime/kv_block_pool.h"
#include "runtime/object_table.h"

#include <stddef.h>

enum { PAWL_KV_EXTERNALIZED = -1 };

struct pawl_kv_session {
	uint64_t id;
	int64_t n_tokens, n_slots, capacity;
	int32_t *blocks; /* PAWL_KV_EXTERNALIZED */
};

struct pawl_kv_handle {
	uint64_t id, session;
	enum pawl_kv_fidelity fidelity;
	bool is_pending;
	int64_t n;
	struct pawl_kv_evicted_slot slots[];
};

struct pawl_kv_copy {
	uint64_t id, session;
	int64_t slot;
	bool appends; /* behind the last slot, else in place of one */
	int64_t shift, n;
	struct pawl_kv_block_copy blocks[]; /* owns both sides */
};

struct pawl_kv_prefix {
	uint64_t id;
	int64_t n_blocks;
	int32_t *blocks;
	uint32_t *tokens;
	uint64_t *hashes; /* of the key up to the end of each block */
	char *adapter, *salt;
};

/* The end of a block of a prefix, found by the hash of all up to there; prefix 0: empty. */
struct pawl_kv_prefix_entry {
	uint64_t hash, prefix;
	int64_t n_blocks;
};

struct pawl_kv_block_pool {
	struct pawl_kv_pool_geometry geometry;
	int64_t block_bytes;
	int64_t *n_owners;
	int32_t *free_blocks; /* a stack */
	int64_t n_free;
	struct pawl_object_table sessions, handles, copies, prefixes;
	struct pawl_kv_prefix_entry *index; /* open addressing */
	int64_t n_index, index_size;        /* a power of two, or 0 */
	uint64_t hash_mask;                 /* all ones; tests narrow it to force collisions */
};

/* There must be a free one; it gets one owner. */
int32_t pawl_kv_blocks_take(struct pawl_kv_block_pool *pool);
void pawl_kv_blocks_share(struct pawl_kv_block_pool *pool, int32_t block);
/* One owner less; with none left it is pushed onto the stack. */
void pawl_kv_blocks_drop(struct pawl_kv_block_pool *pool, int32_t block);

/* NULL and a text when it is not open. */
struct pawl_kv_session *pawl_kv_session_find(const struct pawl_kv_block_pool *pool,
	struct pawl_kv_session_id id, struct pawl_error *err);
/* Room for n_slots in its list. */
enum pawl_status pawl_kv_session_grow(
	struct pawl_kv_session *session, int64_t n_slots, struct pawl_error *err);
/* PAWL_INVALID_ARGUMENT, naming the first externalized slot of [from, to). */
enum pawl_status pawl_kv_session_check_resident(
	const struct pawl_kv_session *session, int64_t from, int64_t to, struct pawl_error *err);
/* Adds shared blocks, for which there is room, behind the last slot. */
void pawl_kv_session_share(struct pawl_kv_block_pool *pool, struct pawl_kv_session *session,
	const int32_t *blocks, int64_t n, int64_t n_tokens);

/* PAWL_INVALID_ARGUMENT while a copy of the last slot, or one that appends, is pending. */
enum pawl_status pawl_kv_copies_check_end(const struct pawl_kv_block_pool *pool,
	const struct pawl_kv_session *session, struct pawl_error *err);
/* Ends copies of slots from n_slots on and, if asked, those that append; newest first. */
void pawl_kv_copies_cut(struct pawl_kv_block_pool *pool, const struct pawl_kv_session *session,
	int64_t n_slots, bool cut_appends);
/* Slots from n_slots on leave the handles of the session; newest first. */
void pawl_kv_handles_cut(
	struct pawl_kv_block_pool *pool, const struct pawl_kv_session *session, int64_t n_slots);
/* Ends all handles of the session, newest first. */
void pawl_kv_handles_end(struct pawl_kv_block_pool *pool, const struct pawl_kv_session *session);
struct pawl_kv_prefix *pawl_kv_prefix_find(
	const struct pawl_kv_block_pool *pool, struct pawl_kv_prefix_id id, struct pawl_error *err);
void pawl_kv_prefix_free(struct pawl_kv_prefix *prefix);

#endif

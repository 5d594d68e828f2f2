/*
 * A plain and slow model of the KV block pool and of the bytes it keeps account of.  Owners are
 * counted by looking everywhere, lists are arrays of fixed size in the order of creation.
 *
 * Each function does what the pool's function of that name does and says how it has to end.  Where
 * the pool gives a new id, the model is told it.  Sizes beyond the arrays are for callers to avoid.
 */
#ifndef PAWL_TESTS_POOL_MODEL_H
#define PAWL_TESTS_POOL_MODEL_H

#include "runtime/kv_block_pool.h"

enum {
	PAWL_MODEL_BLOCKS = 48,
	PAWL_MODEL_BLOCK_SIZE = 16,
	PAWL_MODEL_SLOTS = 80,
	PAWL_MODEL_TOKENS = PAWL_MODEL_SLOTS * PAWL_MODEL_BLOCK_SIZE,
	PAWL_MODEL_OBJECTS = 12,  /* of each kind */
	PAWL_MODEL_FREED = 0xdead /* what stands in blocks nobody owns */
};

struct pawl_model_session {
	uint64_t id;
	int64_t n_tokens, n_slots;
	int32_t blocks[PAWL_MODEL_SLOTS];
	uint32_t content[PAWL_MODEL_TOKENS]; /* what has to be read through the blocks */
};

struct pawl_model_handle {
	uint64_t id, session;
	enum pawl_kv_fidelity fidelity;
	bool is_pending;
	int64_t n;
	int64_t slots[PAWL_MODEL_SLOTS];
	int32_t blocks[PAWL_MODEL_SLOTS];
	uint32_t saved[PAWL_MODEL_SLOTS][PAWL_MODEL_BLOCK_SIZE];
};

struct pawl_model_copy {
	uint64_t id, session;
	bool appends;
	int64_t slot, shift, n;
	int32_t from[PAWL_MODEL_SLOTS], to[PAWL_MODEL_SLOTS];
};

struct pawl_model_prefix {
	uint64_t id;
	int64_t n;
	int32_t blocks[PAWL_MODEL_SLOTS];
	uint32_t tokens[PAWL_MODEL_TOKENS];
	const char *adapter, *salt; /* not owned */
};

struct pawl_pool_model {
	int64_t n_blocks, block_size, block_bytes;
	int64_t n_free;
	int32_t free_blocks[PAWL_MODEL_BLOCKS];
	uint32_t bytes[PAWL_MODEL_BLOCKS][PAWL_MODEL_BLOCK_SIZE];
	int n_sessions, n_handles, n_copies, n_prefixes;
	struct pawl_model_session sessions[PAWL_MODEL_OBJECTS];
	struct pawl_model_handle handles[PAWL_MODEL_OBJECTS];
	struct pawl_model_copy copies[PAWL_MODEL_OBJECTS];
	struct pawl_model_prefix prefixes[PAWL_MODEL_OBJECTS];
};

void pawl_pool_model_init(struct pawl_pool_model *m, const struct pawl_kv_block_pool *pool);
struct pawl_model_session *pawl_pool_model_session(struct pawl_pool_model *m, uint64_t id);
struct pawl_model_prefix *pawl_pool_model_prefix(struct pawl_pool_model *m, uint64_t id);
int64_t pawl_pool_model_owners(const struct pawl_pool_model *m, int32_t block);

enum pawl_status pawl_pool_model_open(
	struct pawl_pool_model *m, int64_t max_tokens, uint64_t new_id);
enum pawl_status pawl_pool_model_fork(struct pawl_pool_model *m, uint64_t id, uint64_t new_id);
enum pawl_status pawl_pool_model_close(struct pawl_pool_model *m, uint64_t id);
/* tokens: n of them, written into the blocks. */
enum pawl_status pawl_pool_model_append(
	struct pawl_pool_model *m, uint64_t id, int64_t n, const uint32_t *tokens);
enum pawl_status pawl_pool_model_truncate(struct pawl_pool_model *m, uint64_t id, int64_t n);
enum pawl_status pawl_pool_model_splice(
	struct pawl_pool_model *m, uint64_t src, int64_t from, int64_t to, uint64_t dst);
enum pawl_status pawl_pool_model_splice_prefix(
	struct pawl_pool_model *m, uint64_t src, int64_t n_blocks, uint64_t dst);

enum pawl_status pawl_pool_model_evict_blocks(struct pawl_pool_model *m, uint64_t id,
	const int64_t *slots, int64_t n, enum pawl_kv_fidelity fidelity,
	struct pawl_kv_evict_report *report, uint64_t new_id);
enum pawl_status pawl_pool_model_evict_range(struct pawl_pool_model *m, uint64_t id, int64_t from,
	int64_t to, enum pawl_kv_fidelity fidelity, struct pawl_kv_evict_report *report,
	uint64_t new_id);
enum pawl_status pawl_pool_model_restore_reserve(struct pawl_pool_model *m, uint64_t handle);
enum pawl_status pawl_pool_model_restore_commit(struct pawl_pool_model *m, uint64_t handle);
enum pawl_status pawl_pool_model_restore_abort(struct pawl_pool_model *m, uint64_t handle);

/* new_id must be 0 exactly when there is nothing to copy; else PAWL_INTERNAL. */
enum pawl_status pawl_pool_model_cow_reserve(
	struct pawl_pool_model *m, uint64_t id, int64_t slot, uint64_t new_id);
enum pawl_status pawl_pool_model_shift_reserve(struct pawl_pool_model *m, uint64_t prefix,
	int64_t n_blocks, uint64_t id, int64_t offset, uint64_t new_id);
enum pawl_status pawl_pool_model_copy_commit(struct pawl_pool_model *m, uint64_t copy);
enum pawl_status pawl_pool_model_copy_abort(struct pawl_pool_model *m, uint64_t copy);

enum pawl_status pawl_pool_model_register_prefix(struct pawl_pool_model *m, uint64_t id,
	const struct pawl_kv_prefix_key *key, uint64_t new_id);
enum pawl_status pawl_pool_model_release_prefix(struct pawl_pool_model *m, uint64_t prefix);
/* id 0: none. */
struct pawl_kv_prefix_match pawl_pool_model_find_prefix(
	const struct pawl_pool_model *m, const struct pawl_kv_prefix_key *key);
enum pawl_status pawl_pool_model_splice_prefix_from(
	struct pawl_pool_model *m, uint64_t prefix, int64_t n_blocks, uint64_t dst);
enum pawl_status pawl_pool_model_blocks_to_append(struct pawl_pool_model *m,
	const struct pawl_kv_append *appends, int64_t n_appends, int64_t *need);
enum pawl_status pawl_pool_model_block_table(
	struct pawl_pool_model *m, uint64_t id, uint32_t *table, int64_t cap);

/* Fails the test where the two differ, or where a session reads other content than it wrote. */
void pawl_pool_model_compare(struct pawl_pool_model *m, const struct pawl_kv_block_pool *pool);

#endif

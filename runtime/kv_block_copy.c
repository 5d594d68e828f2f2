#include "runtime/identity.h"
#include "runtime/kv_block_parts.h"
#include "runtime/memory.h"

#include <inttypes.h>

static struct pawl_kv_copy *
find(const struct pawl_kv_block_pool *pool, struct pawl_kv_copy_id id, struct pawl_error *err)
{
	struct pawl_kv_copy *copy = pawl_object_table_find(&pool->copies, id.value);

	if (!copy)
		pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"copy %" PRIu64 " is not pending in this pool", id.value);
	return copy;
}

/* A pending copy of the slot or, if asked, one that appends. */
static const struct pawl_kv_copy *
pending(const struct pawl_kv_block_pool *pool, const struct pawl_kv_session *session, int64_t slot,
	bool or_appending)
{
	for (int64_t i = 0; i < pool->copies.n; i++) {
		const struct pawl_kv_copy *copy = pool->copies.items[i];

		if (copy->session == session->id &&
			(copy->appends ? or_appending : copy->slot == slot))
			return copy;
	}
	return NULL;
}

static enum pawl_status
fail_pending(const struct pawl_kv_copy *copy, struct pawl_error *err)
{
	return pawl_fail(err, PAWL_INVALID_ARGUMENT,
		"copy %" PRIu64 " to slot %" PRId64 " of session %" PRIu64 " is pending", copy->id,
		copy->slot, copy->session);
}

enum pawl_status
pawl_kv_copies_check_end(const struct pawl_kv_block_pool *pool,
	const struct pawl_kv_session *session, struct pawl_error *err)
{
	const struct pawl_kv_copy *copy = pending(pool, session, session->n_slots - 1, true);

	return copy ? fail_pending(copy, err) : PAWL_OK;
}

/* Takes n fresh blocks for copies of n blocks; the copy is not in the pool's list yet. */
static enum pawl_status
reserve(struct pawl_kv_block_pool *pool, const int32_t *blocks, int64_t n,
	struct pawl_kv_copy **out, struct pawl_error *err)
{
	struct pawl_kv_copy *copy;
	enum pawl_status status;

	if (n > pool->n_free)
		return pawl_fail(err, PAWL_CAPACITY,
			"copying %" PRId64 " blocks needs as many, %" PRId64 " are free", n,
			pool->n_free);
	status = pawl_object_table_reserve(&pool->copies, err);
	if (status)
		return status;
	copy = pawl_memory_zalloc(1, sizeof(*copy) + (size_t)n * sizeof(copy->blocks[0]));
	if (!copy)
		return pawl_fail(
			err, PAWL_OUT_OF_MEMORY, "no memory for a copy of %" PRId64 " blocks", n);
	copy->n = n;
	for (int64_t i = 0; i < n; i++) {
		pawl_kv_blocks_share(pool, blocks[i]);
		copy->blocks[i] = (struct pawl_kv_block_copy){blocks[i], pawl_kv_blocks_take(pool)};
	}
	*out = copy;
	return PAWL_OK;
}

enum pawl_status
pawl_kv_block_pool_cow_reserve(struct pawl_kv_block_pool *pool, struct pawl_kv_session_id id,
	int64_t slot, struct pawl_kv_copy_id *out, struct pawl_error *err)
{
	const struct pawl_kv_session *session = pawl_kv_session_find(pool, id, err);
	const struct pawl_kv_copy *before;
	struct pawl_kv_copy *copy;
	int32_t block;
	enum pawl_status status;

	if (!session)
		return PAWL_INVALID_ARGUMENT;
	status = pawl_kv_block_pool_slot(pool, id, slot, &block, err);
	if (!status)
		status = pawl_kv_session_check_resident(session, slot, slot + 1, err);
	if (status)
		return status;
	before = pending(pool, session, slot, false);
	if (before)
		return fail_pending(before, err);
	if (pool->n_owners[block] == 1) {
		out->value = 0;
		return PAWL_OK;
	}
	status = reserve(pool, &block, 1, &copy, err);
	if (status)
		return status;
	copy->session = session->id;
	copy->slot = slot;
	out->value =
		pawl_object_table_add(&pool->copies, copy, pawl_kv_object_id_new());
	return PAWL_OK;
}

enum pawl_status
pawl_kv_block_pool_shift_reserve(struct pawl_kv_block_pool *pool,
	struct pawl_kv_prefix_id prefix_id, int64_t n_blocks, struct pawl_kv_session_id id,
	int64_t offset, struct pawl_kv_copy_id *out, struct pawl_error *err)
{
	const struct pawl_kv_prefix *prefix = pawl_kv_prefix_find(pool, prefix_id, err);
	struct pawl_kv_session *session = prefix ? pawl_kv_session_find(pool, id, err) : NULL;
	struct pawl_kv_copy *copy;
	enum pawl_status status;

	if (!session)
		return PAWL_INVALID_ARGUMENT;
	if (n_blocks < 1 || n_blocks > prefix->n_blocks)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"prefix %" PRIu64 " of %" PRId64 " blocks has no %" PRId64, prefix->id,
			prefix->n_blocks, n_blocks);
	if (offset < 0 || offset % pool->geometry.block_size)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"offset %" PRId64 " is no multiple of the block size %" PRId64, offset,
			pool->geometry.block_size);
	if (offset != session->n_tokens)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"offset %" PRId64 " is not the end of session %" PRIu64 " of %" PRId64
			" tokens",
			offset, session->id, session->n_tokens);
	status = pawl_kv_copies_check_end(pool, session, err);
	if (!status)
		status = pawl_kv_session_grow(session, session->n_slots + n_blocks, err);
	if (!status)
		status = reserve(pool, prefix->blocks, n_blocks, &copy, err);
	if (status)
		return status;
	copy->session = session->id;
	copy->slot = session->n_slots;
	copy->appends = true;
	copy->shift = offset;
	out->value =
		pawl_object_table_add(&pool->copies, copy, pawl_kv_object_id_new());
	return PAWL_OK;
}

enum pawl_status
pawl_kv_block_pool_copy(const struct pawl_kv_block_pool *pool, struct pawl_kv_copy_id id,
	struct pawl_kv_copy_info *out, struct pawl_error *err)
{
	const struct pawl_kv_copy *copy = find(pool, id, err);

	if (!copy)
		return PAWL_INVALID_ARGUMENT;
	*out = (struct pawl_kv_copy_info){.session = {copy->session},
		.slot = copy->slot,
		.shift = copy->shift,
		.n_blocks = copy->n,
		.blocks = copy->blocks};
	return PAWL_OK;
}

static void
end(struct pawl_kv_block_pool *pool, struct pawl_kv_copy *copy)
{
	for (int64_t i = copy->n; i > 0;)
		pawl_kv_blocks_drop(pool, copy->blocks[--i].from);
	pawl_object_table_remove(&pool->copies, copy);
	pawl_memory_free(copy);
}

/* The old blocks first, so that the fresh ones come to lie as they lay. */
static void
cancel(struct pawl_kv_block_pool *pool, struct pawl_kv_copy *copy)
{
	for (int64_t i = copy->n; i > 0;)
		pawl_kv_blocks_drop(pool, copy->blocks[--i].from);
	for (int64_t i = copy->n; i > 0;)
		pawl_kv_blocks_drop(pool, copy->blocks[--i].to);
	pawl_object_table_remove(&pool->copies, copy);
	pawl_memory_free(copy);
}

enum pawl_status
pawl_kv_block_pool_copy_commit(
	struct pawl_kv_block_pool *pool, struct pawl_kv_copy_id id, struct pawl_error *err)
{
	struct pawl_kv_copy *copy = find(pool, id, err);
	struct pawl_kv_session *session;

	if (!copy)
		return PAWL_INVALID_ARGUMENT;
	session = pawl_object_table_find(&pool->sessions, copy->session);
	if (copy->appends) {
		for (int64_t i = 0; i < copy->n; i++)
			session->blocks[session->n_slots++] = copy->blocks[i].to;
		session->n_tokens += copy->n * pool->geometry.block_size;
	} else {
		session->blocks[copy->slot] = copy->blocks[0].to;
		pawl_kv_blocks_drop(pool, copy->blocks[0].from);
	}
	end(pool, copy);
	return PAWL_OK;
}

enum pawl_status
pawl_kv_block_pool_copy_abort(
	struct pawl_kv_block_pool *pool, struct pawl_kv_copy_id id, struct pawl_error *err)
{
	struct pawl_kv_copy *copy = find(pool, id, err);

	if (!copy)
		return PAWL_INVALID_ARGUMENT;
	cancel(pool, copy);
	return PAWL_OK;
}

enum pawl_status
pawl_kv_block_pool_copy_undo(struct pawl_kv_block_pool *pool, struct pawl_kv_session_id id,
	int64_t slot, int32_t block, struct pawl_error *err)
{
	struct pawl_kv_session *session = pawl_kv_session_find(pool, id, err);
	int32_t fresh;
	enum pawl_status status;

	if (!session)
		return PAWL_INVALID_ARGUMENT;
	status = pawl_kv_block_pool_slot(pool, id, slot, &fresh, err);
	if (!status)
		status = pawl_kv_session_check_resident(session, slot, slot + 1, err);
	if (status)
		return status;
	if (block == fresh || pawl_kv_block_pool_owners(pool, block) < 1 ||
		pool->n_owners[fresh] != 1)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"slot %" PRId64 " of session %" PRIu64 " is no copy of block %d", slot,
			session->id, block);
	pawl_kv_blocks_share(pool, block);
	session->blocks[slot] = block;
	pawl_kv_blocks_drop(pool, fresh);
	return PAWL_OK;
}

void
pawl_kv_copies_cut(struct pawl_kv_block_pool *pool, const struct pawl_kv_session *session,
	int64_t n_slots, bool cut_appends)
{
	for (int64_t i = pool->copies.n; i > 0;) {
		struct pawl_kv_copy *copy = pool->copies.items[--i];

		if (copy->session == session->id &&
			(copy->appends ? cut_appends : copy->slot >= n_slots))
			cancel(pool, copy);
	}
}

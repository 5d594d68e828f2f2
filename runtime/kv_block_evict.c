#include "runtime/identity.h"
#include "runtime/kv_block_parts.h"
#include "runtime/memory.h"
#include "runtime/option_check.h"

#include <inttypes.h>

static struct pawl_kv_handle *
find(const struct pawl_kv_block_pool *pool, struct pawl_kv_handle_id id, struct pawl_error *err)
{
	struct pawl_kv_handle *handle = pawl_object_table_find(&pool->handles, id.value);

	if (!handle)
		pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"handle %" PRIu64 " is not alive in this pool", id.value);
	return handle;
}

static bool
is_evictable(const struct pawl_kv_block_pool *pool, const struct pawl_kv_session *session,
	const bool *is_marked, int64_t slot)
{
	return is_marked[slot] && session->blocks[slot] != PAWL_KV_EXTERNALIZED &&
	       pool->n_owners[session->blocks[slot]] == 1;
}

static enum pawl_status
evict_marked(struct pawl_kv_block_pool *pool, struct pawl_kv_session *session,
	const bool *is_marked, enum pawl_kv_fidelity fidelity, struct pawl_kv_evict_report *report,
	struct pawl_error *err)
{
	struct pawl_kv_handle *handle;
	int64_t n_freed = 0, n_shared = 0;
	enum pawl_status status =
		pawl_check_option("fidelity", fidelity, 0, PAWL_KV_EXACT, err);

	if (!status)
		status = pawl_object_table_reserve(&pool->handles, err);
	if (status)
		return status;
	for (int64_t i = 0; i < session->n_slots; i++) {
		bool is_freed = is_evictable(pool, session, is_marked, i);

		n_freed += is_freed;
		n_shared += is_marked[i] && !is_freed && session->blocks[i] != PAWL_KV_EXTERNALIZED;
	}
	handle =
		pawl_memory_zalloc(1, sizeof(*handle) + (size_t)n_freed * sizeof(handle->slots[0]));
	if (!handle)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY,
			"no memory for a handle of %" PRId64 " slots", n_freed);
	handle->session = session->id;
	handle->fidelity = fidelity;
	handle->n = n_freed;
	for (int64_t i = session->n_slots, n = n_freed; n > 0;) {
		if (!is_evictable(pool, session, is_marked, --i))
			continue;
		pawl_kv_blocks_drop(pool, session->blocks[i]);
		session->blocks[i] = PAWL_KV_EXTERNALIZED;
		handle->slots[--n] = (struct pawl_kv_evicted_slot){i, PAWL_KV_EXTERNALIZED};
	}
	report->n_freed = n_freed;
	report->n_still_shared = n_shared;
	report->handle.value =
		pawl_object_table_add(&pool->handles, handle, pawl_kv_object_id_new());
	return PAWL_OK;
}

static enum pawl_status
mark(const struct pawl_kv_session *session, const int64_t *slots, int64_t n, bool *is_marked,
	struct pawl_error *err)
{
	for (int64_t i = 0; i < n; i++) {
		int64_t slot = slots[i];

		if (slot < 0 || slot >= session->n_slots)
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"slot %" PRId64 " of session %" PRIu64 " is not among its %" PRId64,
				slot, session->id, session->n_slots);
		if (is_marked[slot])
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"slot %" PRId64 " is named twice", slot);
		if (session->blocks[slot] == PAWL_KV_EXTERNALIZED)
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"slot %" PRId64 " of session %" PRIu64 " is evicted already",
				slot, session->id);
		is_marked[slot] = true;
	}
	return PAWL_OK;
}

static bool *
new_marks(const struct pawl_kv_session *session, struct pawl_error *err)
{
	bool *is_marked = pawl_memory_zalloc((size_t)session->n_slots, sizeof(*is_marked));

	if (!is_marked)
		pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory to mark %" PRId64 " slots",
			session->n_slots);
	return is_marked;
}

enum pawl_status
pawl_kv_block_pool_evict_blocks(struct pawl_kv_block_pool *pool, struct pawl_kv_session_id id,
	const int64_t *slots, int64_t n, enum pawl_kv_fidelity fidelity,
	struct pawl_kv_evict_report *report, struct pawl_error *err)
{
	struct pawl_kv_session *session = pawl_kv_session_find(pool, id, err);
	bool *is_marked;
	enum pawl_status status;

	if (!session)
		return PAWL_INVALID_ARGUMENT;
	if (n < 0)
		return pawl_fail(
			err, PAWL_INVALID_ARGUMENT, "%" PRId64 " slots cannot be evicted", n);
	is_marked = new_marks(session, err);
	if (!is_marked)
		return PAWL_OUT_OF_MEMORY;
	status = mark(session, slots, n, is_marked, err);
	if (!status)
		status = evict_marked(pool, session, is_marked, fidelity, report, err);
	pawl_memory_free(is_marked);
	return status;
}

enum pawl_status
pawl_kv_block_pool_evict_range(struct pawl_kv_block_pool *pool, struct pawl_kv_session_id id,
	int64_t from, int64_t to, enum pawl_kv_fidelity fidelity,
	struct pawl_kv_evict_report *report, struct pawl_error *err)
{
	struct pawl_kv_session *session = pawl_kv_session_find(pool, id, err);
	bool *is_marked;
	enum pawl_status status;

	if (!session)
		return PAWL_INVALID_ARGUMENT;
	if (from < 0 || from > to || to > session->n_slots)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"slots %" PRId64 " to %" PRId64 " are not among the %" PRId64
			" of session %" PRIu64,
			from, to, session->n_slots, id.value);
	is_marked = new_marks(session, err);
	if (!is_marked)
		return PAWL_OUT_OF_MEMORY;
	for (int64_t i = from; i < to; i++)
		is_marked[i] = true;
	status = evict_marked(pool, session, is_marked, fidelity, report, err);
	pawl_memory_free(is_marked);
	return status;
}

enum pawl_status
pawl_kv_block_pool_evict(struct pawl_kv_block_pool *pool, struct pawl_kv_session_id id,
	enum pawl_kv_fidelity fidelity, struct pawl_kv_evict_report *report, struct pawl_error *err)
{
	const struct pawl_kv_session *session = pawl_kv_session_find(pool, id, err);

	if (!session)
		return PAWL_INVALID_ARGUMENT;
	return pawl_kv_block_pool_evict_range(pool, id, 0, session->n_slots, fidelity, report, err);
}

enum pawl_status
pawl_kv_block_pool_handle(const struct pawl_kv_block_pool *pool, struct pawl_kv_handle_id id,
	struct pawl_kv_handle_info *out, struct pawl_error *err)
{
	const struct pawl_kv_handle *handle = find(pool, id, err);

	if (!handle)
		return PAWL_INVALID_ARGUMENT;
	*out = (struct pawl_kv_handle_info){
		.session = {handle->session},
		.fidelity = handle->fidelity,
		.kind = PAWL_KV_STATE_BLOCKS,
		.is_pending = handle->is_pending,
		.n_slots = handle->n,
		.slots = handle->slots,
	};
	return PAWL_OK;
}

enum pawl_status
pawl_kv_block_pool_restore_reserve(
	struct pawl_kv_block_pool *pool, struct pawl_kv_handle_id id, struct pawl_error *err)
{
	struct pawl_kv_handle *handle = find(pool, id, err);

	if (!handle)
		return PAWL_INVALID_ARGUMENT;
	if (handle->is_pending)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a restore of handle %" PRIu64 " is pending", id.value);
	if (handle->n > pool->n_free)
		return pawl_fail(err, PAWL_CAPACITY,
			"restoring handle %" PRIu64 " needs %" PRId64 " blocks, %" PRId64
			" are free",
			id.value, handle->n, pool->n_free);
	for (int64_t i = 0; i < handle->n; i++)
		handle->slots[i].block = pawl_kv_blocks_take(pool);
	handle->is_pending = true;
	return PAWL_OK;
}

static struct pawl_kv_handle *
find_pending(
	const struct pawl_kv_block_pool *pool, struct pawl_kv_handle_id id, struct pawl_error *err)
{
	struct pawl_kv_handle *handle = find(pool, id, err);

	if (!handle || handle->is_pending)
		return handle;
	pawl_fail(err, PAWL_INVALID_ARGUMENT, "no restore of handle %" PRIu64 " is pending",
		id.value);
	return NULL;
}

enum pawl_status
pawl_kv_block_pool_restore_commit(
	struct pawl_kv_block_pool *pool, struct pawl_kv_handle_id id, struct pawl_error *err)
{
	struct pawl_kv_handle *handle = find_pending(pool, id, err);
	struct pawl_kv_session *session;

	if (!handle)
		return PAWL_INVALID_ARGUMENT;
	session = pawl_object_table_find(&pool->sessions, handle->session);
	for (int64_t i = 0; i < handle->n; i++)
		session->blocks[handle->slots[i].slot] = handle->slots[i].block;
	pawl_object_table_remove(&pool->handles, handle);
	pawl_memory_free(handle);
	return PAWL_OK;
}

/* Gives back the block that a pending restore took for a slot. */
static void
give_back(struct pawl_kv_block_pool *pool, struct pawl_kv_evicted_slot *slot)
{
	if (slot->block != PAWL_KV_EXTERNALIZED)
		pawl_kv_blocks_drop(pool, slot->block);
	slot->block = PAWL_KV_EXTERNALIZED;
}

enum pawl_status
pawl_kv_block_pool_restore_abort(
	struct pawl_kv_block_pool *pool, struct pawl_kv_handle_id id, struct pawl_error *err)
{
	struct pawl_kv_handle *handle = find_pending(pool, id, err);

	if (!handle)
		return PAWL_INVALID_ARGUMENT;
	for (int64_t i = handle->n; i > 0;)
		give_back(pool, &handle->slots[--i]);
	handle->is_pending = false;
	return PAWL_OK;
}

enum pawl_status
pawl_kv_block_pool_restore(
	struct pawl_kv_block_pool *pool, struct pawl_kv_handle_id id, struct pawl_error *err)
{
	enum pawl_status status = pawl_kv_block_pool_restore_reserve(pool, id, err);

	return status ? status : pawl_kv_block_pool_restore_commit(pool, id, err);
}

void
pawl_kv_handles_cut(
	struct pawl_kv_block_pool *pool, const struct pawl_kv_session *session, int64_t n_slots)
{
	for (int64_t i = pool->handles.n; i > 0;) {
		struct pawl_kv_handle *handle = pool->handles.items[--i];

		if (handle->session != session->id)
			continue;
		while (handle->n && handle->slots[handle->n - 1].slot >= n_slots)
			give_back(pool, &handle->slots[--handle->n]);
	}
}

void
pawl_kv_handles_end(struct pawl_kv_block_pool *pool, const struct pawl_kv_session *session)
{
	pawl_kv_handles_cut(pool, session, 0);
	for (int64_t i = pool->handles.n; i > 0;) {
		struct pawl_kv_handle *handle = pool->handles.items[--i];

		if (handle->session != session->id)
			continue;
		pawl_object_table_remove(&pool->handles, handle);
		pawl_memory_free(handle);
	}
}

#include "runtime/identity.h"
#include "runtime/kv_block_parts.h"
#include "runtime/memory.h"

#include <inttypes.h>
#include <string.h>

enum { FIRST_SLOTS = 8 };

struct pawl_kv_session *
pawl_kv_session_find(
	const struct pawl_kv_block_pool *pool, struct pawl_kv_session_id id, struct pawl_error *err)
{
	struct pawl_kv_session *session = pawl_object_table_find(&pool->sessions, id.value);

	if (!session)
		pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"session %" PRIu64 " is not open in this pool", id.value);
	return session;
}

enum pawl_status
pawl_kv_session_grow(struct pawl_kv_session *session, int64_t n_slots, struct pawl_error *err)
{
	int64_t capacity = session->capacity ? session->capacity : FIRST_SLOTS;
	int32_t *blocks;

	if (n_slots <= session->capacity)
		return PAWL_OK;
	while (capacity < n_slots)
		capacity *= 2;
	blocks = pawl_memory_zalloc((size_t)capacity, sizeof(*blocks));
	if (!blocks)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY,
			"no memory for a session of %" PRId64 " slots", capacity);
	if (session->n_slots)
		memcpy(blocks, session->blocks, (size_t)session->n_slots * sizeof(*blocks));
	pawl_memory_free(session->blocks);
	session->blocks = blocks;
	session->capacity = capacity;
	return PAWL_OK;
}

enum pawl_status
pawl_kv_session_check_resident(
	const struct pawl_kv_session *session, int64_t from, int64_t to, struct pawl_error *err)
{
	for (int64_t i = from; i < to; i++)
		if (session->blocks[i] == PAWL_KV_EXTERNALIZED)
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"slot %" PRId64 " of session %" PRIu64
				" is evicted: restore its handle first",
				i, session->id);
	return PAWL_OK;
}

void
pawl_kv_session_share(struct pawl_kv_block_pool *pool, struct pawl_kv_session *session,
	const int32_t *blocks, int64_t n, int64_t n_tokens)
{
	for (int64_t i = 0; i < n; i++) {
		pawl_kv_blocks_share(pool, blocks[i]);
		session->blocks[session->n_slots++] = blocks[i];
	}
	session->n_tokens += n_tokens;
}

/* With room for n_slots; not in the pool yet, which has room for it. */
static enum pawl_status
make(struct pawl_kv_block_pool *pool, int64_t n_slots, struct pawl_kv_session **out,
	struct pawl_error *err)
{
	struct pawl_kv_session *session;
	enum pawl_status status = pawl_object_table_reserve(&pool->sessions, err);

	if (status)
		return status;
	session = pawl_memory_zalloc(1, sizeof(*session));
	if (!session)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a session");
	status = pawl_kv_session_grow(session, n_slots, err);
	if (status)
		pawl_memory_free(session);
	else
		*out = session;
	return status;
}

enum pawl_status
pawl_kv_block_pool_open(struct pawl_kv_block_pool *pool, int64_t max_tokens,
	struct pawl_kv_session_id *out, struct pawl_error *err)
{
	struct pawl_kv_session *session;
	int64_t n_slots = pawl_kv_block_pool_blocks_required(pool, 0, max_tokens);
	enum pawl_status status;

	if (n_slots < 0)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a session cannot have %" PRId64 " tokens", max_tokens);
	if (n_slots > pool->geometry.n_blocks)
		n_slots = pool->geometry.n_blocks;
	status = make(pool, n_slots, &session, err);
	if (status)
		return status;
	out->value =
		pawl_object_table_add(&pool->sessions, session, pawl_kv_object_id_new());
	return PAWL_OK;
}

enum pawl_status
pawl_kv_block_pool_fork(struct pawl_kv_block_pool *pool, struct pawl_kv_session_id id,
	struct pawl_kv_session_id *out, struct pawl_error *err)
{
	const struct pawl_kv_session *parent = pawl_kv_session_find(pool, id, err);
	struct pawl_kv_session *child;
	enum pawl_status status;

	if (!parent)
		return PAWL_INVALID_ARGUMENT;
	status = pawl_kv_session_check_resident(parent, 0, parent->n_slots, err);
	if (!status)
		status = make(pool, parent->capacity, &child, err);
	if (status)
		return status;
	pawl_kv_session_share(pool, child, parent->blocks, parent->n_slots, parent->n_tokens);
	out->value =
		pawl_object_table_add(&pool->sessions, child, pawl_kv_object_id_new());
	return PAWL_OK;
}

static void
drop_slots(struct pawl_kv_block_pool *pool, struct pawl_kv_session *session, int64_t n_slots)
{
	while (session->n_slots > n_slots) {
		int32_t block = session->blocks[--session->n_slots];

		if (block != PAWL_KV_EXTERNALIZED)
			pawl_kv_blocks_drop(pool, block);
	}
}

enum pawl_status
pawl_kv_block_pool_close(
	struct pawl_kv_block_pool *pool, struct pawl_kv_session_id id, struct pawl_error *err)
{
	struct pawl_kv_session *session = pawl_kv_session_find(pool, id, err);

	if (!session)
		return PAWL_INVALID_ARGUMENT;
	pawl_kv_copies_cut(pool, session, 0, true);
	pawl_kv_handles_end(pool, session);
	drop_slots(pool, session, 0);
	pawl_object_table_remove(&pool->sessions, session);
	pawl_memory_free(session->blocks);
	pawl_memory_free(session);
	return PAWL_OK;
}

/* The last slot when it has room for more tokens, else -1. */
static int64_t
open_slot(const struct pawl_kv_block_pool *pool, const struct pawl_kv_session *session)
{
	return session->n_tokens % pool->geometry.block_size ? session->n_slots - 1 : -1;
}

static bool
is_tail_shared(const struct pawl_kv_block_pool *pool, const struct pawl_kv_session *session)
{
	int64_t slot = open_slot(pool, session);
	int32_t block = slot < 0 ? PAWL_KV_EXTERNALIZED : session->blocks[slot];

	return block != PAWL_KV_EXTERNALIZED && pool->n_owners[block] > 1;
}

bool
pawl_kv_block_pool_tail_is_shared(
	const struct pawl_kv_block_pool *pool, struct pawl_kv_session_id id)
{
	const struct pawl_kv_session *session = pawl_kv_session_find(pool, id, NULL);

	return session && is_tail_shared(pool, session);
}

/* Blocks for n more tokens, that for breaking the tail not among them. */
static enum pawl_status
count_appended(const struct pawl_kv_block_pool *pool, const struct pawl_kv_session *session,
	int64_t n, int64_t *need, struct pawl_error *err)
{
	int64_t slot = open_slot(pool, session);

	*need = pawl_kv_block_pool_blocks_required(pool, session->n_tokens, n);
	if (*need < 0)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"%" PRId64 " tokens cannot follow the %" PRId64 " of session %" PRIu64, n,
			session->n_tokens, session->id);
	return n && slot >= 0 ? pawl_kv_session_check_resident(session, slot, slot + 1, err)
			      : PAWL_OK;
}

enum pawl_status
pawl_kv_block_pool_append(struct pawl_kv_block_pool *pool, struct pawl_kv_session_id id, int64_t n,
	struct pawl_error *err)
{
	struct pawl_kv_session *session = pawl_kv_session_find(pool, id, err);
	int64_t need;
	enum pawl_status status;

	if (!session)
		return PAWL_INVALID_ARGUMENT;
	status = count_appended(pool, session, n, &need, err);
	if (status || !n)
		return status;
	status = pawl_kv_copies_check_end(pool, session, err);
	if (status)
		return status;
	if (is_tail_shared(pool, session))
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"slot %" PRId64 " of session %" PRIu64
			" is shared and must be broken before it is written",
			session->n_slots - 1, id.value);
	if (need > pool->n_free)
		return pawl_fail(err, PAWL_CAPACITY,
			"%" PRId64 " more tokens for session %" PRIu64 " need %" PRId64
			" blocks, %" PRId64 " are free",
			n, id.value, need, pool->n_free);
	status = pawl_kv_session_grow(session, session->n_slots + need, err);
	if (status)
		return status;
	for (int64_t i = 0; i < need; i++)
		session->blocks[session->n_slots++] = pawl_kv_blocks_take(pool);
	session->n_tokens += n;
	return PAWL_OK;
}

enum pawl_status
pawl_kv_block_pool_truncate(struct pawl_kv_block_pool *pool, struct pawl_kv_session_id id,
	int64_t n, struct pawl_error *err)
{
	struct pawl_kv_session *session = pawl_kv_session_find(pool, id, err);
	int64_t n_slots;

	if (!session)
		return PAWL_INVALID_ARGUMENT;
	if (n < 0 || n > session->n_tokens)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"session %" PRIu64 " of %" PRId64 " tokens cannot be cut to %" PRId64,
			id.value, session->n_tokens, n);
	n_slots = pawl_kv_block_pool_blocks_required(pool, 0, n);
	pawl_kv_copies_cut(pool, session, n_slots, n < session->n_tokens);
	pawl_kv_handles_cut(pool, session, n_slots);
	drop_slots(pool, session, n_slots);
	session->n_tokens = n;
	return PAWL_OK;
}

/*
 * Of sessions that share a tail, each that writes breaks it until one is left, which has it alone;
 * so the answer for one depends on those before it.
 */
static bool
breaks_tail(const struct pawl_kv_block_pool *pool, const struct pawl_kv_append *appends, int64_t i)
{
	const struct pawl_kv_session *session =
		pawl_kv_session_find(pool, appends[i].session, NULL);
	int64_t slot = open_slot(pool, session), n_before = 0;

	if (!appends[i].n || slot < 0)
		return false;
	for (int64_t j = 0; j < i; j++) {
		const struct pawl_kv_session *before =
			pawl_kv_session_find(pool, appends[j].session, NULL);

		n_before += appends[j].n && open_slot(pool, before) == slot &&
			    before->blocks[slot] == session->blocks[slot];
	}
	return pool->n_owners[session->blocks[slot]] - n_before > 1;
}

enum pawl_status
pawl_kv_block_pool_blocks_to_append(const struct pawl_kv_block_pool *pool,
	const struct pawl_kv_append *appends, int64_t n_appends, int64_t *need,
	struct pawl_error *err)
{
	int64_t sum = 0;

	for (int64_t i = 0; i < n_appends; i++) {
		const struct pawl_kv_session *session =
			pawl_kv_session_find(pool, appends[i].session, err);
		int64_t more;
		enum pawl_status status;

		if (!session)
			return PAWL_INVALID_ARGUMENT;
		for (int64_t j = 0; j < i; j++)
			if (appends[j].session.value == session->id)
				return pawl_fail(err, PAWL_INVALID_ARGUMENT,
					"session %" PRIu64 " stands there twice", session->id);
		status = count_appended(pool, session, appends[i].n, &more, err);
		if (status)
			return status;
		if (__builtin_add_overflow(sum, more + breaks_tail(pool, appends, i), &sum))
			return pawl_fail(
				err, PAWL_INVALID_ARGUMENT, "more blocks than can be counted");
	}
	*need = sum;
	return PAWL_OK;
}

#include "runtime/kv_block_parts.h"

#include <inttypes.h>

int64_t
pawl_kv_block_pool_session_len(const struct pawl_kv_block_pool *pool, struct pawl_kv_session_id id)
{
	const struct pawl_kv_session *session = pawl_kv_session_find(pool, id, NULL);

	return session ? session->n_tokens : -1;
}

int64_t
pawl_kv_block_pool_session_slots(
	const struct pawl_kv_block_pool *pool, struct pawl_kv_session_id id)
{
	const struct pawl_kv_session *session = pawl_kv_session_find(pool, id, NULL);

	return session ? session->n_slots : -1;
}

enum pawl_status
pawl_kv_block_pool_slot(const struct pawl_kv_block_pool *pool, struct pawl_kv_session_id id,
	int64_t slot, int32_t *block, struct pawl_error *err)
{
	const struct pawl_kv_session *session = pawl_kv_session_find(pool, id, err);

	if (!session)
		return PAWL_INVALID_ARGUMENT;
	if (slot < 0 || slot >= session->n_slots)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"slot %" PRId64 " of session %" PRIu64 " is not among its %" PRId64, slot,
			id.value, session->n_slots);
	*block = session->blocks[slot];
	return PAWL_OK;
}

enum pawl_status
pawl_kv_block_pool_block_table(const struct pawl_kv_block_pool *pool, struct pawl_kv_session_id id,
	uint32_t *table, int64_t cap, struct pawl_error *err)
{
	const struct pawl_kv_session *session = pawl_kv_session_find(pool, id, err);
	enum pawl_status status;

	if (!session)
		return PAWL_INVALID_ARGUMENT;
	status = pawl_kv_session_check_resident(session, 0, session->n_slots, err);
	if (status)
		return status;
	if (session->n_slots > cap)
		return pawl_fail(err, PAWL_CAPACITY,
			"session %" PRIu64 " has %" PRId64 " blocks, a block table of %" PRId64
			" cannot hold them",
			id.value, session->n_slots, cap);
	for (int64_t i = 0; i < cap; i++)
		table[i] = i < session->n_slots ? (uint32_t)session->blocks[i] : 0;
	return PAWL_OK;
}

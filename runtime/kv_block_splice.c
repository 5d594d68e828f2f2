#include "runtime/kv_block_parts.h"

#include <inttypes.h>

/* The slots [from, to) of src behind the from of dst. */
static enum pawl_status
splice(struct pawl_kv_block_pool *pool, const struct pawl_kv_session *src, int64_t from, int64_t to,
	struct pawl_kv_session *dst, struct pawl_error *err)
{
	int64_t size = pool->geometry.block_size;
	int64_t end = to == src->n_slots ? src->n_tokens : to * size;
	enum pawl_status status;

	if (dst->n_slots != from || dst->n_tokens != from * size)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"slot %" PRId64 " cannot follow the %" PRId64 " tokens of session %" PRIu64,
			from, dst->n_tokens, dst->id);
	status = pawl_kv_copies_check_end(pool, dst, err);
	if (!status)
		status = pawl_kv_session_check_resident(src, from, to, err);
	if (!status)
		status = pawl_kv_session_grow(dst, to, err);
	if (!status)
		pawl_kv_session_share(pool, dst, src->blocks + from, to - from, end - from * size);
	return status;
}

enum pawl_status
pawl_kv_block_pool_splice(struct pawl_kv_block_pool *pool, struct pawl_kv_session_id src_id,
	int64_t from, int64_t to, struct pawl_kv_session_id dst_id, struct pawl_error *err)
{
	const struct pawl_kv_session *src = pawl_kv_session_find(pool, src_id, err);
	struct pawl_kv_session *dst = src ? pawl_kv_session_find(pool, dst_id, err) : NULL;

	if (!dst)
		return PAWL_INVALID_ARGUMENT;
	if (from < 0 || from >= to || to > src->n_slots)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"slots %" PRId64 " to %" PRId64 " are not among the %" PRId64
			" of session %" PRIu64,
			from, to, src->n_slots, src->id);
	return splice(pool, src, from, to, dst, err);
}

enum pawl_status
pawl_kv_block_pool_splice_prefix(struct pawl_kv_block_pool *pool, struct pawl_kv_session_id src_id,
	int64_t n_blocks, struct pawl_kv_session_id dst_id, struct pawl_error *err)
{
	const struct pawl_kv_session *src = pawl_kv_session_find(pool, src_id, err);
	struct pawl_kv_session *dst = src ? pawl_kv_session_find(pool, dst_id, err) : NULL;

	if (!dst)
		return PAWL_INVALID_ARGUMENT;
	if (n_blocks < 1 || n_blocks > src->n_tokens / pool->geometry.block_size)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"the %" PRId64 " tokens of session %" PRIu64 " do not fill %" PRId64
			" blocks",
			src->n_tokens, src->id, n_blocks);
	return splice(pool, src, 0, n_blocks, dst, err);
}

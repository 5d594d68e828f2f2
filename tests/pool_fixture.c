#include "tests/pool_fixture.h"

#include "runtime/memory.h"

struct pawl_kv_block_pool *pawl_pool_test_pool;
struct pawl_error pawl_pool_test_err;

void
pawl_pool_test_begin(void)
{
	const struct pawl_kv_pool_geometry geometry = {2, 8, 16, 3, 32};

	ck_assert_int_eq(
		pawl_kv_block_pool_new(&geometry, &pawl_pool_test_pool, &pawl_pool_test_err),
		PAWL_OK);
}

void
pawl_pool_test_end(void)
{
	ck_assert_int_eq(pawl_kv_block_pool_free_blocks(pawl_pool_test_pool),
		pawl_kv_block_pool_geometry(pawl_pool_test_pool)->n_blocks);
	pawl_kv_block_pool_free(pawl_pool_test_pool);
	pawl_pool_test_pool = NULL;
}

struct pawl_kv_session_id
pawl_pool_test_open(int64_t n_tokens)
{
	struct pawl_kv_session_id id;

	DONE(pawl_kv_block_pool_open(pawl_pool_test_pool, 0, &id, &pawl_pool_test_err));
	DONE(pawl_kv_block_pool_append(pawl_pool_test_pool, id, n_tokens, &pawl_pool_test_err));
	return id;
}

struct pawl_kv_session_id
pawl_pool_test_fork(struct pawl_kv_session_id parent)
{
	struct pawl_kv_session_id id;

	DONE(pawl_kv_block_pool_fork(pawl_pool_test_pool, parent, &id, &pawl_pool_test_err));
	return id;
}

struct pawl_kv_prefix_id
pawl_pool_test_prefix(struct pawl_kv_session_id session, const uint32_t *tokens, int64_t n_tokens)
{
	const struct pawl_kv_prefix_key key = {tokens, n_tokens, NULL, NULL};
	struct pawl_kv_prefix_id id;

	DONE(pawl_kv_block_pool_register_prefix(
		pawl_pool_test_pool, session, &key, &id, &pawl_pool_test_err));
	return id;
}

int32_t
pawl_pool_test_block(struct pawl_kv_session_id session, int64_t slot)
{
	int32_t block;

	DONE(pawl_kv_block_pool_slot(
		pawl_pool_test_pool, session, slot, &block, &pawl_pool_test_err));
	return block;
}

struct pawl_kv_handle_id
pawl_pool_test_evict(struct pawl_kv_session_id session)
{
	struct pawl_kv_evict_report report;

	DONE(pawl_kv_block_pool_evict(
		pawl_pool_test_pool, session, PAWL_KV_EXACT, &report, &pawl_pool_test_err));
	return report.handle;
}

/*
 * A KV block pool of 8 blocks of 16 tokens to try things on.  The helpers fail the test when they
 * cannot do what they are for; error texts go to pawl_pool_test_err.
 */
#ifndef PAWL_TESTS_POOL_FIXTURE_H
#define PAWL_TESTS_POOL_FIXTURE_H

#include "runtime/kv_block_pool.h"

#include <check.h>
#include <string.h>

extern struct pawl_kv_block_pool *pawl_pool_test_pool;
extern struct pawl_error pawl_pool_test_err;

/* The call ends so, with these words in its text, and leaves the pool alone. */
#define REFUSED(call, status, words)                                                               \
	do {                                                                                       \
		uint64_t before_ = pawl_kv_block_pool_digest(pawl_pool_test_pool);                 \
                                                                                                   \
		ck_assert_int_eq((call), (status));                                                \
		ck_assert_msg(strstr(pawl_pool_test_err.text, (words)) != NULL, "%s",              \
			pawl_pool_test_err.text);                                                  \
		ck_assert_uint_eq(pawl_kv_block_pool_digest(pawl_pool_test_pool), before_);        \
	} while (0)

#define DONE(call) ck_assert_msg((call) == PAWL_OK, "%s", pawl_pool_test_err.text)

void pawl_pool_test_begin(void);
/* Every block must be free again. */
void pawl_pool_test_end(void);

struct pawl_kv_session_id pawl_pool_test_open(int64_t n_tokens);
struct pawl_kv_session_id pawl_pool_test_fork(struct pawl_kv_session_id parent);
/* Under the tokens alone. */
struct pawl_kv_prefix_id pawl_pool_test_prefix(
	struct pawl_kv_session_id session, const uint32_t *tokens, int64_t n_tokens);
int32_t pawl_pool_test_block(struct pawl_kv_session_id session, int64_t slot);
struct pawl_kv_handle_id pawl_pool_test_evict(struct pawl_kv_session_id session);

#endif

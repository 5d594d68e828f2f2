#include "runtime/kv_block_parts.h"

#include "tests/pool_fixture.h"
#include "tests/suites.h"

#define pool pawl_pool_test_pool
#define err pawl_pool_test_err

START_TEST(a_prefix_outlives_its_session)
{
	uint32_t tokens[32] = {1, 2, 3};
	struct pawl_kv_session_id id = pawl_pool_test_open(40), heir;
	struct pawl_kv_prefix_id prefix = pawl_pool_test_prefix(id, tokens, 32);
	struct pawl_kv_evict_report report;
	int32_t first = pawl_pool_test_block(id, 0);
	int64_t n;

	DONE(pawl_kv_block_pool_evict(pool, id, PAWL_KV_EXACT, &report, &err));
	ck_assert_int_eq(report.n_freed, 1);
	ck_assert_int_eq(report.n_still_shared, 2);
	DONE(pawl_kv_block_pool_close(pool, id, &err));
	ck_assert_int_eq(pawl_kv_block_pool_free_blocks(pool), 6);
	heir = pawl_pool_test_open(0);
	REFUSED(pawl_kv_block_pool_splice_prefix_from(pool, prefix, 3, heir, &err),
		PAWL_INVALID_ARGUMENT, "2 blocks has no 3");
	DONE(pawl_kv_block_pool_splice_prefix_from(pool, prefix, 2, heir, &err));
	REFUSED(pawl_kv_block_pool_splice_prefix_from(pool, prefix, 2, heir, &err),
		PAWL_INVALID_ARGUMENT, "is not empty");
	ck_assert_int_eq(pawl_pool_test_block(heir, 0), first);
	ck_assert_int_eq(pawl_kv_block_pool_prefix_blocks(pool, prefix, &n)[0], first);
	DONE(pawl_kv_block_pool_release_prefix(pool, prefix, &err));
	REFUSED(pawl_kv_block_pool_release_prefix(pool, prefix, &err), PAWL_INVALID_ARGUMENT,
		"is not alive");
	ck_assert_ptr_null(pawl_kv_block_pool_prefix_blocks(pool, prefix, &n));
	/* Cut into the second block: it is not shared any more, so it can be written. */
	DONE(pawl_kv_block_pool_truncate(pool, heir, 30, &err));
	DONE(pawl_kv_block_pool_append(pool, heir, 1, &err));
	DONE(pawl_kv_block_pool_close(pool, heir, &err));
}
END_TEST

/* Token ids that are equal in 8 bits, texts in each other's place, hashes all equal. */
START_TEST(keys_are_compared_in_full)
{
	enum { N = 16 };
	uint32_t a[N] = {65}, b[N] = {321};
	struct pawl_kv_session_id id = pawl_pool_test_open(N);
	const struct pawl_kv_prefix_key keys[] = {
		{a, N, NULL, NULL},
		{b, N, NULL, NULL},
		{a, N, "x", NULL},
		{a, N, NULL, "x"},
		{a, N, "x", "y"},
		{a, N, "y", "x"},
		{a, N, "xy", NULL},
		{a, N, "xy", ""},
		{a, N, "", "xy"},
		{a, N, "", NULL},
		{a, N, NULL, ""},
		{a, N, "", ""},
	};
	enum { N_KEYS = sizeof(keys) / sizeof(keys[0]) };
	struct pawl_kv_prefix_id ids[N_KEYS];
	struct pawl_kv_prefix_match match;

	pool->hash_mask = _i ? UINT64_MAX : 0;
	for (int i = 0; i < N_KEYS; i++) {
		ck_assert(!pawl_kv_block_pool_find_prefix(pool, &keys[i], &match));
		DONE(pawl_kv_block_pool_register_prefix(pool, id, &keys[i], &ids[i], &err));
	}
	for (int i = 0; i < N_KEYS; i++) {
		ck_assert(pawl_kv_block_pool_find_prefix(pool, &keys[i], &match));
		ck_assert_uint_eq(match.prefix.value, ids[i].value);
		ck_assert_int_eq(match.n_blocks, 1);
		DONE(pawl_kv_block_pool_release_prefix(pool, ids[i], &err));
		ck_assert(!pawl_kv_block_pool_find_prefix(pool, &keys[i], &match));
	}
	DONE(pawl_kv_block_pool_close(pool, id, &err));
}
END_TEST

/* The hashes themselves keep keys apart, or every look-up would compare all tokens. */
START_TEST(hashes_tell_keys_apart)
{
	uint32_t a[16] = {65}, b[16] = {321};
	struct pawl_kv_session_id id = pawl_pool_test_open(16);
	const struct pawl_kv_prefix_key keys[] = {{a, 16, NULL, NULL}, {b, 16, NULL, NULL},
		{a, 16, "x", NULL}, {a, 16, NULL, "x"}, {a, 16, "", NULL}};
	struct pawl_kv_prefix_id prefixes[5];

	for (int i = 0; i < 5; i++)
		DONE(pawl_kv_block_pool_register_prefix(pool, id, &keys[i], &prefixes[i], &err));
	for (int i = 0; i < 5; i++)
		for (int j = 0; j < i; j++) {
			const struct pawl_kv_prefix *p = pool->prefixes.items[i];
			const struct pawl_kv_prefix *q = pool->prefixes.items[j];

			ck_assert_uint_ne(p->hashes[0], q->hashes[0]);
		}
	for (int i = 0; i < 5; i++)
		DONE(pawl_kv_block_pool_release_prefix(pool, prefixes[i], &err));
	DONE(pawl_kv_block_pool_close(pool, id, &err));
}
END_TEST

START_TEST(find_takes_most_blocks_then_the_oldest)
{
	uint32_t tokens[64] = {0};
	struct pawl_kv_session_id id = pawl_pool_test_open(64);
	struct pawl_kv_prefix_id two, four;
	struct pawl_kv_prefix_key key = {tokens, 64, NULL, NULL};
	struct pawl_kv_prefix_match match;

	two = pawl_pool_test_prefix(id, tokens, 32);
	four = pawl_pool_test_prefix(id, tokens, 64);
	ck_assert(pawl_kv_block_pool_find_prefix(pool, &key, &match));
	ck_assert_uint_eq(match.prefix.value, four.value);
	ck_assert_int_eq(match.n_blocks, 4);
	key.n_tokens = 63;
	ck_assert(pawl_kv_block_pool_find_prefix(pool, &key, &match));
	ck_assert_int_eq(match.n_blocks, 3);
	tokens[40] = 5;
	ck_assert(pawl_kv_block_pool_find_prefix(pool, &key, &match));
	ck_assert_uint_eq(match.prefix.value, two.value);
	ck_assert_int_eq(match.n_blocks, 2);
	key.n_tokens = 15;
	ck_assert(!pawl_kv_block_pool_find_prefix(pool, &key, &match));
	key.n_tokens = 17;
	REFUSED(pawl_kv_block_pool_register_prefix(pool, id, &key, &two, &err),
		PAWL_INVALID_ARGUMENT, "17 tokens is not whole blocks of 16");
	key.n_tokens = 80;
	REFUSED(pawl_kv_block_pool_register_prefix(pool, id, &key, &two, &err),
		PAWL_INVALID_ARGUMENT, "among the 64 tokens");
	key.n_tokens = 0;
	REFUSED(pawl_kv_block_pool_register_prefix(pool, id, &key, &two, &err),
		PAWL_INVALID_ARGUMENT, "0 tokens");
	DONE(pawl_kv_block_pool_release_prefix(pool, two, &err));
	DONE(pawl_kv_block_pool_release_prefix(pool, four, &err));
	DONE(pawl_kv_block_pool_close(pool, id, &err));
}
END_TEST

START_TEST(shifted_prefixes)
{
	const uint32_t tokens[32] = {0};
	struct pawl_kv_session_id src = pawl_pool_test_open(32), dst = pawl_pool_test_open(16);
	struct pawl_kv_prefix_id prefix = pawl_pool_test_prefix(src, tokens, 32);
	struct pawl_kv_copy_info info;
	struct pawl_kv_copy_id copy;
	int32_t second = pawl_pool_test_block(src, 1);

	REFUSED(pawl_kv_block_pool_shift_reserve(pool, prefix, 2, dst, 8, &copy, &err),
		PAWL_INVALID_ARGUMENT, "no multiple of the block size 16");
	REFUSED(pawl_kv_block_pool_shift_reserve(pool, prefix, 2, dst, 32, &copy, &err),
		PAWL_INVALID_ARGUMENT, "is not the end");
	REFUSED(pawl_kv_block_pool_shift_reserve(pool, prefix, 3, dst, 16, &copy, &err),
		PAWL_INVALID_ARGUMENT, "has no 3");
	DONE(pawl_kv_block_pool_shift_reserve(pool, prefix, 2, dst, 16, &copy, &err));
	REFUSED(pawl_kv_block_pool_append(pool, dst, 1, &err), PAWL_INVALID_ARGUMENT, "pending");
	/* The source blocks stay for as long as they are being copied. */
	DONE(pawl_kv_block_pool_release_prefix(pool, prefix, &err));
	DONE(pawl_kv_block_pool_close(pool, src, &err));
	DONE(pawl_kv_block_pool_copy(pool, copy, &info, &err));
	ck_assert_int_eq(info.shift, 16);
	ck_assert_int_eq(info.slot, 1);
	ck_assert_int_eq(info.n_blocks, 2);
	ck_assert_int_eq(info.blocks[1].from, second);
	ck_assert_int_eq(pawl_kv_block_pool_owners(pool, second), 1);
	ck_assert_int_eq(pawl_kv_block_pool_session_len(pool, dst), 16);
	DONE(pawl_kv_block_pool_copy_commit(pool, copy, &err));
	ck_assert_int_eq(pawl_kv_block_pool_session_len(pool, dst), 48);
	ck_assert_int_eq(pawl_kv_block_pool_owners(pool, second), 0);
	DONE(pawl_kv_block_pool_close(pool, dst, &err));
}
END_TEST

Suite *
pawl_block_prefix_suite(void)
{
	Suite *suite = suite_create("block_prefix");
	TCase *tcase = tcase_create("block_prefix");

	tcase_add_checked_fixture(tcase, pawl_pool_test_begin, pawl_pool_test_end);
	tcase_add_test(tcase, a_prefix_outlives_its_session);
	tcase_add_loop_test(tcase, keys_are_compared_in_full, 0, 2);
	tcase_add_test(tcase, hashes_tell_keys_apart);
	tcase_add_test(tcase, find_takes_most_blocks_then_the_oldest);
	tcase_add_test(tcase, shifted_prefixes);
	suite_add_tcase(suite, tcase);
	return suite;
}

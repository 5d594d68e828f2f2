#include "runtime/kv_block_pool.h"

#include "runtime/memory.h"

#include "tests/pool_fixture.h"
#include "tests/suites.h"

#include <string.h>

#define pool pawl_pool_test_pool
#define err pawl_pool_test_err

START_TEST(sizes)
{
	const struct pawl_kv_pool_geometry good = {2, 8, 16, 3, 32};
	const char *const names[] = {
		"n_layers", "n_blocks", "block_size", "n_kv_heads", "row_bytes"};
	const int64_t bad[] = {0, -1, INT64_MIN, INT64_MAX, INT64_MAX / 1000};
	struct pawl_kv_block_pool *none = NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (size_t j = 0; j < sizeof(bad) / sizeof(bad[0]); j++) {
			struct pawl_kv_pool_geometry geometry = good;
			int64_t *field = (int64_t *)&geometry + i;

			*field = bad[j];
			ck_assert_int_eq(pawl_kv_block_pool_new(&geometry, &none, &err),
				PAWL_INVALID_ARGUMENT);
			ck_assert_ptr_null(none);
			if (bad[j] < 1)
				ck_assert_msg(strstr(err.text, names[i]) != NULL, "%s", err.text);
		}
	ck_assert_int_eq(pawl_kv_block_pool_capacity(pool), 128);
	ck_assert_int_eq(pawl_kv_block_pool_block_bytes(pool), 2 * 2 * 16 * 3 * 32);
	ck_assert_int_eq(pawl_kv_block_pool_blocks_required(pool, 15, 1), 0);
	ck_assert_int_eq(pawl_kv_block_pool_blocks_required(pool, 16, 1), 1);
	ck_assert_int_eq(pawl_kv_block_pool_blocks_required(pool, 0, 17), 2);
	ck_assert_int_eq(pawl_kv_block_pool_blocks_required(pool, 1, INT64_MAX), -1);
	ck_assert_int_eq(pawl_kv_block_pool_blocks_required(pool, -1, 1), -1);
	ck_assert_int_eq(pawl_kv_block_pool_owners(pool, 8), -1);
	ck_assert_int_eq(pawl_kv_block_pool_owners(pool, -1), -1);
}
END_TEST

START_TEST(a_pool_needs_memory)
{
	const struct pawl_kv_pool_geometry geometry = {2, 8, 16, 3, 32};
	struct pawl_kv_block_pool *none = NULL;

	for (int i = 0; i < 3; i++) {
		pawl_memory_fail_after(i);
		ck_assert_int_eq(
			pawl_kv_block_pool_new(&geometry, &none, &err), PAWL_OUT_OF_MEMORY);
		ck_assert_ptr_null(none);
	}
}
END_TEST

/* Prompts that end where a block or the pool ends, one less and one more. */
START_TEST(capacity_to_the_token)
{
	struct pawl_kv_session_id id = pawl_pool_test_open(15);
	uint32_t table[9];

	ck_assert_int_eq(pawl_kv_block_pool_session_slots(pool, id), 1);
	DONE(pawl_kv_block_pool_append(pool, id, 1, &err));
	ck_assert_int_eq(pawl_kv_block_pool_session_slots(pool, id), 1);
	DONE(pawl_kv_block_pool_append(pool, id, 1, &err));
	ck_assert_int_eq(pawl_kv_block_pool_session_slots(pool, id), 2);
	REFUSED(pawl_kv_block_pool_append(pool, id, 112, &err), PAWL_CAPACITY,
		"need 7 blocks, 6 are free");
	DONE(pawl_kv_block_pool_append(pool, id, 110, &err));
	DONE(pawl_kv_block_pool_append(pool, id, 1, &err));
	ck_assert_int_eq(pawl_kv_block_pool_session_len(pool, id), 128);
	REFUSED(pawl_kv_block_pool_append(pool, id, 1, &err), PAWL_CAPACITY,
		"need 1 blocks, 0 are free");
	DONE(pawl_kv_block_pool_block_table(pool, id, table, 8, &err));
	ck_assert_uint_eq(table[7], (uint32_t)pawl_pool_test_block(id, 7));
	/* Shrink, go on. */
	DONE(pawl_kv_block_pool_truncate(pool, id, 112, &err));
	DONE(pawl_kv_block_pool_append(pool, id, 16, &err));
	REFUSED(pawl_kv_block_pool_append(pool, id, INT64_MAX, &err), PAWL_INVALID_ARGUMENT,
		"cannot follow");
	REFUSED(pawl_kv_block_pool_append(pool, id, -1, &err), PAWL_INVALID_ARGUMENT,
		"cannot follow");
	REFUSED(pawl_kv_block_pool_truncate(pool, id, 129, &err), PAWL_INVALID_ARGUMENT, "129");
	DONE(pawl_kv_block_pool_close(pool, id, &err));
}
END_TEST

START_TEST(block_tables)
{
	struct pawl_kv_session_id id = pawl_pool_test_open(33);
	const int64_t middle = 1;
	struct pawl_kv_evict_report report;
	uint32_t table[5] = {9, 9, 9, 9, 9};

	REFUSED(pawl_kv_block_pool_block_table(pool, id, table, 2, &err), PAWL_CAPACITY,
		"has 3 blocks, a block table of 2");
	REFUSED(pawl_kv_block_pool_block_table(pool, id, table, -1, &err), PAWL_CAPACITY, "-1");
	ck_assert_uint_eq(table[0], 9);
	DONE(pawl_kv_block_pool_block_table(pool, id, table, 4, &err));
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(table[i], (uint32_t)pawl_pool_test_block(id, i));
	ck_assert_uint_eq(table[3], 0);
	ck_assert_uint_eq(table[4], 9);
	DONE(pawl_kv_block_pool_evict_blocks(pool, id, &middle, 1, PAWL_KV_LOSSY, &report, &err));
	REFUSED(pawl_kv_block_pool_block_table(pool, id, table, 4, &err), PAWL_INVALID_ARGUMENT,
		"slot 1 of session");
	DONE(pawl_kv_block_pool_close(pool, id, &err));
}
END_TEST

START_TEST(what_is_taken_back_is_as_before)
{
	struct pawl_kv_session_id id = pawl_pool_test_open(20), child = pawl_pool_test_fork(id);
	uint64_t before = pawl_kv_block_pool_digest(pool);
	struct pawl_kv_copy_id copy;
	struct pawl_kv_handle_id handle;

	DONE(pawl_kv_block_pool_cow_reserve(pool, id, 1, &copy, &err));
	ck_assert_uint_ne(pawl_kv_block_pool_digest(pool), before);
	ck_assert_int_ne(copy.value, 0);
	DONE(pawl_kv_block_pool_copy_abort(pool, copy, &err));
	ck_assert_uint_eq(pawl_kv_block_pool_digest(pool), before);
	DONE(pawl_kv_block_pool_close(pool, child, &err));
	before = pawl_kv_block_pool_digest(pool);
	DONE(pawl_kv_block_pool_append(pool, id, 80, &err));
	DONE(pawl_kv_block_pool_truncate(pool, id, 20, &err));
	ck_assert_uint_eq(pawl_kv_block_pool_digest(pool), before);
	handle = pawl_pool_test_evict(id);
	before = pawl_kv_block_pool_digest(pool);
	DONE(pawl_kv_block_pool_restore_reserve(pool, handle, &err));
	REFUSED(pawl_kv_block_pool_restore(pool, handle, &err), PAWL_INVALID_ARGUMENT, "pending");
	DONE(pawl_kv_block_pool_restore_abort(pool, handle, &err));
	ck_assert_uint_eq(pawl_kv_block_pool_digest(pool), before);
	REFUSED(pawl_kv_block_pool_restore_commit(pool, handle, &err), PAWL_INVALID_ARGUMENT,
		"no restore");
	DONE(pawl_kv_block_pool_close(pool, id, &err));
}
END_TEST

/* The first to write breaks the tail, the last one left writes in place; parents may go first. */
START_TEST(forks)
{
	struct pawl_kv_session_id a = pawl_pool_test_open(20), b = pawl_pool_test_fork(a),
				  c = pawl_pool_test_fork(b);
	int32_t full = pawl_pool_test_block(a, 0), tail = pawl_pool_test_block(a, 1);
	struct pawl_kv_copy_id copy;
	struct pawl_kv_copy_info info;

	ck_assert_int_eq(
		pawl_kv_block_pool_bytes_resident(pool), 2 * pawl_kv_block_pool_block_bytes(pool));
	ck_assert_int_eq(pawl_kv_block_pool_owners(pool, tail), 3);
	DONE(pawl_kv_block_pool_close(pool, a, &err));
	REFUSED(pawl_kv_block_pool_fork(pool, a, &a, &err), PAWL_INVALID_ARGUMENT, "is not open");
	REFUSED(pawl_kv_block_pool_append(pool, b, 1, &err), PAWL_INVALID_ARGUMENT,
		"must be broken");
	DONE(pawl_kv_block_pool_cow_reserve(pool, b, 1, &copy, &err));
	DONE(pawl_kv_block_pool_copy(pool, copy, &info, &err));
	ck_assert_int_eq(info.n_blocks, 1);
	ck_assert_int_eq(info.blocks[0].from, tail);
	ck_assert_int_eq(info.shift, 0);
	ck_assert_int_eq(pawl_pool_test_block(b, 1), tail);
	REFUSED(pawl_kv_block_pool_append(pool, b, 1, &err), PAWL_INVALID_ARGUMENT, "pending");
	REFUSED(pawl_kv_block_pool_cow_reserve(pool, b, 1, &copy, &err), PAWL_INVALID_ARGUMENT,
		"pending");
	DONE(pawl_kv_block_pool_copy_commit(pool, copy, &err));
	ck_assert_int_ne(pawl_pool_test_block(b, 1), tail);
	ck_assert_int_eq(pawl_pool_test_block(c, 1), tail);
	REFUSED(pawl_kv_block_pool_copy_commit(pool, copy, &err), PAWL_INVALID_ARGUMENT,
		"is not pending");
	DONE(pawl_kv_block_pool_append(pool, b, 1, &err));
	DONE(pawl_kv_block_pool_cow_reserve(pool, c, 1, &copy, &err));
	ck_assert_uint_eq(copy.value, 0);
	DONE(pawl_kv_block_pool_append(pool, c, 1, &err));
	ck_assert_int_eq(pawl_kv_block_pool_owners(pool, full), 2);
	DONE(pawl_kv_block_pool_close(pool, b, &err));
	DONE(pawl_kv_block_pool_close(pool, c, &err));
}
END_TEST

/* Need is exact: with one block less the batch does not go through, with so many it does. */
START_TEST(batches_with_shared_tails)
{
	struct pawl_kv_session_id a = pawl_pool_test_open(17), b = pawl_pool_test_fork(a),
				  c = pawl_pool_test_open(16);
	const struct pawl_kv_append batch[] = {{a, 1}, {b, 16}, {c, 1}};
	const struct pawl_kv_append twice[] = {{a, 1}, {a, 1}};
	int64_t need = -7, n_free = pawl_kv_block_pool_free_blocks(pool);

	DONE(pawl_kv_block_pool_blocks_to_append(pool, batch, 3, &need, &err));
	ck_assert_int_eq(need, 1 + 1 + 1);
	for (int i = 0; i < 3; i++) {
		struct pawl_kv_session_id id = batch[i].session;
		struct pawl_kv_copy_id copy;

		if (pawl_kv_block_pool_tail_is_shared(pool, id)) {
			DONE(pawl_kv_block_pool_cow_reserve(pool, id,
				pawl_kv_block_pool_session_slots(pool, id) - 1, &copy, &err));
			DONE(pawl_kv_block_pool_copy_commit(pool, copy, &err));
		}
		DONE(pawl_kv_block_pool_append(pool, id, batch[i].n, &err));
	}
	ck_assert_int_eq(n_free - pawl_kv_block_pool_free_blocks(pool), need);
	REFUSED(pawl_kv_block_pool_blocks_to_append(pool, twice, 2, &need, &err),
		PAWL_INVALID_ARGUMENT, "twice");
	DONE(pawl_kv_block_pool_close(pool, b, &err));
	DONE(pawl_kv_block_pool_close(pool, a, &err));
	DONE(pawl_kv_block_pool_close(pool, c, &err));
}
END_TEST

START_TEST(restore_without_room_keeps_the_handle)
{
	struct pawl_kv_session_id id = pawl_pool_test_open(48), other;
	struct pawl_kv_handle_id handle = pawl_pool_test_evict(id);
	struct pawl_kv_handle_info info;

	ck_assert_int_eq(pawl_kv_block_pool_free_blocks(pool), 8);
	ck_assert_int_eq(pawl_kv_block_pool_session_len(pool, id), 48);
	other = pawl_pool_test_open(96);
	REFUSED(pawl_kv_block_pool_restore(pool, handle, &err), PAWL_CAPACITY,
		"needs 3 blocks, 2 are free");
	DONE(pawl_kv_block_pool_handle(pool, handle, &info, &err));
	ck_assert_int_eq(info.n_slots, 3);
	ck_assert_int_eq(info.fidelity, PAWL_KV_EXACT);
	ck_assert_uint_eq(info.session.value, id.value);
	REFUSED(pawl_kv_block_pool_fork(pool, id, &other, &err), PAWL_INVALID_ARGUMENT, "slot 0");
	/* What is cut away is not restored. */
	DONE(pawl_kv_block_pool_truncate(pool, id, 20, &err));
	REFUSED(pawl_kv_block_pool_append(pool, id, 1, &err), PAWL_INVALID_ARGUMENT,
		"slot 1 of session");
	DONE(pawl_kv_block_pool_restore(pool, handle, &err));
	ck_assert_int_eq(pawl_kv_block_pool_free_blocks(pool), 0);
	REFUSED(pawl_kv_block_pool_restore(pool, handle, &err), PAWL_INVALID_ARGUMENT,
		"is not alive");
	DONE(pawl_kv_block_pool_append(pool, id, 1, &err));
	DONE(pawl_kv_block_pool_close(pool, id, &err));
	DONE(pawl_kv_block_pool_close(pool, other, &err));
}
END_TEST

START_TEST(evicted_slots_are_checked_first)
{
	struct pawl_kv_session_id id = pawl_pool_test_open(40);
	const int64_t beyond[] = {0, 3}, twice[] = {2, 2}, below[] = {1, -1}, one = 2;
	struct pawl_kv_evict_report report;

	REFUSED(pawl_kv_block_pool_evict_blocks(pool, id, beyond, 2, PAWL_KV_EXACT, &report, &err),
		PAWL_INVALID_ARGUMENT, "slot 3");
	REFUSED(pawl_kv_block_pool_evict_blocks(pool, id, below, 2, PAWL_KV_EXACT, &report, &err),
		PAWL_INVALID_ARGUMENT, "slot -1");
	REFUSED(pawl_kv_block_pool_evict_blocks(pool, id, twice, 2, PAWL_KV_EXACT, &report, &err),
		PAWL_INVALID_ARGUMENT, "twice");
	REFUSED(pawl_kv_block_pool_evict_range(pool, id, 1, 4, PAWL_KV_EXACT, &report, &err),
		PAWL_INVALID_ARGUMENT, "1 to 4");
	REFUSED(pawl_kv_block_pool_evict_range(
			pool, id, 0, 1, (enum pawl_kv_fidelity)2, &report, &err),
		PAWL_INVALID_ARGUMENT, "fidelity is 2, not in 0 .. 1");
	DONE(pawl_kv_block_pool_evict_blocks(pool, id, &one, 1, PAWL_KV_LOSSY, &report, &err));
	ck_assert_int_eq(report.n_freed, 1);
	REFUSED(pawl_kv_block_pool_evict_blocks(pool, id, &one, 1, PAWL_KV_EXACT, &report, &err),
		PAWL_INVALID_ARGUMENT, "already");
	DONE(pawl_kv_block_pool_evict(pool, id, PAWL_KV_EXACT, &report, &err));
	ck_assert_int_eq(report.n_freed, 2);
	DONE(pawl_kv_block_pool_close(pool, id, &err));
}
END_TEST

START_TEST(splices)
{
	struct pawl_kv_session_id a = pawl_pool_test_open(40), b = pawl_pool_test_open(16),
				  empty = pawl_pool_test_open(0);

	REFUSED(pawl_kv_block_pool_splice(pool, a, 0, 1, b, &err), PAWL_INVALID_ARGUMENT,
		"cannot follow");
	REFUSED(pawl_kv_block_pool_splice(pool, a, 1, 4, b, &err), PAWL_INVALID_ARGUMENT, "1 to 4");
	REFUSED(pawl_kv_block_pool_splice(pool, a, 2, 2, b, &err), PAWL_INVALID_ARGUMENT, "2 to 2");
	REFUSED(pawl_kv_block_pool_splice_prefix(pool, a, 3, empty, &err), PAWL_INVALID_ARGUMENT,
		"do not fill 3");
	REFUSED(pawl_kv_block_pool_splice_prefix(pool, a, 1, b, &err), PAWL_INVALID_ARGUMENT,
		"cannot follow");
	DONE(pawl_kv_block_pool_splice(pool, a, 1, 3, b, &err));
	ck_assert_int_eq(pawl_kv_block_pool_session_len(pool, b), 40);
	ck_assert_int_eq(pawl_pool_test_block(a, 2), pawl_pool_test_block(b, 2));
	ck_assert(pawl_kv_block_pool_tail_is_shared(pool, a));
	DONE(pawl_kv_block_pool_splice_prefix(pool, a, 2, empty, &err));
	ck_assert_int_eq(pawl_kv_block_pool_session_len(pool, empty), 32);
	DONE(pawl_kv_block_pool_close(pool, a, &err));
	DONE(pawl_kv_block_pool_close(pool, empty, &err));
	DONE(pawl_kv_block_pool_close(pool, b, &err));
}
END_TEST

/* A session that is cancelled in any phase gives all its blocks back. */
START_TEST(cancelled_in_every_phase)
{
	enum { N_PHASES = 7 };
	const uint32_t tokens[16] = {0};
	struct pawl_kv_session_id parent = pawl_pool_test_open(20);
	struct pawl_kv_prefix_id prefix = pawl_pool_test_prefix(parent, tokens, 16);

	for (int i = 0; i < 1000; i++) {
		int phase = i % N_PHASES;
		struct pawl_kv_session_id id =
			phase == 2 ? pawl_pool_test_fork(parent) : pawl_pool_test_open(0);
		struct pawl_kv_handle_id handle;
		struct pawl_kv_copy_id copy;

		if (phase == 1 || phase >= 4)
			DONE(pawl_kv_block_pool_append(pool, id, 32, &err));
		if (phase == 2)
			DONE(pawl_kv_block_pool_cow_reserve(pool, id, 1, &copy, &err));
		if (phase == 3)
			DONE(pawl_kv_block_pool_splice_prefix_from(pool, prefix, 1, id, &err));
		if (phase == 4)
			DONE(pawl_kv_block_pool_shift_reserve(
				pool, prefix, 1, id, 32, &copy, &err));
		if (phase >= 5)
			handle = pawl_pool_test_evict(id);
		if (phase == 6)
			DONE(pawl_kv_block_pool_restore_reserve(pool, handle, &err));
		DONE(pawl_kv_block_pool_close(pool, id, &err));
		if (phase == 2 || phase == 4)
			REFUSED(pawl_kv_block_pool_copy_commit(pool, copy, &err),
				PAWL_INVALID_ARGUMENT, "is not pending");
		if (phase >= 5)
			REFUSED(pawl_kv_block_pool_restore_commit(pool, handle, &err),
				PAWL_INVALID_ARGUMENT, "is not alive");
		ck_assert_int_eq(pawl_kv_block_pool_free_blocks(pool), 6);
	}
	DONE(pawl_kv_block_pool_close(pool, parent, &err));
	DONE(pawl_kv_block_pool_release_prefix(pool, prefix, &err));
}
END_TEST

START_TEST(ids_belong_to_one_pool_and_kind)
{
	struct pawl_kv_session_id id = pawl_pool_test_open(16), there;
	const struct pawl_kv_pool_geometry *geometry = pawl_kv_block_pool_geometry(pool);
	struct pawl_kv_block_pool *other;
	struct pawl_kv_handle_id handle = pawl_pool_test_evict(id);

	DONE(pawl_kv_block_pool_new(geometry, &other, &err));
	DONE(pawl_kv_block_pool_open(other, 0, &there, &err));
	ck_assert_uint_gt(there.value, handle.value);
	REFUSED(pawl_kv_block_pool_append(pool, there, 1, &err), PAWL_INVALID_ARGUMENT,
		"is not open in this pool");
	REFUSED(pawl_kv_block_pool_release_prefix(pool, (struct pawl_kv_prefix_id){id.value}, &err),
		PAWL_INVALID_ARGUMENT, "is not alive");
	REFUSED(pawl_kv_block_pool_close(pool, (struct pawl_kv_session_id){0}, &err),
		PAWL_INVALID_ARGUMENT, "session 0");
	ck_assert_int_eq(pawl_kv_block_pool_session_len(pool, there), -1);
	ck_assert(!pawl_kv_block_pool_tail_is_shared(pool, there));
	pawl_kv_block_pool_free(other);
	DONE(pawl_kv_block_pool_close(pool, id, &err));
}
END_TEST

/* With its list made at the start, a session allocates nothing until it ends. */
START_TEST(no_allocation_per_token)
{
	struct pawl_kv_session_id id;
	uint64_t before;

	DONE(pawl_kv_block_pool_open(pool, 128, &id, &err));
	before = pawl_memory_allocations();
	for (int i = 0; i < 128; i++)
		DONE(pawl_kv_block_pool_append(pool, id, 1, &err));
	DONE(pawl_kv_block_pool_truncate(pool, id, 5, &err));
	DONE(pawl_kv_block_pool_close(pool, id, &err));
	ck_assert_uint_eq(pawl_memory_allocations(), before);
	REFUSED(pawl_kv_block_pool_open(pool, -1, &id, &err), PAWL_INVALID_ARGUMENT, "-1");
	DONE(pawl_kv_block_pool_open(pool, INT64_MAX, &id, &err));
	DONE(pawl_kv_block_pool_close(pool, id, &err));
}
END_TEST

Suite *
pawl_block_pool_suite(void)
{
	Suite *suite = suite_create("block_pool");
	TCase *tcase = tcase_create("block_pool");

	tcase_add_checked_fixture(tcase, pawl_pool_test_begin, pawl_pool_test_end);
	tcase_add_test(tcase, sizes);
	tcase_add_test(tcase, a_pool_needs_memory);
	tcase_add_test(tcase, capacity_to_the_token);
	tcase_add_test(tcase, block_tables);
	tcase_add_test(tcase, what_is_taken_back_is_as_before);
	tcase_add_test(tcase, forks);
	tcase_add_test(tcase, batches_with_shared_tails);
	tcase_add_test(tcase, restore_without_room_keeps_the_handle);
	tcase_add_test(tcase, evicted_slots_are_checked_first);
	tcase_add_test(tcase, splices);
	tcase_add_test(tcase, cancelled_in_every_phase);
	tcase_add_test(tcase, ids_belong_to_one_pool_and_kind);
	tcase_add_test(tcase, no_allocation_per_token);
	suite_add_tcase(suite, tcase);
	return suite;
}

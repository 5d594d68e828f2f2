/* Caches in files: what comes back, and what is refused with nothing changed. */
#include "runtime/kv_snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/memory.h"
#include "tests/decoder_fixture.h"
#include "tests/kv_snapshot_fixture.h"
#include "tests/snapshot_file.h"
#include "tests/suites.h"

START_TEST(a_snapshot_tells_what_it_holds)
{
	struct pawl_kv_snapshot *snapshot;
	const uint32_t *held;
	int64_t n;
	size_t n_bytes;

	free(pawl_snapshot_file_read(&file, &n_bytes));
	/* 2 layers of K and V, 2 heads, 21 positions of 16 f16. */
	ck_assert_uint_eq(n_bytes, HEADER + N_TOKENS * 4 + 2 * 2 * 2 * 21 * 16 * 2 + 8);
	OK(pawl_kv_snapshot_open(file.path, &snapshot, &err));
	ck_assert_int_eq(pawl_kv_snapshot_positions(snapshot), N_CACHED);
	held = pawl_kv_snapshot_tokens(snapshot, &n);
	ck_assert_int_eq(n, N_TOKENS);
	ck_assert(!memcmp(held, tokens, sizeof(tokens)));
	pawl_kv_snapshot_free(snapshot);
}
END_TEST

/* Into caches of other capacities and layouts, shared or not, of other content. */
START_TEST(restored_equals_never_saved)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_tiny_model *twin;
	struct pawl_decoder *other;
	struct pawl_kv_cache *fork = NULL;
	struct pawl_decoder_stats before, after;
	uint64_t fork_digest = 0;

	if (_i & 1)
		tiny.k_layout = PAWL_LAYOUT_ROWS;
	twin = pawl_tiny_model_twin(model, &tiny);
	options.capacity = _i & 2 ? 32 : 192;
	other = pawl_test_decoder(twin, &options);
	pawl_test_prefill(other, 5, 0, 30);
	if (_i & 4) {
		OK(pawl_kv_cache_fork(pawl_decoder_cache(other), &fork, &err));
		fork_digest = pawl_test_cache_digest(fork);
	}
	before = (struct pawl_decoder_stats){0};
	pawl_decoder_stats(other, &before);
	OK(restore(other));
	ck_assert_int_eq(pawl_decoder_len(other), N_CACHED);
	for (int i = N_CACHED; i < N_CACHED + 8; i++)
		ck_assert_msg(pawl_test_same(other, pawl_test_step(other, 1, i),
				      pawl_test_step(decoder, 1, i)),
			"token %d", i);
	pawl_decoder_stats(other, &after);
	/* Nothing was computed again, and no plan was made. */
	ck_assert_uint_eq(after.counters.tokens - before.counters.tokens, 8);
	ck_assert_uint_eq(after.counters.optimizes, before.counters.optimizes);
	ck_assert_uint_eq(after.counters.rebinds - before.counters.rebinds, _i & 4 ? 1 : 0);
	if (fork)
		ck_assert_uint_eq(pawl_test_cache_digest(fork), fork_digest);
	pawl_kv_cache_free(fork);
	pawl_decoder_free(other);
	pawl_tiny_model_free(twin);
}
END_TEST

START_TEST(a_shorter_history_is_restored_too)
{
	float *wanted = pawl_test_fresh(model, &options, 1, 14);
	struct pawl_decoder *other = pawl_test_decoder(model, &options);

	OK(restore(other));
	pawl_decoder_truncate(other, 13);
	ck_assert(pawl_test_same(other, pawl_test_step(other, 1, 13), wanted));
	pawl_decoder_truncate(decoder, 0);
	save(NULL, 0);
	OK(restore(other));
	ck_assert_int_eq(pawl_decoder_len(other), 0);
	pawl_decoder_free(other);
	free(wanted);
}
END_TEST

/* So many openings, each of them proportional to the layers, would not end in the test's time. */
START_TEST(layers_without_positions_cost_nothing)
{
	struct pawl_kv_snapshot_header header;
	char bytes[sizeof(header) + 8] = {0};
	size_t n;
	char *kept = pawl_snapshot_file_read(&file, &n);

	memcpy(&header, kept, sizeof(header));
	header.n_layers = INT32_MAX;
	header.n_positions = header.n_tokens = 0;
	write_with(header, bytes, sizeof(bytes));
	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(try_open(), PAWL_OK);
	ck_assert_int_eq(restore(decoder), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "the snapshot is of 2147483647 layers, the cache has 2");
	ck_assert_int_eq(pawl_decoder_len(decoder), N_CACHED);
	free(kept);
}
END_TEST

START_TEST(a_file_that_takes_no_more)
{
	FILE *full = fopen("/dev/full", "wb");
	const struct pawl_kv_snapshot_sink to = pawl_kv_snapshot_file_sink(full);

	ck_assert_ptr_nonnull(full);
	setvbuf(full, NULL, _IONBF, 0);
	ck_assert_int_eq(
		pawl_decoder_save(decoder, tokens, N_TOKENS, &to, &err), PAWL_ENVIRONMENT);
	ck_assert_str_eq(err.text, strerror(ENOSPC));
	fclose(full);
}
END_TEST

struct failing_sink {
	int left;     /* writes that succeed */
	size_t bytes; /* taken by them */
};

static enum pawl_status
write_until(void *ctx, const void *bytes, size_t n, struct pawl_error *e)
{
	struct failing_sink *sink = ctx;

	(void)bytes;
	if (!sink->left)
		return pawl_fail(e, PAWL_CAPACITY, "full after %zu bytes", sink->bytes);
	sink->left--;
	sink->bytes += n;
	return PAWL_OK;
}

START_TEST(a_save_that_fails)
{
	const struct pawl_kv_identity none = {1, (enum pawl_precision)77};
	struct failing_sink sink = {0};
	const struct pawl_kv_snapshot_sink to = {write_until, &sink};
	uint64_t digest = pawl_test_cache_digest(pawl_decoder_cache(decoder));
	enum pawl_status status = PAWL_CAPACITY;
	char says[64];
	size_t n;
	int tries;

	free(pawl_snapshot_file_read(&file, &n));
	/* Refused before the first byte. */
	ck_assert_int_eq(pawl_decoder_save(decoder, tokens, N_CACHED - 1, &to, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "20 tokens are given for 21 positions");
	ck_assert_int_eq(pawl_decoder_save(decoder, tokens, -1, &to, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(pawl_decoder_save(decoder, tokens, (int64_t)INT32_MAX + 1, &to, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(
		err.text, "a snapshot of 2147483648 tokens; 2147483647 are possible");
	ck_assert_int_eq(pawl_kv_snapshot_save(pawl_decoder_cache(decoder), &none, tokens, N_TOKENS,
				 &to, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "precision is 77, not in 0 .. 1");
	pawl_memory_fail_after(0);
	ck_assert_int_eq(
		pawl_decoder_save(decoder, tokens, N_TOKENS, &to, &err), PAWL_OUT_OF_MEMORY);
	pawl_memory_fail_after(-1);
	/* The sink's own status and words, whichever write it fails. */
	for (tries = 0; status == PAWL_CAPACITY; tries++) {
		sink = (struct failing_sink){tries, 0};
		status = pawl_decoder_save(decoder, tokens, N_TOKENS, &to, &err);
		snprintf(says, sizeof(says), "full after %zu bytes", sink.bytes);
		ck_assert(status == PAWL_OK || !strcmp(err.text, says));
	}
	ck_assert_int_eq(status, PAWL_OK);
	/* Header, tokens, K and V of 2 layers, checksum. */
	ck_assert_int_eq(tries - 1, 7);
	ck_assert_uint_eq(sink.bytes, n);
	ck_assert_uint_eq(pawl_test_cache_digest(pawl_decoder_cache(decoder)), digest);
}
END_TEST

START_TEST(a_restore_that_fails_changes_nothing)
{
	struct pawl_decoder *other = pawl_test_decoder(model, &options);
	struct pawl_kv_cache *fork;
	struct pawl_kv_snapshot *snapshot = NULL;
	enum pawl_status status = PAWL_OUT_OF_MEMORY;
	uint64_t digest;
	int n;

	pawl_test_prefill(other, 2, 0, 10);
	for (n = 0; status == PAWL_OUT_OF_MEMORY; n++) {
		ck_assert_ptr_null(snapshot);
		pawl_memory_fail_after(n);
		status = pawl_kv_snapshot_open(file.path, &snapshot, &err);
		pawl_memory_fail_after(-1);
	}
	ck_assert_int_eq(status, PAWL_OK);
	ck_assert_int_eq(n - 1, 2);
	OK(pawl_kv_cache_fork(pawl_decoder_cache(other), &fork, &err));
	digest = pawl_test_cache_digest(pawl_decoder_cache(other));
	status = PAWL_OUT_OF_MEMORY;
	for (n = 0; status == PAWL_OUT_OF_MEMORY; n++) {
		ck_assert_uint_eq(pawl_test_cache_digest(pawl_decoder_cache(other)), digest);
		pawl_memory_fail_after(n);
		status = pawl_decoder_restore(other, snapshot, &err);
		pawl_memory_fail_after(-1);
	}
	ck_assert_int_eq(status, PAWL_OK);
	ck_assert_int_gt(n, 1);
	ck_assert_int_eq(pawl_decoder_len(other), N_CACHED);
	pawl_kv_snapshot_free(snapshot);
	pawl_kv_cache_free(fork);
	pawl_decoder_free(other);
}
END_TEST

Suite *
pawl_kv_snapshot_suite(void)
{
	Suite *suite = suite_create("kv_snapshot");
	TCase *tests = tcase_create("kv_snapshot");

	tcase_add_checked_fixture(tests, begin_snapshot, end_snapshot);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, a_snapshot_tells_what_it_holds);
	tcase_add_loop_test(tests, restored_equals_never_saved, 0, 8);
	tcase_add_test(tests, a_shorter_history_is_restored_too);
	tcase_add_test(tests, layers_without_positions_cost_nothing);
	tcase_add_test(tests, a_file_that_takes_no_more);
	tcase_add_test(tests, a_save_that_fails);
	tcase_add_test(tests, a_restore_that_fails_changes_nothing);
	suite_add_tcase(suite, tests);
	return suite;
}

/*
 * Snapshots of caches of latents, on the tiny model of tests/tiny_mla.h: what comes of them equals
 * to the bit what was never saved, and what fails changes nothing.
 */
#include "runtime/latent_kv_cache.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/memory.h"
#include "tests/decoding.h"
#include "tests/latent_fixture.h"
#include "tests/snapshot_file.h"
#include "tests/suites.h"

enum { MODEL = 77, FRONT = 128 + 168 };

enum { N_CACHED = 21, N_SAVED = 23 };

static struct pawl_snapshot_file file;
static const struct pawl_kv_identity identity = {MODEL, PAWL_PRECISION_A16};

static void
save(const struct pawl_latent_kv_cache *cache)
{
	const struct pawl_kv_snapshot_sink to = pawl_snapshot_file_begin(&file);
	uint32_t tokens[64];

	for (int i = 0; i < 64; i++)
		tokens[i] = pawl_test_token(1, i);
	OK(pawl_latent_snapshot_save(
		cache, &identity, tokens, pawl_latent_kv_cache_len(cache) + 2, &to, &err));
	pawl_snapshot_file_end(&to);
}

static enum pawl_status
restore(const struct pawl_kv_identity *as, struct pawl_latent_kv_cache *cache)
{
	struct pawl_kv_snapshot *snapshot;
	enum pawl_status status;

	OK(pawl_kv_snapshot_open(file.path, &snapshot, &err));
	status = pawl_latent_snapshot_restore(snapshot, as, cache, &err);
	pawl_kv_snapshot_free(snapshot);
	return status;
}

static void
begin_saved(void)
{
	static float logits[64 * N_VOCAB];

	begin_life();
	pawl_snapshot_file_init(&file);
	pawl_latent_runner_feed(&life, 1, 0, N_CACHED, logits);
	save(life.cache);
}

static void
end_saved(void)
{
	pawl_snapshot_file_release(&file);
	end_life();
}

/* Into another capacity, over other content, shared with a fork or not. */
START_TEST(restored_equals_never_saved)
{
	static float wanted[64 * N_VOCAB], got[64 * N_VOCAB];
	struct pawl_latent_kv_cache *fork = NULL;
	struct pawl_latent_runner other;
	uint64_t fork_digest = 0, optimizes;
	struct pawl_kv_snapshot *snapshot;
	const uint32_t *tokens;
	int64_t n;

	way.capacity = _i & 1 ? 40 : 300;
	pawl_latent_runner_init(&other, model, &way);
	pawl_latent_runner_feed(&other, 5, 0, 30, got);
	if (_i & 2) {
		OK(pawl_latent_kv_cache_fork(other.cache, &fork, &err));
		fork_digest = pawl_latent_digest(fork);
	}
	optimizes = pawl_latent_runner_counters(&other)->optimizes;
	OK(pawl_kv_snapshot_open(file.path, &snapshot, &err));
	ck_assert_int_eq(pawl_kv_snapshot_positions(snapshot), N_CACHED);
	tokens = pawl_kv_snapshot_tokens(snapshot, &n);
	ck_assert_int_eq(n, N_SAVED);
	for (int64_t i = 0; i < n; i++)
		ck_assert_uint_eq(tokens[i], pawl_test_token(1, i));
	OK(pawl_latent_snapshot_restore(snapshot, &identity, other.cache, &err));
	pawl_kv_snapshot_free(snapshot);
	ck_assert_int_eq(pawl_latent_kv_cache_len(other.cache), N_CACHED);
	pawl_latent_runner_ready(&other);
	pawl_latent_runner_feed(&life, 1, N_CACHED, 10, wanted);
	pawl_latent_runner_feed(&other, 1, N_CACHED, 10, got);
	pawl_latent_expect_same(wanted, got, 10, "restored");
	ck_assert_uint_eq(pawl_latent_runner_counters(&other)->optimizes, optimizes);
	if (fork)
		ck_assert_uint_eq(pawl_latent_digest(fork), fork_digest);
	pawl_latent_kv_cache_free(fork);
	/* And back: what is saved again is the same file. */
	pawl_latent_kv_cache_truncate_to(other.cache, N_CACHED);
	pawl_latent_kv_cache_truncate_to(life.cache, N_CACHED);
	save(life.cache);
	{
		size_t a, b;
		char *one = pawl_snapshot_file_read(&file, &a), *two;

		save(other.cache);
		two = pawl_snapshot_file_read(&file, &b);
		ck_assert(a == b && !memcmp(one, two, a));
		free(one);
		free(two);
	}
	pawl_latent_runner_release(&other);
}
END_TEST

/* Slots of every rank, and a length of nothing. */
START_TEST(all_shapes_of_slots_are_saved)
{
	struct pawl_latent_kv_cache *cache =
		pawl_latent_cache_of(life.context, &pawl_latent_many_slots);
	struct pawl_latent_kv_cache *other;
	struct pawl_latent_shape shape = pawl_latent_many_slots;

	shape.max_seq_len = 31;
	other = pawl_latent_cache_of(life.context, &shape);
	for (int i = 0; i < 12; i++) {
		struct pawl_storage *storage = pawl_latent_kv_cache_storage(cache, i / 4, i % 4);

		for (int64_t b = 0; b < storage->n_bytes; b++)
			((unsigned char *)storage->bytes)[b] = (unsigned char)(b * 5 + i * 13 + 1);
	}
	pawl_latent_kv_cache_advance(cache, _i);
	save(cache);
	OK(restore(&identity, other));
	ck_assert_int_eq(pawl_latent_kv_cache_len(other), _i);
	for (int i = 0; i < 12; i++) {
		const struct pawl_kv_tensor *a = pawl_latent_kv_cache_slot(cache, i / 4, i % 4),
					    *b = pawl_latent_kv_cache_slot(other, i / 4, i % 4);
		int64_t n = a->storage->n_bytes / 20 * _i;

		ck_assert_uint_eq(b->version, 1);
		ck_assert(!memcmp(a->storage->bytes, b->storage->bytes, (size_t)n));
		for (int64_t j = n; j < b->storage->n_bytes; j++)
			ck_assert_int_eq(((char *)b->storage->bytes)[j], 0);
	}
	pawl_latent_kv_cache_free(cache);
	pawl_latent_kv_cache_free(other);
}
END_TEST

static const struct {
	const char *says;
	struct pawl_kv_identity identity;
	struct pawl_latent_shape shape;
} refused[] = {
	{"the snapshot is of another model: ", {78, PAWL_PRECISION_A16},
		{2, 1, 64, PAWL_DTYPE_F16, {{1, {32}}}}},
	{"the snapshot was made with activations a16, these are a8", {MODEL, PAWL_PRECISION_A8},
		{2, 1, 64, PAWL_DTYPE_F16, {{1, {32}}}}},
	{"the snapshot is of a cache of f16, this one is of bf16", {MODEL, PAWL_PRECISION_A16},
		{2, 1, 64, PAWL_DTYPE_BF16, {{1, {32}}}}},
	{"the snapshot is of 2 layers, the cache has 3", {MODEL, PAWL_PRECISION_A16},
		{3, 1, 64, PAWL_DTYPE_F16, {{1, {32}}}}},
	{"the snapshot is of 1 slots a layer, the cache has 2", {MODEL, PAWL_PRECISION_A16},
		{2, 2, 64, PAWL_DTYPE_F16, {{1, {32}}, {1, {1}}}}},
	{"slot 0 of the snapshot and of the cache differ in shape", {MODEL, PAWL_PRECISION_A16},
		{2, 1, 64, PAWL_DTYPE_F16, {{1, {31}}}}},
	{"slot 0 of the snapshot and of the cache differ in shape", {MODEL, PAWL_PRECISION_A16},
		{2, 1, 64, PAWL_DTYPE_F16, {{2, {4, 8}}}}},
	{"the snapshot holds 21 positions, the cache has room for 20", {MODEL, PAWL_PRECISION_A16},
		{2, 1, 20, PAWL_DTYPE_F16, {{1, {32}}}}},
};
enum { N_REFUSED = sizeof(refused) / sizeof(refused[0]) };

START_TEST(what_does_not_fit_is_refused)
{
	const struct pawl_kv_identity none = {MODEL, (enum pawl_precision)2};
	struct pawl_latent_kv_cache *cache = pawl_latent_cache_of(life.context, &refused[_i].shape);
	uint64_t digest;

	pawl_latent_kv_cache_advance(cache, 3);
	digest = pawl_latent_digest(cache);
	ck_assert_int_eq(restore(&refused[_i].identity, cache),
		_i == N_REFUSED - 1 ? PAWL_CAPACITY : PAWL_INVALID_ARGUMENT);
	ck_assert_msg(!strncmp(err.text, refused[_i].says, strlen(refused[_i].says)), "%s", err.text);
	ck_assert_uint_eq(pawl_latent_digest(cache), digest);
	ck_assert_int_eq(restore(&none, cache), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "precision is 2, not in 0 .. 1");
	pawl_latent_kv_cache_clear(cache);
	ck_assert_int_eq(restore(&refused[_i].identity, cache), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "the cache has no capacity");
	pawl_latent_kv_cache_free(cache);
}
END_TEST

/* One kind is never the other, though all that they have in common agrees. */
START_TEST(the_other_kind_is_refused)
{
	const struct pawl_kv_shape shape = {.n_layers = 2,
		.n_kv_heads = 1,
		.head_dim = 32,
		.max_seq_len = 64,
		.dtype = PAWL_DTYPE_F16};
	const struct pawl_kv_snapshot_sink to = {0};
	struct pawl_kv_snapshot_sink kv_to;
	struct pawl_kv_snapshot *snapshot;
	struct pawl_kv_cache *cache;
	uint64_t digest;

	OK(pawl_kv_cache_with_capacity(life.context, &shape, &cache, &err));
	digest = pawl_test_cache_digest(cache);
	OK(pawl_kv_snapshot_open(file.path, &snapshot, &err));
	ck_assert_int_eq(pawl_kv_snapshot_restore(snapshot, &identity, cache, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text,
		"the snapshot is of a cache of latents, this one is of keys and values");
	ck_assert_uint_eq(pawl_test_cache_digest(cache), digest);
	pawl_kv_snapshot_free(snapshot);
	kv_to = pawl_snapshot_file_begin(&file);
	OK(pawl_kv_snapshot_save(cache, &identity, NULL, 0, &kv_to, &err));
	pawl_snapshot_file_end(&kv_to);
	digest = pawl_latent_digest(life.cache);
	ck_assert_int_eq(restore(&identity, life.cache), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text,
		"the snapshot is of a cache of keys and values, this one is of latents");
	ck_assert_uint_eq(pawl_latent_digest(life.cache), digest);
	/* Nothing is written where nothing can be. */
	ck_assert_int_eq(pawl_latent_snapshot_save(life.cache, &identity, NULL, N_CACHED - 1, &to, &err),
		PAWL_INVALID_ARGUMENT);
	pawl_latent_kv_cache_clear(life.cache);
	ck_assert_int_eq(pawl_latent_snapshot_save(life.cache, &identity, NULL, 0, &to, &err),
		PAWL_INVALID_ARGUMENT);
	pawl_kv_cache_free(cache);
}
END_TEST

START_TEST(damaged_files_are_refused)
{
	if (_i)
		pawl_snapshot_file_flip(&file, FRONT);
	else
		pawl_snapshot_file_truncate(&file, FRONT);
}
END_TEST

/* Fronts that are whole but say what cannot be. */
START_TEST(absurd_geometry_is_refused)
{
	static const int64_t values[] = {0, -1, 1, 2, 4, 5, INT64_MAX, INT64_MIN,
		INT64_C(1) << 32, INT64_C(1) << 60, (INT64_C(1) << 62) / 3};
	struct pawl_kv_snapshot_header header;
	struct pawl_kv_snapshot_latents geometry, changed;
	size_t n;
	char *bytes = pawl_snapshot_file_read(&file, &n);
	uint64_t before = pawl_memory_allocations();
	int n_same = 0;

	memcpy(&header, bytes, sizeof(header));
	memcpy(&geometry, bytes + sizeof(header), sizeof(geometry));
	for (size_t at = 0; at < sizeof(geometry); at += sizeof(int64_t))
		for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
			uint64_t sum;

			changed = geometry;
			memcpy((char *)&changed + at, &values[v], sizeof(int64_t));
			sum = pawl_kv_checksum(0, &header,
				offsetof(struct pawl_kv_snapshot_header, checksum));
			header.checksum = pawl_kv_checksum(sum, &changed, sizeof(changed));
			memcpy(bytes, &header, sizeof(header));
			memcpy(bytes + sizeof(header), &changed, sizeof(changed));
			pawl_snapshot_file_write(&file, bytes, n);
			if (!memcmp(&changed, &geometry, sizeof(changed))) {
				n_same++;
				continue;
			}
			ck_assert_msg(pawl_snapshot_file_try(&file, &err) == PAWL_INVALID_FILE,
				"byte %zu: %lld", at, (long long)values[v]);
			ck_assert_uint_eq(++before, pawl_memory_allocations());
		}
	/* One slot, of rank 1, and the places of what is not there. */
	ck_assert_int_eq(n_same, 2 + 18);
	free(bytes);
}
END_TEST

START_TEST(a_restore_that_fails_changes_nothing)
{
	static float logits[64 * N_VOCAB];
	struct pawl_latent_kv_cache *fork;
	struct pawl_kv_snapshot *snapshot = NULL;
	enum pawl_status status = PAWL_OUT_OF_MEMORY;
	uint64_t digest;
	int n;

	pawl_latent_kv_cache_truncate_to(life.cache, 0);
	pawl_latent_runner_feed(&life, 4, 0, 11, logits);
	for (n = 0; status == PAWL_OUT_OF_MEMORY; n++) {
		ck_assert_ptr_null(snapshot);
		pawl_memory_fail_after(n);
		status = pawl_kv_snapshot_open(file.path, &snapshot, &err);
		pawl_memory_fail_after(-1);
	}
	OK(status);
	ck_assert_int_eq(n - 1, 2);
	fork = fork_now();
	digest = pawl_latent_digest(life.cache);
	status = PAWL_OUT_OF_MEMORY;
	for (n = 0; status == PAWL_OUT_OF_MEMORY; n++) {
		ck_assert_uint_eq(pawl_latent_digest(life.cache), digest);
		pawl_memory_fail_after(n);
		status = pawl_latent_snapshot_restore(snapshot, &identity, life.cache, &err);
		pawl_memory_fail_after(-1);
	}
	OK(status);
	ck_assert_int_gt(n, 1);
	ck_assert_int_eq(pawl_latent_kv_cache_len(life.cache), N_CACHED);
	ck_assert_int_eq(pawl_latent_kv_cache_len(fork), 11);
	pawl_kv_snapshot_free(snapshot);
	pawl_latent_kv_cache_free(fork);
}
END_TEST

Suite *
pawl_latent_state_suite(void)
{
	Suite *suite = suite_create("latent_state");
	TCase *tests = tcase_create("snapshot");

	tcase_add_checked_fixture(tests, begin_saved, end_saved);
	tcase_set_timeout(tests, 60);
	tcase_add_loop_test(tests, restored_equals_never_saved, 0, 4);
	tcase_add_loop_test(tests, all_shapes_of_slots_are_saved, 0, 3);
	tcase_add_loop_test(tests, what_does_not_fit_is_refused, 0, N_REFUSED);
	tcase_add_test(tests, the_other_kind_is_refused);
	tcase_add_loop_test(tests, damaged_files_are_refused, 0, 2);
	tcase_add_test(tests, absurd_geometry_is_refused);
	tcase_add_test(tests, a_restore_that_fails_changes_nothing);
	suite_add_tcase(suite, tests);
	return suite;
}

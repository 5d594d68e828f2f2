/* Caches in files: what comes back, and what is refused with nothing changed. */
#include "runtime/kv_snapshot.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/memory.h"
#include "tests/decoder_fixture.h"
#include "tests/snapshot_file.h"
#include "tests/suites.h"

enum { N_CACHED = 21, N_TOKENS = 23, HEADER = sizeof(struct pawl_kv_snapshot_header) };

static uint32_t tokens[N_TOKENS];
static struct pawl_snapshot_file file;
static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static void
save(const uint32_t *of, int64_t n)
{
	const struct pawl_kv_snapshot_sink to = pawl_snapshot_file_begin(&file);

	OK(pawl_decoder_save(decoder, of, n, &to, &err));
	pawl_snapshot_file_end(&to);
}

/* A decoder with 21 positions, saved. */
static void
begin(void)
{
	begin_decoder();
	for (int i = 0; i < N_TOKENS; i++)
		tokens[i] = pawl_test_token(1, i);
	pawl_test_prefill(decoder, 1, 0, N_CACHED);
	pawl_snapshot_file_init(&file);
	save(tokens, N_TOKENS);
}

static void
end(void)
{
	pawl_snapshot_file_release(&file);
	end_decoder();
}

static enum pawl_status
try_open(void)
{
	return pawl_snapshot_file_try(&file, &err);
}

static enum pawl_status
restore(struct pawl_decoder *to)
{
	struct pawl_kv_snapshot *snapshot;
	enum pawl_status status;

	OK(pawl_kv_snapshot_open(file.path, &snapshot, &err));
	status = pawl_decoder_restore(to, snapshot, &err);
	pawl_kv_snapshot_free(snapshot);
	return status;
}

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

START_TEST(what_does_not_fit_is_refused)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	static const struct {
		const char *what, *says;
		enum pawl_status status;
	} cases[] = {
		{"another model", "the snapshot is of another model: ", PAWL_INVALID_ARGUMENT},
		{"another type", "the snapshot is of a cache of f16, this one is of f32",
			PAWL_INVALID_ARGUMENT},
		{"another precision",
			"the snapshot was made with activations a16, these are a8",
			PAWL_INVALID_ARGUMENT},
		{"less room", "the snapshot holds 21 positions, the cache has room for 16",
			PAWL_CAPACITY},
		{"no fingerprint", "the model has no fingerprint", PAWL_UNSUPPORTED},
	};
	struct pawl_model_source source;
	struct pawl_tiny_model *twin;
	struct pawl_decoder *other;
	uint64_t digest;

	if (_i == 0)
		tiny.n_ff += 32;
	twin = _i == 0 ? pawl_tiny_model_new(&tiny) : pawl_tiny_model_twin(model, &tiny);
	if (_i == 1)
		options.kv_dtype = PAWL_DTYPE_F32;
	if (_i == 2)
		options.precision = PAWL_PRECISION_A8;
	if (_i == 3)
		options.capacity = 16;
	source = *pawl_tiny_model_source(twin);
	if (_i == 4)
		source.fingerprint = NULL;
	OK(pawl_decoder_new(&source, pawl_test_device(), &options, &other, &err));
	pawl_test_prefill(other, 2, 0, 10);
	digest = pawl_test_cache_digest(pawl_decoder_cache(other));
	ck_assert_int_eq(restore(other), cases[_i].status);
	ck_assert_msg(!strncmp(err.text, cases[_i].says, strlen(cases[_i].says)), "%s: %s",
		cases[_i].what, err.text);
	ck_assert_uint_eq(pawl_test_cache_digest(pawl_decoder_cache(other)), digest);
	pawl_decoder_free(other);
	pawl_tiny_model_free(twin);
}
END_TEST

/* Geometry, which a fingerprint of the weights alone does not hold. */
START_TEST(another_geometry_is_refused)
{
	static const struct pawl_kv_shape shapes[] = {
		{3, 2, 16, 64, PAWL_DTYPE_F16, {PAWL_LAYOUT_K16, PAWL_LAYOUT_ROWS}, {0}},
		{2, 4, 16, 64, PAWL_DTYPE_F16, {PAWL_LAYOUT_K16, PAWL_LAYOUT_ROWS}, {0}},
		{2, 2, 32, 64, PAWL_DTYPE_F16, {PAWL_LAYOUT_K16, PAWL_LAYOUT_ROWS}, {0}},
	};
	static const char *const says[] = {"the snapshot is of 2 layers, the cache has 3",
		"the snapshot is of 2 kv heads, the cache has 4",
		"the snapshot is of 16 elements a head, the cache has 32"};
	const struct pawl_model_source *source = pawl_tiny_model_source(model);
	const struct pawl_kv_identity identity = {
		source->fingerprint(source->ctx), options.precision};
	struct pawl_kv_snapshot *snapshot;
	struct pawl_kv_cache *cache;

	OK(pawl_kv_cache_with_capacity(
		pawl_decoder_context(decoder), &shapes[_i], &cache, &err));
	OK(pawl_kv_snapshot_open(file.path, &snapshot, &err));
	ck_assert_int_eq(pawl_kv_snapshot_restore(snapshot, &identity, cache, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, says[_i]);
	pawl_kv_snapshot_free(snapshot);
	pawl_kv_cache_free(cache);
	OK(pawl_kv_cache_with_dims(2, 2, 16, &cache, &err));
	OK(pawl_kv_snapshot_open(file.path, &snapshot, &err));
	ck_assert_int_eq(pawl_kv_snapshot_restore(snapshot, &identity, cache, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "the cache has no capacity");
	pawl_kv_snapshot_free(snapshot);
	pawl_kv_cache_free(cache);
}
END_TEST

START_TEST(truncated_files_are_refused)
{
	pawl_snapshot_file_truncate(&file, HEADER);
}
END_TEST

START_TEST(flipped_bits_are_found)
{
	pawl_snapshot_file_flip(&file, HEADER);
}
END_TEST

/* Puts the header, under its checksum, in front of the rest of n bytes. */
static void
write_with(struct pawl_kv_snapshot_header header, char *bytes, size_t n)
{
	header.checksum = pawl_kv_checksum(
		0, &header, offsetof(struct pawl_kv_snapshot_header, checksum));
	memcpy(bytes, &header, sizeof(header));
	pawl_snapshot_file_write(&file, bytes, n);
}

/* Headers that are whole but say what cannot be. */
START_TEST(absurd_sizes_are_refused)
{
	static const int64_t values[] = {0, -1, 1, INT64_MAX, INT64_MIN, INT64_C(1) << 32,
		INT64_C(1) << 60, (INT64_C(1) << 62) / 3};
	const size_t fields[] = {offsetof(struct pawl_kv_snapshot_header, n_layers),
		offsetof(struct pawl_kv_snapshot_header, n_kv_heads),
		offsetof(struct pawl_kv_snapshot_header, head_dim),
		offsetof(struct pawl_kv_snapshot_header, n_positions),
		offsetof(struct pawl_kv_snapshot_header, n_tokens)};
	struct pawl_kv_snapshot_header header, changed;
	size_t n;
	char *bytes = pawl_snapshot_file_read(&file, &n);
	uint64_t before = pawl_memory_allocations();

	memcpy(&header, bytes, sizeof(header));
	for (size_t f = 0; f < sizeof(fields) / sizeof(fields[0]); f++)
		for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
			changed = header;
			memcpy((char *)&changed + fields[f], &values[v], sizeof(int64_t));
			write_with(changed, bytes, n);
			ck_assert_msg(try_open() == PAWL_INVALID_FILE, "field %zu: %lld", f,
				(long long)values[v]);
			ck_assert_uint_eq(++before, pawl_memory_allocations());
		}
	changed = header;
	memcpy(changed.dtype, "f17", 4);
	write_with(changed, bytes, n);
	ck_assert_int_eq(try_open(), PAWL_INVALID_FILE);
	/* A name is padded with zeros, and nothing else. */
	changed = header;
	changed.dtype[sizeof(changed.dtype) - 2] = 'x';
	write_with(changed, bytes, n);
	ck_assert_int_eq(try_open(), PAWL_INVALID_FILE);
	changed = header;
	changed.precision[sizeof(changed.precision) - 2] = 'x';
	write_with(changed, bytes, n);
	ck_assert_int_eq(try_open(), PAWL_INVALID_FILE);
	write_with(header, bytes, n);
	OK(try_open());
	memset(changed.precision, 'x', sizeof(changed.precision));
	memcpy(changed.dtype, header.dtype, sizeof(header.dtype));
	write_with(changed, bytes, n);
	ck_assert_int_eq(try_open(), PAWL_INVALID_FILE);
	free(bytes);
}
END_TEST

START_TEST(reserved_fields_are_refused)
{
	struct pawl_kv_snapshot_header header, changed;
	const int n_fields = sizeof(header.reserved) / sizeof(header.reserved[0]);
	char wanted[200], *bytes;
	size_t n;

	bytes = pawl_snapshot_file_read(&file, &n);
	memcpy(&header, bytes, sizeof(header));
	for (int i = 0; i < n_fields; i++) {
		changed = header;
		changed.reserved[i] = UINT64_C(1) << 63;
		write_with(changed, bytes, n);
		ck_assert_int_eq(try_open(), PAWL_INVALID_FILE);
		snprintf(wanted, sizeof(wanted), "%s: reserved field %d of the header is not 0",
			file.path, i);
		ck_assert_str_eq(err.text, wanted);
	}
	changed = header;
	changed.kind = PAWL_N_KV_SNAPSHOT_KINDS;
	write_with(changed, bytes, n);
	ck_assert_int_eq(try_open(), PAWL_INVALID_FILE);
	snprintf(wanted, sizeof(wanted), "%s: a snapshot of kind 3, which is none", file.path);
	ck_assert_str_eq(err.text, wanted);
	write_with(header, bytes, n);
	ck_assert_int_eq(try_open(), PAWL_OK);
	free(bytes);
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

START_TEST(what_is_no_file)
{
	unlink(file.path);
	ck_assert_int_eq(try_open(), PAWL_ENVIRONMENT);
	ck_assert_int_eq(mkfifo(file.path, 0600), 0);
	ck_assert_int_eq(try_open(), PAWL_INVALID_FILE);
	unlink(file.path);
	ck_assert_int_eq(mkdir(file.path, 0700), 0);
	ck_assert_int_eq(try_open(), PAWL_INVALID_FILE);
	rmdir(file.path);
	pawl_snapshot_file_write(&file, "hello", 5);
	ck_assert_int_eq(try_open(), PAWL_INVALID_FILE);
}
END_TEST

Suite *
pawl_kv_snapshot_suite(void)
{
	Suite *suite = suite_create("kv_snapshot");
	TCase *tests = tcase_create("kv_snapshot");

	tcase_add_checked_fixture(tests, begin, end);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, a_snapshot_tells_what_it_holds);
	tcase_add_loop_test(tests, restored_equals_never_saved, 0, 8);
	tcase_add_test(tests, a_shorter_history_is_restored_too);
	tcase_add_loop_test(tests, what_does_not_fit_is_refused, 0, 5);
	tcase_add_loop_test(tests, another_geometry_is_refused, 0, 3);
	tcase_add_test(tests, truncated_files_are_refused);
	tcase_add_test(tests, flipped_bits_are_found);
	tcase_add_test(tests, absurd_sizes_are_refused);
	tcase_add_test(tests, reserved_fields_are_refused);
	tcase_add_test(tests, layers_without_positions_cost_nothing);
	tcase_add_test(tests, a_file_that_takes_no_more);
	tcase_add_test(tests, a_save_that_fails);
	tcase_add_test(tests, a_restore_that_fails_changes_nothing);
	tcase_add_test(tests, what_is_no_file);
	suite_add_tcase(suite, tests);
	return suite;
}

/* Snapshots that are refused, with nothing changed: of other caches, damaged, absurd. */
#include "runtime/kv_snapshot.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/memory.h"
#include "tests/decoder_fixture.h"
#include "tests/kv_snapshot_fixture.h"
#include "tests/snapshot_file.h"
#include "tests/suites.h"

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
pawl_kv_snapshot_bad_suite(void)
{
	Suite *suite = suite_create("kv_snapshot_bad");
	TCase *tests = tcase_create("kv_snapshot_bad");

	tcase_add_checked_fixture(tests, begin_snapshot, end_snapshot);
	tcase_set_timeout(tests, 60);
	tcase_add_loop_test(tests, what_does_not_fit_is_refused, 0, 5);
	tcase_add_loop_test(tests, another_geometry_is_refused, 0, 3);
	tcase_add_test(tests, truncated_files_are_refused);
	tcase_add_test(tests, flipped_bits_are_found);
	tcase_add_test(tests, absurd_sizes_are_refused);
	tcase_add_test(tests, reserved_fields_are_refused);
	tcase_add_test(tests, what_is_no_file);
	suite_add_tcase(suite, tests);
	return suite;
}

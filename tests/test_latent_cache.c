/* Caches of latents: what the contiguous cache is asked in test_kv_cache.c. */
#include "runtime/latent_kv_cache.h"

#include <string.h>

#include "runtime/inference_context.h"
#include "runtime/memory.h"
#include "tests/latent_cache_fixture.h"
#include "tests/suites.h"

START_TEST(one_realize_makes_all_slots)
{
	static const struct pawl_latent_trailing trailing[] = {
		{1, {5}}, {2, {3, 7}}, {4, {2, 1, 3, 2}}, {1, {1}}};
	const struct pawl_counters *counters = pawl_inference_context_counters(context);
	struct pawl_latent_kv_cache *cache;
	int64_t bytes = 0;

	shape.n_slots = 4;
	shape.n_layers = 3;
	shape.max_seq_len = 50;
	memcpy(shape.trailing, trailing, sizeof(trailing));
	cache = new_cache();
	ck_assert_uint_eq(counters->optimizes, 1);
	ck_assert_uint_eq(counters->runs, 1);
	ck_assert_int_eq(pawl_latent_kv_cache_len(cache), 0);
	ck_assert(pawl_location_equal(pawl_latent_kv_cache_location(cache), PAWL_LOCATION_HOST));
	for (int32_t i = 0; i < 12; i++) {
		const struct pawl_kv_tensor *slot =
			pawl_latent_kv_cache_slot(cache, i / 4, i % 4);
		const struct pawl_type type = pawl_latent_shape_type(&shape, i % 4);
		const struct pawl_storage *storage = slot->storage;

		ck_assert_int_eq(type.rank, 1 + trailing[i % 4].rank);
		ck_assert_int_eq(type.dim[0].base, 50);
		ck_assert_int_eq(type.dim[1].base, trailing[i % 4].dims[0]);
		ck_assert(pawl_type_equal(&storage->type, &type));
		for (int64_t b = 0; b < storage->n_bytes; b++)
			ck_assert_int_eq(((const char *)storage->bytes)[b], 0);
		ck_assert_uint_eq(slot->version, 0);
		ck_assert_int_eq(slot->authority.authority, PAWL_AUTHORITY_HOST);
		for (int32_t j = 0; j < i; j++)
			ck_assert(!pawl_storage_overlaps(storage,
				pawl_latent_kv_cache_storage(cache, j / 4, j % 4)));
		bytes += storage->n_bytes;
	}
	ck_assert_int_eq(pawl_latent_shape_bytes(&shape), bytes);
	ck_assert_int_eq(bytes, 3 * 50 * (5 + 21 + 12 + 1) * 2);
	pawl_latent_kv_cache_free(cache);
}
END_TEST

static const struct {
	const char *says;
	struct pawl_latent_shape shape;
} bad_shapes[] = {
	{"a latent cache of 0 layers and 8 positions has no content",
		{0, 1, 8, PAWL_DTYPE_F32, {{1, {4}}}}},
	{"a latent cache of -1 layers", {-1, 1, 8, PAWL_DTYPE_F32, {{1, {4}}}}},
	{"a latent cache of 1 layers and 0 positions", {1, 1, 0, PAWL_DTYPE_F32, {{1, {4}}}}},
	{"a latent cache of 1 layers and -9 positions", {1, 1, -9, PAWL_DTYPE_F32, {{1, {4}}}}},
	{"a latent cache of 0 slots; 1 to 4 are possible", {1, 0, 8, PAWL_DTYPE_F32, {{1, {4}}}}},
	{"a latent cache of 5 slots", {1, 5, 8, PAWL_DTYPE_F32, {{1, {4}}}}},
	{"slot 1 has 0 dims behind the position; 1 to 4 are possible",
		{1, 2, 8, PAWL_DTYPE_F32, {{1, {4}}, {0, {0}}}}},
	{"slot 0 has 5 dims", {1, 1, 8, PAWL_DTYPE_F32, {{5, {1, 1, 1, 1}}}}},
	{"slot 0 has 0 elements along dim 2", {1, 1, 8, PAWL_DTYPE_F32, {{2, {3, 0}}}}},
	{"dtype is 77, not in 0 .. ", {1, 1, 8, (enum pawl_dtype)77, {{1, {4}}}}},
	{"dtype is ", {1, 1, 8, (enum pawl_dtype)-1, {{1, {4}}}}},
	{"a latent cache is f16, bf16 or f32, not i32", {1, 1, 8, PAWL_DTYPE_I32, {{1, {4}}}}},
	{"a latent cache of 9223372036854775807 positions is larger than memory can be",
		{1, 1, INT64_MAX, PAWL_DTYPE_F32, {{1, {4}}}}},
	{"a latent cache of 8 positions is larger",
		{1, 1, 8, PAWL_DTYPE_F32, {{2, {INT64_MAX, INT64_MAX}}}}},
	{"a latent cache of 8 positions is larger",
		{INT32_MAX, 4, 8, PAWL_DTYPE_F32, {{1, {4}}, {1, {4}}, {1, {4}}, {1, {4}}}}},
};

START_TEST(sizes_that_hold_nothing)
{
	struct pawl_latent_kv_cache *cache = NULL;

	ck_assert_int_eq(pawl_latent_kv_cache_with_capacity(
				 context, &bad_shapes[_i].shape, &cache, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_msg(!strncmp(err.text, bad_shapes[_i].says, strlen(bad_shapes[_i].says)), "%s",
		err.text);
	ck_assert_ptr_null(cache);
	ck_assert_uint_eq(pawl_inference_context_counters(context)->runs, 0);
}
END_TEST

START_TEST(more_than_memory_holds)
{
	struct pawl_latent_kv_cache *cache = NULL;
	enum pawl_status status = PAWL_OUT_OF_MEMORY;
	int n = 0;

	shape.max_seq_len = (int64_t)1 << 36;
	ck_assert_int_eq(pawl_latent_kv_cache_with_capacity(context, &shape, &cache, &err),
		PAWL_OUT_OF_MEMORY);
	ck_assert_ptr_nonnull(strstr(
		err.text, "a latent cache of 6597069766656 bytes (2 layers, 68719476736 positions)"));
	shape.max_seq_len = (int64_t)1 << 37;
	ck_assert_int_eq(pawl_latent_kv_cache_with_capacity(context, &shape, &cache, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_ptr_nonnull(strstr(err.text, "a latent cache of 137438953472 positions: "));
	shape.max_seq_len = CAPACITY;
	for (; status == PAWL_OUT_OF_MEMORY; n++) {
		ck_assert_ptr_null(cache);
		pawl_memory_fail_after(n);
		status = pawl_latent_kv_cache_with_capacity(context, &shape, &cache, &err);
		pawl_memory_fail_after(-1);
	}
	ck_assert_int_eq(status, PAWL_OK);
	ck_assert_int_gt(n, 10);
	pawl_latent_kv_cache_free(cache);
}
END_TEST

static uint64_t
version(const struct pawl_latent_kv_cache *cache, int32_t layer, int32_t slot)
{
	return pawl_latent_kv_cache_slot(cache, layer, slot)->version;
}

START_TEST(advance_and_versions)
{
	struct pawl_latent_kv_cache *cache = new_cache();

	OK(pawl_latent_kv_cache_check_room(cache, CAPACITY, &err));
	ck_assert_int_eq(
		pawl_latent_kv_cache_check_room(cache, CAPACITY + 1, &err), PAWL_CAPACITY);
	pawl_latent_kv_cache_advance(cache, 40);
	ck_assert_int_eq(pawl_latent_kv_cache_len(cache), 40);
	OK(pawl_latent_kv_cache_check_room(cache, 8, &err));
	ck_assert_int_eq(pawl_latent_kv_cache_check_room(cache, 9, &err), PAWL_CAPACITY);
	ck_assert_str_eq(err.text, "9 more positions do not fit: 40 of 48 are in use");
	ck_assert_int_eq(pawl_latent_kv_cache_check_room(cache, INT64_MAX, &err), PAWL_CAPACITY);
	ck_assert_int_eq(pawl_latent_kv_cache_check_room(cache, -1, &err), PAWL_CAPACITY);
	/* One step a forward, not one a token. */
	for (int32_t i = 0; i < 4; i++)
		ck_assert_uint_eq(version(cache, i / 2, i % 2), 1);
	pawl_latent_kv_cache_bump(cache, 1, 0);
	ck_assert_uint_eq(version(cache, 1, 0), 2);
	ck_assert_uint_eq(version(cache, 1, 1), 1);
	pawl_latent_kv_cache_bump(cache, 2, 0);
	pawl_latent_kv_cache_bump(cache, -1, 0);
	pawl_latent_kv_cache_bump(cache, 0, 2);
	pawl_latent_kv_cache_bump(cache, 0, -1);
	ck_assert_ptr_null(pawl_latent_kv_cache_slot(cache, 2, 0));
	ck_assert_ptr_null(pawl_latent_kv_cache_slot(cache, 0, 2));
	ck_assert_ptr_null(pawl_latent_kv_cache_storage(cache, 0, -1));
	pawl_latent_kv_cache_free(cache);
}
END_TEST

START_TEST(truncate_keeps_storage_and_records_the_cut)
{
	struct pawl_latent_kv_cache *cache = new_cache();
	struct pawl_storage *first = pawl_latent_kv_cache_storage(cache, 0, 0);
	uint64_t id = pawl_latent_kv_cache_alloc_id(cache).value;

	pawl_latent_kv_cache_advance(cache, 10);
	pawl_latent_kv_cache_truncate_to(cache, 10);
	pawl_latent_kv_cache_truncate_to(cache, 11);
	pawl_latent_kv_cache_truncate_to(cache, -1);
	ck_assert_int_eq(pawl_latent_kv_cache_len(cache), 10);
	ck_assert_uint_eq(version(cache, 0, 0), 1);
	pawl_latent_kv_cache_truncate_to(cache, 9);
	ck_assert_int_eq(pawl_latent_kv_cache_len(cache), 9);
	ck_assert_uint_eq(version(cache, 0, 0), 2);
	ck_assert_uint_eq(pawl_latent_kv_cache_alloc_id(cache).value, id);
	ck_assert_ptr_eq(pawl_latent_kv_cache_storage(cache, 0, 0), first);
	pawl_latent_kv_cache_free(cache);
}
END_TEST

START_TEST(clear_gives_up_capacity_too)
{
	struct pawl_latent_kv_cache *cache = new_cache(), *other = new_cache();
	uint64_t id = pawl_latent_kv_cache_alloc_id(other).value;

	ck_assert_uint_gt(id, pawl_latent_kv_cache_alloc_id(cache).value);
	pawl_latent_kv_cache_advance(cache, 10);
	pawl_latent_kv_cache_clear(cache);
	ck_assert_int_eq(pawl_latent_kv_cache_len(cache), 0);
	ck_assert_int_eq(pawl_latent_kv_cache_shape(cache)->max_seq_len, 0);
	ck_assert_int_eq(pawl_latent_shape_bytes(pawl_latent_kv_cache_shape(cache)), -1);
	ck_assert_int_eq(pawl_latent_kv_cache_check_room(cache, 1, &err), PAWL_CAPACITY);
	ck_assert_uint_gt(pawl_latent_kv_cache_alloc_id(cache).value, id);
	/* Geometry and location stay, as is not so for the other kind. */
	ck_assert_int_eq(pawl_latent_kv_cache_shape(cache)->n_slots, 2);
	ck_assert_int_eq(pawl_latent_kv_cache_shape(cache)->trailing[1].dims[0], ROPE);
	ck_assert(pawl_location_equal(pawl_latent_kv_cache_location(cache), PAWL_LOCATION_HOST));
	ck_assert_ptr_null(pawl_latent_kv_cache_storage(cache, 0, 0));
	pawl_latent_kv_cache_bump(cache, 0, 0);
	ck_assert_uint_eq(version(cache, 0, 0), 0);
	pawl_latent_kv_cache_free(cache);
	pawl_latent_kv_cache_free(other);
}
END_TEST

Suite *
pawl_latent_cache_suite(void)
{
	Suite *suite = suite_create("latent_cache");
	TCase *tests = tcase_create("cache");

	tcase_add_checked_fixture(tests, begin_shape, end_shape);
	tcase_add_test(tests, one_realize_makes_all_slots);
	tcase_add_loop_test(tests, sizes_that_hold_nothing, 0,
		(int)(sizeof(bad_shapes) / sizeof(bad_shapes[0])));
	tcase_add_test(tests, more_than_memory_holds);
	tcase_add_test(tests, advance_and_versions);
	tcase_add_test(tests, truncate_keeps_storage_and_records_the_cut);
	tcase_add_test(tests, clear_gives_up_capacity_too);
	suite_add_tcase(suite, tests);
	return suite;
}

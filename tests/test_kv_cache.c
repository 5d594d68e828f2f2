#include "runtime/kv_cache.h"

#include "runtime/inference_context.h"
#include "runtime/kv_over.h"
#include "tests/decoding.h"
#include "tests/suites.h"

#include <string.h>

static struct pawl_inference_context *context;
static struct pawl_kv_shape shape;
static struct pawl_error err;

static void
begin(void)
{
	ck_assert_int_eq(
		pawl_inference_context_new(pawl_test_device(), 1, &context, &err), PAWL_OK);
	shape = (struct pawl_kv_shape){
		.n_layers = 3,
		.n_kv_heads = 2,
		.head_dim = 8,
		.max_seq_len = 50,
		.dtype = PAWL_DTYPE_F16,
		.layout = {PAWL_LAYOUT_K16, PAWL_LAYOUT_ROWS},
	};
}

static void
end(void)
{
	pawl_inference_context_free(context);
}

static struct pawl_kv_cache *
make(void)
{
	struct pawl_kv_cache *cache;

	ck_assert_int_eq(pawl_kv_cache_with_capacity(context, &shape, &cache, &err), PAWL_OK);
	return cache;
}

static struct pawl_kv_layer_id
id_of(int32_t layer, enum pawl_kv_slot slot)
{
	return (struct pawl_kv_layer_id){layer, slot};
}

START_TEST(one_realize_makes_all_layers)
{
	struct pawl_kv_cache *cache = make();
	const struct pawl_counters *counters = pawl_inference_context_counters(context);
	struct pawl_kv_shape made = *pawl_kv_cache_shape(cache);

	ck_assert_uint_eq(counters->optimizes, 1);
	ck_assert_uint_eq(counters->runs, 1);
	ck_assert_int_eq(made.max_seq_len, 64);
	ck_assert_int_eq(pawl_kv_cache_len(cache), 0);
	ck_assert_int_eq(pawl_kv_shape_bytes(&made), 3 * 2 * 2 * 64 * 8 * 2);
	ck_assert(pawl_location_equal(pawl_kv_cache_location(cache), PAWL_LOCATION_HOST));
	for (int32_t i = 0; i < 3; i++) {
		const struct pawl_kv_tensor *layer = pawl_kv_cache_layer(cache, i);

		for (int slot = 0; slot < PAWL_N_KV_SLOTS; slot++) {
			struct pawl_type type = pawl_kv_shape_type(&made, 0, (enum pawl_kv_slot)slot);
			const struct pawl_storage *storage = layer[slot].storage;
			int64_t n_zero = 0;

			ck_assert(pawl_type_equal(&storage->type, &type));
			ck_assert_int_eq(storage->n_bytes, 2 * 64 * 8 * 2);
			for (int64_t b = 0; b < storage->n_bytes; b++)
				n_zero += ((const char *)storage->bytes)[b] == 0;
			ck_assert_int_eq(n_zero, storage->n_bytes);
			ck_assert_uint_eq(layer[slot].version, 0);
			ck_assert_int_eq(layer[slot].authority.authority, PAWL_AUTHORITY_HOST);
			for (int32_t j = 0; j < 2 * i + slot; j++) {
				struct pawl_kv_layer_id before =
					id_of(j / 2, (enum pawl_kv_slot)(j % 2));

				ck_assert(!pawl_storage_overlaps(
					storage, pawl_kv_cache_storage(cache, before)));
			}
		}
	}
	pawl_kv_cache_free(cache);
}
END_TEST

START_TEST(sizes_that_hold_nothing)
{
	struct pawl_kv_cache *cache = NULL;
	struct pawl_kv_shape good = shape;

	shape.n_layers = 0;
	ck_assert_int_eq(
		pawl_kv_cache_with_capacity(context, &shape, &cache, &err), PAWL_INVALID_ARGUMENT);
	shape = good;
	shape.n_kv_heads = 0;
	ck_assert_int_eq(
		pawl_kv_cache_with_capacity(context, &shape, &cache, &err), PAWL_INVALID_ARGUMENT);
	shape = good;
	shape.head_dim = -1;
	ck_assert_int_eq(
		pawl_kv_cache_with_capacity(context, &shape, &cache, &err), PAWL_INVALID_ARGUMENT);
	shape = good;
	shape.max_seq_len = 0;
	ck_assert_int_eq(
		pawl_kv_cache_with_capacity(context, &shape, &cache, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "a cache of 0 positions has no content");
	shape.max_seq_len = INT64_MAX;
	ck_assert_int_eq(
		pawl_kv_cache_with_capacity(context, &shape, &cache, &err), PAWL_INVALID_ARGUMENT);
	shape.max_seq_len = INT64_MAX / 64 / 16;
	ck_assert_int_eq(
		pawl_kv_cache_with_capacity(context, &shape, &cache, &err), PAWL_INVALID_ARGUMENT);
	shape = good;
	shape.layout[PAWL_KV_K] = PAWL_LAYOUT_TILE16;
	ck_assert_int_eq(
		pawl_kv_cache_with_capacity(context, &shape, &cache, &err), PAWL_INVALID_ARGUMENT);
	shape.layout[PAWL_KV_K] = (enum pawl_layout)77;
	ck_assert_int_eq(
		pawl_kv_cache_with_capacity(context, &shape, &cache, &err), PAWL_INVALID_ARGUMENT);
	shape = good;
	shape.dtype = (enum pawl_dtype)77;
	ck_assert_int_eq(
		pawl_kv_cache_with_capacity(context, &shape, &cache, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_msg(!strncmp(err.text, "dtype is 77, not in 0 ..", 24), "%s", err.text);
	ck_assert_ptr_null(cache);
	ck_assert_uint_eq(pawl_inference_context_counters(context)->runs, 0);
}
END_TEST

START_TEST(more_than_memory_holds)
{
	struct pawl_kv_cache *cache = NULL;

	shape.max_seq_len = (int64_t)1 << 36;
	ck_assert_int_eq(
		pawl_kv_cache_with_capacity(context, &shape, &cache, &err), PAWL_OUT_OF_MEMORY);
	ck_assert_ptr_nonnull(strstr(
		err.text, "a cache of 13194139533312 bytes (3 layers, 68719476736 positions)"));
	ck_assert_ptr_null(cache);
}
END_TEST

START_TEST(advance_and_versions)
{
	struct pawl_kv_cache *cache = make();

	ck_assert_int_eq(pawl_kv_cache_check_room(cache, 64, &err), PAWL_OK);
	ck_assert_int_eq(pawl_kv_cache_check_room(cache, 65, &err), PAWL_CAPACITY);
	pawl_kv_cache_advance(cache, 60);
	ck_assert_int_eq(pawl_kv_cache_len(cache), 60);
	ck_assert_int_eq(pawl_kv_cache_check_room(cache, 4, &err), PAWL_OK);
	ck_assert_int_eq(pawl_kv_cache_check_room(cache, 5, &err), PAWL_CAPACITY);
	ck_assert_str_eq(err.text, "5 more positions do not fit: 60 of 64 are in use");
	ck_assert_int_eq(pawl_kv_cache_check_room(cache, INT64_MAX, &err), PAWL_CAPACITY);
	/* One step a forward, not one a token. */
	for (int32_t i = 0; i < 3; i++)
		ck_assert_uint_eq(pawl_kv_cache_layer(cache, i)[PAWL_KV_V].version, 1);
	pawl_kv_cache_bump(cache, id_of(1, PAWL_KV_K));
	ck_assert_uint_eq(pawl_kv_cache_layer(cache, 1)[PAWL_KV_K].version, 2);
	ck_assert_uint_eq(pawl_kv_cache_layer(cache, 1)[PAWL_KV_V].version, 1);
	pawl_kv_cache_bump(cache, id_of(3, PAWL_KV_K));
	pawl_kv_cache_bump(cache, id_of(-1, PAWL_KV_K));
	ck_assert_ptr_null(pawl_kv_cache_layer(cache, 3));
	ck_assert_ptr_null(pawl_kv_cache_storage(cache, id_of(3, PAWL_KV_K)));
	pawl_kv_cache_free(cache);
}
END_TEST

START_TEST(truncate_keeps_storage_and_records_the_cut)
{
	struct pawl_kv_cache *cache = make();
	struct pawl_storage *k = pawl_kv_cache_storage(cache, id_of(0, PAWL_KV_K));
	uint64_t id = pawl_kv_cache_alloc_id(cache).value;

	pawl_kv_cache_advance(cache, 10);
	pawl_kv_cache_truncate_to(cache, 10);
	pawl_kv_cache_truncate_to(cache, 11);
	pawl_kv_cache_truncate_to(cache, -1);
	ck_assert_int_eq(pawl_kv_cache_len(cache), 10);
	ck_assert_uint_eq(pawl_kv_cache_layer(cache, 0)[PAWL_KV_K].version, 1);
	pawl_kv_cache_truncate_to(cache, 9);
	ck_assert_int_eq(pawl_kv_cache_len(cache), 9);
	ck_assert_uint_eq(pawl_kv_cache_layer(cache, 0)[PAWL_KV_K].version, 2);
	ck_assert_uint_eq(pawl_kv_cache_alloc_id(cache).value, id);
	ck_assert_ptr_eq(pawl_kv_cache_storage(cache, id_of(0, PAWL_KV_K)), k);
	pawl_kv_cache_free(cache);
}
END_TEST

START_TEST(clear_gives_up_capacity_too)
{
	struct pawl_kv_cache *cache = make();
	uint64_t id = pawl_kv_cache_alloc_id(cache).value;

	pawl_kv_cache_advance(cache, 10);
	pawl_kv_cache_clear(cache);
	ck_assert_int_eq(pawl_kv_cache_len(cache), 0);
	ck_assert_int_eq(pawl_kv_cache_shape(cache)->max_seq_len, 0);
	ck_assert_int_eq(pawl_kv_cache_check_room(cache, 1, &err), PAWL_CAPACITY);
	ck_assert_uint_gt(pawl_kv_cache_alloc_id(cache).value, id);
	ck_assert_int_eq(pawl_kv_cache_location(cache).space, PAWL_MEMORY_UNKNOWN);
	ck_assert_ptr_null(pawl_kv_cache_storage(cache, id_of(0, PAWL_KV_K)));
	pawl_kv_cache_bump(cache, id_of(0, PAWL_KV_K));
	ck_assert_uint_eq(pawl_kv_cache_layer(cache, 0)[PAWL_KV_K].version, 0);
	pawl_kv_cache_free(cache);
}
END_TEST

START_TEST(set_layer_mints_an_id_and_loses_residency)
{
	struct pawl_kv_cache *cache = make(), *other = make();
	struct pawl_storage *k = pawl_kv_cache_storage(other, id_of(2, PAWL_KV_K));
	struct pawl_storage *v = pawl_kv_cache_storage(other, id_of(2, PAWL_KV_V));
	uint64_t id = pawl_kv_cache_alloc_id(cache).value;

	ck_assert_uint_ne(pawl_kv_cache_alloc_id(other).value, id);
	ck_assert_int_eq(pawl_kv_cache_set_layer(cache, 3, k, v, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "layer 3 of a cache of 3 layers");
	ck_assert_uint_eq(pawl_kv_cache_alloc_id(cache).value, id);
	ck_assert_int_eq(pawl_kv_cache_set_layer(cache, 2, k, v, &err), PAWL_OK);
	ck_assert_uint_gt(pawl_kv_cache_alloc_id(cache).value, id);
	ck_assert_int_eq(pawl_kv_cache_location(cache).space, PAWL_MEMORY_UNKNOWN);
	pawl_kv_cache_free(other);
	ck_assert_ptr_eq(pawl_kv_cache_storage(cache, id_of(2, PAWL_KV_K)), k);
	ck_assert_int_eq(k->n_bytes, 2 * 64 * 8 * 2);
	/* The same storages again: the old ones are not freed in between. */
	ck_assert_int_eq(pawl_kv_cache_set_layer(cache, 2, k, v, &err), PAWL_OK);
	memset(k->bytes, 0, (size_t)k->n_bytes);
	pawl_kv_cache_free(cache);
}
END_TEST

START_TEST(layers_given_one_by_one)
{
	struct pawl_kv_cache *cache, *other = make();
	struct pawl_kv_shape made = *pawl_kv_cache_shape(other);

	ck_assert_int_eq(pawl_kv_cache_with_dims(0, 2, 8, &cache, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(pawl_kv_cache_with_dims(3, 2, 8, &cache, &err), PAWL_OK);
	ck_assert_int_eq(pawl_kv_cache_shape(cache)->max_seq_len, 0);
	for (int32_t i = 0; i < 3; i++) {
		ck_assert_int_eq(pawl_kv_cache_set_capacity(
					 cache, 64, PAWL_DTYPE_F16, PAWL_LAYOUT_K16, &err),
			PAWL_INVALID_ARGUMENT);
		ck_assert_ptr_nonnull(strstr(err.text, "has no storage"));
		pawl_kv_cache_set_layer(cache, i, pawl_kv_cache_storage(other, id_of(i, PAWL_KV_K)),
			pawl_kv_cache_storage(other, id_of(i, PAWL_KV_V)), &err);
	}
	ck_assert_int_eq(
		pawl_kv_cache_set_capacity(cache, 32, PAWL_DTYPE_F16, PAWL_LAYOUT_K16, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "layer 0 slot 0 has another type than is declared");
	ck_assert_int_eq(
		pawl_kv_cache_set_capacity(cache, 64, PAWL_DTYPE_F16, PAWL_LAYOUT_ROWS, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(pawl_kv_cache_shape(cache)->max_seq_len, 0);
	ck_assert_int_eq(
		pawl_kv_cache_set_capacity(cache, 64, PAWL_DTYPE_F16, PAWL_LAYOUT_K16, &err),
		PAWL_OK);
	ck_assert_int_eq(memcmp(pawl_kv_cache_shape(cache), &made, sizeof(made)), 0);
	pawl_kv_cache_free(cache);
	pawl_kv_cache_free(other);
}
END_TEST

/* Storages of somebody else: all of the shape, in one known place, apart from each other. */
START_TEST(a_cache_over_storages_that_are_lent)
{
	struct pawl_kv_cache *other = make(), *cache = NULL;
	const struct pawl_kv_shape made = *pawl_kv_cache_shape(other);
	struct pawl_storage *storages[6], *good, elsewhere;
	static const struct {
		int at;
		const char *text;
	} cases[] = {{2, "layer 1 slot 0 is missing"},
		{3, "layer 1 slot 1 has another type than its cache"},
		{4, "layer 2 slot 0 is not where the first is"},
		{5, "layer 2 slot 1 shares memory with layer 0 slot 1"}};

	for (int i = 0; i < 6; i++)
		storages[i] = pawl_kv_cache_storage(other, id_of(i / 2, (enum pawl_kv_slot)(i % 2)));
	for (int i = 0; i < 4; i++) {
		good = storages[cases[i].at];
		elsewhere = *good;
		elsewhere.location = PAWL_LOCATION_UNKNOWN;
		storages[cases[i].at] = i == 0 ? NULL : i == 1 ? storages[0] : i == 2 ? &elsewhere
										      : storages[1];
		ck_assert_int_eq(
			pawl_kv_cache_over(&made, storages, &cache, &err), PAWL_INVALID_ARGUMENT);
		ck_assert_str_eq(err.text, cases[i].text);
		storages[cases[i].at] = good;
	}
	ck_assert_ptr_null(cache);
	ck_assert_int_eq(pawl_kv_cache_over(&made, storages, &cache, &err), PAWL_OK);
	ck_assert(pawl_location_equal(pawl_kv_cache_location(cache), PAWL_LOCATION_HOST));
	ck_assert_uint_ne(pawl_kv_cache_alloc_id(cache).value, pawl_kv_cache_alloc_id(other).value);
	ck_assert_int_eq(pawl_kv_cache_len(cache), 0);
	pawl_kv_cache_free(other);
	ck_assert_ptr_eq(pawl_kv_cache_storage(cache, id_of(2, PAWL_KV_V)), storages[5]);
	memset(storages[5]->bytes, 0, (size_t)storages[5]->n_bytes);
	pawl_kv_cache_free(cache);
}
END_TEST

Suite *
pawl_kv_cache_suite(void)
{
	Suite *suite = suite_create("kv_cache");
	TCase *tcase = tcase_create("kv_cache");

	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, one_realize_makes_all_layers);
	tcase_add_test(tcase, sizes_that_hold_nothing);
	tcase_add_test(tcase, more_than_memory_holds);
	tcase_add_test(tcase, advance_and_versions);
	tcase_add_test(tcase, truncate_keeps_storage_and_records_the_cut);
	tcase_add_test(tcase, clear_gives_up_capacity_too);
	tcase_add_test(tcase, set_layer_mints_an_id_and_loses_residency);
	tcase_add_test(tcase, layers_given_one_by_one);
	tcase_add_test(tcase, a_cache_over_storages_that_are_lent);
	suite_add_tcase(suite, tcase);
	return suite;
}

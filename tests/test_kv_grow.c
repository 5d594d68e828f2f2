/* Caches that grow: content and logits stay. */
#include "runtime/kv_layout.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/inference_context.h"
#include "runtime/memory.h"
#include "tests/decoding.h"
#include "tests/kv_grow_fixture.h"
#include "tests/suites.h"

static struct pawl_kv_cache *
filled_cache(struct pawl_inference_context *context, const struct kind *kind, int64_t n)
{
	const struct pawl_kv_shape shape = {.n_layers = 3,
		.n_kv_heads = 2,
		.head_dim = pawl_dtype_is_blocked(kind->dtype) ? 64 : 8,
		.max_seq_len = 32,
		.dtype = kind->dtype,
		.layout = {kind->k_layout, PAWL_LAYOUT_ROWS}};
	struct pawl_kv_cache *cache;

	OK(pawl_kv_cache_with_capacity(context, &shape, &cache, &err));
	for (int32_t i = 0; i < 6; i++) {
		const struct pawl_storage *s = pawl_kv_cache_storage(
			cache, (struct pawl_kv_layer_id){i / 2, (enum pawl_kv_slot)(i % 2)});

		for (int64_t b = 0; b < s->n_bytes; b++)
			((unsigned char *)s->bytes)[b] = (unsigned char)(b * 7 + i * 13 + 1);
	}
	pawl_kv_cache_advance(cache, n);
	return cache;
}

/* Positions 0 .. n - 1 of a slot in logical order, malloc'ed. */
static void *
logical(const struct pawl_kv_cache *cache, int32_t i, int64_t n, size_t *n_bytes)
{
	const struct pawl_storage *s = pawl_kv_cache_storage(
		cache, (struct pawl_kv_layer_id){i / 2, (enum pawl_kv_slot)(i % 2)});
	const struct pawl_kv_planes planes = pawl_kv_planes_of(&s->type, 2);
	void *bytes;

	*n_bytes = (size_t)pawl_kv_logical_bytes(&planes, n);
	bytes = malloc(*n_bytes);
	ck_assert_ptr_nonnull(bytes);
	pawl_kv_read_positions(&planes, s->bytes, n, bytes);
	return bytes;
}

START_TEST(content_stays)
{
	const struct kind *kind = &kinds[_i / 3];
	const int64_t n = (const int64_t[]){0, 21, 32}[_i % 3];
	struct pawl_inference_context *context;
	struct pawl_kv_cache *cache;
	struct pawl_kv_alloc_id before;
	const struct pawl_counters *counters;
	void *kept[6], *now;
	size_t n_bytes;

	OK(pawl_inference_context_new(pawl_test_device(), 1, &context, &err));
	cache = filled_cache(context, kind, n);
	for (int32_t i = 0; i < 6; i++)
		kept[i] = logical(cache, i, n, &n_bytes);
	before = pawl_kv_cache_alloc_id(cache);
	OK(pawl_kv_cache_reserve(cache, 32, &err));
	ck_assert_uint_eq(pawl_kv_cache_alloc_id(cache).value, before.value);
	OK(pawl_kv_cache_reserve(cache, 100, &err));
	ck_assert_uint_gt(pawl_kv_cache_alloc_id(cache).value, before.value);
	ck_assert_int_eq(pawl_kv_cache_shape(cache)->max_seq_len, 112);
	ck_assert_int_eq(pawl_kv_cache_len(cache), n);
	ck_assert(pawl_location_equal(pawl_kv_cache_location(cache), PAWL_LOCATION_HOST));
	for (int32_t i = 0; i < 6; i++) {
		const struct pawl_kv_tensor *layer = pawl_kv_cache_layer(cache, i / 2);

		ck_assert_uint_eq(layer[i % 2].version, 1);
		now = logical(cache, i, n, &n_bytes);
		ck_assert(!n || !memcmp(now, kept[i], n_bytes));
		free(now);
		free(kept[i]);
		/* What lies beyond is zero, or with K16 the rest of a group. */
		now = logical(cache, i, 112, &n_bytes);
		for (int64_t head = 0; head < 2; head++) {
			size_t plane = n_bytes / 2;
			size_t from = plane / 112 * (size_t)((n + 15) / 16 * 16);

			for (size_t b = from; b < plane; b++)
				ck_assert_int_eq(
					((char *)now)[(size_t)head * plane + b], 0);
		}
		free(now);
	}
	counters = pawl_inference_context_counters(context);
	ck_assert_uint_eq(counters->optimizes, 1);
	ck_assert_uint_eq(counters->runs, 1);
	pawl_kv_cache_free(cache);
	pawl_inference_context_free(context);
}
END_TEST

START_TEST(logical_order_is_of_no_layout)
{
	static const int64_t dims[] = {1, 3, 48, 8};
	struct pawl_type type = pawl_type_make(PAWL_DTYPE_F16, 4, dims);
	struct pawl_kv_planes rows = pawl_kv_planes_of(&type, 2), woven;
	uint16_t in[3 * 20 * 8], out[3 * 20 * 8], memory[3 * 48 * 8] = {0};

	type.layout = PAWL_LAYOUT_K16;
	woven = pawl_kv_planes_of(&type, 2);
	for (int i = 0; i < 3 * 20 * 8; i++)
		in[i] = (uint16_t)(i + 1);
	pawl_kv_write_positions(&woven, memory, 20, in);
	/* Element 3 of position 17 of head 2, as passes/step.h says. */
	ck_assert_int_eq(memory[2 * 48 * 8 + (1 * 8 + 3) * 16 + 1], in[(2 * 20 + 17) * 8 + 3]);
	pawl_kv_read_positions(&woven, memory, 20, out);
	ck_assert(!memcmp(in, out, sizeof(in)));
	memset(memory, 0, sizeof(memory));
	pawl_kv_write_positions(&rows, memory, 20, in);
	ck_assert_int_eq(memory[(2 * 48 + 17) * 8 + 3], in[(2 * 20 + 17) * 8 + 3]);
	pawl_kv_read_positions(&rows, memory, 20, out);
	ck_assert(!memcmp(in, out, sizeof(in)));
}
END_TEST

START_TEST(growth_that_fails_changes_nothing)
{
	struct pawl_inference_context *context;
	struct pawl_kv_cache *cache, *empty;
	struct pawl_storage *foreign;
	struct pawl_type type;
	enum pawl_status status = PAWL_OUT_OF_MEMORY;
	uint64_t digest;
	char byte[1 << 14];
	int n = 0;

	OK(pawl_inference_context_new(pawl_test_device(), 1, &context, &err));
	cache = filled_cache(context, &kinds[0], 20);
	digest = pawl_test_cache_digest(cache);
	for (; status == PAWL_OUT_OF_MEMORY; n++) {
		ck_assert_uint_eq(pawl_test_cache_digest(cache), digest);
		pawl_memory_fail_after(n);
		status = pawl_kv_cache_reserve(cache, 100, &err);
		pawl_memory_fail_after(-1);
	}
	ck_assert_int_eq(status, PAWL_OK);
	/* The list, and for each of 6 storages itself and its bytes. */
	ck_assert_int_eq(n - 1, 1 + 6 * 2);
	digest = pawl_test_cache_digest(cache);
	ck_assert_int_eq(pawl_kv_cache_reserve(cache, INT64_MAX, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(
		pawl_kv_cache_reserve(cache, INT64_MAX / 64, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(
		pawl_kv_cache_reserve(cache, INT64_C(1) << 48, &err), PAWL_OUT_OF_MEMORY);
	ck_assert_int_eq(pawl_kv_cache_reserve(cache, -5, &err), PAWL_OK);
	ck_assert_uint_eq(pawl_test_cache_digest(cache), digest);
	/* Nor does it when a layer is missing, or of another shape. */
	OK(pawl_kv_cache_set_layer(cache, 1, NULL, NULL, &err));
	ck_assert_int_eq(pawl_kv_cache_reserve(cache, 200, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "layer 1 slot 0 is not of the shape of its cache");
	OK(pawl_kv_cache_with_dims(1, 2, 8, &empty, &err));
	ck_assert_int_eq(pawl_kv_cache_reserve(empty, 32, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "the cache has no capacity");
	type = pawl_type_make(PAWL_DTYPE_F16, 4, (const int64_t[]){1, 2, 32, 8});
	OK(pawl_storage_wrap(&type, (struct pawl_location){PAWL_MEMORY_CUDA, 0}, byte, sizeof(byte),
		NULL, NULL, &foreign, &err));
	OK(pawl_kv_cache_set_layer(empty, 0, foreign, foreign, &err));
	OK(pawl_kv_cache_set_capacity(empty, 32, PAWL_DTYPE_F16, PAWL_LAYOUT_ROWS, &err));
	ck_assert_int_eq(pawl_kv_cache_reserve(empty, 64, &err), PAWL_UNSUPPORTED);
	ck_assert_str_eq(err.text, "layer 0 slot 0 is not in host memory");
	pawl_storage_unref(foreign);
	pawl_kv_cache_free(empty);
	pawl_kv_cache_free(cache);
	pawl_inference_context_free(context);
}
END_TEST

/* Layers of `to` positions with the content that the cache has, given one by one. */
static void
replace_layers(struct pawl_kv_cache *cache, int64_t to)
{
	struct pawl_kv_shape shape = *pawl_kv_cache_shape(cache);
	int64_t n = pawl_kv_cache_len(cache);

	shape.max_seq_len = to;
	for (int32_t i = 0; i < shape.n_layers; i++) {
		struct pawl_storage *storages[2];

		for (int slot = 0; slot < 2; slot++) {
			const struct pawl_type type =
				pawl_kv_shape_type(&shape, 0, (enum pawl_kv_slot)slot);
			const struct pawl_kv_planes planes = pawl_kv_planes_of(&type, 2);
			size_t n_bytes;
			void *bytes;

			OK(pawl_storage_new(&type, &storages[slot], &err));
			if (!n)
				continue;
			bytes = logical(cache, i * 2 + slot, n, &n_bytes);
			pawl_kv_write_positions(&planes, storages[slot]->bytes, n, bytes);
			free(bytes);
		}
		OK(pawl_kv_cache_set_layer(cache, i, storages[0], storages[1], &err));
		pawl_storage_unref(storages[0]);
		pawl_storage_unref(storages[1]);
	}
	OK(pawl_kv_cache_set_capacity(cache, to, shape.dtype, shape.layout[0], &err));
}

START_TEST(growing_by_replacement_equals_capacity)
{
	struct pawl_tiny_model *model = model_of(&kinds[_i], false);
	struct pawl_decoder_options options = options_of(&kinds[_i], 32);
	struct pawl_decoder *by_hand = pawl_test_decoder(model, &options), *whole;
	const struct pawl_kv_shape *shape = pawl_kv_cache_shape(pawl_decoder_cache(by_hand));
	struct pawl_kv_cache *cache;
	struct pawl_decoder_stats stats;

	options.capacity = 96;
	whole = pawl_test_decoder(model, &options);
	OK(pawl_kv_cache_with_dims(
		shape->n_layers, shape->n_kv_heads, shape->head_dim, &cache, &err));
	for (int32_t i = 0; i < shape->n_layers; i++) {
		struct pawl_kv_shape first = *shape;
		struct pawl_storage *storages[2];

		first.max_seq_len = 16;
		for (int slot = 0; slot < 2; slot++) {
			struct pawl_type type =
				pawl_kv_shape_type(&first, 0, (enum pawl_kv_slot)slot);

			OK(pawl_storage_new(&type, &storages[slot], &err));
		}
		OK(pawl_kv_cache_set_layer(cache, i, storages[0], storages[1], &err));
		pawl_storage_unref(storages[0]);
		pawl_storage_unref(storages[1]);
	}
	OK(pawl_kv_cache_set_capacity(
		cache, 16, shape->dtype, shape->layout[0], &err));
	pawl_decoder_swap_cache(by_hand, &cache);
	for (int i = 0; i < 80; i++) {
		if (i && i % 16 == 0)
			replace_layers(pawl_decoder_cache(by_hand), i + 16);
		ck_assert_msg(pawl_test_same(by_hand, pawl_test_step(by_hand, 3, i),
				      pawl_test_step(whole, 3, i)),
			"token %d", i);
	}
	stats = stats_of(by_hand);
	ck_assert_uint_eq(stats.counters.regrows, 4);
	ck_assert_uint_eq(pawl_counters_rebuilds(&stats.counters), 0);
	pawl_kv_cache_free(cache);
	pawl_decoder_free(by_hand);
	pawl_decoder_free(whole);
	pawl_tiny_model_free(model);
}
END_TEST

Suite *
pawl_kv_grow_suite(void)
{
	Suite *suite = suite_create("kv_grow");
	TCase *tests = tcase_create("kv_grow");

	tcase_set_timeout(tests, 60);
	tcase_add_loop_test(tests, content_stays, 0, 3 * N_KINDS);
	tcase_add_test(tests, logical_order_is_of_no_layout);
	tcase_add_test(tests, growth_that_fails_changes_nothing);
#ifdef PAWL_HAVE_LLVM
#endif
	tcase_add_loop_test(tests, growing_by_replacement_equals_capacity, 0, N_KINDS);
	suite_add_tcase(suite, tests);
	return suite;
}

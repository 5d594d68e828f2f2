/*
 * What keeps rings apart: plans, models, sessions and snapshots are for their rings and windows,
 * and rings that cannot be are refused.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tests/decoding.h"
#include "tests/ring_fixture.h"
#include "tests/snapshot_file.h"
#include "tests/suites.h"

START_TEST(a_plan_is_for_its_rings)
{
	struct pawl_tiny_model *model = make_model(WINDOW, PAWL_LAYOUT_K16);
	struct pawl_decoder_options options = options_of(true), other = options_of(false);
	struct pawl_decoder *d = open_decoder("ref", model, &options),
			    *plain = open_decoder("ref", model, &other);
	struct pawl_kv_cache *cache = pawl_decoder_cache(plain);
	struct pawl_decode_session *session = NULL;
	const struct pawl_plan *plan;
	struct pawl_decoder_stats stats;

	OK(pawl_decoder_prepare(d, 1, PAWL_LOGITS_LAST, &plan, &err));
	ck_assert_int_eq(
		pawl_decode_session_new((struct pawl_plan *)(uintptr_t)plan,
			pawl_tiny_model_source(model)->weights, cache,
			pawl_inference_context_team(pawl_decoder_context(d)), &session, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "the plan is for rings of 128 positions, this cache has 0");
	/* A decoder plans anew for such a cache. */
	feed(d, 1, 1, wanted);
	pawl_decoder_swap_cache(d, &cache);
	feed(d, 1, 1, got);
	expect_same(wanted, got, 0, 1, "without rings");
	pawl_decoder_stats(d, &stats);
	ck_assert_int_eq(stats.last.verdict.field, PAWL_KEY_RING);
	pawl_decoder_swap_cache(d, &cache);
	pawl_decoder_free(plain);
	pawl_decoder_free(d);
	pawl_tiny_model_free(model);
}
END_TEST

/* Swaps in a cache with such rings and steps: the status, after the decoder has its own cache again. */
static enum pawl_status
step_on_rings(struct pawl_decoder *d, const struct pawl_kv_rings *rings)
{
	struct pawl_kv_shape shape = *pawl_kv_cache_shape(pawl_decoder_cache(d));
	struct pawl_kv_cache *cache;
	enum pawl_status status;
	const float *logits;

	shape.rings = *rings;
	OK(pawl_kv_cache_with_capacity(pawl_decoder_context(d), &shape, &cache, &err));
	pawl_decoder_swap_cache(d, &cache);
	status = pawl_decoder_step(d, 1, &logits, &err);
	ck_assert_int_eq(pawl_decoder_len(d), !status);
	pawl_decoder_swap_cache(d, &cache);
	pawl_kv_cache_free(cache);
	return status;
}

/* Before the first plan, which would be made for the cache, and with plans held. */
START_TEST(a_model_is_for_its_windows)
{
	struct pawl_tiny_model *model = make_model(WINDOW, PAWL_LAYOUT_K16);
	struct pawl_decoder_options options = options_of(true);
	struct pawl_decoder *d = open_decoder("ref", model, &options);
	const struct pawl_kv_rings own = pawl_kv_cache_shape(pawl_decoder_cache(d))->rings;
	struct pawl_kv_rings rings;

	for (int round = 0; round < 2; round++) {
		rings = own;
		rings.window = WINDOW - 4;
		ck_assert_int_eq(step_on_rings(d, &rings), PAWL_INVALID_ARGUMENT);
		ck_assert_str_eq(err.text,
			"the cache has rings for a window of 16, the model has 20");
		rings.window = WINDOW + 1;
		ck_assert_int_eq(step_on_rings(d, &rings), PAWL_INVALID_ARGUMENT);
		rings = own;
		pawl_layer_set_add(&rings.layers, 1);
		ck_assert_int_eq(step_on_rings(d, &rings), PAWL_INVALID_ARGUMENT);
		ck_assert_str_eq(
			err.text, "layer 1 has a ring in the cache and no window in the model");
		rings.layers = (struct pawl_layer_set){{1}};
		ck_assert_int_eq(step_on_rings(d, &rings), PAWL_INVALID_ARGUMENT);
		ck_assert_str_eq(
			err.text, "layer 2 has no ring in the cache and a window in the model");
		OK(step_on_rings(d, &own));
	}
	pawl_decoder_free(d);
	pawl_tiny_model_free(model);
}
END_TEST

/* Held by hand, a session does not take a cache whose rings are for another window. */
START_TEST(a_session_is_for_its_window)
{
	struct pawl_tiny_model *model = make_model(WINDOW, PAWL_LAYOUT_K16);
	struct pawl_decoder_options options = options_of(true);
	struct pawl_decoder *d = open_decoder("ref", model, &options);
	struct pawl_kv_shape shape = *pawl_kv_cache_shape(pawl_decoder_cache(d));
	struct pawl_decode_session *session = NULL;
	struct pawl_inference_context *context = pawl_decoder_context(d);
	struct pawl_kv_cache *cache;
	const struct pawl_plan *plan;

	OK(pawl_decoder_prepare(d, 1, PAWL_LOGITS_LAST, &plan, &err));
	shape.rings.window = 16;
	OK(pawl_kv_cache_with_capacity(context, &shape, &cache, &err));
	ck_assert_int_eq(pawl_decode_session_new((struct pawl_plan *)(uintptr_t)plan,
				 pawl_tiny_model_source(model)->weights, cache,
				 pawl_inference_context_team(context), &session, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(
		err.text, "the plan is for rings of a window of 20, this cache has 16");
	pawl_kv_cache_free(cache);
	shape.rings.window = WINDOW;
	OK(pawl_kv_cache_with_capacity(context, &shape, &cache, &err));
	OK(pawl_decode_session_new((struct pawl_plan *)(uintptr_t)plan,
		pawl_tiny_model_source(model)->weights, cache, pawl_inference_context_team(context),
		&session, &err));
	pawl_decode_session_free(session);
	pawl_kv_cache_free(cache);
	pawl_decoder_free(d);
	pawl_tiny_model_free(model);
}
END_TEST

START_TEST(a_snapshot_is_for_its_rings)
{
	static const char *const says[] = {
		("the snapshot is of a cache of keys and values with rings, this one is of keys and "
		 "values"),
		"the snapshot is of 128 positions a ring, the cache has 256",
		"the snapshot is of 20 positions a window, the cache has 21",
		"the snapshot and the cache have rings in different layers",
	};
	const size_t front = sizeof(struct pawl_kv_snapshot_header) +
			     sizeof(struct pawl_kv_snapshot_rings);
	struct pawl_tiny_model *model = make_model(WINDOW, PAWL_LAYOUT_K16), *twin;
	struct pawl_tiny_options tiny = model_options(_i == 2 ? 21 : WINDOW, PAWL_LAYOUT_K16);
	struct pawl_decoder_options options = options_of(true);
	struct pawl_decoder *d = open_decoder("ref", model, &options), *other;
	struct pawl_snapshot_file file;
	uint64_t digest;

	if (_i == 3)
		tiny.window_layers = 1;
	twin = pawl_tiny_model_twin(model, &tiny);
	pawl_snapshot_file_init(&file);
	feed(d, 1, 200, got);
	save(d, &file);
	if (_i == 0)
		pawl_snapshot_file_truncate(&file, front);
	if (_i == 1)
		pawl_snapshot_file_flip(&file, front);
	options.rings = _i != 0;
	options.ring_rollback = _i == 1 ? 200 : 0;
	other = open_decoder("ref", twin, &options);
	feed(other, 2, 30, got);
	digest = pawl_test_cache_digest(pawl_decoder_cache(other));
	ck_assert_int_eq(restore(other, &file), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, says[_i]);
	/* Nor the other way. */
	if (_i == 0) {
		save(other, &file);
		ck_assert_int_eq(restore(d, &file), PAWL_INVALID_ARGUMENT);
		ck_assert_int_eq(pawl_decoder_len(d), 200);
	}
	ck_assert_uint_eq(pawl_test_cache_digest(pawl_decoder_cache(other)), digest);
	pawl_snapshot_file_release(&file);
	pawl_decoder_free(other);
	pawl_decoder_free(d);
	pawl_tiny_model_free(twin);
	pawl_tiny_model_free(model);
}
END_TEST

START_TEST(absurd_rings_are_refused)
{
	static const int64_t values[] = {0, -1, INT64_MAX, INT64_MIN, 130, 16};
	static const size_t fields[] = {offsetof(struct pawl_kv_snapshot_rings, positions),
		offsetof(struct pawl_kv_snapshot_rings, window),
		offsetof(struct pawl_kv_snapshot_rings, layers),
		offsetof(struct pawl_kv_snapshot_rings, written)};
	struct pawl_tiny_model *model = make_model(WINDOW, PAWL_LAYOUT_K16);
	struct pawl_decoder_options options = options_of(true);
	struct pawl_decoder *d = open_decoder("ref", model, &options);
	struct pawl_kv_snapshot_header header;
	struct pawl_kv_snapshot_rings rings, changed;
	struct pawl_snapshot_file file;
	char *bytes;
	size_t n;

	pawl_snapshot_file_init(&file);
	feed(d, 1, 200, got);
	save(d, &file);
	bytes = pawl_snapshot_file_read(&file, &n);
	memcpy(&header, bytes, sizeof(header));
	memcpy(&rings, bytes + sizeof(header), sizeof(rings));
	for (size_t f = 0; f < sizeof(fields) / sizeof(fields[0]); f++)
		for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
			/* 16 of 128 is a window, and bit 4 is of no layer there is. */
			bool is_possible = f == 1 && values[v] == 16;

			changed = rings;
			memcpy((char *)&changed + fields[f], &values[v], sizeof(int64_t));
			header.checksum = pawl_kv_checksum(
				pawl_kv_checksum(0, &header,
					offsetof(struct pawl_kv_snapshot_header, checksum)),
				&changed, sizeof(changed));
			memcpy(bytes, &header, sizeof(header));
			memcpy(bytes + sizeof(header), &changed, sizeof(changed));
			pawl_snapshot_file_write(&file, bytes, n);
			ck_assert_msg(pawl_snapshot_file_try(&file, &err) ==
					      (is_possible ? PAWL_OK : PAWL_INVALID_FILE),
				"field %zu: %lld", f, (long long)values[v]);
		}
	free(bytes);
	pawl_snapshot_file_release(&file);
	pawl_decoder_free(d);
	pawl_tiny_model_free(model);
}
END_TEST

static const struct pawl_kv_rings bad_rings[] = {
	{-128, 20, {{1}}},
	{120, 20, {{1}}},
	{16, 17, {{1}}},
	{128, 0, {{1}}},
	{256, 20, {{1}}},
	{INT64_MAX - 15, 20, {{1}}},
};

START_TEST(rings_that_cannot_be)
{
	struct pawl_kv_shape shape = {.n_layers = 2,
		.n_kv_heads = 1,
		.head_dim = 16,
		.max_seq_len = 256,
		.dtype = PAWL_DTYPE_F16,
		.rings = bad_rings[_i]};
	struct pawl_inference_context *context;
	struct pawl_kv_cache *cache = NULL;

	OK(pawl_inference_context_new(pawl_test_device(), 1, &context, &err));
	ck_assert_int_eq(pawl_kv_cache_with_capacity(context, &shape, &cache, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_ptr_nonnull(strstr(err.text, "rings of "));
	ck_assert_ptr_null(cache);
	shape.rings = (struct pawl_kv_rings){128, 128, {{1}}};
	OK(pawl_kv_cache_with_capacity(context, &shape, &cache, &err));
	pawl_kv_cache_free(cache);
	pawl_inference_context_free(context);
}
END_TEST

START_TEST(sets_of_layers)
{
	static const int64_t some[] = {0, 1, 63, 64, 500, PAWL_MAX_WINDOW_LAYERS - 1};
	struct pawl_layer_set set = {{0}};
	int64_t next = 0;

	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++)
		pawl_layer_set_add(&set, some[i]);
	for (int64_t i = 0; i < PAWL_MAX_WINDOW_LAYERS; i++) {
		bool is_in = i == some[next];

		ck_assert(pawl_layer_set_has(&set, i) == is_in);
		next += is_in;
	}
	ck_assert(!pawl_layer_set_has(&set, -1));
	ck_assert(!pawl_layer_set_has(&set, PAWL_MAX_WINDOW_LAYERS));
}
END_TEST

Suite *
pawl_ring_guard_suite(void)
{
	Suite *suite = suite_create("ring_guard");
	TCase *tcase = tcase_create("ring_guard");

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, a_plan_is_for_its_rings);
	tcase_add_test(tcase, a_model_is_for_its_windows);
	tcase_add_test(tcase, a_session_is_for_its_window);
	tcase_add_loop_test(tcase, a_snapshot_is_for_its_rings, 0, 4);
	tcase_add_test(tcase, absurd_rings_are_refused);
	tcase_add_loop_test(tcase, rings_that_cannot_be, 0,
		(int)(sizeof(bad_rings) / sizeof(bad_rings[0])));
	tcase_add_test(tcase, sets_of_layers);
	suite_add_tcase(suite, tcase);
	return suite;
}

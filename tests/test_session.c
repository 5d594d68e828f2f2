/* Sessions and caches: who may serve whom. */
#include "runtime/decode_session.h"

#include "runtime/kv_layout.h"
#include "tests/hand_session_fixture.h"
#include "tests/suites.h"

#include <stdlib.h>
#include <string.h>

static struct pawl_kv_cache *
new_cache(int64_t capacity)
{
	struct pawl_kv_shape shape = *pawl_kv_cache_shape(pawl_decoder_cache(decoder));
	struct pawl_kv_cache *cache;

	shape.max_seq_len = capacity;
	ck_assert_int_eq(
		pawl_kv_cache_with_capacity(pawl_decoder_context(decoder), &shape, &cache, &err),
		PAWL_OK);
	return cache;
}

START_TEST(a_swapped_cache_serves_its_own_content)
{
	float *fresh_b = pawl_test_fresh(model, &options, 2, 14),
	      *fresh_a = pawl_test_fresh(model, &options, 1, 14);
	struct pawl_kv_cache *cache = new_cache(64);
	struct pawl_decoder_stats after;
	uint64_t optimizes;

	/* Both sessions are bound to the first cache, which holds sequence 1. */
	pawl_test_prefill(decoder, 1, 0, 13);
	optimizes = stats_now().counters.optimizes;
	pawl_decoder_swap_cache(decoder, &cache);
	pawl_test_prefill(decoder, 2, 0, 13);
	ck_assert_int_eq(stats_now().last.kind, PAWL_SESSION_REBOUND);
	ck_assert(pawl_test_same(decoder, pawl_test_step(decoder, 2, 13), fresh_b));
	ck_assert_int_eq(stats_now().last.kind, PAWL_SESSION_KEPT);
	ck_assert_uint_eq(stats_now().counters.rebinds, 2);
	/* What the first cache would have said is something else. */
	pawl_decoder_swap_cache(decoder, &cache);
	ck_assert_int_eq(pawl_decoder_len(decoder), 13);
	ck_assert(!pawl_test_same(decoder, pawl_test_step(decoder, 2, 13), fresh_b));
	pawl_decoder_truncate(decoder, 13);
	ck_assert(pawl_test_same(decoder, pawl_test_step(decoder, 1, 13), fresh_a));
	ck_assert_uint_eq(stats_now().counters.optimizes, optimizes);
	ck_assert_uint_eq(stats_now().counters.rebinds, 3);
	after = stats_now();
	ck_assert_uint_eq(pawl_counters_rebuilds(&after.counters), 0);
	pawl_kv_cache_free(cache);
	free(fresh_a);
	free(fresh_b);
}
END_TEST

START_TEST(a_freed_cache_that_comes_back_at_its_address)
{
	float *fresh = pawl_test_fresh(model, &options, 2, 14);

	for (int i = 0; i < 4; i++) {
		struct pawl_kv_cache *old = new_cache(64);

		/* malloc likes to give the cache and its storages the addresses that just became
		 * free. */
		pawl_decoder_swap_cache(decoder, &old);
		pawl_kv_cache_free(old);
		pawl_test_prefill(decoder, i == 3 ? 2 : 1, 0, 13);
	}
	ck_assert(pawl_test_same(decoder, pawl_test_step(decoder, 2, 13), fresh));
	free(fresh);
}
END_TEST

START_TEST(another_capacity_is_stale)
{
	float *fresh = pawl_test_fresh(model, &options, 1, 14);
	struct pawl_kv_cache *cache = new_cache(128);
	struct pawl_disposition last;

	pawl_test_prefill(decoder, 1, 0, 13);
	pawl_decoder_swap_cache(decoder, &cache);
	pawl_test_prefill(decoder, 1, 0, 13);
	last = stats_now().last;
	ck_assert_int_eq(last.kind, PAWL_SESSION_DROPPED);
	ck_assert_int_eq(last.verdict.validity, PAWL_PLAN_STALE);
	ck_assert_int_eq(last.verdict.field, PAWL_KEY_MAX_SEQ_LEN);
	ck_assert_uint_eq(last.verdict.held, 64);
	ck_assert_uint_eq(last.verdict.asked, 128);
	ck_assert_int_eq(last.refusal.kind, PAWL_REFUSAL_NONE);
	ck_assert_uint_eq(stats_now().counters.regrows, 2);
	ck_assert_uint_eq(stats_now().counters.builds[PAWL_REBUILD_REFUSED], 0);
	ck_assert(pawl_test_same(decoder, pawl_test_step(decoder, 1, 13), fresh));
	pawl_kv_cache_free(cache);
	free(fresh);
}
END_TEST

START_TEST(an_injected_layer_is_refused_and_costs_one_rebuild)
{
	struct pawl_kv_cache *cache = new_cache(64);
	struct pawl_kv_layer_id k = {1, PAWL_KV_K}, v = {1, PAWL_KV_V};
	float *fresh = pawl_test_fresh(model, &options, 1, 3);
	struct pawl_kv_cache *old = pawl_decoder_cache(decoder);

	for (int i = 0; i < 2; i++)
		pawl_test_step(decoder, 1, i);
	pawl_decoder_truncate(decoder, 0);
	ck_assert_int_eq(pawl_kv_cache_set_layer(old, 1, pawl_kv_cache_storage(cache, k),
				 pawl_kv_cache_storage(cache, v), &err),
		PAWL_OK);
	for (int i = 0; i < 2; i++)
		pawl_test_step(decoder, 1, i);
	ck_assert(pawl_test_same(decoder, pawl_test_step(decoder, 1, 2), fresh));
	ck_assert_uint_eq(stats_now().counters.builds[PAWL_REBUILD_REFUSED], 1);
	ck_assert_uint_eq(stats_now().counters.rebinds, 0);
	ck_assert_int_eq(stats_now().last.kind, PAWL_SESSION_KEPT);
	pawl_kv_cache_free(cache);
	free(fresh);
}
END_TEST

/* Positions from `from` on become NaN, whatever the layout. */
static void
spoil_from(struct pawl_kv_cache *cache, int64_t from)
{
	const struct pawl_kv_shape *shape = pawl_kv_cache_shape(cache);

	for (int32_t i = 0; i < 2 * shape->n_layers; i++) {
		const struct pawl_kv_layer_id id = {i / 2, (enum pawl_kv_slot)(i % 2)};
		struct pawl_storage *storage = pawl_kv_cache_storage(cache, id);
		const struct pawl_kv_planes planes = pawl_kv_planes_of(&storage->type, 2);
		int64_t kept = pawl_kv_logical_bytes(&planes, from);
		char *rows = malloc((size_t)kept + 1);

		ck_assert_ptr_nonnull(rows);
		pawl_kv_read_positions(&planes, storage->bytes, from, rows);
		memset(storage->bytes, 0xff, (size_t)storage->n_bytes);
		pawl_kv_write_positions(&planes, storage->bytes, from, rows);
		free(rows);
	}
}

START_TEST(what_lies_beyond_the_length_means_nothing)
{
	static const enum pawl_dtype dtypes[] = {PAWL_DTYPE_F16, PAWL_DTYPE_F32, PAWL_DTYPE_BF16};
	float *fresh;
	const float *logits = NULL;

	pawl_decoder_free(decoder);
	options.kv_dtype = dtypes[_i];
	decoder = pawl_test_decoder(model, &options);
	fresh = pawl_test_fresh(model, &options, 1, 23);
	spoil_from(pawl_decoder_cache(decoder), 0);
	pawl_test_prefill(decoder, 1, 0, 13);
	spoil_from(pawl_decoder_cache(decoder), 13);
	for (int i = 13; i < 20; i++)
		pawl_test_step(decoder, 1, i);
	pawl_decoder_truncate(decoder, 17);
	spoil_from(pawl_decoder_cache(decoder), 17);
	for (int i = 17; i < 23; i++)
		logits = pawl_test_step(decoder, 1, i);
	ck_assert(pawl_test_same(decoder, logits, fresh));
	/* What lies before it does mean something. */
	pawl_decoder_truncate(decoder, 22);
	spoil_from(pawl_decoder_cache(decoder), 21);
	ck_assert_int_eq(pawl_decoder_step(decoder, pawl_test_token(1, 22), &logits, &err), PAWL_OK);
	ck_assert(!pawl_test_same(decoder, logits, fresh));
	free(fresh);
}
END_TEST

START_TEST(a_cleared_cache_fits_no_plan)
{
	const float *logits;

	pawl_test_step(decoder, 1, 0);
	pawl_kv_cache_clear(pawl_decoder_cache(decoder));
	ck_assert_int_eq(pawl_decoder_step(decoder, 1, &logits, &err), PAWL_CAPACITY);
	ck_assert_int_eq(pawl_decoder_prepare(decoder, 1, PAWL_LOGITS_LAST, NULL, &err),
		PAWL_INVALID_ARGUMENT);
}
END_TEST

/* Refreshing by hand. */

struct watch {
	struct pawl_decode_session **session;
	struct pawl_kv_alloc_id alloc_id; /* of the session when the callback ran */
	int n_calls;
};

static void
watch_it(void *arg)
{
	struct watch *watch = arg;

	watch->n_calls++;
	ck_assert_ptr_nonnull(*watch->session);
	watch->alloc_id = pawl_decode_session_alloc_id(*watch->session);
}

START_TEST(refresh_tells_before_it_touches)
{
	struct pawl_kv_cache *first = pawl_decoder_cache(decoder), *second = new_cache(64);
	struct pawl_plan *plan = plan_of_step();
	struct pawl_decode_session *session = NULL;
	struct watch watch = {.session = &session};
	const struct pawl_invalidate tell = {watch_it, &watch};
	struct pawl_kv_rebind_source one = pawl_kv_cache_source(first),
				     two = pawl_kv_cache_source(second);
	struct pawl_plan_key key = plan->key, other = key;
	struct pawl_counters counters = {0};
	struct pawl_disposition what;

	other.precision = PAWL_PRECISION_A8;
	pawl_decode_session_refresh(&session, &key, &one, tell, &counters, &what);
	ck_assert_int_eq(what.kind, PAWL_SESSION_ABSENT);
	ck_assert_uint_eq(counters.validity_checks, 0);
	session = session_on(plan, first);
	pawl_decode_session_refresh(&session, &key, &one, tell, &counters, &what);
	ck_assert_int_eq(what.kind, PAWL_SESSION_KEPT);
	ck_assert_int_eq(watch.n_calls, 0);
	pawl_decode_session_refresh(&session, &key, &two, tell, &counters, &what);
	ck_assert_int_eq(what.kind, PAWL_SESSION_REBOUND);
	ck_assert_int_eq(watch.n_calls, 1);
	ck_assert_uint_eq(watch.alloc_id.value, pawl_kv_cache_alloc_id(first).value);
	ck_assert_uint_eq(
		pawl_decode_session_alloc_id(session).value, pawl_kv_cache_alloc_id(second).value);
	/* Structure first: stale although the allocation differs too. */
	pawl_decode_session_refresh(&session, &other, &one, tell, &counters, &what);
	ck_assert_int_eq(what.kind, PAWL_SESSION_DROPPED);
	ck_assert_int_eq(what.verdict.field, PAWL_KEY_PRECISION);
	ck_assert_int_eq(watch.n_calls, 2);
	ck_assert_uint_eq(watch.alloc_id.value, pawl_kv_cache_alloc_id(second).value);
	ck_assert_ptr_null(session);
	ck_assert_uint_eq(counters.validity_checks, 3);
	ck_assert_uint_eq(counters.verdicts[PAWL_VALID], 1);
	ck_assert_uint_eq(counters.verdicts[PAWL_ALLOCATION_CHANGED], 1);
	ck_assert_uint_eq(counters.verdicts[PAWL_PLAN_STALE], 1);
	ck_assert_uint_eq(counters.rebinds, 1);
	pawl_kv_cache_free(second);
}
END_TEST

START_TEST(a_refused_session_is_freed_after_the_callback)
{
	struct pawl_kv_cache *first = pawl_decoder_cache(decoder), *second = new_cache(64);
	struct pawl_plan *plan = plan_of_step();
	struct pawl_decode_session *session = session_on(plan, first);
	struct watch watch = {.session = &session};
	struct pawl_kv_rebind_source source;
	struct pawl_counters counters = {0};
	struct pawl_disposition what;

	ck_assert_int_eq(pawl_kv_cache_set_layer(second, 0, NULL, NULL, &err), PAWL_OK);
	source = pawl_kv_cache_source(second);
	pawl_decode_session_refresh(&session, &plan->key, &source,
		(struct pawl_invalidate){watch_it, &watch}, &counters, &what);
	ck_assert_int_eq(what.kind, PAWL_SESSION_DROPPED);
	ck_assert_int_eq(what.verdict.validity, PAWL_ALLOCATION_CHANGED);
	ck_assert_int_eq(what.refusal.kind, PAWL_REFUSAL_RESIDENCY_UNKNOWN);
	ck_assert_int_eq(watch.n_calls, 1);
	ck_assert_ptr_null(session);
	ck_assert_uint_eq(counters.rebinds, 0);
	pawl_kv_cache_free(second);
}
END_TEST

static struct pawl_kv_alloc_id
another_id(void *ctx)
{
	(void)ctx;
	return pawl_kv_alloc_id_new();
}

/* Identities are compared, never addresses: the very same storages under another id. */
START_TEST(the_same_addresses_are_not_the_same_cache)
{
	struct pawl_kv_cache *cache = pawl_decoder_cache(decoder);
	struct pawl_plan *plan = plan_of_step();
	struct pawl_decode_session *session = session_on(plan, cache);
	struct pawl_kv_rebind_source source = pawl_kv_cache_source(cache);
	struct watch watch = {.session = &session};
	struct pawl_counters counters = {0};
	struct pawl_disposition what;

	source.alloc_id = another_id;
	pawl_decode_session_refresh(&session, &plan->key, &source,
		(struct pawl_invalidate){watch_it, &watch}, &counters, &what);
	ck_assert_int_eq(what.verdict.validity, PAWL_ALLOCATION_CHANGED);
	ck_assert_int_eq(what.kind, PAWL_SESSION_REBOUND);
	ck_assert_int_eq(watch.n_calls, 1);
	ck_assert_uint_ne(pawl_decode_session_alloc_id(session).value,
		pawl_kv_cache_alloc_id(cache).value);
	pawl_decode_session_free(session);
}
END_TEST

START_TEST(sessions_refuse_caches_of_another_geometry)
{
	struct pawl_plan *plan = plan_of_step();
	struct pawl_weights *weights = pawl_tiny_model_source(model)->weights;
	struct pawl_team *team = pawl_inference_context_team(pawl_decoder_context(decoder));
	struct pawl_inference_context *context = pawl_decoder_context(decoder);
	struct pawl_kv_shape good = *pawl_kv_cache_shape(pawl_decoder_cache(decoder)), shapes[6];
	struct pawl_decode_session *session = NULL;
	struct pawl_kv_cache *cache;

	for (int i = 0; i < 6; i++)
		shapes[i] = good;
	shapes[0].n_layers = 3;
	shapes[1].n_kv_heads = 4;
	shapes[2].head_dim = 32;
	shapes[3].max_seq_len = 128;
	shapes[4].dtype = PAWL_DTYPE_F32;
	shapes[5].layout[PAWL_KV_K] = PAWL_LAYOUT_ROWS;
	for (int i = 0; i < 6; i++) {
		ck_assert_int_eq(
			pawl_kv_cache_with_capacity(context, &shapes[i], &cache, &err), PAWL_OK);
		ck_assert_int_eq(
			pawl_decode_session_new(plan, weights, cache, team, &session, &err),
			PAWL_INVALID_ARGUMENT);
		pawl_kv_cache_free(cache);
	}
	ck_assert_str_eq(err.text,
		"cache.k.0: the plan wants f16@k16 of 4096 bytes, the storage is f16@rows of 4096");
	ck_assert_int_eq(pawl_kv_cache_with_dims(2, 2, 16, &cache, &err), PAWL_OK);
	ck_assert_int_eq(pawl_decode_session_new(plan, weights, cache, team, &session, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "a decode session needs a cache with capacity");
	pawl_kv_cache_free(cache);
	ck_assert_ptr_null(session);
	ck_assert_int_eq(pawl_decode_session_new(
				 plan, weights, pawl_decoder_cache(decoder), team, &session, &err),
		PAWL_OK);
	pawl_decode_session_free(session);
}
END_TEST

START_TEST(sessions_refuse_a_key_that_is_not_the_graphs)
{
	const struct pawl_model_source *source = pawl_tiny_model_source(model);
	struct pawl_plan_options plan_options = {.key = plan_of_step()->key};
	const struct pawl_graph_request request = {.n_tokens = 4,
		.capacity = 64,
		.kv_dtype = PAWL_DTYPE_F16,
		.logits = PAWL_LOGITS_LAST};
	struct pawl_decode_session *session = NULL;
	struct pawl_graph *graph;
	struct pawl_plan *plan;

	ck_assert_int_eq(source->build(source->ctx, &request, &graph, &err), PAWL_OK);
	ck_assert_int_eq(
		pawl_plan_build(graph, pawl_test_device(), &plan_options, &plan, &err), PAWL_OK);
	ck_assert_int_eq(
		pawl_decode_session_new(plan, source->weights, pawl_decoder_cache(decoder),
			pawl_inference_context_team(pawl_decoder_context(decoder)), &session, &err),
		PAWL_INVALID_GRAPH);
	ck_assert_str_eq(err.text, "data const token_ids is u32[4], a step like this has u32[1]");
	pawl_plan_unref(plan);
	pawl_graph_free(graph);
}
END_TEST

START_TEST(a_plan_outlives_who_made_it)
{
	struct pawl_plan *plan = pawl_plan_ref(plan_of_step());
	struct pawl_kv_cache *cache = new_cache(64);
	struct pawl_inference_context *context;
	struct pawl_decode_session *session;

	ck_assert_int_eq(
		pawl_inference_context_new(pawl_test_device(), 2, &context, &err), PAWL_OK);
	pawl_decoder_free(decoder);
	ck_assert_int_eq(pawl_decode_session_new(plan, pawl_tiny_model_source(model)->weights,
				 cache, pawl_inference_context_team(context), &session, &err),
		PAWL_OK);
	pawl_plan_unref(plan);
	pawl_kv_cache_free(cache);
	pawl_inference_context_put_session(context, session);
	ck_assert(pawl_inference_context_has_session(context));
	ck_assert_ptr_eq(pawl_inference_context_take_session(context), session);
	ck_assert(!pawl_inference_context_has_session(context));
	ck_assert_ptr_null(pawl_inference_context_take_session(context));
	pawl_inference_context_put_session(context, session);
	pawl_inference_context_put_session(context, NULL);
	ck_assert(!pawl_inference_context_has_session(context));
	pawl_inference_context_free(context);
	decoder = pawl_test_decoder(model, &options);
}
END_TEST

Suite *
pawl_session_suite(void)
{
	Suite *suite = suite_create("session");
	TCase *tcase = tcase_create("session");

	tcase_add_checked_fixture(tcase, begin_decoder, end_decoder);
	tcase_add_test(tcase, a_swapped_cache_serves_its_own_content);
	tcase_add_test(tcase, a_freed_cache_that_comes_back_at_its_address);
	tcase_add_test(tcase, another_capacity_is_stale);
	tcase_add_test(tcase, an_injected_layer_is_refused_and_costs_one_rebuild);
	tcase_add_loop_test(tcase, what_lies_beyond_the_length_means_nothing, 0, 3);
	tcase_add_test(tcase, a_cleared_cache_fits_no_plan);
	tcase_add_test(tcase, refresh_tells_before_it_touches);
	tcase_add_test(tcase, a_refused_session_is_freed_after_the_callback);
	tcase_add_test(tcase, the_same_addresses_are_not_the_same_cache);
	tcase_add_test(tcase, sessions_refuse_caches_of_another_geometry);
	tcase_add_test(tcase, sessions_refuse_a_key_that_is_not_the_graphs);
	tcase_add_test(tcase, a_plan_outlives_who_made_it);
	suite_add_tcase(suite, tcase);
	return suite;
}

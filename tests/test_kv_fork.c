/* Forks of a cache: nothing is copied until one writes, and neither sees the other. */
#include "runtime/kv_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/inference_context.h"
#include "runtime/kv_layout.h"
#include "runtime/memory.h"
#include "tests/decoder_fixture.h"
#include "tests/suites.h"

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static struct pawl_storage *
slot_of(const struct pawl_kv_cache *cache, int i)
{
	return pawl_kv_cache_storage(
		cache, (struct pawl_kv_layer_id){i / 2, (enum pawl_kv_slot)(i % 2)});
}

static struct pawl_kv_cache *
fork_now(void)
{
	struct pawl_kv_cache *fork;

	OK(pawl_kv_cache_fork(pawl_decoder_cache(decoder), &fork, &err));
	return fork;
}

START_TEST(a_fork_has_the_same_storages)
{
	struct pawl_kv_cache *cache = pawl_decoder_cache(decoder), *fork;
	uint64_t before, id, fork_id;

	pawl_test_prefill(decoder, 1, 0, 20);
	id = pawl_kv_cache_alloc_id(cache).value;
	before = pawl_memory_allocations();
	fork = fork_now();
	/* The cache, its layers, the count. */
	ck_assert_uint_eq(pawl_memory_allocations() - before, 3);
	fork_id = pawl_kv_cache_alloc_id(fork).value;
	ck_assert_uint_gt(pawl_kv_cache_alloc_id(cache).value, id);
	ck_assert_uint_ne(pawl_kv_cache_alloc_id(cache).value, fork_id);
	ck_assert(pawl_kv_cache_is_shared(cache) && pawl_kv_cache_is_shared(fork));
	ck_assert_int_eq(pawl_kv_cache_len(fork), 20);
	ck_assert_int_eq(pawl_kv_cache_shape(fork)->max_seq_len, 64);
	ck_assert(pawl_location_equal(pawl_kv_cache_location(fork), PAWL_LOCATION_HOST));
	for (int i = 0; i < 4; i++) {
		ck_assert_ptr_eq(slot_of(fork, i), slot_of(cache, i));
		ck_assert_uint_eq(pawl_kv_cache_layer(fork, i / 2)[i % 2].version,
			pawl_kv_cache_layer(cache, i / 2)[i % 2].version);
	}
	/* Length is each one's own. */
	pawl_kv_cache_truncate_to(fork, 3);
	ck_assert_int_eq(pawl_kv_cache_len(cache), 20);
	pawl_kv_cache_free(fork);
	ck_assert(!pawl_kv_cache_is_shared(cache));
	/* The last one owns them without a copy. */
	id = pawl_kv_cache_alloc_id(cache).value;
	before = pawl_memory_allocations();
	OK(pawl_kv_cache_own(cache, &err));
	ck_assert_uint_eq(pawl_memory_allocations(), before);
	ck_assert_uint_eq(pawl_kv_cache_alloc_id(cache).value, id);
}
END_TEST

START_TEST(a_writer_copies_what_is_cached)
{
	struct pawl_kv_cache *cache = pawl_decoder_cache(decoder), *fork;
	const struct pawl_kv_shape shape = *pawl_kv_cache_shape(cache);
	uint64_t id;

	pawl_test_prefill(decoder, 1, 0, 32);
	/* What lies beyond the length must not come along. */
	pawl_kv_cache_truncate_to(cache, 16);
	fork = fork_now();
	id = pawl_kv_cache_alloc_id(fork).value;
	OK(pawl_kv_cache_own(fork, &err));
	ck_assert_uint_gt(pawl_kv_cache_alloc_id(fork).value, id);
	ck_assert(!pawl_kv_cache_is_shared(cache) && !pawl_kv_cache_is_shared(fork));
	for (int i = 0; i < 4; i++) {
		const struct pawl_type type = pawl_kv_shape_type(&shape, 0, (enum pawl_kv_slot)(i % 2));
		const struct pawl_kv_planes planes = pawl_kv_planes_of(&type, 2);
		char a[2 * 64 * 16 * 4], b[2 * 64 * 16 * 4];
		int64_t n = pawl_kv_logical_bytes(&planes, 16);
		int n_beyond = 0;

		ck_assert_ptr_ne(slot_of(fork, i), slot_of(cache, i));
		pawl_kv_read_positions(&planes, slot_of(cache, i)->bytes, 16, a);
		pawl_kv_read_positions(&planes, slot_of(fork, i)->bytes, 16, b);
		ck_assert(!memcmp(a, b, (size_t)n));
		pawl_kv_read_positions(&planes, slot_of(fork, i)->bytes, 64, b);
		for (int64_t j = n / 2; j < planes.positions * planes.row_bytes; j++)
			n_beyond += b[j] != 0;
		ck_assert_int_eq(n_beyond, 0);
		pawl_kv_read_positions(&planes, slot_of(cache, i)->bytes, 64, a);
		for (int64_t j = n / 2; j < planes.positions * planes.row_bytes; j++)
			n_beyond += a[j] != 0;
		ck_assert_int_gt(n_beyond, 0);
	}
	pawl_kv_cache_free(fork);
}
END_TEST

/* Parent and fork go on with other sequences, in either order. */
START_TEST(forked_equals_fresh)
{
	struct pawl_decoder *whole = pawl_test_decoder(model, &options);
	struct pawl_kv_cache *fork;
	float *parent_wants[8], *child_wants[8];
	struct pawl_decoder_stats before, after;

	/* What both must give: sequence 1 to 20, then sequence 1 or 2. */
	for (int child = 0; child < 2; child++) {
		pawl_decoder_truncate(whole, 0);
		pawl_test_prefill(whole, 1, 0, 20);
		for (int i = 0; i < 8; i++)
			(child ? child_wants : parent_wants)[i] = pawl_test_keep(
				whole, pawl_test_step(whole, child ? 2 : 1, 20 + i));
	}
	ck_assert(!pawl_test_same(whole, parent_wants[7], child_wants[7]));

	pawl_test_prefill(decoder, 1, 0, 20);
	fork = fork_now();
	before = stats_now();
	for (int i = 0; i < 8; i++)
		for (int turn = 0; turn < 2; turn++) {
			bool child = (turn == 0) == (_i == 0);

			if (child)
				pawl_decoder_swap_cache(decoder, &fork);
			ck_assert_msg(
				pawl_test_same(decoder,
					pawl_test_step(decoder, child ? 2 : 1, 20 + i),
					child ? child_wants[i] : parent_wants[i]),
				"step %d of the %s", i, child ? "fork" : "parent");
			if (child)
				pawl_decoder_swap_cache(decoder, &fork);
		}
	after = stats_now();
	ck_assert_uint_eq(after.counters.optimizes, before.counters.optimizes);
	ck_assert_uint_eq(pawl_counters_rebuilds(&after.counters), 0);
	ck_assert_uint_eq(after.counters.regrows, 0);
	ck_assert_uint_eq(after.counters.rebinds - before.counters.rebinds, 16);
	for (int i = 0; i < 8; i++) {
		free(parent_wants[i]);
		free(child_wants[i]);
	}
	pawl_kv_cache_free(fork);
	pawl_decoder_free(whole);
}
END_TEST

/* A forks B forks C; A ends first. */
START_TEST(forks_end_in_any_order)
{
	static const int orders[6][3] = {
		{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	float *wanted = pawl_test_fresh(model, &options, 1, 22);
	struct pawl_kv_cache *caches[3];

	pawl_test_prefill(decoder, 1, 0, 20);
	caches[1] = fork_now();
	pawl_decoder_swap_cache(decoder, &caches[1]);
	pawl_test_step(decoder, 1, 20);
	caches[2] = fork_now();
	caches[0] = caches[1];
	caches[1] = NULL; /* the decoder's */
	for (int i = 0; i < 3; i++) {
		int which = orders[_i][i];

		if (which == 0 && i < 2) {
			/* Somebody else diverges before it ends. */
			pawl_decoder_swap_cache(decoder, &caches[0]);
			pawl_test_step(decoder, 3, 20);
			pawl_decoder_swap_cache(decoder, &caches[0]);
		}
		if (which == 2) {
			pawl_decoder_swap_cache(decoder, &caches[2]);
			ck_assert(pawl_test_same(decoder, pawl_test_step(decoder, 1, 21), wanted));
			pawl_decoder_swap_cache(decoder, &caches[2]);
		}
		if (which == 1)
			ck_assert(pawl_test_same(decoder, pawl_test_step(decoder, 1, 21), wanted));
		pawl_kv_cache_free(caches[which]);
		caches[which] = NULL;
	}
	free(wanted);
}
END_TEST

START_TEST(nothing_is_bound_to_what_is_shared)
{
	struct pawl_kv_cache *cache = pawl_decoder_cache(decoder), *fork;
	struct pawl_kv_rebind_source source = pawl_kv_cache_source(cache);
	const struct pawl_plan *plan;
	struct pawl_decode_session *session = NULL;
	struct pawl_refusal refusal;
	struct pawl_counters counters = {0};
	struct pawl_disposition disposition;
	struct pawl_plan_key key;
	char text[200];

	pawl_test_step(decoder, 1, 0);
	OK(pawl_decoder_prepare(decoder, 1, PAWL_LOGITS_LAST, &plan, &err));
	key = plan->key;
	OK(pawl_decode_session_new((struct pawl_plan *)plan,
		pawl_tiny_model_source(model)->weights, cache,
		pawl_inference_context_team(pawl_decoder_context(decoder)), &session, &err));
	fork = fork_now();
	/* The verdict flips although the storages are the same, and the source refuses. */
	ck_assert_int_eq(pawl_decode_session_validity(
				 session, &key, source.alloc_id(source.ctx)).validity,
		PAWL_ALLOCATION_CHANGED);
	ck_assert(!pawl_decode_session_rebind(session, &source, &refusal));
	ck_assert_int_eq(refusal.kind, PAWL_REFUSAL_SHARED);
	ck_assert_str_eq(pawl_refusal_text(&refusal, text, sizeof(text)),
		"shared: the incoming cache has the storages of a fork");
	pawl_decode_session_refresh(&session, &key, &source, (struct pawl_invalidate){NULL, NULL},
		&counters, &disposition);
	ck_assert_ptr_null(session);
	ck_assert_int_eq(disposition.kind, PAWL_SESSION_DROPPED);
	ck_assert_int_eq(pawl_decode_session_new((struct pawl_plan *)plan,
				 pawl_tiny_model_source(model)->weights, cache,
				 pawl_inference_context_team(pawl_decoder_context(decoder)),
				 &session, &err),
		PAWL_INVALID_ARGUMENT);
	OK(pawl_kv_cache_own(cache, &err));
	OK(pawl_decode_session_new((struct pawl_plan *)plan,
		pawl_tiny_model_source(model)->weights, cache,
		pawl_inference_context_team(pawl_decoder_context(decoder)), &session, &err));
	pawl_decode_session_free(session);
	pawl_kv_cache_free(fork);
}
END_TEST

START_TEST(what_cannot_be_forked)
{
	struct pawl_kv_cache *empty, *fork = NULL, *cache = pawl_decoder_cache(decoder);

	OK(pawl_kv_cache_with_dims(2, 2, 16, &empty, &err));
	ck_assert_int_eq(pawl_kv_cache_fork(empty, &fork, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "the cache has no capacity");
	OK(pawl_kv_cache_set_layer(cache, 1, NULL, slot_of(cache, 1), &err));
	ck_assert_int_eq(pawl_kv_cache_fork(cache, &fork, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "layer 1 slot 0 is not of the shape of its cache");
	ck_assert_ptr_null(fork);
	pawl_kv_cache_free(empty);
}
END_TEST

START_TEST(layers_of_a_fork_are_set_apart)
{
	struct pawl_kv_cache *cache = pawl_decoder_cache(decoder), *fork;
	struct pawl_storage *before = slot_of(cache, 0);

	pawl_test_step(decoder, 1, 0);
	fork = fork_now();
	OK(pawl_kv_cache_set_layer(fork, 0, slot_of(fork, 0), slot_of(fork, 1), &err));
	ck_assert(!pawl_kv_cache_is_shared(fork));
	/* The layers that were not set are copies now. */
	ck_assert_ptr_ne(slot_of(fork, 2), slot_of(cache, 2));
	ck_assert_ptr_eq(slot_of(cache, 0), before);
	pawl_kv_cache_clear(fork);
	ck_assert_ptr_null(slot_of(fork, 0));
	pawl_kv_cache_free(fork);
	/* And a fork that grows leaves the parent alone. */
	fork = fork_now();
	OK(pawl_kv_cache_reserve(fork, 100, &err));
	ck_assert(!pawl_kv_cache_is_shared(cache));
	ck_assert_int_eq(pawl_kv_cache_shape(cache)->max_seq_len, 64);
	ck_assert_ptr_eq(slot_of(cache, 0), before);
	pawl_kv_cache_free(fork);
}
END_TEST

START_TEST(a_failure_changes_nothing)
{
	struct pawl_kv_cache *cache = pawl_decoder_cache(decoder), *fork = NULL;
	float *wanted = pawl_test_fresh(model, &options, 1, 21);
	enum pawl_status status = PAWL_OUT_OF_MEMORY;
	const float *logits = NULL;
	uint64_t digest, fork_digest;
	int n;

	pawl_test_prefill(decoder, 1, 0, 20);
	digest = pawl_test_cache_digest(cache);
	for (n = 0; status == PAWL_OUT_OF_MEMORY; n++) {
		ck_assert_uint_eq(pawl_test_cache_digest(cache), digest);
		ck_assert(!pawl_kv_cache_is_shared(cache));
		pawl_memory_fail_after(n);
		status = pawl_kv_cache_fork(cache, &fork, &err);
		pawl_memory_fail_after(-1);
	}
	ck_assert_int_eq(status, PAWL_OK);
	ck_assert_int_eq(n - 1, 3);
	digest = pawl_test_cache_digest(cache);
	fork_digest = pawl_test_cache_digest(fork);
	status = PAWL_OUT_OF_MEMORY;
	for (n = 0; status == PAWL_OUT_OF_MEMORY; n++) {
		ck_assert_uint_eq(pawl_test_cache_digest(cache), digest);
		ck_assert_uint_eq(pawl_test_cache_digest(fork), fork_digest);
		ck_assert(pawl_kv_cache_is_shared(cache));
		pawl_memory_fail_after(n);
		status = pawl_decoder_step(decoder, pawl_test_token(1, 20), &logits, &err);
		pawl_memory_fail_after(-1);
	}
	ck_assert_msg(status == PAWL_OK, "%s", err.text);
	/* The list, and for each of 4 storages itself and its bytes. */
	ck_assert_int_eq(n - 1, 1 + 4 * 2);
	ck_assert(pawl_test_same(decoder, logits, wanted));
	ck_assert_uint_eq(pawl_test_cache_digest(fork), fork_digest);
	pawl_kv_cache_free(fork);
	free(wanted);
}
END_TEST

struct in_thread {
	struct pawl_kv_cache *cache;
	float *wanted;
	bool same;
};

static void *
decode_fork(void *arg)
{
	struct in_thread *t = arg;
	struct pawl_decoder *own = pawl_test_decoder(model, &options);

	pawl_decoder_swap_cache(own, &t->cache);
	t->same = pawl_test_same(own, pawl_test_step(own, 1, 20), t->wanted);
	pawl_decoder_swap_cache(own, &t->cache);
	pawl_kv_cache_free(t->cache);
	pawl_decoder_free(own);
	return NULL;
}

START_TEST(forks_in_threads)
{
	float *wanted = pawl_test_fresh(model, &options, 1, 21);
	struct in_thread threads[4];
	pthread_t ids[4];

	pawl_test_prefill(decoder, 1, 0, 20);
	for (int i = 0; i < 4; i++)
		threads[i] = (struct in_thread){fork_now(), wanted, false};
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&ids[i], NULL, decode_fork, &threads[i]), 0);
	ck_assert(pawl_test_same(decoder, pawl_test_step(decoder, 1, 20), wanted));
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(pthread_join(ids[i], NULL), 0);
		ck_assert(threads[i].same);
	}
	free(wanted);
}
END_TEST

Suite *
pawl_kv_fork_suite(void)
{
	Suite *suite = suite_create("kv_fork");
	TCase *tests = tcase_create("kv_fork");

	tcase_add_checked_fixture(tests, begin_decoder, end_decoder);
	tcase_add_test(tests, a_fork_has_the_same_storages);
	tcase_add_test(tests, a_writer_copies_what_is_cached);
	tcase_add_loop_test(tests, forked_equals_fresh, 0, 2);
	tcase_add_loop_test(tests, forks_end_in_any_order, 0, 6);
	tcase_add_test(tests, nothing_is_bound_to_what_is_shared);
	tcase_add_test(tests, what_cannot_be_forked);
	tcase_add_test(tests, layers_of_a_fork_are_set_apart);
	tcase_add_test(tests, a_failure_changes_nothing);
	tcase_add_test(tests, forks_in_threads);
	suite_add_tcase(suite, tests);
	return suite;
}

/* Plans shared by decoders and threads, and how many are kept. */
#include "runtime/plan_cache.h"

#include "runtime/decoder.h"
#include "tests/model_fixture.h"
#include "tests/suites.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct pawl_error err;

static uint64_t
optimizes_of(const struct pawl_decoder *decoder)
{
	return stats_of(decoder).counters.optimizes;
}

START_TEST(plans_are_shared)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_plan_cache *plans;
	struct pawl_decoder *a, *b, *c;
	struct pawl_tiny_model *twin;
	float *expected_a = pawl_test_fresh(model, &options, 1, 14);
	float *expected_b = pawl_test_fresh(model, &options, 2, 14);

	ck_assert_int_eq(pawl_plan_cache_new(4, &plans, &err), PAWL_OK);
	options.plans = plans;
	a = pawl_test_decoder(model, &options);
	b = pawl_test_decoder(model, &options);
	pawl_test_prefill(a, 1, 0, 10);
	pawl_test_prefill(b, 2, 0, 10);
	for (int i = 10; i < 13; i++) {
		pawl_test_step(a, 1, i);
		pawl_test_step(b, 2, i);
	}
	ck_assert(pawl_test_same(a, pawl_test_step(a, 1, 13), expected_a));
	ck_assert(pawl_test_same(b, pawl_test_step(b, 2, 13), expected_b));
	ck_assert_uint_eq(optimizes_of(a), 3);
	/* Only its own cache. */
	ck_assert_uint_eq(optimizes_of(b), 1);
	/* Another model has plans of its own. */
	twin = pawl_tiny_model_twin(model, &tiny);
	c = pawl_test_decoder(twin, &options);
	pawl_test_prefill(c, 1, 0, 10);
	ck_assert_uint_eq(optimizes_of(c), 3);
	pawl_decoder_free(c);
	pawl_tiny_model_free(twin);
	pawl_decoder_free(a);
	pawl_decoder_free(b);
	pawl_plan_cache_free(plans);
	free(expected_a);
	free(expected_b);
}
END_TEST

struct worker {
	pthread_t thread;
	struct pawl_decoder *decoder;
	unsigned seed;
	bool ok;
	float last[40];
};

/* Without assertions, which are not for threads. */
static void *
generate(void *arg)
{
	struct worker *worker = arg;
	const float *logits = NULL;

	worker->ok = true;
	for (int i = 0; i < 20; i++)
		worker->ok &= !pawl_decoder_step(
			worker->decoder, pawl_test_token(worker->seed, i), &logits, NULL);
	if (worker->ok)
		memcpy(worker->last, logits, sizeof(worker->last));
	return NULL;
}

START_TEST(sessions_run_side_by_side)
{
	struct pawl_plan_cache *plans;
	struct worker workers[4] = {0};

	ck_assert_int_eq(pawl_plan_cache_new(1, &plans, &err), PAWL_OK);
	options.plans = plans;
	options.n_threads = 2;
	for (unsigned i = 0; i < 4; i++) {
		workers[i].decoder = pawl_test_decoder(model, &options);
		workers[i].seed = i;
	}
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(
			pthread_create(&workers[i].thread, NULL, generate, &workers[i]), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(workers[i].thread, NULL);
	options.plans = NULL;
	for (unsigned i = 0; i < 4; i++) {
		float *expected = pawl_test_fresh(model, &options, i, 20);

		ck_assert(workers[i].ok);
		ck_assert(pawl_test_same(workers[i].decoder, workers[i].last, expected));
		pawl_decoder_free(workers[i].decoder);
		free(expected);
	}
	pawl_plan_cache_free(plans);
}
END_TEST

START_TEST(a_plan_cache_keeps_the_latest)
{
	struct pawl_plan_cache *plans;
	struct pawl_decoder *decoder;
	const struct pawl_plan *plan;
	struct pawl_plan_key keys[3];
	struct pawl_plan *found;

	ck_assert_int_eq(pawl_plan_cache_new(2, &plans, &err), PAWL_OK);
	options.plans = plans;
	decoder = pawl_test_decoder(model, &options);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(
			pawl_decoder_prepare(decoder, i + 1, PAWL_LOGITS_LAST, &plan, &err),
			PAWL_OK);
		keys[i] = plan->key;
		if (i == 1)
			/* The first is now the most recently used. */
			pawl_plan_unref(pawl_plan_cache_find(plans, &keys[0]));
	}
	ck_assert_ptr_null(pawl_plan_cache_find(plans, &keys[1]));
	for (int i = 0; i < 3; i += 2) {
		found = pawl_plan_cache_find(plans, &keys[i]);
		ck_assert_ptr_nonnull(found);
		ck_assert_int_eq(found->key.seq, i + 1);
		pawl_plan_unref(found);
	}
	pawl_decoder_free(decoder);
	pawl_plan_cache_free(plans);
}
END_TEST

START_TEST(kinds_of_logits_have_plans_of_their_own)
{
	const struct pawl_plan *plans_of[PAWL_N_LOGITS];
	struct pawl_plan_cache *plans;
	struct pawl_decoder *decoder;

	ck_assert_int_eq(pawl_plan_cache_new(4, &plans, &err), PAWL_OK);
	options.plans = plans;
	decoder = pawl_test_decoder(model, &options);
	for (int i = 0; i < PAWL_N_LOGITS; i++)
		ck_assert_int_eq(
			pawl_decoder_prepare(decoder, 3, (enum pawl_logits)i, &plans_of[i], &err),
			PAWL_OK);
	for (int i = 0; i < PAWL_N_LOGITS; i++)
		for (int j = 0; j < i; j++) {
			ck_assert_ptr_ne(plans_of[i], plans_of[j]);
			ck_assert_uint_ne(plans_of[i]->key.shape_key, plans_of[j]->key.shape_key);
		}
	pawl_decoder_free(decoder);
	pawl_plan_cache_free(plans);
}
END_TEST

START_TEST(capacities_are_checked)
{
	static const int bad[] = {0, -1, INT_MIN, PAWL_MAX_CACHED_PLANS + 1, INT_MAX};
	struct pawl_plan_cache *plans = NULL;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_int_eq(
			pawl_plan_cache_new(bad[i], &plans, &err), PAWL_INVALID_ARGUMENT);
		ck_assert_ptr_null(plans);
	}
	ck_assert_int_eq(pawl_plan_cache_new(PAWL_MAX_CACHED_PLANS, &plans, &err), PAWL_OK);
	pawl_plan_cache_free(plans);
}
END_TEST

START_TEST(more_tokens_than_room_are_not_looked_at)
{
	struct pawl_decoder *decoder = pawl_test_decoder(model, &options);
	const uint32_t token = 1;

	ck_assert_int_eq(
		pawl_decoder_prefill(decoder, &token, INT64_MAX, NULL, &err), PAWL_CAPACITY);
	ck_assert_int_eq(pawl_decoder_prefill(decoder, &token, 65, NULL, &err), PAWL_CAPACITY);
	ck_assert_int_eq(pawl_decoder_prefill(decoder, &token, INT64_MIN, NULL, &err),
		PAWL_INVALID_ARGUMENT);
	pawl_decoder_free(decoder);
}
END_TEST

START_TEST(sessions_are_bounded)
{
	struct pawl_decoder *decoder = pawl_test_decoder(model, &options);
	struct pawl_decoder_stats stats;

	for (int i = 1; i <= 12; i++)
		ck_assert_int_eq(
			pawl_decoder_prepare(decoder, i, PAWL_LOGITS_LAST, NULL, &err), PAWL_OK);
	pawl_decoder_stats(decoder, &stats);
	ck_assert_int_eq(stats.n_sessions, 8);
	ck_assert_int_eq(pawl_decoder_prepare(decoder, 65, PAWL_LOGITS_LAST, NULL, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(pawl_decoder_prepare(decoder, 12, PAWL_LOGITS_LAST, NULL, &err), PAWL_OK);
	ck_assert_uint_eq(optimizes_of(decoder), 13);
	ck_assert_int_eq(pawl_decoder_prepare(decoder, 4, PAWL_LOGITS_LAST, NULL, &err), PAWL_OK);
	ck_assert_uint_eq(optimizes_of(decoder), 14);
	pawl_decoder_free(decoder);
}
END_TEST

Suite *
pawl_plan_cache_suite(void)
{
	Suite *suite = suite_create("plan_cache");
	TCase *tcase = tcase_create("plan_cache");

	tcase_add_checked_fixture(tcase, begin_model, end_model);
	tcase_add_test(tcase, plans_are_shared);
	tcase_add_test(tcase, sessions_run_side_by_side);
	tcase_add_test(tcase, a_plan_cache_keeps_the_latest);
	tcase_add_test(tcase, kinds_of_logits_have_plans_of_their_own);
	tcase_add_test(tcase, capacities_are_checked);
	tcase_add_test(tcase, more_tokens_than_room_are_not_looked_at);
	tcase_add_test(tcase, sessions_are_bounded);
	suite_add_tcase(suite, tcase);
	return suite;
}

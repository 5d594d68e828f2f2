/*
 * Sessions on caches of latents: what those on the contiguous cache are asked in test_session.c and
 * test_validity.c.
 */
#include "runtime/latent_kv_cache.h"

#include <string.h>

#include "runtime/decode_session.h"
#include "runtime/inference_context.h"
#include "tests/latent_cache_fixture.h"
#include "tests/latent_session_fixture.h"
#include "tests/suites.h"

/* A model over it: each layer writes x and half of it, and adds what it sees of both. */

static enum pawl_disposition_kind
refresh(struct pawl_latent_kv_cache *cache, struct pawl_disposition *what)
{
	const struct pawl_kv_rebind_source source = pawl_latent_kv_cache_source(cache);
	const struct pawl_plan_key key = latent_key();

	pawl_decode_session_refresh(&session, &key, &source, (struct pawl_invalidate){NULL, NULL},
		pawl_inference_context_counters(context), what);
	return what->kind;
}

START_TEST(a_swapped_cache_serves_its_own_content)
{
	struct pawl_counters *counters = pawl_inference_context_counters(context);
	uint64_t optimizes = counters->optimizes;
	struct pawl_disposition what;
	float one[WIDTH], two[WIDTH];
	const float *row;

	fresh(1, 14, one);
	fresh(2, 14, two);
	ck_assert(memcmp(one, two, sizeof(one)));
	for (int i = 0; i < 13; i++)
		step(session, first, 1);
	ck_assert_int_eq(refresh(second, &what), PAWL_SESSION_REBOUND);
	for (int i = 0; i < 13; i++)
		step(session, second, 2);
	row = step(session, second, 2);
	ck_assert(!memcmp(row, two, sizeof(two)));
	/* Back, as if nothing had been. */
	ck_assert_int_eq(refresh(first, &what), PAWL_SESSION_REBOUND);
	ck_assert(!memcmp(step(session, first, 1), one, sizeof(one)));
	ck_assert_int_eq(refresh(first, &what), PAWL_SESSION_KEPT);
	ck_assert_uint_eq(counters->rebinds, 2);
	ck_assert_uint_eq(counters->optimizes, optimizes + 2); /* of the caches of fresh */
}
END_TEST

/* Negative control: what would come out of a session that was not rebound. */
START_TEST(a_stale_session_is_told_apart)
{
	float two[WIDTH];

	fresh(2, 14, two);
	for (int i = 0; i < 13; i++)
		step(session, first, 1);
	for (int i = 0; i < 13; i++)
		pawl_latent_kv_cache_advance(second, 1);
	/* The second cache's length, the first one's content. */
	ck_assert(memcmp(step(session, second, 2), two, sizeof(two)));
}
END_TEST

START_TEST(a_freed_cache_that_comes_back_at_its_address)
{
	struct pawl_disposition what;
	float two[WIDTH];

	fresh(2, 14, two);
	for (int i = 0; i < 4; i++) {
		pawl_latent_kv_cache_free(second);
		second = new_cache();
		ck_assert_int_eq(refresh(second, &what), PAWL_SESSION_REBOUND);
		for (int j = 0; j < 13; j++)
			step(session, second, i == 3 ? 2 : 1);
	}
	ck_assert(!memcmp(step(session, second, 2), two, sizeof(two)));
}
END_TEST

START_TEST(rollback_equals_straight)
{
	float wanted[WIDTH];

	fresh(1, 14, wanted);
	for (int i = 0; i < 10; i++)
		step(session, first, 1);
	for (int i = 0; i < 6; i++)
		step(session, first, 7);
	pawl_latent_kv_cache_truncate_to(first, 10);
	for (int i = 0; i < 3; i++)
		step(session, first, 1);
	ck_assert(!memcmp(step(session, first, 1), wanted, sizeof(wanted)));
}
END_TEST

static void
spoil_from(struct pawl_latent_kv_cache *cache, int64_t from)
{
	for (int32_t i = 0; i < 2 * N_LAYERS; i++) {
		struct pawl_storage *storage = pawl_latent_kv_cache_storage(cache, i / 2, i % 2);
		int64_t row = storage->n_bytes / CAPACITY;

		memset((char *)storage->bytes + from * row, 0xff,
			(size_t)((CAPACITY - from) * row));
	}
}

START_TEST(what_lies_beyond_the_length_means_nothing)
{
	const float *row = NULL;
	float wanted[WIDTH];

	fresh(1, 14, wanted);
	spoil_from(first, 0);
	for (int i = 0; i < 14; i++) {
		row = step(session, first, 1);
		spoil_from(first, i + 1);
	}
	ck_assert(!memcmp(row, wanted, sizeof(wanted)));
	pawl_latent_kv_cache_truncate_to(first, 13);
	spoil_from(first, 12);
	ck_assert(memcmp(step(session, first, 1), wanted, sizeof(wanted)));
}
END_TEST

START_TEST(capacity_is_checked)
{
	int64_t offset = CAPACITY;
	const uint32_t token = 3;
	const struct pawl_token_data data = {.token_ids = &token, .offset = &offset};

	for (int i = 0; i < CAPACITY; i++)
		step(session, first, 1);
	ck_assert_int_eq(pawl_latent_kv_cache_check_room(first, 1, &err), PAWL_CAPACITY);
	ck_assert_int_eq(pawl_decode_session_realize(session, &data, &env,
				 pawl_inference_context_counters(context), &err),
		PAWL_CAPACITY);
	offset = -1;
	ck_assert_int_eq(pawl_decode_session_realize(session, &data, &env,
				 pawl_inference_context_counters(context), &err),
		PAWL_INVALID_ARGUMENT);
}
END_TEST

START_TEST(a_cleared_cache_is_refused)
{
	struct pawl_disposition what;
	struct pawl_decode_session *none = NULL;

	pawl_latent_kv_cache_clear(second);
	ck_assert_int_eq(refresh(second, &what), PAWL_SESSION_DROPPED);
	ck_assert_int_eq(what.refusal.kind, PAWL_REFUSAL_MISSING_SLOT);
	ck_assert_ptr_null(session);
	ck_assert_int_eq(pawl_decode_session_new_latent(plan, weights, second,
				 pawl_inference_context_team(context), &none, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "a decode session needs a cache with capacity");
	ck_assert_ptr_null(none);
}
END_TEST

Suite *
pawl_latent_session_suite(void)
{
	Suite *suite = suite_create("latent_session");
	TCase *tests = tcase_create("session");

	tcase_add_checked_fixture(tests, begin_model, end_model);
	tcase_add_test(tests, a_swapped_cache_serves_its_own_content);
	tcase_add_test(tests, a_stale_session_is_told_apart);
	tcase_add_test(tests, a_freed_cache_that_comes_back_at_its_address);
	tcase_add_test(tests, rollback_equals_straight);
	tcase_add_test(tests, what_lies_beyond_the_length_means_nothing);
	tcase_add_test(tests, capacity_is_checked);
	tcase_add_test(tests, a_cleared_cache_is_refused);
	suite_add_tcase(suite, tests);
	return suite;
}

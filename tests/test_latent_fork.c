/*
 * Forks of caches of latents, on the tiny model of tests/tiny_mla.h: what comes of them equals to
 * the bit what was never forked, and what fails changes nothing.
 */
#include "runtime/latent_kv_cache.h"

#include <string.h>

#include "runtime/memory.h"
#include "tests/latent_fixture.h"
#include "tests/suites.h"

/* The logits after token n - 1 of sequence 1 up to `at`, then of `seed`, all of it run afresh. */
static void
fresh(unsigned seed, int64_t at, int64_t n, float *last)
{
	static float logits[64 * N_VOCAB];
	struct pawl_latent_runner r;

	pawl_latent_runner_init(&r, model, &pawl_latent_plain);
	pawl_latent_runner_feed(&r, 1, 0, at, logits);
	pawl_latent_runner_feed(&r, seed, at, n - at, logits);
	memcpy(last, logits + (n - at - 1) * N_VOCAB, N_VOCAB * sizeof(float));
	pawl_latent_runner_release(&r);
}

START_TEST(forked_equals_fresh)
{
	static float logits[64 * N_VOCAB];
	float ours[N_VOCAB], theirs[N_VOCAB];
	struct pawl_latent_kv_cache *fork;
	struct pawl_storage *storage = pawl_latent_kv_cache_storage(life.cache, 1, 0);
	struct pawl_counters before;
	uint64_t id, allocations;

	fresh(1, 20, 28, ours);
	fresh(2, 20, 28, theirs);
	ck_assert(memcmp(ours, theirs, sizeof(ours)));
	pawl_latent_runner_feed(&life, 1, 0, 20, logits);
	id = pawl_latent_kv_cache_alloc_id(life.cache).value;
	allocations = pawl_memory_allocations();
	fork = fork_now();
	/* The cache, its tensors, the count. */
	ck_assert_uint_eq(pawl_memory_allocations() - allocations, 3);
	ck_assert_uint_gt(pawl_latent_kv_cache_alloc_id(life.cache).value, id);
	ck_assert_uint_ne(pawl_latent_kv_cache_alloc_id(fork).value,
		pawl_latent_kv_cache_alloc_id(life.cache).value);
	ck_assert_ptr_eq(pawl_latent_kv_cache_storage(fork, 1, 0), storage);
	ck_assert_int_eq(pawl_latent_kv_cache_len(fork), 20);
	ck_assert(pawl_latent_kv_cache_is_shared(fork));
	before = *pawl_latent_runner_counters(&life);
	/* The two go on in turns, the fork first or second. */
	for (int i = 0; i < 4; i++)
		for (int turn = 0; turn < 2; turn++) {
			bool is_fork = turn == _i;

			if (is_fork)
				pawl_latent_runner_swap(&life, &fork);
			pawl_latent_runner_ready(&life);
			pawl_latent_runner_feed(
				&life, is_fork ? 2 : 1, 20 + 2 * i, 2, logits + is_fork * 2 * N_VOCAB);
			if (is_fork)
				pawl_latent_runner_swap(&life, &fork);
		}
	pawl_latent_expect_same(ours, logits + N_VOCAB, 1, "parent");
	pawl_latent_expect_same(theirs, logits + 3 * N_VOCAB, 1, "fork");
	/* Whoever wrote first has copies, the other the storages there were. */
	ck_assert((pawl_latent_kv_cache_storage(fork, 1, 0) == storage) == (_i == 1));
	ck_assert((pawl_latent_kv_cache_storage(life.cache, 1, 0) == storage) == (_i == 0));
	ck_assert_uint_eq(pawl_latent_runner_counters(&life)->optimizes, before.optimizes);
	ck_assert_uint_eq(pawl_latent_runner_counters(&life)->regrows, before.regrows);
	pawl_latent_kv_cache_free(fork);
}
END_TEST

START_TEST(nothing_is_bound_to_what_is_shared)
{
	static float logits[64 * N_VOCAB];
	struct pawl_latent_kv_cache *fork;
	struct pawl_decode_session *session = NULL;
	struct pawl_kv_rebind_source source = pawl_latent_kv_cache_source(life.cache);
	struct pawl_refusal refusal;
	uint64_t id;

	pawl_latent_runner_feed(&life, 1, 0, 20, logits);
	fork = fork_now();
	ck_assert(!pawl_decode_session_rebind(life.held[1].session, &source, &refusal));
	ck_assert_int_eq(refusal.kind, PAWL_REFUSAL_SHARED);
	ck_assert_int_eq(pawl_decode_session_new_latent(life.held[1].plan, life.source->weights,
				 life.cache, pawl_inference_context_team(life.context), &session,
				 &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "the cache has the storages of a fork and does not own them");
	/* The last of two owns without a copy. */
	pawl_latent_kv_cache_free(fork);
	ck_assert(!pawl_latent_kv_cache_is_shared(life.cache));
	id = pawl_latent_kv_cache_alloc_id(life.cache).value;
	OK(pawl_latent_kv_cache_own(life.cache, &err));
	ck_assert_uint_eq(pawl_latent_kv_cache_alloc_id(life.cache).value, id);
	ck_assert(pawl_decode_session_rebind(life.held[1].session, &source, &refusal));
	/* A fork that grows or is cleared leaves the other alone. */
	fork = fork_now();
	OK(pawl_latent_kv_cache_reserve(fork, 300, &err));
	ck_assert(!pawl_latent_kv_cache_is_shared(life.cache));
	ck_assert_int_eq(pawl_latent_kv_cache_shape(life.cache)->max_seq_len, 160);
	pawl_latent_kv_cache_clear(fork);
	ck_assert_int_eq(pawl_latent_kv_cache_fork(fork, &fork, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "the cache has no capacity");
	pawl_latent_kv_cache_free(fork);
}
END_TEST

START_TEST(a_failed_fork_changes_nothing)
{
	static float logits[64 * N_VOCAB];
	struct pawl_latent_kv_cache *fork = NULL;
	enum pawl_status status = PAWL_OUT_OF_MEMORY;
	uint64_t digest, fork_digest;
	int n;

	pawl_latent_runner_feed(&life, 1, 0, 20, logits);
	digest = pawl_latent_digest(life.cache);
	for (n = 0; status == PAWL_OUT_OF_MEMORY; n++) {
		ck_assert_uint_eq(pawl_latent_digest(life.cache), digest);
		ck_assert(!pawl_latent_kv_cache_is_shared(life.cache));
		pawl_memory_fail_after(n);
		status = pawl_latent_kv_cache_fork(life.cache, &fork, &err);
		pawl_memory_fail_after(-1);
	}
	OK(status);
	ck_assert_int_eq(n - 1, 3);
	digest = pawl_latent_digest(life.cache);
	fork_digest = pawl_latent_digest(fork);
	status = PAWL_OUT_OF_MEMORY;
	for (n = 0; status == PAWL_OUT_OF_MEMORY; n++) {
		ck_assert_uint_eq(pawl_latent_digest(life.cache), digest);
		ck_assert_uint_eq(pawl_latent_digest(fork), fork_digest);
		ck_assert(pawl_latent_kv_cache_is_shared(fork));
		pawl_memory_fail_after(n);
		status = pawl_latent_kv_cache_own(fork, &err);
		pawl_memory_fail_after(-1);
	}
	OK(status);
	/* The list, and for each of 2 storages itself and its bytes. */
	ck_assert_int_eq(n - 1, 1 + 2 * 2);
	ck_assert_uint_eq(pawl_latent_digest(life.cache), digest);
	pawl_latent_kv_cache_free(fork);
}
END_TEST

Suite *
pawl_latent_fork_suite(void)
{
	Suite *suite = suite_create("latent_fork");
	TCase *tests = tcase_create("latent_fork");

	tcase_add_checked_fixture(tests, begin_life, end_life);
	tcase_set_timeout(tests, 60);
	tcase_add_loop_test(tests, forked_equals_fresh, 0, 2);
	tcase_add_test(tests, nothing_is_bound_to_what_is_shared);
	tcase_add_test(tests, a_failed_fork_changes_nothing);
	suite_add_tcase(suite, tests);
	return suite;
}

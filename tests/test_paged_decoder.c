/*
 * Sequences over a pool of blocks: their logits are those of each alone in a contiguous cache, bit
 * for bit, whatever the batch, the blocks and what happened to them in between.
 */
#include "runtime/paged_decoder.h"

#include "codegen/tensor.h"
#include "tests/decoding.h"
#include "tests/paged_fixture.h"
#include "tests/suites.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

static void
fill_with_nan(void)
{
	struct pawl_kv_cache *cache = pawl_paged_decoder_cache(decoder);

	for (int32_t i = 0; i < 2 * pawl_kv_cache_shape(cache)->n_layers; i++) {
		struct pawl_kv_layer_id id = {i / 2, (enum pawl_kv_slot)(i % 2)};
		struct pawl_storage *storage = pawl_kv_cache_storage(cache, id);

		memset(storage->bytes, 0xff, (size_t)storage->n_bytes);
	}
}

/* Anew with a cache of q8_0, which takes heads of whole blocks. */
static void
use_blocks(void)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();

	tiny.head_dim = 32;
	pawl_paged_decoder_free(decoder);
	pawl_tiny_model_free(model);
	model = pawl_tiny_model_new(&tiny);
	options.kv_dtype = PAWL_DTYPE_Q8_0;
	decoder = new_decoder();
}

START_TEST(paged_is_contiguous)
{
	static const enum pawl_dtype types[] = {PAWL_DTYPE_F16, PAWL_DTYPE_F32, PAWL_DTYPE_Q8_0};
	static const int64_t sizes[] = {16, 32, 64};
	struct pawl_kv_session_id sessions[2];

	if (_i >= 6)
		use_blocks();
	pawl_paged_decoder_free(decoder);
	options.block_size = sizes[_i % 3];
	options.max_blocks = 64 / options.block_size;
	options.kv_dtype = types[_i / 3];
	options.policy = _i == 1 ? PAWL_PAGED_REPLAN : PAWL_PAGED_PLAN_ONCE;
	decoder = new_decoder();
	fill_with_nan();
	sessions[0] = open_sequence();
	sessions[1] = open_sequence();
	check_logits(prefill(sessions[0], 0, 21), 0, 21);
	check_logits(prefill(sessions[1], 1, 3), 1, 3);
	for (int i = 0; i < 14; i++) {
		step(sessions, 0, 1);
		step(sessions, 1, 1);
	}
}
END_TEST

START_TEST(a_ragged_batch_is_each_alone)
{
	static const int64_t lengths[] = {5, 17, 16, 1, 30, 15, 2};
	struct pawl_kv_session_id sessions[7];

	if (_i)
		use_blocks();
	fill_with_nan();
	for (unsigned i = 0; i < 7; i++) {
		sessions[i] = open_sequence();
		prefill(sessions[i], i, lengths[i]);
	}
	for (int round = 0; round < 2; round++) {
		step(sessions, 0, 7); /* a bucket of 8 */
		step(sessions, 2, 3); /* of 4 */
		step(sessions, 5, 2);
	}
	/* Joining and leaving. */
	ck_assert_int_eq(pawl_paged_decoder_close(decoder, sessions[1], &err), PAWL_OK);
	sessions[1] = open_sequence();
	prefill(sessions[1], 1, 9);
	step(sessions, 0, 4);
}
END_TEST

START_TEST(plans_once_and_allocates_nothing)
{
	struct pawl_kv_session_id sessions[4];
	struct pawl_decoder_stats before, after;

	for (unsigned i = 0; i < 4; i++) {
		sessions[i] = open_sequence();
		prefill(sessions[i], i, 4 + 5 * i);
	}
	step(sessions, 0, 4);
	step(sessions, 0, 2);
	step(sessions, 0, 1);
	pawl_paged_decoder_stats(decoder, &before);
	/* The cache; chunk; 1, 2 and 4 rows. */
	ck_assert_uint_eq(before.counters.optimizes, 5);
	ck_assert_int_eq(before.n_sessions, 4);
	for (int round = 0; round < 12; round++) {
		struct pawl_paged_row rows[4];
		const float *logits;
		int n = 1 << round % 3;

		for (int i = 0; i < n; i++)
			rows[i] = (struct pawl_paged_row){sessions[(round + i) % 4], 7};
		ck_assert_int_eq(
			pawl_paged_decoder_step(decoder, rows, n, &logits, &err), PAWL_OK);
	}
	pawl_paged_decoder_stats(decoder, &after);
	ck_assert_uint_eq(after.counters.optimizes, before.counters.optimizes);
	ck_assert_uint_eq(pawl_counters_rebuilds(&after.counters), 0);
	ck_assert_uint_eq(after.allocations, before.allocations);
	ck_assert_uint_eq(after.counters.runs, before.counters.runs + 12);
	ck_assert_uint_eq(after.counters.tokens, before.counters.tokens + 4 * (1 + 2 + 4));
}
END_TEST

START_TEST(replanning_optimizes_every_step)
{
	struct pawl_kv_session_id session;
	struct pawl_decoder_stats stats;

	pawl_paged_decoder_free(decoder);
	options.policy = PAWL_PAGED_REPLAN;
	decoder = new_decoder();
	session = open_sequence();
	for (int i = 0; i < 5; i++)
		step(&session, 0, 1);
	pawl_paged_decoder_stats(decoder, &stats);
	ck_assert_uint_eq(stats.counters.optimizes, 1 + 5);
	ck_assert_uint_eq(stats.counters.builds[PAWL_REBUILD_ASKED], 4);
}
END_TEST

START_TEST(forks_go_their_own_ways)
{
	struct pawl_kv_block_pool *pool = pawl_paged_decoder_pool(decoder);
	struct pawl_kv_session_id parent = open_sequence(), child;
	int64_t n_free;
	const float *logits;
	uint32_t token;

	prefill(parent, 0, 20);
	n_free = pawl_kv_block_pool_free_blocks(pool);
	ck_assert_int_eq(pawl_kv_block_pool_fork(pool, parent, &child, &err), PAWL_OK);
	ck_assert_int_eq(pawl_kv_block_pool_free_blocks(pool), n_free);
	token = pawl_test_token(0, 20);
	for (int i = 0; i < 2; i++) {
		const struct pawl_paged_row row = {i ? parent : child, token};

		ck_assert_int_eq(
			pawl_paged_decoder_step(decoder, &row, 1, &logits, &err), PAWL_OK);
		check_logits(logits, 0, 21);
		/* The first to write copies the tail; then it is its own. */
		ck_assert_int_eq(pawl_kv_block_pool_free_blocks(pool), n_free - 1);
	}
	/* The child goes on otherwise, the parent as ever. */
	for (int i = 0; i < 3; i++) {
		const struct pawl_paged_row row = {child, 39};

		ck_assert_int_eq(
			pawl_paged_decoder_step(decoder, &row, 1, &logits, &err), PAWL_OK);
	}
	step(&parent, 0, 1);
	ck_assert_int_eq(pawl_paged_decoder_close(decoder, child, &err), PAWL_OK);
	step(&parent, 0, 1);
	ck_assert_int_eq(pawl_paged_decoder_close(decoder, parent, &err), PAWL_OK);
	ck_assert_int_eq(pawl_kv_block_pool_free_blocks(pool), options.n_blocks);
}
END_TEST

START_TEST(evicted_and_restored_is_never_evicted)
{
	struct pawl_kv_block_pool *pool;
	struct pawl_kv_session_id sessions[2], others[3];
	struct pawl_kv_evict_report report;
	uint64_t digest;
	const float *logits;
	struct pawl_paged_row row;

	if (_i)
		use_blocks();
	pool = pawl_paged_decoder_pool(decoder);
	sessions[0] = open_sequence();
	sessions[1] = open_sequence();
	prefill(sessions[0], 0, 25);
	prefill(sessions[1], 1, 40);
	ck_assert_int_eq(
		pawl_paged_decoder_evict(decoder, sessions[1], &report, &err), PAWL_OK);
	ck_assert_int_eq(report.n_freed, 3);
	ck_assert_int_eq(pawl_paged_decoder_evicted_bytes(decoder),
		3 * pawl_kv_block_pool_block_bytes(pool));
	/* It cannot run, and trying changes nothing. */
	digest = pawl_kv_block_pool_digest(pool);
	row = (struct pawl_paged_row){sessions[1], 3};
	ck_assert_int_eq(pawl_paged_decoder_step(decoder, &row, 1, &logits, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(strstr(err.text, "is evicted"), "is evicted: restore its handle first");
	ck_assert_uint_eq(pawl_kv_block_pool_digest(pool), digest);
	/* Its blocks are used by others until there is no room to come back. */
	for (int i = 0; i < 3; i++) {
		others[i] = open_sequence();
		prefill(others[i], 7, 48);
	}
	ck_assert_int_eq(
		pawl_paged_decoder_restore(decoder, report.handle, &err), PAWL_CAPACITY);
	ck_assert_int_eq(pawl_paged_decoder_close(decoder, others[1], &err), PAWL_OK);
	fill_with_nan();
	ck_assert_int_eq(pawl_paged_decoder_restore(decoder, report.handle, &err), PAWL_OK);
	ck_assert_int_eq(pawl_paged_decoder_evicted_bytes(decoder), 0);
	step(sessions, 1, 1);
	ck_assert_int_eq(pawl_paged_decoder_restore(decoder, report.handle, &err),
		PAWL_INVALID_ARGUMENT);
}
END_TEST

START_TEST(closing_frees_what_was_evicted)
{
	struct pawl_kv_session_id session = open_sequence();
	struct pawl_kv_evict_report report;

	prefill(session, 0, 17);
	ck_assert_int_eq(pawl_paged_decoder_evict(decoder, session, &report, &err), PAWL_OK);
	ck_assert_int_gt(pawl_paged_decoder_evicted_bytes(decoder), 0);
	ck_assert_int_eq(pawl_paged_decoder_close(decoder, session, &err), PAWL_OK);
	ck_assert_int_eq(pawl_paged_decoder_evicted_bytes(decoder), 0);
	ck_assert_int_eq(pawl_paged_decoder_evict(decoder, session, &report, &err),
		PAWL_INVALID_ARGUMENT);
}
END_TEST

START_TEST(extending_and_cutting_is_stepping)
{
	struct pawl_kv_block_pool *pool = pawl_paged_decoder_pool(decoder);
	struct pawl_kv_session_id session = open_sequence();

	prefill(session, 0, 14);
	for (int64_t n = 1; n <= 5; n++) {
		int64_t length = length_of(session);
		uint32_t tokens[5];
		const float *logits;

		for (int64_t i = 0; i < n; i++)
			tokens[i] = pawl_test_token(0, length + i);
		ck_assert_int_eq(pawl_paged_decoder_extend(
					 decoder, session, tokens, n, &logits, &err),
			PAWL_OK);
		for (int64_t i = 0; i < n; i++)
			check_logits(logits + i * N_VOCAB, 0, length + i + 1);
		/* All but the first were wrong. */
		ck_assert_int_eq(
			pawl_kv_block_pool_truncate(pool, session, length + 1, &err), PAWL_OK);
	}
}
END_TEST

START_TEST(feeding_piece_by_piece_is_prefilling)
{
	struct pawl_kv_session_id fed = open_sequence(), other = open_sequence();
	int64_t n = 29, taken = 0, first = 0;
	uint32_t tokens[29];

	for (int64_t i = 0; i < n; i++)
		tokens[i] = pawl_test_token(0, i);
	for (int64_t done = 0; done < n; done += taken) {
		taken = 0;
		ck_assert_msg(pawl_paged_decoder_feed(decoder, fed, tokens + done, n - done, &taken,
				      &err) == PAWL_OK,
			"%s", err.text);
		/* Chunks of 8, then what is less than a quarter of one. */
		ck_assert_int_eq(taken, n - done > 8 ? 8 : n - done > 2 ? n - done : 1);
		ck_assert_int_eq(length_of(fed), done + taken);
		if (!first++)
			prefill(other, 1, 11); /* between the pieces */
	}
	step(&fed, 0, 1);
	ck_assert_int_eq(pawl_paged_decoder_feed(decoder, fed, tokens, 0, &taken, &err),
		PAWL_INVALID_ARGUMENT);
	tokens[3] = N_VOCAB;
	ck_assert_int_eq(pawl_paged_decoder_feed(decoder, fed, tokens, 4, &taken, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(length_of(fed), n + 1);
}
END_TEST

struct worker {
	pthread_t thread;
	struct pawl_paged_decoder *decoder;
	unsigned seed;
	bool ok;
	float last[N_VOCAB];
};

/* Without assertions, which are not for threads. */
static void *
generate(void *arg)
{
	struct worker *worker = arg;
	struct pawl_kv_session_id session;
	const float *logits = NULL;

	worker->ok = !pawl_paged_decoder_open(worker->decoder, &session, NULL);
	for (int i = 0; i < 20 && worker->ok; i++) {
		const struct pawl_paged_row row = {session, pawl_test_token(worker->seed, i)};

		worker->ok = !pawl_paged_decoder_step(worker->decoder, &row, 1, &logits, NULL);
	}
	if (worker->ok)
		memcpy(worker->last, logits, sizeof(worker->last));
	return NULL;
}

START_TEST(threads_share_a_plan)
{
	struct pawl_plan_cache *plans;
	struct worker workers[2] = {{0}};

	ck_assert_int_eq(pawl_plan_cache_new(1, &plans, &err), PAWL_OK);
	pawl_paged_decoder_free(decoder);
	options.plans = plans;
	options.n_threads = 2;
	decoder = new_decoder();
	for (unsigned i = 0; i < 2; i++) {
		workers[i].decoder = i ? new_decoder() : decoder;
		workers[i].seed = i;
	}
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(
			pthread_create(&workers[i].thread, NULL, generate, &workers[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(workers[i].thread, NULL);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert(workers[i].ok);
		check_logits(workers[i].last, i, 20);
	}
	pawl_paged_decoder_free(workers[1].decoder);
	pawl_paged_decoder_free(decoder);
	decoder = NULL;
	pawl_plan_cache_free(plans);
}
END_TEST

START_TEST(blocks_are_not_turned)
{
	struct pawl_kv_prefix_key key = {.n_tokens = 16};
	struct pawl_kv_session_id source, moved;
	struct pawl_kv_prefix_id prefix;
	uint32_t tokens[16];
	uint64_t digest;

	use_blocks();
	source = open_sequence();
	moved = open_sequence();
	for (int i = 0; i < 16; i++)
		tokens[i] = pawl_test_token(0, i);
	key.tokens = tokens;
	prefill(source, 0, 16);
	prefill(moved, 1, 16);
	ck_assert_int_eq(pawl_kv_block_pool_register_prefix(pawl_paged_decoder_pool(decoder), source,
				 &key, &prefix, &err),
		PAWL_OK);
	digest = pawl_kv_block_pool_digest(pawl_paged_decoder_pool(decoder));
	ck_assert_int_eq(pawl_paged_decoder_append_shifted(decoder, prefix, 1, moved, &err),
		PAWL_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(err.text, "keys of q8_0 are not turned"));
	ck_assert_uint_eq(pawl_kv_block_pool_digest(pawl_paged_decoder_pool(decoder)), digest);
	ck_assert_int_eq(length_of(moved), 16);
}
END_TEST

/* K and V of layer 0 depend on the token and its position alone. */
START_TEST(a_shifted_prefix_is_near)
{
	struct pawl_kv_block_pool *pool = pawl_paged_decoder_pool(decoder);
	struct pawl_kv_session_id source = open_sequence(), moved = open_sequence(),
				  straight = open_sequence();
	struct pawl_kv_cache *cache = pawl_paged_decoder_cache(decoder);
	struct pawl_kv_prefix_key key = {.n_tokens = 16};
	struct pawl_kv_prefix_id prefix;
	uint32_t tokens[32];
	int64_t dims[4], bytes;
	uint32_t blocks[2][4];
	int which;

	for (int i = 0; i < 32; i++)
		tokens[i] = pawl_test_token(3, i);
	key.tokens = tokens + 16;
	ck_assert_int_eq(pawl_paged_decoder_prefill(
				 decoder, source, tokens + 16, 16, NULL, &err),
		PAWL_OK);
	ck_assert_int_eq(
		pawl_kv_block_pool_register_prefix(pool, source, &key, &prefix, &err), PAWL_OK);
	ck_assert_int_eq(
		pawl_paged_decoder_prefill(decoder, moved, tokens, 16, NULL, &err), PAWL_OK);
	ck_assert_msg(pawl_paged_decoder_append_shifted(decoder, prefix, 1, moved, &err) == PAWL_OK,
		"%s", err.text);
	ck_assert_int_eq(
		pawl_paged_decoder_prefill(decoder, straight, tokens, 32, NULL, &err), PAWL_OK);
	ck_assert_int_eq(length_of(moved), 32);
	ck_assert_int_eq(
		pawl_kv_block_pool_block_table(pool, moved, blocks[0], 4, &err), PAWL_OK);
	ck_assert_int_eq(
		pawl_kv_block_pool_block_table(pool, straight, blocks[1], 4, &err), PAWL_OK);
	for (which = 0; which < 2; which++) {
		struct pawl_kv_layer_id id = {0, (enum pawl_kv_slot)which};
		const struct pawl_storage *storage = pawl_kv_cache_storage(cache, id);
		struct pawl_tensor t;
		float got[16], want[16];
		double most = 0;

		for (int i = 0; i < 4; i++)
			dims[i] = storage->type.dim[i].base;
		ck_assert_int_le(dims[3], 16);
		ck_assert_int_eq(pawl_tensor_init(&t, storage->type.dtype, storage->type.layout,
					 false, 4, dims, &bytes, &err),
			PAWL_OK);
		t.data = storage->bytes;
		for (int64_t head = 0; head < dims[1]; head++)
			for (int64_t p = 0; p < 16; p++) {
				pawl_tensor_load_f32(&t, head * dims[2] + blocks[0][1] * 16 + p, 0,
					dims[3], got);
				pawl_tensor_load_f32(&t, head * dims[2] + blocks[1][1] * 16 + p, 0,
					dims[3], want);
				for (int64_t i = 0; i < dims[3]; i++)
					most = fmax(most, fabs((double)got[i] - want[i]));
			}
		ck_assert_msg(which ? most == 0 : most > 0 && most < 4e-3, "%c differs by %g",
			which ? 'v' : 'k', most);
	}
}
END_TEST

Suite *
pawl_paged_decoder_suite(void)
{
	Suite *suite = suite_create("paged_decoder");
	TCase *tcase = tcase_create("paged_decoder");

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_loop_test(tcase, paged_is_contiguous, 0, 9);
	tcase_add_loop_test(tcase, a_ragged_batch_is_each_alone, 0, 2);
	tcase_add_test(tcase, plans_once_and_allocates_nothing);
	tcase_add_test(tcase, replanning_optimizes_every_step);
	tcase_add_test(tcase, forks_go_their_own_ways);
	tcase_add_loop_test(tcase, evicted_and_restored_is_never_evicted, 0, 2);
	tcase_add_test(tcase, closing_frees_what_was_evicted);
	tcase_add_test(tcase, extending_and_cutting_is_stepping);
	tcase_add_test(tcase, feeding_piece_by_piece_is_prefilling);
	tcase_add_test(tcase, threads_share_a_plan);
	tcase_add_test(tcase, a_shifted_prefix_is_near);
	tcase_add_test(tcase, blocks_are_not_turned);
	suite_add_tcase(suite, tcase);
	return suite;
}

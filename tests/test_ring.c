/*
 * Rings: a model whose layers have a window, with caches that keep what the window sees, against the same
 * model with caches that keep everything.  Logits are compared bit for bit while the rings fill and after
 * they have wrapped several times; what nobody has written is NaN.
 */
#include <string.h>

#include "tests/decoding.h"
#include "tests/ring_fixture.h"
#include "tests/snapshot_file.h"
#include "tests/suites.h"

/* The logits of sequence 1 with everything kept. */
static void
run_plain(const struct pawl_tiny_model *model, enum pawl_dtype kv)
{
	struct pawl_decoder_options options = options_of(false);
	struct pawl_decoder *d;

	options.kv_dtype = kv;
	d = open_decoder("ref", model, &options);
	ck_assert_int_eq(pawl_kv_cache_shape(pawl_decoder_cache(d))->rings.positions, 0);
	feed(d, 1, N_TOKENS, wanted);
	pawl_decoder_free(d);
}

static const struct {
	int64_t window;
	enum pawl_layout k_layout;
	enum pawl_dtype kv;
} models[] = {
	{WINDOW, PAWL_LAYOUT_K16, PAWL_DTYPE_F16},
	{121, PAWL_LAYOUT_K16, PAWL_DTYPE_F32},
	{122, PAWL_LAYOUT_ROWS, PAWL_DTYPE_F16},
	{1, PAWL_LAYOUT_ROWS, PAWL_DTYPE_BF16},
	{WINDOW, PAWL_LAYOUT_K16, PAWL_DTYPE_Q8_0},
};

static const struct {
	const char *what;
	int64_t chunk;
	int n_threads; /* 0: the reference, else kernels of the CPU */
} ways[] = {
	{"ring", 8, 0},
	{"ring, chunks of 7", 7, 0},
#ifdef PAWL_HAVE_LLVM
	{"ring, cpu, 2 threads, chunks of 7", 7, 2},
	{"ring, cpu, 3 threads, one by one", 1, 3},
#endif
};

START_TEST(a_ring_is_as_good_as_everything)
{
	struct pawl_tiny_options tiny = model_options(models[_i].window, models[_i].k_layout);
	struct pawl_decoder_options options = options_of(true);
	struct pawl_tiny_model *model;

	if (pawl_dtype_is_blocked(models[_i].kv))
		tiny.head_dim = 32;
	model = pawl_tiny_model_new(&tiny);
	run_plain(model, models[_i].kv);
	options.kv_dtype = models[_i].kv;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		int64_t ring = pawl_kv_ring_capacity(models[_i].window, ways[i].chunk, 0);
		struct pawl_decoder *d;

		options.prefill_chunk = ways[i].chunk;
		options.n_threads = ways[i].n_threads ? ways[i].n_threads : 1;
		d = open_decoder(ways[i].n_threads ? "cpu" : "ref", model, &options);
		ck_assert_int_eq(
			pawl_kv_cache_shape(pawl_decoder_cache(d))->rings.positions, ring);
		ck_assert_int_gt(N_TOKENS, ring + ring / 2);
		feed(d, 1, N_TOKENS, got);
		expect_same(wanted, got, 0, N_TOKENS, ways[i].what);
		pawl_decoder_free(d);
	}
	pawl_tiny_model_free(model);
}
END_TEST

/* What the comparison could hide: a window that does not matter. */
START_TEST(the_window_matters)
{
	struct pawl_tiny_model *model = make_model(WINDOW, PAWL_LAYOUT_K16), *twin;
	const struct pawl_tiny_options other = model_options(WINDOW + 1, PAWL_LAYOUT_K16);
	struct pawl_decoder_options options = options_of(true);
	struct pawl_decoder *d;

	twin = pawl_tiny_model_twin(model, &other);
	run_plain(model, PAWL_DTYPE_F16);
	d = open_decoder("ref", twin, &options);
	feed(d, 1, 200, got);
	expect_same(wanted, got, 0, WINDOW, "before a window is full");
	for (int64_t i = WINDOW; i < 200; i++)
		ck_assert(memcmp(wanted + i * N_VOCAB, got + i * N_VOCAB, N_VOCAB * sizeof(float)));
	pawl_decoder_free(d);
	pawl_tiny_model_free(twin);
	pawl_tiny_model_free(model);
}
END_TEST

START_TEST(only_layers_with_a_window_have_rings)
{
	struct pawl_tiny_model *model = make_model(WINDOW, PAWL_LAYOUT_K16);
	struct pawl_decoder_options options = options_of(true);
	struct pawl_decoder *d = open_decoder("ref", model, &options);
	struct pawl_decoder_stats stats;
	const struct pawl_plan *plan;

	for (int32_t i = 0; i < 6; i++) {
		const struct pawl_storage *storage = pawl_kv_cache_storage(pawl_decoder_cache(d),
			(struct pawl_kv_layer_id){i / 2, (enum pawl_kv_slot)(i % 2)});

		ck_assert_int_eq(storage->type.dim[2].base, i / 2 != 1 ? RING : CAPACITY);
	}
	pawl_decoder_stats(d, &stats);
	ck_assert_int_eq(stats.kv_bytes, 2 * (2 * RING + CAPACITY) * 2 * 16 * 2);
	OK(pawl_decoder_prepare(d, 1, PAWL_LOGITS_LAST, &plan, &err));
	ck_assert_int_eq(plan->key.ring, RING);
	ck_assert_int_eq(plan->key.ring_window, WINDOW);
	ck_assert_int_eq(pawl_decoder_capacity(d), CAPACITY);
	pawl_decoder_free(d);

	/* None where they would save nothing, or no layer has a window. */
	options.capacity = RING;
	d = open_decoder("ref", model, &options);
	ck_assert_int_eq(pawl_kv_cache_shape(pawl_decoder_cache(d))->rings.positions, 0);
	pawl_decoder_free(d);
	pawl_tiny_model_free(model);
	model = make_model(0, PAWL_LAYOUT_K16);
	options.capacity = CAPACITY;
	d = open_decoder("ref", model, &options);
	ck_assert_int_eq(pawl_kv_cache_shape(pawl_decoder_cache(d))->rings.positions, 0);
	pawl_decoder_free(d);
	pawl_tiny_model_free(model);
}
END_TEST

/* Guesses of k tokens, of which any number is taken back, all the way round the ring. */
START_TEST(guesses_are_taken_back)
{
	enum { K = 5 };
	struct pawl_tiny_model *model = make_model(124, PAWL_LAYOUT_K16);
	struct pawl_decoder_options options = options_of(true);
	struct pawl_decoder *d;
	uint32_t tokens[K + 1];
	const float *rows;

	run_plain(model, PAWL_DTYPE_F16);
	options.prefill_chunk = 1;
	options.ring_rollback = K;
	d = open_decoder("ref", model, &options);
	ck_assert_int_eq(pawl_kv_cache_shape(pawl_decoder_cache(d))->rings.positions, 256);
	for (int64_t len = 0, turn = 0; len + K + 1 < N_TOKENS; turn++) {
		int64_t right = turn % (K + 1) + 1;

		for (int64_t i = 0; i <= K; i++)
			tokens[i] = (pawl_test_token(1, len + i) + (i >= right)) % N_VOCAB;
		OK(pawl_decoder_extend(d, tokens, K + 1, K + 1, &rows, &err));
		memcpy(got + len * N_VOCAB, rows, (size_t)(right * N_VOCAB) * sizeof(float));
		len += right;
		pawl_decoder_truncate(d, len);
		ck_assert_int_eq(pawl_decoder_len(d), len);
	}
	expect_same(wanted, got, 0, pawl_decoder_len(d), "guesses");
	pawl_decoder_free(d);
	pawl_tiny_model_free(model);
}
END_TEST

START_TEST(what_was_overwritten_does_not_come_back)
{
	struct pawl_tiny_model *model = make_model(WINDOW, PAWL_LAYOUT_K16);
	struct pawl_decoder_options options = options_of(true);
	struct pawl_decoder *d = open_decoder("ref", model, &options);
	struct pawl_kv_cache *cache = pawl_decoder_cache(d);

	run_plain(model, PAWL_DTYPE_F16);
	feed(d, 1, 100, got);
	ck_assert_int_eq(pawl_kv_cache_least_len(cache), 0);
	feed(d, 1, 400, got);
	/* The last chunk was filled up to 403: 276 is the oldest in the ring, which 295 sees. */
	ck_assert_int_eq(pawl_kv_cache_least_len(cache), 295);
	pawl_decoder_truncate(d, 295);
	ck_assert_int_eq(pawl_decoder_len(d), 295);
	memset(got, 0, sizeof(got));
	feed(d, 1, 330, got);
	expect_same(wanted, got, 295, 330, "as far back as possible");
	ck_assert_int_eq(pawl_kv_cache_least_len(cache), 295);
	pawl_decoder_truncate(d, 294);
	ck_assert_int_eq(pawl_decoder_len(d), 0);
	ck_assert_int_eq(pawl_kv_cache_least_len(cache), 0);
	feed(d, 1, 300, got);
	expect_same(wanted, got, 0, 300, "from the start again");
	pawl_decoder_free(d);
	pawl_tiny_model_free(model);
}
END_TEST

START_TEST(too_many_rows_are_refused)
{
	struct pawl_tiny_model *model = make_model(WINDOW, PAWL_LAYOUT_K16);
	struct pawl_decoder_options options = options_of(true);
	struct pawl_decoder *d = open_decoder("ref", model, &options);
	const uint32_t tokens[] = {1};
	const float *rows;
	uint64_t before;

	run_plain(model, PAWL_DTYPE_F16);
	feed(d, 1, 200, got);
	before = pawl_test_cache_digest(pawl_decoder_cache(d));
	ck_assert_int_eq(pawl_decoder_extend(d, tokens, 1, RING - WINDOW + 2, &rows, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(
		err.text, "110 rows would cover what a window of 20 sees in a ring of 128");
	ck_assert_int_eq(pawl_decoder_prepare(d, 110, PAWL_LOGITS_ALL, NULL, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_uint_eq(pawl_test_cache_digest(pawl_decoder_cache(d)), before);
	ck_assert_int_eq(pawl_kv_cache_least_len(pawl_decoder_cache(d)), 200 - RING + WINDOW - 1);
	/* One less is possible; only the first of its rows counts. */
	OK(pawl_decoder_extend(d, tokens, 1, RING - WINDOW + 1, &rows, &err));
	pawl_decoder_truncate(d, 200);
	ck_assert_int_eq(pawl_decoder_len(d), 200);
	feed(d, 1, 300, got);
	expect_same(wanted, got, 0, 300, "after as many rows as possible");
	pawl_decoder_free(d);
	pawl_tiny_model_free(model);
}
END_TEST

/* A fork, more room, and another cache: rings move as a whole. */
START_TEST(rings_move_with_their_cache)
{
	struct pawl_tiny_model *model = make_model(WINDOW, PAWL_LAYOUT_K16);
	struct pawl_decoder_options options = options_of(true);
	struct pawl_decoder *d;
	struct pawl_kv_cache *fork;
	static float other[N_TOKENS * N_VOCAB];

	run_plain(model, PAWL_DTYPE_F16);
	options.capacity = 432;
	d = open_decoder("ref", model, &options);
	feed(d, 1, 300, got);
	OK(pawl_kv_cache_fork(pawl_decoder_cache(d), &fork, &err));
	ck_assert_int_eq(pawl_kv_cache_least_len(fork), 304 - RING + WINDOW - 1);
	feed(d, 2, 420, other);
	pawl_decoder_swap_cache(d, &fork);
	feed(d, 1, 400, got);
	OK(pawl_decoder_reserve(d, CAPACITY, &err));
	ck_assert_int_eq(pawl_kv_cache_shape(pawl_decoder_cache(d))->rings.positions, RING);
	feed(d, 1, N_TOKENS, got);
	expect_same(wanted, got, 0, N_TOKENS, "forked and grown");
	ck_assert(memcmp(wanted + 419 * N_VOCAB, other + 419 * N_VOCAB, N_VOCAB * sizeof(float)));
	pawl_kv_cache_free(fork);
	pawl_decoder_free(d);
	pawl_tiny_model_free(model);
}
END_TEST

/* Before the ring is full, when it just is, and after it wrapped once and twice. */
static const struct {
	int64_t len, cut; /* saved after len positions, of which all beyond cut were taken back */
	int64_t least;
} saved[] = {
	{0, 0, 0},
	{77, 77, 0},
	{128, 128, 0},
	{130, 130, 130 - RING + WINDOW - 1},
	{205, 205, 208 - RING + WINDOW - 1},
	{205, 99, 208 - RING + WINDOW - 1},
	{280, 280, 280 - RING + WINDOW - 1},
};

START_TEST(a_restored_ring_is_as_good_as_ever)
{
	struct pawl_tiny_model *model = make_model(WINDOW, PAWL_LAYOUT_K16), *twin;
	const struct pawl_tiny_options rows = model_options(WINDOW, PAWL_LAYOUT_ROWS);
	struct pawl_decoder_options options = options_of(true);
	struct pawl_decoder *d = open_decoder("ref", model, &options), *other;
	struct pawl_snapshot_file file;
	struct pawl_kv_cache *cache;
	int64_t len = saved[_i].cut, end = len + RING + 32, least;

	run_plain(model, PAWL_DTYPE_F16);
	twin = pawl_tiny_model_twin(model, &rows);
	pawl_snapshot_file_init(&file);
	if (saved[_i].len)
		feed(d, 1, saved[_i].len, got);
	pawl_decoder_truncate(d, len);
	least = pawl_kv_cache_least_len(pawl_decoder_cache(d));
	save(d, &file);
	/* Of another capacity and layout, with rings that have gone further. */
	options.capacity = 464;
	other = open_decoder("ref", twin, &options);
	feed(other, 2, 170, got);
	OK(restore(other, &file));
	cache = pawl_decoder_cache(other);
	ck_assert_int_eq(pawl_decoder_len(other), len);
	ck_assert_int_eq(pawl_kv_cache_least_len(cache), least);
	ck_assert_int_eq(least, saved[_i].least);
	memset(got, 0, sizeof(got));
	feed(other, 1, end, got);
	expect_same(wanted, got, len, end, "restored");
	/* As far back as the one that was saved, and no further. */
	OK(restore(other, &file));
	pawl_decoder_truncate(other, least);
	ck_assert_int_eq(pawl_decoder_len(other), least);
	feed(other, 1, end, got);
	expect_same(wanted, got, least, end, "restored, as far back as possible");
	OK(restore(other, &file));
	if (least) {
		pawl_decoder_truncate(other, least - 1);
		ck_assert_int_eq(pawl_decoder_len(other), 0);
	}
	pawl_snapshot_file_release(&file);
	pawl_decoder_free(other);
	pawl_decoder_free(d);
	pawl_tiny_model_free(twin);
	pawl_tiny_model_free(model);
}
END_TEST

Suite *
pawl_ring_suite(void)
{
	Suite *suite = suite_create("ring");
	TCase *tcase = tcase_create("ring");

	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, a_ring_is_as_good_as_everything, 0,
		(int)(sizeof(models) / sizeof(models[0])));
	tcase_add_test(tcase, the_window_matters);
	tcase_add_test(tcase, only_layers_with_a_window_have_rings);
	tcase_add_test(tcase, guesses_are_taken_back);
	tcase_add_test(tcase, what_was_overwritten_does_not_come_back);
	tcase_add_test(tcase, too_many_rows_are_refused);
	tcase_add_test(tcase, rings_move_with_their_cache);
	tcase_add_loop_test(tcase, a_restored_ring_is_as_good_as_ever, 0,
		(int)(sizeof(saved) / sizeof(saved[0])));
	suite_add_tcase(suite, tcase);
	return suite;
}

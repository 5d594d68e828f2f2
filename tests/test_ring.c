/*
 * Rings: a model whose layers have a window, with caches that keep what the window sees, against the same
 * model with caches that keep everything.  Logits are compared bit for bit while the rings fill and after
 * they have wrapped several times; what nobody has written is NaN.
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ir/eval.h"
#include "tests/decoding.h"
#include "tests/snapshot_file.h"
#include "tests/suites.h"

enum { N_TOKENS = 450, CAPACITY = 512, N_VOCAB = 40, WINDOW = 20, RING = 128 };

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

/* Layers 0 and 2 see a window, layer 1 everything. */
static struct pawl_tiny_options
model_options(int64_t window, enum pawl_layout k_layout)
{
	struct pawl_tiny_options options = pawl_tiny_defaults();

	options.n_layers = 3;
	options.n_embd = 32;
	options.n_ff = 32;
	options.window = window;
	options.window_layers = 5;
	options.k_layout = k_layout;
	return options;
}

static struct pawl_tiny_model *
make_model(int64_t window, enum pawl_layout k_layout)
{
	const struct pawl_tiny_options options = model_options(window, k_layout);

	return pawl_tiny_model_new(&options);
}

static struct pawl_decoder_options
options_of(bool rings)
{
	struct pawl_decoder_options options = pawl_test_decoder_options();

	options.capacity = CAPACITY;
	options.rings = rings;
	return options;
}

static void
poison(struct pawl_decoder *d)
{
	struct pawl_kv_cache *cache = pawl_decoder_cache(d);

	for (int32_t i = 0; i < pawl_kv_cache_shape(cache)->n_layers * PAWL_N_KV_SLOTS; i++) {
		struct pawl_storage *storage = pawl_kv_cache_storage(
			cache, (struct pawl_kv_layer_id){i / 2, (enum pawl_kv_slot)(i % 2)});

		memset(storage->bytes, 0xff, (size_t)storage->n_bytes);
	}
}

static struct pawl_decoder *
open_decoder(const char *target, const struct pawl_tiny_model *model,
	const struct pawl_decoder_options *options)
{
	struct pawl_decoder *d;
	struct pawl_device *device;

	OK(pawl_device_open(target, NULL, &device, &err));
	OK(pawl_decoder_new(pawl_tiny_model_source(model), device, options, &d, &err));
	pawl_device_unref(device);
	poison(d);
	return d;
}

static enum pawl_status
keep_row(void *arg, int64_t position, const float *logits, struct pawl_error *e)
{
	float *all = arg;

	(void)e;
	memcpy(all + position * N_VOCAB, logits, N_VOCAB * sizeof(float));
	return PAWL_OK;
}

/* Tokens of sequence `seed` up to length n; logits[position] of those that are new. */
static void
feed(struct pawl_decoder *d, unsigned seed, int64_t n, float *logits)
{
	uint32_t tokens[N_TOKENS];
	int64_t len = pawl_decoder_len(d);

	for (int64_t i = len; i < n; i++)
		tokens[i] = pawl_test_token(seed, i);
	OK(pawl_decoder_eval(d, tokens + len, n - len, keep_row, logits, &err));
}

static void
expect_same(const float *wanted, const float *got, int64_t first, int64_t end, const char *what)
{
	for (int64_t i = first * N_VOCAB; i < end * N_VOCAB; i++) {
		ck_assert(isfinite(wanted[i]));
		ck_assert_msg(pawl_eval_same(wanted[i], got[i]), "%s: logit %d of position %d: %a, %a",
			what, (int)(i % N_VOCAB), (int)(i / N_VOCAB), (double)wanted[i],
			(double)got[i]);
	}
}

static float wanted[N_TOKENS * N_VOCAB], got[N_TOKENS * N_VOCAB];

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

/* Snapshots. */

static void
save(const struct pawl_decoder *d, const struct pawl_snapshot_file *file)
{
	const struct pawl_kv_snapshot_sink to = pawl_snapshot_file_begin(file);
	uint32_t tokens[N_TOKENS];

	for (int64_t i = 0; i < N_TOKENS; i++)
		tokens[i] = pawl_test_token(1, i);
	OK(pawl_decoder_save(d, tokens, pawl_decoder_len(d), &to, &err));
	pawl_snapshot_file_end(&to);
}

static enum pawl_status
restore(struct pawl_decoder *d, const struct pawl_snapshot_file *file)
{
	struct pawl_kv_snapshot *snapshot;
	enum pawl_status status;

	OK(pawl_kv_snapshot_open(file->path, &snapshot, &err));
	status = pawl_decoder_restore(d, snapshot, &err);
	pawl_kv_snapshot_free(snapshot);
	return status;
}

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
pawl_ring_suite(void)
{
	Suite *suite = suite_create("ring");
	TCase *tcase = tcase_create("ring");

	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, a_ring_is_as_good_as_everything, 0,
		(int)(sizeof(models) / sizeof(models[0])));
	tcase_add_test(tcase, the_window_matters);
	tcase_add_test(tcase, only_layers_with_a_window_have_rings);
	tcase_add_test(tcase, a_plan_is_for_its_rings);
	tcase_add_test(tcase, a_model_is_for_its_windows);
	tcase_add_test(tcase, a_session_is_for_its_window);
	tcase_add_test(tcase, guesses_are_taken_back);
	tcase_add_test(tcase, what_was_overwritten_does_not_come_back);
	tcase_add_test(tcase, too_many_rows_are_refused);
	tcase_add_test(tcase, rings_move_with_their_cache);
	tcase_add_loop_test(tcase, a_restored_ring_is_as_good_as_ever, 0,
		(int)(sizeof(saved) / sizeof(saved[0])));
	tcase_add_loop_test(tcase, a_snapshot_is_for_its_rings, 0, 4);
	tcase_add_test(tcase, absurd_rings_are_refused);
	tcase_add_loop_test(tcase, rings_that_cannot_be, 0,
		(int)(sizeof(bad_rings) / sizeof(bad_rings[0])));
	tcase_add_test(tcase, sets_of_layers);
	suite_add_tcase(suite, tcase);
	return suite;
}

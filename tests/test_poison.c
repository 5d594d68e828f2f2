/*
 * Caches and pools that are NaN before use, against the same that are zero: every logit of every
 * call is the same, bit for bit.  Latents: tests/test_latent_attention.c.  A plan with a mask is not
 * asked, since it reads all of a cache (runtime/kv_cache.h).
 */
#include <math.h>
#include <string.h>

#include "runtime/paged_decoder.h"
#include "tests/decoding.h"
#include "tests/suites.h"

enum { N_VOCAB = 40, N_TOKENS = 150, MOST_ROWS = 256 };

static const struct kind {
	const char *what;
	enum pawl_dtype dtype;
	enum pawl_layout k_layout;
	int64_t ring; /* 0: everything is kept */
} kinds[] = {
	{"f16", PAWL_DTYPE_F16, PAWL_LAYOUT_K16, 0},
	{"f16, keys in rows", PAWL_DTYPE_F16, PAWL_LAYOUT_ROWS, 0},
	{"f32", PAWL_DTYPE_F32, PAWL_LAYOUT_K16, 0},
	{"bf16", PAWL_DTYPE_BF16, PAWL_LAYOUT_K16, 0},
	{"bf16, keys in rows", PAWL_DTYPE_BF16, PAWL_LAYOUT_ROWS, 0},
	{"q8_0", PAWL_DTYPE_Q8_0, PAWL_LAYOUT_K16, 0},
	{"q8_0, keys in rows", PAWL_DTYPE_Q8_0, PAWL_LAYOUT_ROWS, 0},
	{"rings, f16", PAWL_DTYPE_F16, PAWL_LAYOUT_K16, 128},
	{"rings, q8_0", PAWL_DTYPE_Q8_0, PAWL_LAYOUT_K16, 128},
	{"rings, f32, keys in rows", PAWL_DTYPE_F32, PAWL_LAYOUT_ROWS, 128},
};

enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static const struct target {
	const char *name;
	int n_threads;
} targets[] = {
	{"ref", 1},
#ifdef PAWL_HAVE_LLVM
	{"cpu", 2},
#endif
};

enum { N_TARGETS = sizeof(targets) / sizeof(targets[0]) };

/* The logits of one run in the order of its calls. */
struct record {
	float rows[MOST_ROWS][N_VOCAB];
	int64_t n;
};

static struct record clean, poisoned;
static struct pawl_plan_cache *plans; /* for both to have the same code */
static uint32_t tokens[N_TOKENS];
static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static void
begin(void)
{
	OK(pawl_plan_cache_new(32, &plans, &err));
}

static void
end(void)
{
	pawl_plan_cache_free(plans);
}

static void
note(struct record *record, const float *logits, int64_t n)
{
	ck_assert_int_le(record->n + n, MOST_ROWS);
	memcpy(record->rows[record->n], logits, (size_t)n * sizeof(record->rows[0]));
	record->n += n;
}

static enum pawl_status
note_row(void *record, int64_t position, const float *logits, struct pawl_error *e)
{
	(void)position;
	(void)e;
	note(record, logits, 1);
	return PAWL_OK;
}

static void
expect_same(const char *what)
{
	ck_assert_int_eq(clean.n, poisoned.n);
	for (int64_t row = 0; row < clean.n; row++) {
		for (int i = 0; i < N_VOCAB; i++)
			ck_assert(isfinite(clean.rows[row][i]));
		ck_assert_msg(!memcmp(clean.rows[row], poisoned.rows[row], sizeof(clean.rows[0])),
			"%s: row %d of %d differs", what, (int)row, (int)clean.n);
	}
}

static void
fill_with_nan(struct pawl_kv_cache *cache)
{
	const struct pawl_kv_shape *shape = pawl_kv_cache_shape(cache);

	for (int32_t i = 0; i < shape->n_layers * PAWL_N_KV_SLOTS; i++) {
		const struct pawl_kv_layer_id id = {
			i / PAWL_N_KV_SLOTS, (enum pawl_kv_slot)(i % PAWL_N_KV_SLOTS)};
		struct pawl_storage *storage = pawl_kv_cache_storage(cache, id);

		memset(storage->bytes, 0xff, (size_t)storage->n_bytes);
	}
}

static struct pawl_tiny_model *
make_model(const struct kind *kind)
{
	struct pawl_tiny_options options = pawl_tiny_defaults();

	options.n_embd = options.n_ff = 32;
	options.k_layout = kind->k_layout;
	if (kind->dtype == PAWL_DTYPE_Q8_0)
		options.head_dim = 32;
	options.window = kind->ring ? 100 : 0;
	options.window_layers = 2;
	for (int i = 0; i < N_TOKENS; i++)
		tokens[i] = pawl_test_token(1, i);
	return pawl_tiny_model_new(&options);
}

static struct pawl_device *
open_device(const struct target *target)
{
	struct pawl_device *device;

	OK(pawl_device_open(target->name, NULL, &device, &err));
	return device;
}

static struct pawl_decoder *
make_decoder(const struct pawl_tiny_model *model, const struct kind *kind,
	struct pawl_device *device, int n_threads)
{
	struct pawl_decoder_options options = pawl_test_decoder_options();
	struct pawl_decoder *d;

	options.capacity = 192;
	options.kv_dtype = kind->dtype;
	options.rings = kind->ring;
	options.n_threads = n_threads;
	options.plans = plans;
	OK(pawl_decoder_new(pawl_tiny_model_source(model), device, &options, &d, &err));
	ck_assert_int_eq(
		pawl_kv_cache_shape(pawl_decoder_cache(d))->rings.positions, kind->ring);
	return d;
}

/* A chunk that is filled up, a rollback, guesses, single tokens, a fork, more room. */
static void
run(struct pawl_decoder *d, struct record *record)
{
	struct pawl_kv_cache *fork;
	const float *logits;

	record->n = 0;
	OK(pawl_decoder_eval(d, tokens, 37, note_row, record, &err));
	pawl_decoder_truncate(d, 29);
	OK(pawl_decoder_extend(d, tokens + 29, 3, 8, &logits, &err));
	note(record, logits, 3);
	OK(pawl_decoder_prefill(d, tokens + 32, 12, &logits, &err));
	note(record, logits, 1);
	OK(pawl_kv_cache_fork(pawl_decoder_cache(d), &fork, &err));
	for (int i = 44; i < 50; i++) {
		OK(pawl_decoder_step(d, tokens[i], &logits, &err));
		note(record, logits, 1);
	}
	pawl_decoder_swap_cache(d, &fork);
	OK(pawl_decoder_eval(d, tokens + 44, 86, note_row, record, &err));
	OK(pawl_decoder_reserve(d, 256, &err));
	OK(pawl_decoder_eval(d, tokens + 130, 20, note_row, record, &err));
	pawl_kv_cache_free(fork);
}

START_TEST(caches)
{
	const struct kind *kind = &kinds[_i / N_TARGETS];
	const struct target *target = &targets[_i % N_TARGETS];
	struct pawl_tiny_model *model = make_model(kind);
	struct pawl_device *device = open_device(target);
	struct pawl_decoder *d = make_decoder(model, kind, device, target->n_threads);

	run(d, &clean);
	pawl_decoder_free(d);
	d = make_decoder(model, kind, device, target->n_threads);
	fill_with_nan(pawl_decoder_cache(d));
	run(d, &poisoned);
	expect_same(kind->what);
	ck_assert_int_eq(clean.n, 37 + 3 + 1 + 6 + 86 + 20);
	/* What has been used would change a result. */
	pawl_decoder_truncate(d, 149);
	fill_with_nan(pawl_decoder_cache(d));
	poisoned.n = 0;
	OK(pawl_decoder_eval(d, tokens + 149, 1, note_row, &poisoned, &err));
	ck_assert(isnan(poisoned.rows[0][0]));
	pawl_decoder_free(d);
	pawl_device_unref(device);
	pawl_tiny_model_free(model);
}
END_TEST

static struct pawl_paged_decoder *
make_paged(const struct pawl_tiny_model *model, enum pawl_dtype dtype, struct pawl_device *device,
	int n_threads)
{
	const struct pawl_paged_options options = {.n_blocks = 9,
		.block_size = 16,
		.max_blocks = 4,
		.kv_dtype = dtype,
		.n_threads = n_threads,
		.plans = plans,
		.prefill_chunk = 8};
	struct pawl_paged_decoder *d;

	OK(pawl_paged_decoder_new(pawl_tiny_model_source(model), device, &options, &d, &err));
	return d;
}

static void
step_all(struct pawl_paged_decoder *d, const struct pawl_kv_session_id *all, int64_t n,
	struct record *record)
{
	struct pawl_paged_row rows[PAWL_MAX_BATCH];
	const float *logits;

	for (int64_t i = 0; i < n; i++) {
		int64_t len = pawl_kv_block_pool_session_len(pawl_paged_decoder_pool(d), all[i]);

		rows[i] = (struct pawl_paged_row){all[i], tokens[len + 7 * i]};
	}
	OK(pawl_paged_decoder_step(d, rows, n, &logits, &err));
	note(record, logits, n);
}

/* Ragged batches with an idle row, copied tails, blocks that go, come back and are shifted. */
static void
run_pages(struct pawl_paged_decoder *d, struct pawl_kv_session_id *all, struct record *record)
{
	static const int64_t lengths[] = {21, 3, 16};
	struct pawl_kv_block_pool *pool = pawl_paged_decoder_pool(d);
	const struct pawl_kv_prefix_key key = {.tokens = tokens, .n_tokens = 16};
	struct pawl_kv_evict_report report;
	struct pawl_kv_prefix_id prefix;
	const float *logits;

	record->n = 0;
	for (int i = 0; i < 3; i++) {
		OK(pawl_paged_decoder_open(d, &all[i], &err));
		OK(pawl_paged_decoder_prefill(d, all[i], tokens, lengths[i], &logits, &err));
		note(record, logits, 1);
	}
	for (int turn = 0; turn < 3; turn++)
		step_all(d, all, 3, record);
	OK(pawl_kv_block_pool_fork(pool, all[0], &all[3], &err));
	step_all(d, all, 4, record);
	OK(pawl_paged_decoder_extend(d, all[3], tokens, 5, &logits, &err));
	note(record, logits, 5);
	OK(pawl_paged_decoder_evict(d, all[2], &report, &err));
	step_all(d, all, 2, record);
	OK(pawl_paged_decoder_restore(d, report.handle, &err));
	step_all(d, all, 4, record);
	OK(pawl_kv_block_pool_register_prefix(pool, all[0], &key, &prefix, &err));
	OK(pawl_paged_decoder_close(d, all[2], &err));
	OK(pawl_kv_block_pool_truncate(pool, all[1], 0, &err));
	OK(pawl_paged_decoder_prefill(d, all[1], tokens + 60, 16, &logits, &err));
	/* Blocks of q8_0 cannot be shifted: the same tokens are computed. */
	if (pawl_paged_decoder_options(d)->kv_dtype == PAWL_DTYPE_Q8_0)
		OK(pawl_paged_decoder_prefill(d, all[1], tokens, 16, NULL, &err));
	else
		OK(pawl_paged_decoder_append_shifted(d, prefix, 1, all[1], &err));
	step_all(d, all, 2, record);
}

START_TEST(pools)
{
	static const struct kind paged[] = {{"f16", PAWL_DTYPE_F16, PAWL_LAYOUT_K16, 0},
		{"f32", PAWL_DTYPE_F32, PAWL_LAYOUT_K16, 0},
		{"bf16", PAWL_DTYPE_BF16, PAWL_LAYOUT_K16, 0},
		{"q8_0", PAWL_DTYPE_Q8_0, PAWL_LAYOUT_K16, 0}};
	const struct target *target = &targets[_i % N_TARGETS];
	struct pawl_tiny_model *model = make_model(&paged[_i / N_TARGETS]);
	struct pawl_device *device = open_device(target);
	enum pawl_dtype dtype = paged[_i / N_TARGETS].dtype;
	struct pawl_kv_session_id all[4];
	struct pawl_paged_decoder *d = make_paged(model, dtype, device, target->n_threads);

	run_pages(d, all, &clean);
	pawl_paged_decoder_free(d);
	d = make_paged(model, dtype, device, target->n_threads);
	fill_with_nan(pawl_paged_decoder_cache(d));
	run_pages(d, all, &poisoned);
	expect_same(pawl_dtype_name(dtype));
	ck_assert_int_eq(clean.n, 3 + 9 + 4 + 5 + 2 + 4 + 2);
	fill_with_nan(pawl_paged_decoder_cache(d));
	poisoned.n = 0;
	step_all(d, all, 1, &poisoned);
	ck_assert(isnan(poisoned.rows[0][0]));
	pawl_paged_decoder_free(d);
	pawl_device_unref(device);
	pawl_tiny_model_free(model);
}
END_TEST

Suite *
pawl_poison_suite(void)
{
	Suite *suite = suite_create("poison");
	TCase *tcase = tcase_create("poison");

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_loop_test(tcase, caches, 0, N_KINDS * N_TARGETS);
	tcase_add_loop_test(tcase, pools, 0, 4 * N_TARGETS);
	suite_add_tcase(suite, tcase);
	return suite;
}

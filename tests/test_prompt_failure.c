/*
 * Prompts that fail in any of their runs, for want of memory, on a device or because the caller
 * says so: the length and what is seen from there are as before, and whatever is run next has the bits
 * that it would have had.  Each attempt is a decoder without plans on a cache with a history.
 */
#include "runtime/decoder.h"

#include <string.h>

#include "runtime/memory.h"
#include "tests/decoding.h"
#include "tests/failing_device.h"
#include "tests/suites.h"

enum { HISTORY = 140, PROMPT = 21, N_VOCAB = 40, ROW_BYTES = N_VOCAB * sizeof(float), OTHER = 9 };

static const struct kind {
	const char *what;
	enum pawl_dtype dtype;
	enum pawl_layout k_layout;
	bool rings, is_forked;
} kinds[] = {
	{"contiguous, f16", PAWL_DTYPE_F16, PAWL_LAYOUT_K16, false, false},
	{"contiguous, f32 in rows, forked", PAWL_DTYPE_F32, PAWL_LAYOUT_ROWS, false, true},
	{"rings, f16", PAWL_DTYPE_F16, PAWL_LAYOUT_K16, true, false},
	{"rings, bf16 in rows, forked", PAWL_DTYPE_BF16, PAWL_LAYOUT_ROWS, true, true},
	{"rings, q8_0, forked", PAWL_DTYPE_Q8_0, PAWL_LAYOUT_K16, true, true},
};

enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

enum cause {
	NO_MEMORY, /* at allocation n */
	NO_DEVICE, /* in run n, after it has done its work */
	NO_ROW,    /* the callback refuses position n */
	N_CAUSES
};

static struct pawl_tiny_model *model;
static struct pawl_decoder_options options;
static struct pawl_device *device;
static struct pawl_kv_cache *history; /* of HISTORY tokens of sequence 1 */
static uint64_t history_seen;
static float after_prompt[N_VOCAB], after_other[N_VOCAB];
static uint32_t prompt[PROMPT];
static int n_rows_left;
static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static enum pawl_status
failing_row(void *arg, int64_t position, const float *logits, struct pawl_error *error)
{
	memcpy(arg, logits, ROW_BYTES);
	if (n_rows_left-- == 0)
		return pawl_fail(error, PAWL_ENVIRONMENT, "position %d is refused", (int)position);
	return PAWL_OK;
}

static struct pawl_decoder *
new_decoder(void)
{
	struct pawl_decoder *d;

	OK(pawl_decoder_new(pawl_tiny_model_source(model), device, &options, &d, &err));
	return d;
}

/* Layer 1 sees a window that a ring holds with a chunk and little more. */
static void
begin(const struct kind *kind)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_decoder *d;

	tiny.n_heads = tiny.n_kv_heads = 1;
	tiny.n_embd = tiny.n_ff = 32;
	tiny.window = 120;
	tiny.window_layers = 2;
	tiny.k_layout = kind->k_layout;
	tiny.head_dim = 32;
	model = pawl_tiny_model_new(&tiny);
	options = pawl_test_decoder_options();
	options.capacity = 192;
	options.kv_dtype = kind->dtype;
	options.rings = kind->rings;
	device = pawl_test_failing_device();
	for (int i = 0; i < PROMPT; i++)
		prompt[i] = pawl_test_token(1, HISTORY + i);
	d = new_decoder();
	ck_assert_int_eq(pawl_kv_cache_shape(pawl_decoder_cache(d))->rings.positions,
		kind->rings ? 128 : 0);
	pawl_test_prefill(d, 1, 0, HISTORY);
	OK(pawl_kv_cache_fork(pawl_decoder_cache(d), &history, &err));
	history_seen = pawl_test_seen_digest(history);
	memcpy(after_prompt, pawl_test_prefill(d, 1, HISTORY, PROMPT), ROW_BYTES);
	/* The prompt overwrote what is seen from the history on. */
	ck_assert((pawl_kv_cache_least_len(pawl_decoder_cache(d)) > HISTORY) == kind->rings);
	pawl_decoder_free(d);
	d = new_decoder();
	pawl_test_prefill(d, 1, 0, HISTORY);
	memcpy(after_other, pawl_test_step(d, 2, OTHER), ROW_BYTES);
	pawl_decoder_free(d);
}

static void
end(void)
{
	pawl_kv_cache_free(history);
	pawl_device_unref(device);
	pawl_tiny_model_free(model);
}

static enum pawl_status
run_prompt(struct pawl_decoder *d, enum cause cause, int n, float *last)
{
	enum pawl_status status;
	const float *logits = NULL;

	if (cause == NO_ROW) {
		n_rows_left = n;
		return pawl_decoder_eval(d, prompt, PROMPT, failing_row, last, &err);
	}
	if (cause == NO_MEMORY)
		pawl_memory_fail_after(n);
	else
		pawl_test_runs_left = n;
	status = pawl_decoder_prefill(d, prompt, PROMPT, &logits, &err);
	pawl_memory_fail_after(-1);
	pawl_test_runs_left = -1;
	ck_assert(status || logits);
	if (!status)
		memcpy(last, logits, ROW_BYTES);
	return status;
}

/* Whether the prompt failed; *n_late counts those that had run a part. */
static bool
fails_at(const struct kind *kind, enum cause cause, int n, int *n_late)
{
	struct pawl_decoder *d = new_decoder();
	struct pawl_kv_cache *cache;
	struct pawl_decoder_stats stats;
	enum pawl_status status;
	const float *logits;
	float last[N_VOCAB];

	OK(pawl_kv_cache_fork(history, &cache, &err));
	if (!kind->is_forked)
		OK(pawl_kv_cache_own(cache, &err));
	pawl_decoder_swap_cache(d, &cache);
	status = run_prompt(d, cause, n, last);
	if (status) {
		ck_assert_int_eq(
			status, cause == NO_MEMORY ? PAWL_OUT_OF_MEMORY : PAWL_ENVIRONMENT);
		ck_assert_msg(pawl_test_seen_digest(pawl_decoder_cache(d)) == history_seen,
			"%s: failing at %d (%s) changed what is seen", kind->what, n, err.text);
		pawl_decoder_stats(d, &stats);
		*n_late += stats.counters.tokens > 0;
		OK(pawl_decoder_step(d, pawl_test_token(2, OTHER), &logits, &err));
		ck_assert_msg(!memcmp(logits, after_other, ROW_BYTES),
			"%s: after failing at %d the next token differs", kind->what, n);
		pawl_decoder_truncate(d, HISTORY);
		OK(pawl_decoder_prefill(d, prompt, PROMPT, &logits, &err));
		memcpy(last, logits, ROW_BYTES);
	}
	ck_assert_msg(!memcmp(last, after_prompt, ROW_BYTES),
		"%s: the prompt differs after failing at %d", kind->what, n);
	pawl_kv_cache_free(cache);
	pawl_decoder_free(d);
	return status;
}

START_TEST(nothing_that_is_seen_changes)
{
	const struct kind *kind = &kinds[_i];

	begin(kind);
	for (int cause = 0; cause < N_CAUSES; cause++) {
		int n = 0, n_late = 0;

		while (fails_at(kind, (enum cause)cause, n, &n_late))
			n++;
		ck_assert_int_ge(n, cause == NO_MEMORY ? 60 : cause == NO_DEVICE ? 4 : PROMPT);
		ck_assert_int_ge(n_late, 3);
	}
	ck_assert_uint_eq(pawl_test_seen_digest(history), history_seen);
	end();
}
END_TEST

/* A run has no part that could have been through: what it wrote is not seen. */
START_TEST(nor_does_it_when_a_single_run_fails)
{
	struct pawl_decoder *d;
	struct pawl_kv_cache *cache = NULL;
	const float *logits = NULL;
	const uint32_t other = pawl_test_token(2, OTHER);

	begin(&kinds[_i]);
	d = new_decoder();
	OK(pawl_kv_cache_fork(history, &cache, &err));
	pawl_decoder_swap_cache(d, &cache);
	for (int rows = 1; rows <= 8; rows *= 2) {
		pawl_test_runs_left = 0;
		ck_assert_int_eq(pawl_decoder_extend(d, prompt, 1, rows, &logits, &err),
			PAWL_ENVIRONMENT);
		ck_assert_uint_eq(pawl_test_seen_digest(pawl_decoder_cache(d)), history_seen);
		ck_assert_ptr_null(logits);
	}
	OK(pawl_decoder_step(d, other, &logits, &err));
	ck_assert_mem_eq(logits, after_other, ROW_BYTES);
	pawl_kv_cache_free(cache);
	pawl_decoder_free(d);
	end();
}
END_TEST

Suite *
pawl_prompt_failure_suite(void)
{
	Suite *suite = suite_create("prompt_failure");
	TCase *tcase = tcase_create("prompt_failure");

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, nothing_that_is_seen_changes, 0, N_KINDS);
	tcase_add_loop_test(tcase, nor_does_it_when_a_single_run_fails, 0, N_KINDS);
	suite_add_tcase(suite, tcase);
	return suite;
}

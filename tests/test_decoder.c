/* Whole generations through held plans: what they compute, and what they cost. */
#include "runtime/decoder.h"

#include "tests/model_fixture.h"
#include "tests/suites.h"

#include <stdlib.h>
#include <string.h>

static struct pawl_error err;

/* Bytes of the data consts of a step of one token: id, cos and sin, offset. */
enum { STEP_BYTES = 4 + 2 * 16 * 4 + 8 };

START_TEST(a_generation_optimizes_once_a_plan)
{
	struct pawl_decoder *decoder = pawl_test_decoder(model, &options);
	struct pawl_decoder_stats before, after;
	const struct pawl_plan *plan, *same;
	int32_t n_steps, n_nodes;
	int n = _i;

	pawl_test_prefill(decoder, 1, 0, 20);
	ck_assert_int_eq(pawl_decoder_prepare(decoder, 1, PAWL_LOGITS_LAST, &plan, &err), PAWL_OK);
	n_steps = plan->program->n_steps;
	n_nodes = plan->program->n_nodes;
	before = stats_of(decoder);
	for (int i = 0; i < n; i++)
		pawl_test_step(decoder, 1, 20 + i);
	after = stats_of(decoder);
	/* The cache, the chunk of 8, the single token. */
	ck_assert_uint_eq(after.counters.optimizes, 3);
	ck_assert_int_eq(after.n_sessions, 2);
	ck_assert_int_eq(pawl_tiny_model_graphs(model), 2);
	ck_assert_uint_eq(after.counters.builds[PAWL_REBUILD_FIRST], 2);
	ck_assert_uint_eq(pawl_counters_rebuilds(&after.counters), 0);
	ck_assert_uint_eq(after.counters.rebinds, 0);
	ck_assert_uint_eq(after.counters.tokens, 20u + (unsigned)n);
	ck_assert_uint_eq(
		after.counters.validity_checks - before.counters.validity_checks, (unsigned)n);
	ck_assert_uint_eq(after.counters.verdicts[PAWL_VALID], after.counters.validity_checks);
	ck_assert_uint_eq(after.counters.runs - before.counters.runs, (unsigned)n);
	ck_assert_uint_eq(
		after.counters.bytes_bound - before.counters.bytes_bound, (unsigned)n * STEP_BYTES);
	ck_assert_uint_eq(after.kernel_compiles, before.kernel_compiles);
	ck_assert_uint_eq(after.allocations, before.allocations);
	ck_assert_int_eq(after.last.kind, PAWL_SESSION_KEPT);
	ck_assert_int_eq(pawl_decoder_prepare(decoder, 1, PAWL_LOGITS_LAST, &same, &err), PAWL_OK);
	ck_assert_ptr_eq(same, plan);
	ck_assert_int_eq(same->program->n_steps, n_steps);
	ck_assert_int_eq(same->program->n_nodes, n_nodes);
	ck_assert_int_gt(n_steps, 0);
	pawl_decoder_free(decoder);
}
END_TEST

START_TEST(validity_checks_are_the_steps_after_the_build)
{
	struct pawl_decoder *decoder = pawl_test_decoder(model, &options);

	for (int i = 0; i < 10; i++)
		pawl_test_step(decoder, 1, i);
	ck_assert_uint_eq(stats_of(decoder).counters.validity_checks, 9);
	ck_assert_uint_eq(stats_of(decoder).counters.optimizes, 2);
	pawl_decoder_free(decoder);
}
END_TEST

START_TEST(chunks_do_not_matter)
{
	static const int64_t chunks[] = {1, 3, 8, 32};
	struct pawl_decoder *one;
	float *expected;

	options.prefill_chunk = 1;
	one = pawl_test_decoder(model, &options);
	for (int i = 0; i < 41; i++)
		expected = (float *)pawl_test_step(one, 1, i);
	expected = pawl_test_keep(one, expected);
	for (size_t c = 0; c < sizeof(chunks) / sizeof(chunks[0]); c++) {
		struct pawl_decoder *decoder;

		options.prefill_chunk = chunks[c];
		decoder = pawl_test_decoder(model, &options);
		ck_assert(pawl_test_same(one, pawl_test_prefill(decoder, 1, 0, 41), expected));
		ck_assert_int_eq(pawl_decoder_len(decoder), 41);
		if (chunks[c] == 32)
			/* 32 and 8 singles, for which a chunk would not pay, and the last. */
			ck_assert_uint_eq(stats_of(decoder).counters.runs, 1 + 1 + 8 + 1);
		if (chunks[c] == 8)
			ck_assert_uint_eq(stats_of(decoder).counters.runs, 1 + 5 + 1);
		pawl_decoder_free(decoder);
	}
	pawl_decoder_free(one);
	free(expected);
}
END_TEST

START_TEST(a_chunk_that_is_not_full_leaves_no_trace)
{
	struct pawl_decoder *decoder = pawl_test_decoder(model, &options);
	float *expected;

	/* 5 tokens in a chunk of 8, then the sixth. */
	expected = pawl_test_fresh(model, &options, 1, 12);
	pawl_test_prefill(decoder, 1, 0, 6);
	ck_assert_uint_eq(stats_of(decoder).counters.runs, 1 + 1 + 1);
	ck_assert_int_eq(pawl_decoder_len(decoder), 6);
	for (int i = 6; i < 11; i++)
		pawl_test_step(decoder, 1, i);
	ck_assert(pawl_test_same(decoder, pawl_test_step(decoder, 1, 11), expected));
	pawl_decoder_free(decoder);
	free(expected);
}
END_TEST

START_TEST(prefill_does_not_drop_the_decode_session)
{
	struct pawl_decoder *decoder = pawl_test_decoder(model, &options);

	pawl_test_prefill(decoder, 1, 0, 12);
	pawl_test_step(decoder, 1, 12);
	pawl_test_prefill(decoder, 1, 13, 12);
	pawl_test_step(decoder, 1, 25);
	ck_assert_uint_eq(stats_of(decoder).counters.optimizes, 3);
	ck_assert_int_eq(stats_of(decoder).last.kind, PAWL_SESSION_KEPT);
	pawl_decoder_free(decoder);
}
END_TEST

START_TEST(held_equals_replanned)
{
	struct pawl_decoder *held = pawl_test_decoder(model, &options), *replanned;

	options.replan = true;
	replanned = pawl_test_decoder(model, &options);
	ck_assert(pawl_test_same(
		held, pawl_test_prefill(held, 1, 0, 10), pawl_test_prefill(replanned, 1, 0, 10)));
	for (int i = 10; i < 20; i++)
		ck_assert(pawl_test_same(
			held, pawl_test_step(held, 1, i), pawl_test_step(replanned, 1, i)));
	ck_assert_uint_eq(stats_of(held).counters.optimizes, 3);
	/* Cache; a full chunk, a single and the last token of the prompt; ten tokens. */
	ck_assert_uint_eq(stats_of(replanned).counters.optimizes, 1 + 3 + 10);
	ck_assert_uint_eq(stats_of(replanned).counters.builds[PAWL_REBUILD_ASKED], 11);
	pawl_decoder_free(held);
	pawl_decoder_free(replanned);
}
END_TEST

START_TEST(rollback_equals_straight)
{
	struct pawl_decoder *decoder = pawl_test_decoder(model, &options);
	float *expected = pawl_test_fresh(model, &options, 1, 16);
	uint64_t alloc_id = pawl_kv_cache_alloc_id(pawl_decoder_cache(decoder)).value;

	pawl_test_prefill(decoder, 1, 0, 12);
	for (int i = 0; i < 6; i++)
		pawl_test_step(decoder, 2, i);
	pawl_decoder_truncate(decoder, 12);
	ck_assert_int_eq(pawl_decoder_len(decoder), 12);
	for (int i = 12; i < 15; i++)
		pawl_test_step(decoder, 1, i);
	ck_assert(pawl_test_same(decoder, pawl_test_step(decoder, 1, 15), expected));
	ck_assert_uint_eq(pawl_kv_cache_alloc_id(pawl_decoder_cache(decoder)).value, alloc_id);
	ck_assert_uint_eq(stats_of(decoder).counters.optimizes, 3);

	/* Off by one is seen. */
	pawl_decoder_truncate(decoder, 13);
	for (int i = 12; i < 15; i++)
		pawl_test_step(decoder, 1, i);
	ck_assert(!pawl_test_same(decoder, pawl_test_step(decoder, 1, 15), expected));
	pawl_decoder_free(decoder);
	free(expected);
}
END_TEST

struct rows {
	const struct pawl_decoder *decoder;
	float *kept[64];
	int64_t first, n;
	enum pawl_status stop;
};

static enum pawl_status
keep_row(void *arg, int64_t position, const float *logits, struct pawl_error *error)
{
	struct rows *rows = arg;

	ck_assert_int_eq(position, rows->first + rows->n);
	if (rows->stop && rows->n == 3)
		return pawl_fail(error, rows->stop, "enough");
	rows->kept[rows->n++] = pawl_test_keep(rows->decoder, logits);
	return PAWL_OK;
}

START_TEST(eval_gives_every_row)
{
	static const int64_t chunks[] = {1, 3, 8, 32};
	struct pawl_decoder *one = pawl_test_decoder(model, &options);
	float *expected[40];

	for (int i = 0; i < 40; i++)
		expected[i] = pawl_test_keep(one, pawl_test_step(one, 3, i));
	for (size_t c = 0; c < sizeof(chunks) / sizeof(chunks[0]); c++) {
		struct pawl_decoder *decoder;
		struct rows rows = {0};
		uint32_t tokens[40];

		for (int i = 0; i < 40; i++)
			tokens[i] = pawl_test_token(3, i);
		options.prefill_chunk = chunks[c];
		decoder = pawl_test_decoder(model, &options);
		rows.decoder = decoder;
		ck_assert_int_eq(
			pawl_decoder_eval(decoder, tokens, 40, keep_row, &rows, &err), PAWL_OK);
		ck_assert_int_eq(rows.n, 40);
		for (int i = 0; i < 40; i++) {
			ck_assert(pawl_test_same(one, rows.kept[i], expected[i]));
			free(rows.kept[i]);
		}
		pawl_decoder_free(decoder);
	}
	for (int i = 0; i < 40; i++)
		free(expected[i]);
	pawl_decoder_free(one);
}
END_TEST

START_TEST(eval_may_be_stopped)
{
	struct pawl_decoder *decoder = pawl_test_decoder(model, &options);
	struct rows rows = {.decoder = decoder, .stop = PAWL_ENVIRONMENT};
	uint32_t tokens[20] = {0};

	ck_assert_int_eq(
		pawl_decoder_eval(decoder, tokens, 20, keep_row, &rows, &err), PAWL_ENVIRONMENT);
	ck_assert_str_eq(err.text, "enough");
	ck_assert_int_eq(pawl_decoder_len(decoder), 0);
	for (int i = 0; i < 3; i++)
		free(rows.kept[i]);
	pawl_decoder_free(decoder);
}
END_TEST

START_TEST(last_slot_works_and_the_next_changes_nothing)
{
	struct pawl_decoder *decoder;
	struct pawl_decoder_stats before, after;
	const float *logits;
	float *last;
	uint64_t digest;
	uint32_t tokens[2] = {1, 2};

	options.capacity = 32;
	decoder = pawl_test_decoder(model, &options);
	pawl_test_prefill(decoder, 1, 0, 30);
	pawl_test_step(decoder, 1, 30);
	logits = pawl_test_step(decoder, 1, 31);
	last = pawl_test_keep(decoder, logits);
	ck_assert_int_eq(pawl_decoder_len(decoder), 32);
	digest = pawl_test_cache_digest(pawl_decoder_cache(decoder));
	before = stats_of(decoder);
	ck_assert_int_eq(pawl_decoder_step(decoder, 5, &logits, &err), PAWL_CAPACITY);
	ck_assert_str_eq(err.text, "1 more positions do not fit: 32 of 32 are in use");
	ck_assert_int_eq(pawl_decoder_prefill(decoder, tokens, 2, &logits, &err), PAWL_CAPACITY);
	after = stats_of(decoder);
	ck_assert_uint_eq(pawl_test_cache_digest(pawl_decoder_cache(decoder)), digest);
	ck_assert_uint_eq(after.counters.runs, before.counters.runs);
	ck_assert_uint_eq(after.counters.tokens, before.counters.tokens);
	ck_assert(pawl_test_same(decoder, logits, last));
	/* After a rollback the same slot serves again, with the same bits. */
	pawl_decoder_truncate(decoder, 31);
	ck_assert(pawl_test_same(decoder, pawl_test_step(decoder, 1, 31), last));
	pawl_decoder_free(decoder);
	free(last);
}
END_TEST

START_TEST(every_weight_type)
{
	static const enum pawl_dtype dtypes[] = {PAWL_DTYPE_F16, PAWL_DTYPE_BF16, PAWL_DTYPE_Q4_0,
		PAWL_DTYPE_Q4_1, PAWL_DTYPE_Q5_0, PAWL_DTYPE_Q5_1, PAWL_DTYPE_Q8_0, PAWL_DTYPE_Q4_K,
		PAWL_DTYPE_Q5_K, PAWL_DTYPE_Q6_K};
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	enum pawl_dtype dtype = dtypes[_i];
	struct pawl_tiny_model *m;
	struct pawl_decoder *decoder, *chunked;
	float *a16, *a8;
	bool is_quantized = pawl_dtype_is_blocked(dtype);

	tiny.dtype = dtype;
	if (pawl_dtype_info(dtype)->block == 256) {
		tiny.n_embd = 256;
		tiny.n_ff = 256;
		tiny.head_dim = 64;
	}
	m = pawl_tiny_model_new(&tiny);
	options.prefill_chunk = 1;
	decoder = pawl_test_decoder(m, &options);
	a16 = pawl_test_keep(decoder, pawl_test_prefill(decoder, 1, 0, 10));
	options.prefill_chunk = 4;
	chunked = pawl_test_decoder(m, &options);
	ck_assert(pawl_test_same(decoder, pawl_test_prefill(chunked, 1, 0, 10), a16));
	options.precision = PAWL_PRECISION_A8;
	a8 = pawl_test_fresh(m, &options, 1, 10);
	ck_assert_int_eq(pawl_test_same(decoder, a8, a16), !is_quantized);
	pawl_decoder_free(decoder);
	pawl_decoder_free(chunked);
	pawl_tiny_model_free(m);
	free(a16);
	free(a8);
}
END_TEST

START_TEST(cache_types_and_layouts)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_tiny_model *rows;
	struct pawl_decoder *decoder = pawl_test_decoder(model, &options), *none;
	float *f16 = pawl_test_keep(decoder, pawl_test_prefill(decoder, 1, 0, 18)), *other;

	tiny.k_layout = PAWL_LAYOUT_ROWS;
	rows = pawl_tiny_model_twin(model, &tiny);
	other = pawl_test_fresh(rows, &options, 1, 18);
	ck_assert(pawl_test_same(decoder, other, f16));
	free(other);
	options.kv_dtype = PAWL_DTYPE_F32;
	other = pawl_test_fresh(model, &options, 1, 18);
	ck_assert(!pawl_test_same(decoder, other, f16));
	for (int i = 0; i < 40; i++)
		ck_assert_float_eq_tol(other[i], f16[i], 0.02f);
	free(other);
	options.kv_dtype = PAWL_DTYPE_BF16;
	other = pawl_test_fresh(model, &options, 1, 18);
	ck_assert(!pawl_test_same(decoder, other, f16));
	for (int i = 0; i < 40; i++)
		ck_assert_float_eq_tol(other[i], f16[i], 0.1f);
	free(other);
	options.kv_dtype = PAWL_DTYPE_I32;
	ck_assert_int_eq(pawl_decoder_new(pawl_tiny_model_source(model), pawl_test_device(),
				 &options, &none, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "a cache is f16, bf16, f32 or q8_0, not i32");
	pawl_decoder_free(decoder);
	pawl_tiny_model_free(rows);
	free(f16);
}
END_TEST

START_TEST(a_mask_says_what_length_says)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_decoder *decoder = pawl_test_decoder(model, &options);
	float *expected = pawl_test_keep(decoder, pawl_test_prefill(decoder, 1, 0, 18)), *masked;
	struct pawl_tiny_model *twin;

	tiny.has_mask = true;
	twin = pawl_tiny_model_twin(model, &tiny);
	masked = pawl_test_fresh(twin, &options, 1, 18);
	ck_assert(pawl_test_same(decoder, masked, expected));
	pawl_decoder_free(decoder);
	pawl_tiny_model_free(twin);
	free(expected);
	free(masked);
}
END_TEST

START_TEST(capacities)
{
	struct pawl_decoder *decoder;

	options.capacity = 0;
	ck_assert_int_eq(pawl_decoder_new(pawl_tiny_model_source(model), pawl_test_device(),
				 &options, &decoder, &err),
		PAWL_INVALID_ARGUMENT);
	options.capacity = 17;
	decoder = pawl_test_decoder(model, &options);
	ck_assert_int_eq(pawl_decoder_capacity(decoder), 32);
	pawl_decoder_free(decoder);
	options.prefill_chunk = 5000;
	ck_assert_int_eq(pawl_decoder_new(pawl_tiny_model_source(model), pawl_test_device(),
				 &options, &decoder, &err),
		PAWL_INVALID_ARGUMENT);
}
END_TEST

Suite *
pawl_decoder_suite(void)
{
	Suite *suite = suite_create("decoder");
	TCase *tcase = tcase_create("decoder");

	tcase_add_checked_fixture(tcase, begin_model, end_model);
	tcase_add_loop_test(tcase, a_generation_optimizes_once_a_plan, 1, 4);
	tcase_add_test(tcase, validity_checks_are_the_steps_after_the_build);
	tcase_add_test(tcase, chunks_do_not_matter);
	tcase_add_test(tcase, a_chunk_that_is_not_full_leaves_no_trace);
	tcase_add_test(tcase, prefill_does_not_drop_the_decode_session);
	tcase_add_test(tcase, held_equals_replanned);
	tcase_add_test(tcase, rollback_equals_straight);
	tcase_add_test(tcase, eval_gives_every_row);
	tcase_add_test(tcase, eval_may_be_stopped);
	tcase_add_test(tcase, last_slot_works_and_the_next_changes_nothing);
	tcase_add_loop_test(tcase, every_weight_type, 0, 10);
	tcase_add_test(tcase, cache_types_and_layouts);
	tcase_add_test(tcase, a_mask_says_what_length_says);
	tcase_add_test(tcase, capacities);
	suite_add_tcase(suite, tcase);
	return suite;
}

/*
 * What a paged decoder refuses, with nothing changed: tokens, sequences, forks without room,
 * options.
 */
#include "runtime/paged_decoder.h"

#include "tests/decoding.h"
#include "tests/paged_fixture.h"
#include "tests/suites.h"

#include <string.h>

static void
check_refused(enum pawl_status want, const struct pawl_paged_row *rows, int64_t n, const char *text)
{
	struct pawl_kv_block_pool *pool = pawl_paged_decoder_pool(decoder);
	uint64_t digest = pawl_kv_block_pool_digest(pool);
	const float *logits = NULL;

	ck_assert_int_eq(pawl_paged_decoder_step(decoder, rows, n, &logits, &err), want);
	ck_assert_msg(strstr(err.text, text), "'%s' lacks '%s'", err.text, text);
	ck_assert_uint_eq(pawl_kv_block_pool_digest(pool), digest);
	ck_assert_ptr_null(logits);
}

START_TEST(refusals_change_nothing)
{
	struct pawl_kv_session_id a = open_sequence(), b = open_sequence(), c = open_sequence(),
				  d = open_sequence();
	struct pawl_paged_row rows[PAWL_MAX_BATCH + 1] = {{a, 1}, {a, 2}};
	const uint32_t token = 1;

	prefill(a, 0, 64);
	check_refused(PAWL_CAPACITY, rows, 1, "holds 64 of 64");
	ck_assert_int_eq(pawl_paged_decoder_prefill(decoder, b, &token, INT64_MAX, NULL, &err),
		PAWL_CAPACITY);
	ck_assert_int_eq(pawl_paged_decoder_prefill(decoder, b, &token, INT64_MIN, NULL, &err),
		PAWL_INVALID_ARGUMENT);
	check_refused(PAWL_INVALID_ARGUMENT, rows, 2, "twice");
	check_refused(PAWL_INVALID_ARGUMENT, rows, 0, "no tokens");
	check_refused(PAWL_INVALID_ARGUMENT, rows, -1, "no tokens");
	check_refused(PAWL_INVALID_ARGUMENT, rows, 9, "9 rows in one run, 8 are possible");
	check_refused(PAWL_INVALID_ARGUMENT, rows, INT64_MAX,
		"9223372036854775807 rows in one run, 8 are possible");
	ck_assert_int_eq(pawl_paged_decoder_extend(decoder, b, &token, INT64_MAX, NULL, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "9223372036854775807 rows in one run, 8 are possible");
	rows[0] = (struct pawl_paged_row){b, N_VOCAB};
	check_refused(PAWL_INVALID_ARGUMENT, rows, 1, "token 0 is 40, the model has 40");
	rows[0] = (struct pawl_paged_row){{999999}, 1};
	check_refused(PAWL_INVALID_ARGUMENT, rows, 1, "999999");
	/* 8 blocks are left: two sequences take 7, the last one is for one of two. */
	prefill(b, 1, 64);
	prefill(c, 2, 48);
	rows[0] = (struct pawl_paged_row){c, 1};
	rows[1] = (struct pawl_paged_row){d, 1};
	check_refused(PAWL_CAPACITY, rows, 2, "2 blocks are needed, 1 of 12 are free");
}
END_TEST

START_TEST(forks_that_share_all_they_have)
{
	struct pawl_kv_block_pool *pool = pawl_paged_decoder_pool(decoder);
	struct pawl_kv_session_id forks[2] = {open_sequence()}, other = open_sequence();
	struct pawl_kv_evict_report report;
	char text[128];

	prefill(forks[0], 0, 40);
	ck_assert_int_eq(pawl_kv_block_pool_fork(pool, forks[0], &forks[1], &err), PAWL_OK);
	/* Evicting both frees nothing, and both still run, if there is a block for the copy. */
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(
			pawl_paged_decoder_evict(decoder, forks[i], &report, &err), PAWL_OK);
		ck_assert_int_eq(report.n_freed, 0);
		ck_assert_int_eq(report.n_still_shared, 3);
	}
	prefill(other, 1, 64);
	other = open_sequence();
	prefill(other, 1, 64);
	other = open_sequence();
	prefill(other, 1, 16);
	for (int i = 0; i < 2; i++) {
		const struct pawl_paged_row row = {forks[i], 1};

		snprintf(text, sizeof(text),
			"1 blocks are needed, one to copy the last block of session %llu, which is "
			"shared, 0 of 12 are free",
			(unsigned long long)forks[i].value);
		check_refused(PAWL_CAPACITY, &row, 1, text);
	}
	ck_assert(!pawl_paged_decoder_has_room(decoder, forks[0], 1));
	/* One alone has its blocks to itself: it runs, and evicting it frees them. */
	ck_assert_int_eq(pawl_paged_decoder_close(decoder, forks[1], &err), PAWL_OK);
	step(forks, 0, 1);
	ck_assert_int_eq(pawl_paged_decoder_evict(decoder, forks[0], &report, &err), PAWL_OK);
	ck_assert_int_eq(report.n_freed, 3);
	ck_assert_int_eq(pawl_paged_decoder_restore(decoder, report.handle, &err), PAWL_OK);
	step(forks, 0, 1);
}
END_TEST

START_TEST(options_are_checked)
{
	static const struct {
		int64_t n_blocks, block_size, max_blocks, chunk;
		const char *text;
	} cases[] = {
		{0, 16, 1, 8, "n_blocks is 0"},
		{-5, 16, 1, 8, "n_blocks is -5"},
		{INT64_MAX, 16, 1, 8, "n_blocks is 9223372036854775807"},
		{8, 8, 1, 8, "block_size is 8"},
		{8, 40, 1, 8, "no multiple of 16"},
		{8, INT64_MIN, 1, 8, "block_size is -9223372036854775808"},
		{8, 16, 0, 8, "max_blocks is 0"},
		{8, 16, 9, 8, "max_blocks is 9"},
		{8, 16, 8, 4097, "prefill_chunk is 4097"},
		{1 << 24, 1 << 30, 8, 8, "positions"},
	};
	struct pawl_paged_decoder *made = NULL;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		options.n_blocks = cases[i].n_blocks;
		options.block_size = cases[i].block_size;
		options.max_blocks = cases[i].max_blocks;
		options.prefill_chunk = cases[i].chunk;
		ck_assert_int_ne(pawl_paged_decoder_new(pawl_tiny_model_source(model),
					 pawl_test_device(), &options, &made, &err),
			PAWL_OK);
		ck_assert_msg(strstr(err.text, cases[i].text), "'%s' lacks '%s'", err.text,
			cases[i].text);
		ck_assert_ptr_null(made);
	}
}
END_TEST

static void
check_option(const struct pawl_paged_options *bad, const char *text)
{
	struct pawl_paged_decoder *made = NULL;

	ck_assert_int_eq(pawl_paged_decoder_new(pawl_tiny_model_source(model), pawl_test_device(),
				 bad, &made, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_msg(strstr(err.text, text), "'%s' lacks '%s'", err.text, text);
	ck_assert_ptr_null(made);
}

START_TEST(options_of_no_kind_are_refused)
{
	struct pawl_paged_options bad = options;

	bad.kv_dtype = (enum pawl_dtype)77;
	check_option(&bad, "kv_dtype is 77, not in 0 ..");
	bad.kv_dtype = (enum pawl_dtype)-1;
	check_option(&bad, "kv_dtype is ");
	bad = options;
	bad.policy = (enum pawl_paged_policy)2;
	check_option(&bad, "policy is 2, not in 0 .. 1");
	bad = options;
	bad.precision = (enum pawl_precision)2;
	check_option(&bad, "precision is 2, not in 0 .. 1");
}
END_TEST

Suite *
pawl_paged_refusals_suite(void)
{
	Suite *suite = suite_create("paged_refusals");
	TCase *tcase = tcase_create("paged_refusals");

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, refusals_change_nothing);
	tcase_add_test(tcase, forks_that_share_all_they_have);
	tcase_add_test(tcase, options_are_checked);
	tcase_add_test(tcase, options_of_no_kind_are_refused);
	suite_add_tcase(suite, tcase);
	return suite;
}

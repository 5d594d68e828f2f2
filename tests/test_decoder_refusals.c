/*
 * What a decoder refuses, with nothing computed: prompts without room, tokens and options out of
 * range.
 */
#include "runtime/decoder.h"

#include "tests/model_fixture.h"
#include "tests/suites.h"

#include <string.h>

static struct pawl_error err;

START_TEST(prompts_that_do_not_fit_compute_nothing)
{
	struct pawl_decoder *decoder;
	uint32_t tokens[64] = {0};
	const float *logits = NULL;
	uint64_t digest;

	options.capacity = 32;
	decoder = pawl_test_decoder(model, &options);
	digest = pawl_test_cache_digest(pawl_decoder_cache(decoder));
	ck_assert_int_eq(pawl_decoder_prefill(decoder, tokens, 33, &logits, &err), PAWL_CAPACITY);
	ck_assert_str_eq(err.text, "33 more positions do not fit: 0 of 32 are in use");
	ck_assert_int_eq(
		pawl_decoder_prefill(decoder, tokens, 0, &logits, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_ptr_null(logits);
	ck_assert_uint_eq(pawl_test_cache_digest(pawl_decoder_cache(decoder)), digest);
	ck_assert_uint_eq(stats_of(decoder).counters.optimizes, 1);
	/* All 32 fit, though the last chunk would not when filled up: it goes one by one. */
	ck_assert_int_eq(pawl_decoder_step(decoder, 0, &logits, &err), PAWL_OK);
	ck_assert_int_eq(pawl_decoder_prefill(decoder, tokens, 31, &logits, &err), PAWL_OK);
	ck_assert_uint_eq(stats_of(decoder).counters.runs, 1 + 1 + 3 + 6 + 1);
	pawl_decoder_free(decoder);
}
END_TEST

START_TEST(unknown_tokens_are_refused)
{
	struct pawl_decoder *decoder = pawl_test_decoder(model, &options);
	uint32_t tokens[] = {1, 40, 2};
	const float *logits;

	ck_assert_int_eq(
		pawl_decoder_prefill(decoder, tokens, 3, &logits, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "token 1 is 40, the model has 40");
	ck_assert_int_eq(
		pawl_decoder_step(decoder, UINT32_MAX, &logits, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(pawl_decoder_len(decoder), 0);
	ck_assert_int_eq(pawl_decoder_step(decoder, 39, &logits, &err), PAWL_OK);
	pawl_decoder_free(decoder);
}
END_TEST

static void
check_option(const struct pawl_decoder_options *bad, const char *text)
{
	struct pawl_decoder *made = NULL;

	ck_assert_int_eq(pawl_decoder_new(pawl_tiny_model_source(model), pawl_test_device(), bad,
				 &made, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_msg(strstr(err.text, text), "'%s' lacks '%s'", err.text, text);
	ck_assert_ptr_null(made);
}

START_TEST(options_of_no_kind_are_refused)
{
	struct pawl_decoder *decoder = pawl_test_decoder(model, &options);
	struct pawl_decoder_options bad = options;
	const struct pawl_plan *plan = NULL;

	bad.kv_dtype = (enum pawl_dtype)77;
	check_option(&bad, "kv_dtype is 77, not in 0 ..");
	bad.kv_dtype = (enum pawl_dtype)INT32_MAX;
	check_option(&bad, "kv_dtype is 2147483647, not in 0 ..");
	bad = options;
	bad.precision = (enum pawl_precision)2;
	check_option(&bad, "precision is 2, not in 0 .. 1");
	ck_assert_int_eq(
		pawl_decoder_prepare(decoder, 1, (enum pawl_logits)PAWL_N_LOGITS, &plan, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "logits is 4, not in 0 .. 3");
	ck_assert_ptr_null(plan);
	ck_assert_int_eq(
		pawl_decoder_prepare(decoder, 1, PAWL_LOGITS_ALL, &plan, &err), PAWL_OK);
	pawl_decoder_free(decoder);
}
END_TEST

Suite *
pawl_decoder_refusals_suite(void)
{
	Suite *suite = suite_create("decoder_refusals");
	TCase *tcase = tcase_create("decoder_refusals");

	tcase_add_checked_fixture(tcase, begin_model, end_model);
	tcase_add_test(tcase, prompts_that_do_not_fit_compute_nothing);
	tcase_add_test(tcase, unknown_tokens_are_refused);
	tcase_add_test(tcase, options_of_no_kind_are_refused);
	suite_add_tcase(suite, tcase);
	return suite;
}

/* Tokens that the plan chooses: those of the logits, at no more plans. */
#include "runtime/decoder.h"

#include "ir/rowops.h"
#include "tests/model_fixture.h"
#include "tests/suites.h"

#include <math.h>

enum { N_PROMPT = 21, N_STEPS = 24 };

static struct pawl_error err;

static void
check_choices(struct pawl_device *device)
{
	struct pawl_decoder *chooses = pawl_test_decoder_on(device, model, &options);
	struct pawl_decoder *tells = pawl_test_decoder_on(device, model, &options);
	int64_t n_vocab = pawl_decoder_n_vocab(tells);
	struct pawl_decoder_stats before, after;
	uint32_t tokens[N_PROMPT], next;
	const float *logits;

	for (int i = 0; i < N_PROMPT; i++)
		tokens[i] = pawl_test_token(3, i);
	ck_assert_int_eq(pawl_decoder_prefill(tells, tokens, N_PROMPT, &logits, &err), PAWL_OK);
	ck_assert_int_eq(
		pawl_decoder_prefill_greedy(chooses, tokens, N_PROMPT, &next, &err), PAWL_OK);
	pawl_decoder_stats(chooses, &before);
	for (int i = 0; i < N_STEPS; i++) {
		ck_assert_uint_eq(next, (uint32_t)pawl_row_argmax(logits, n_vocab));
		ck_assert_int_eq(pawl_decoder_step(tells, next, &logits, &err), PAWL_OK);
		ck_assert_int_eq(pawl_decoder_step_greedy(chooses, next, &next, &err), PAWL_OK);
	}
	ck_assert_uint_eq(next, (uint32_t)pawl_row_argmax(logits, n_vocab));
	pawl_decoder_stats(chooses, &after);
	/* The cache, the chunk, the single token. */
	ck_assert_uint_eq(after.counters.optimizes, 3);
	ck_assert_uint_eq(after.allocations, before.allocations);
	ck_assert_uint_eq(pawl_counters_rebuilds(&after.counters), 0);
	/* Logits are another plan, neither drops the other. */
	ck_assert_int_eq(pawl_decoder_step(chooses, next, &logits, &err), PAWL_OK);
	ck_assert_int_eq(pawl_decoder_step_greedy(chooses, next, &next, &err), PAWL_OK);
	pawl_decoder_stats(chooses, &after);
	ck_assert_uint_eq(after.counters.optimizes, 4);
	pawl_decoder_free(chooses);
	pawl_decoder_free(tells);
}

START_TEST(choices_are_those_of_the_logits)
{
	struct pawl_device *device;

	check_choices(pawl_test_device());
#ifdef PAWL_HAVE_LLVM
	ck_assert_int_eq(pawl_device_open("cpu", NULL, &device, &err), PAWL_OK);
	check_choices(device);
	pawl_device_unref(device);
#else
	(void)device;
#endif
}
END_TEST

START_TEST(what_is_not_a_number_is_no_choice)
{
	struct pawl_decoder *decoder = pawl_test_decoder(model, &options);
	const struct pawl_type type = pawl_type_make(PAWL_DTYPE_F32, 1, (const int64_t[]){64});
	struct pawl_storage *norm;
	uint32_t token = 1, next = 7;
	float *weights, kept;

	ck_assert_int_eq(pawl_weights_bind(pawl_tiny_model_source(model)->weights,
				 "output_norm.weight", &type, NULL, &norm, &err),
		PAWL_OK);
	weights = norm->bytes;
	kept = weights[3];
	weights[3] = NAN;
	ck_assert_int_eq(pawl_decoder_prefill_greedy(decoder, &token, 1, &next, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "a logit after position 0 is not a number");
	ck_assert_int_eq(
		pawl_decoder_step_greedy(decoder, token, &next, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "a logit after position 1 is not a number");
	ck_assert_uint_eq(next, 7);
	weights[3] = kept;
	ck_assert_int_eq(pawl_decoder_step_greedy(decoder, token, &next, &err), PAWL_OK);
	ck_assert_uint_lt(next, 40);
	ck_assert_int_eq(pawl_decoder_step_greedy(decoder, 40, &next, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(pawl_decoder_len(decoder), 3);
	pawl_storage_unref(norm);
	pawl_decoder_free(decoder);
}
END_TEST

Suite *
pawl_greedy_suite(void)
{
	Suite *suite = suite_create("greedy");
	TCase *tcase = tcase_create("greedy");

	tcase_add_checked_fixture(tcase, begin_model, end_model);
	tcase_add_test(tcase, choices_are_those_of_the_logits);
	tcase_add_test(tcase, what_is_not_a_number_is_no_choice);
	suite_add_tcase(suite, tcase);
	return suite;
}

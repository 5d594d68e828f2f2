/* What a step reads: stale data is seen, wrong data reaches nothing, failures advance nothing. */
#include "runtime/token_data.h"

#include "tests/hand_session_fixture.h"
#include "tests/suites.h"

#include <stdlib.h>
#include <string.h>

/* A step by hand, so that its data can be spoilt. */

enum spoil { NOTHING, OLD_COS, OLD_SIN, OLD_OFFSET, OLD_MASK, OLD_TOKEN, N_SPOILS };

static float *
copy_of(const float *table, int64_t width)
{
	float *copy = malloc((size_t)width * sizeof(*copy));

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, table, (size_t)width * sizeof(*copy));
	return copy;
}

static float *
step_by_hand(struct pawl_decoder *d, const struct pawl_tiny_model *m, enum spoil spoil)
{
	const struct pawl_model_source *source = pawl_tiny_model_source(m);
	struct pawl_token_buffers now, old;
	struct pawl_token_data data, stale;
	struct pawl_counters counters = {0};
	struct pawl_decode_session *session;
	const struct pawl_plan *plan;
	uint32_t token = pawl_test_token(1, 13), before = pawl_test_token(1, 12);
	float *logits, *old_cos, *old_sin;

	ck_assert_int_eq(pawl_decoder_prepare(d, 1, PAWL_LOGITS_LAST, &plan, &err), PAWL_OK);
	ck_assert_int_eq(
		pawl_decode_session_new((struct pawl_plan *)(uintptr_t)plan, source->weights,
			pawl_decoder_cache(d), pawl_inference_context_team(pawl_decoder_context(d)),
			&session, &err),
		PAWL_OK);
	ck_assert_int_eq(pawl_token_buffers_init(&now, session, &err), PAWL_OK);
	ck_assert_int_eq(pawl_token_buffers_init(&old, session, &err), PAWL_OK);
	ck_assert_int_eq(
		pawl_token_buffers_fill(&old, source, &before, 1, 12, &stale, &err), PAWL_OK);
	/* The tables are the session's, whoever fills them in. */
	old_cos = copy_of(stale.rope_cos, old.rope_width);
	old_sin = copy_of(stale.rope_sin, old.rope_width);
	ck_assert_int_eq(
		pawl_token_buffers_fill(&now, source, &token, 1, 13, &data, &err), PAWL_OK);
	ck_assert_uint_ne(token, before);
	if (spoil == OLD_COS)
		data.rope_cos = old_cos;
	if (spoil == OLD_SIN)
		data.rope_sin = old_sin;
	if (spoil == OLD_OFFSET)
		data.offset = stale.offset;
	if (spoil == OLD_MASK)
		data.mask = stale.mask;
	if (spoil == OLD_TOKEN)
		data.token_ids = stale.token_ids;
	ck_assert_int_eq(
		pawl_decode_session_realize(session, &data, &now.env, &counters, &err), PAWL_OK);
	ck_assert_uint_eq(counters.runs, 1);
	logits = pawl_test_keep(d, pawl_decode_session_output(session, 0, NULL));
	free(old_cos);
	free(old_sin);
	pawl_token_buffers_release(&now);
	pawl_token_buffers_release(&old);
	pawl_decode_session_free(session);
	return logits;
}

START_TEST(stale_data_is_seen)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_tiny_model *masked;
	struct pawl_decoder *d;
	float *expected;

	tiny.has_mask = true;
	masked = pawl_tiny_model_twin(model, &tiny);
	expected = pawl_test_fresh(masked, &options, 1, 14);
	for (int spoil = NOTHING; spoil < N_SPOILS; spoil++) {
		float *logits;

		d = pawl_test_decoder(masked, &options);
		pawl_test_prefill(d, 1, 0, 13);
		logits = step_by_hand(d, masked, (enum spoil)spoil);
		ck_assert_int_eq(pawl_test_same(d, logits, expected), spoil == NOTHING);
		free(logits);
		pawl_decoder_free(d);
	}
	pawl_tiny_model_free(masked);
	free(expected);
}
END_TEST

/* Data that must not reach the device. */

static void
refuse_data(struct pawl_decode_session *session, const struct pawl_token_data *data,
	const struct pawl_symenv *env, enum pawl_status status, const char *text)
{
	struct pawl_kv_cache *cache = pawl_decoder_cache(decoder);
	uint64_t digest = pawl_test_cache_digest(cache);
	struct pawl_counters counters = {0};

	ck_assert_int_eq(pawl_decode_session_realize(session, data, env, &counters, &err), status);
	ck_assert_msg(strstr(err.text, text) != NULL, "%s, wanted %s", err.text, text);
	ck_assert_uint_eq(pawl_test_cache_digest(cache), digest);
	ck_assert_uint_eq(counters.runs, 0);
	ck_assert_uint_eq(counters.bytes_bound, 0);
}

START_TEST(data_out_of_bounds_writes_nothing)
{
	const struct pawl_model_source *source = pawl_tiny_model_source(model);
	struct pawl_decode_session *session;
	struct pawl_token_buffers buffers;
	struct pawl_token_data good, bad;
	struct pawl_counters counters = {0};
	struct pawl_symenv empty;
	int64_t offset;
	uint32_t id = 40, token = 7;

	pawl_test_prefill(decoder, 1, 0, 13);
	session = session_on(plan_of_step(), pawl_decoder_cache(decoder));
	ck_assert_int_eq(pawl_token_buffers_init(&buffers, session, &err), PAWL_OK);
	ck_assert_int_eq(
		pawl_token_buffers_fill(&buffers, source, &token, 1, 13, &good, &err), PAWL_OK);
	bad = good;
	bad.offset = &offset;
	offset = 64;
	refuse_data(session, &bad, &buffers.env, PAWL_CAPACITY,
		"write_slice: offset is 64: 1 more would go beyond the capacity of 64");
	offset = INT64_MAX;
	refuse_data(session, &bad, &buffers.env, PAWL_CAPACITY,
		"offset is 9223372036854775807: 1 more would go beyond the capacity of 64");
	offset = -1;
	refuse_data(session, &bad, &buffers.env, PAWL_INVALID_ARGUMENT,
		"offset is -1, a start is not negative");
	bad = good;
	bad.token_ids = &id;
	refuse_data(session, &bad, &buffers.env, PAWL_INVALID_ARGUMENT,
		": token_ids[0] is 40, outside 0 to 39");
	bad = good;
	bad.rope_cos = NULL;
	refuse_data(session, &bad, &buffers.env, PAWL_INVALID_ARGUMENT,
		"the plan wants rope_cos, which is not given");
	refuse_data(session, &good, NULL, PAWL_SYMBOL, "the plan has 1 symbols, 0 are given");
	ck_assert_int_eq(
		pawl_symenv_init(&empty, buffers.env.symbols, buffers.env.n, &err), PAWL_OK);
	refuse_data(session, &good, &empty, PAWL_SYMBOL, "symbol attended_len is unbound");
	ck_assert_int_eq(pawl_decode_session_realize(session, &good, &buffers.env, &counters, &err),
		PAWL_OK);
	pawl_symenv_release(&empty);
	pawl_token_buffers_release(&buffers);
	pawl_decode_session_free(session);
}
END_TEST

START_TEST(offered_bytes_are_read_once)
{
	const struct pawl_model_source *source = pawl_tiny_model_source(model);
	struct pawl_decode_session *session =
		session_on(plan_of_step(), pawl_decoder_cache(decoder));
	struct pawl_bindings *bindings = pawl_decode_session_bindings(session);
	struct pawl_token_buffers buffers;
	struct pawl_token_data data;
	struct pawl_counters counters = {0};
	uint32_t token = 7;
	struct pawl_counters bound = {0};
	float *logits;

	ck_assert_int_eq(pawl_token_buffers_init(&buffers, session, &err), PAWL_OK);
	ck_assert_int_eq(
		pawl_token_buffers_fill(&buffers, source, &token, 1, 0, &data, &err), PAWL_OK);
	ck_assert_int_eq(pawl_decode_session_realize(session, &data, &buffers.env, &counters, &err),
		PAWL_OK);
	logits = pawl_test_keep(decoder, pawl_decode_session_output(session, 0, NULL));
	/* The caller's memory is free to change: a run without new bytes repeats the last one. */
	buffers.ids[0] = 8;
	buffers.offset = 63;
	ck_assert_int_eq(pawl_bindings_run(bindings, &buffers.env, &bound, &err), PAWL_OK);
	ck_assert_uint_eq(bound.bytes_bound, 0);
	ck_assert_uint_eq(bound.runs, 1);
	ck_assert(pawl_test_same(decoder, pawl_decode_session_output(session, 0, NULL), logits));
	free(logits);
	pawl_token_buffers_release(&buffers);
	pawl_decode_session_free(session);
}
END_TEST

/* A failed run leaves nothing of its data for the next one. */
START_TEST(offers_of_a_failed_run_are_forgotten)
{
	const struct pawl_model_source *source = pawl_tiny_model_source(model);
	struct pawl_decode_session *session =
		session_on(plan_of_step(), pawl_decoder_cache(decoder));
	struct pawl_token_buffers buffers;
	struct pawl_token_data data;
	struct pawl_counters counters = {0};
	int64_t beyond = 64;
	uint32_t token = 7;
	float *logits;

	ck_assert_int_eq(pawl_token_buffers_init(&buffers, session, &err), PAWL_OK);
	ck_assert_int_eq(
		pawl_token_buffers_fill(&buffers, source, &token, 1, 0, &data, &err), PAWL_OK);
	ck_assert_int_eq(pawl_decode_session_realize(session, &data, &buffers.env, &counters, &err),
		PAWL_OK);
	logits = pawl_test_keep(decoder, pawl_decode_session_output(session, 0, NULL));
	buffers.ids[0] = 8;
	data.offset = &beyond;
	refuse_data(session, &data, &buffers.env, PAWL_CAPACITY, "offset is 64");
	/* Neither the offset nor the id that stood beside it. */
	ck_assert_int_eq(pawl_bindings_run(pawl_decode_session_bindings(session), &buffers.env,
				 NULL, &err),
		PAWL_OK);
	ck_assert(pawl_test_same(decoder, pawl_decode_session_output(session, 0, NULL), logits));
	free(logits);
	pawl_token_buffers_release(&buffers);
	pawl_decode_session_free(session);
}
END_TEST

/* A device that fails when it is told to. */

static const struct pawl_target_api *real;
static int n_runs_left;

static enum pawl_status
failing_run(const struct pawl_code *code, const struct pawl_run *run, struct pawl_error *error)
{
	if (n_runs_left-- == 0) {
		enum pawl_status status = real->run(code, run, error);

		return status ? status
			      : pawl_fail(error, PAWL_ENVIRONMENT, "the device fell off the bus");
	}
	return real->run(code, run, error);
}

START_TEST(a_failed_run_advances_nothing_and_may_be_repeated)
{
	float *expected = pawl_test_fresh(model, &options, 1, 14);
	struct pawl_target_api failing;
	struct pawl_device *device;
	struct pawl_decoder *d;
	const float *logits;
	uint32_t tokens[9];

	real = pawl_test_device()->api;
	failing = *real;
	failing.run = failing_run;
	n_runs_left = -1;
	ck_assert_int_eq(pawl_device_new(&failing, NULL, &device, &err), PAWL_OK);
	ck_assert_int_eq(
		pawl_decoder_new(pawl_tiny_model_source(model), device, &options, &d, &err),
		PAWL_OK);
	pawl_test_prefill(d, 1, 0, 4);
	for (int i = 0; i < 9; i++)
		tokens[i] = pawl_test_token(1, 4 + i);
	/* The second run of the prompt fails after the first has advanced the cache by 8. */
	n_runs_left = 1;
	ck_assert_int_eq(pawl_decoder_prefill(d, tokens, 9, &logits, &err), PAWL_ENVIRONMENT);
	ck_assert_str_eq(err.text, "the device fell off the bus");
	ck_assert_int_eq(pawl_decoder_len(d), 4);
	ck_assert_int_eq(pawl_decoder_prefill(d, tokens, 9, &logits, &err), PAWL_OK);
	n_runs_left = 0;
	ck_assert_int_eq(
		pawl_decoder_step(d, pawl_test_token(1, 13), &logits, &err), PAWL_ENVIRONMENT);
	ck_assert_int_eq(pawl_decoder_len(d), 13);
	ck_assert(pawl_test_same(d, pawl_test_step(d, 1, 13), expected));
	pawl_decoder_free(d);
	pawl_device_unref(device);
	free(expected);
}
END_TEST

Suite *
pawl_token_data_suite(void)
{
	Suite *suite = suite_create("token_data");
	TCase *tcase = tcase_create("token_data");

	tcase_add_checked_fixture(tcase, begin_decoder, end_decoder);
	tcase_add_test(tcase, stale_data_is_seen);
	tcase_add_test(tcase, data_out_of_bounds_writes_nothing);
	tcase_add_test(tcase, offered_bytes_are_read_once);
	tcase_add_test(tcase, offers_of_a_failed_run_are_forgotten);
	tcase_add_test(tcase, a_failed_run_advances_nothing_and_may_be_repeated);
	suite_add_tcase(suite, tcase);
	return suite;
}

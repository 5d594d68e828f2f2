/*
 * Guesses through the ABI: whoever guesses, and whatever, logits are those of one token after
 * another.
 */
#include <stdlib.h>
#include <string.h>

#include "ir/eval.h"
#include "tests/driven_fixture.h"
#include "tests/suites.h"

enum { N_VOCAB = PAWL_DRIVEN_VOCAB, CAPACITY = PAWL_DRIVEN_CAPACITY, PROMPT = 7, N = 30 };

static struct pawl_host_pool *
make_pool(uint64_t *sequence)
{
	const struct pawl_pool_settings settings = {.struct_size = sizeof(settings),
		.n_blocks = 4,
		.block_size = 16,
		.max_blocks = 4,
		.prefill_chunk = 8};
	struct pawl_host_pool *pool;

	PAWL_HOST_OK(api->pool_create(d.model, &settings, &pool));
	PAWL_HOST_OK(api->pool_open(pool, sequence));
	return pool;
}

/* How a host guesses sequence 1: right, but for every `wrong`th token; or it fails. */
struct guesser {
	int64_t wrong, more;
	int fails;
	uint32_t beyond; /* not 0: what it guesses in place of a wrong token */
};

static int
guess(void *user, const uint32_t *tokens, int64_t n, int64_t most, uint32_t *out, int64_t *n_out)
{
	const struct guesser *g = user;

	ck_assert_mem_eq(tokens, pawl_driven_tokens(1, 0, n), (size_t)n * sizeof(*tokens));
	if (g->fails)
		return 1;
	for (int64_t i = 0; i < most; i++) {
		int is_wrong = (n + i) % g->wrong == 0;

		out[i] = is_wrong && g->beyond
				 ? g->beyond
				 : (*pawl_driven_tokens(1, n + i, 1) + (uint32_t)is_wrong) % N_VOCAB;
	}
	*n_out = most + g->more;
	return 0;
}

static struct pawl_speculation_settings
guessed_by(struct guesser *g)
{
	return (struct pawl_speculation_settings){
		.struct_size = sizeof(struct pawl_speculation_settings),
		.n_guess = 4,
		.propose = guess,
		.user = g};
}

static uint64_t
counter(const struct pawl_host_speculation *s, const char *name)
{
	struct pawl_counter found = {.struct_size = sizeof(found)};

	for (int64_t i = 0; api->speculation_counter(s, i, &found); i++)
		if (!strcmp(found.name, name))
			return found.value;
	ck_abort_msg("no counter %s", name);
	return 0;
}

/* Appends tokens from PROMPT up to N of sequence 1, and looks at the logits after each. */
static void
follow(struct pawl_host_speculation *s)
{
	const float *logits;

	PAWL_HOST_OK(api->speculation_begin(s, pawl_driven_tokens(1, 0, PROMPT), PROMPT));
	for (int64_t i = PROMPT; i < N; i++) {
		PAWL_HOST_OK(api->speculation_step(s, *pawl_driven_tokens(1, i, 1), &logits));
		pawl_driven_expect(&d, logits, 1, i + 1);
	}
	ck_assert_uint_gt(counter(s, "accepted"), 0);
	ck_assert_uint_gt(counter(s, "proposed"), counter(s, "accepted"));
	ck_assert_uint_eq(counter(s, "runs") + counter(s, "accepted"), N - PROMPT);
}

START_TEST(guesses_change_no_logits)
{
	struct guesser g = {.wrong = 3};
	const struct pawl_speculation_settings settings = guessed_by(&g);
	struct pawl_host_decoder *decoder = pawl_driven_decoder(&d, 8);
	struct pawl_host_speculation *s;
	const float *logits;

	PAWL_HOST_OK(api->decoder_append(decoder, pawl_driven_tokens(1, 0, PROMPT), PROMPT, NULL));
	PAWL_HOST_OK(api->speculation_create(decoder, &settings, &s));
	follow(s);
	ck_assert_int_ge(api->decoder_len(decoder), N);
	PAWL_HOST_OK(api->speculation_settle(s));
	ck_assert_int_eq(api->decoder_len(decoder), N);
	PAWL_HOST_OK(api->decoder_append(decoder, pawl_driven_tokens(1, N, 1), 1, &logits));
	pawl_driven_expect(&d, logits, 1, N + 1);
	/* The decoder stays as long as what speculates on it. */
	api->decoder_release(decoder);
	PAWL_HOST_OK(api->speculation_begin(s, pawl_driven_tokens(1, 0, N + 1), N + 1));
	PAWL_HOST_OK(api->speculation_step(s, *pawl_driven_tokens(1, N + 1, 1), &logits));
	pawl_driven_expect(&d, logits, 1, N + 2);
	api->speculation_release(s);
}
END_TEST

START_TEST(a_sequence_of_a_pool_is_guessed_too)
{
	const struct pawl_scheduler_settings scheduled = {
		.struct_size = sizeof(scheduled), .max_batch = 1};
	struct guesser g = {.wrong = 3};
	struct pawl_speculation_settings settings = guessed_by(&g);
	struct pawl_host_scheduler *scheduler;
	struct pawl_host_speculation *s = NULL;
	struct pawl_host_pool *pool;
	const float *logits;
	uint64_t sequence;

	pool = make_pool(&sequence);
	PAWL_HOST_OK(api->pool_append(
		pool, sequence, pawl_driven_tokens(1, 0, PROMPT), PROMPT, NULL));
	settings.n_guess = 8;
	pawl_test_host_refused(api->speculation_of_sequence(pool, sequence, &settings, &s),
		PAWL_CODE_INVALID_ARGUMENT, "1 to 7 are possible");
	settings.n_guess = 7;
	pawl_test_host_refused(api->speculation_of_sequence(pool, sequence + 99, &settings, &s),
		PAWL_CODE_INVALID_ARGUMENT, "is not open");
	ck_assert_ptr_null(s);
	PAWL_HOST_OK(api->speculation_of_sequence(pool, sequence, &settings, &s));
	follow(s);
	PAWL_HOST_OK(api->speculation_settle(s));
	ck_assert_int_eq(api->pool_len(pool, sequence), N);
	PAWL_HOST_OK(api->pool_step(
		pool, &sequence, pawl_driven_tokens(1, N, 1), 1, &logits));
	pawl_driven_expect(&d, logits, 1, N + 1);
	pawl_test_host_refused(api->speculation_step(s, 1, &logits), PAWL_CODE_INVALID_ARGUMENT,
		"the target has 31 positions");
	PAWL_HOST_OK(api->pool_close(pool, sequence));
	pawl_test_host_refused(
		api->speculation_step(s, 1, &logits), PAWL_CODE_INVALID_ARGUMENT, "positions");
	PAWL_HOST_OK(api->speculation_settle(s));
	PAWL_HOST_OK(api->scheduler_create(pool, &scheduled, &scheduler));
	pawl_test_host_refused(api->speculation_step(s, 1, &logits), PAWL_CODE_INVALID_ARGUMENT,
		"a scheduler has the pool");
	api->scheduler_release(scheduler);
	api->pool_release(pool);
	api->speculation_release(s);
}
END_TEST

/* The likeliest tokens, guessed by `draft` or by what was there before, beside those one by one. */
static void
decode_greedily(struct pawl_host_decoder *draft, bool is_periodic)
{
	const struct pawl_speculation_settings settings = {
		.struct_size = sizeof(settings), .n_guess = 3, .draft = draft};
	struct pawl_host_decoder *decoder = pawl_driven_decoder(&d, 8);
	struct pawl_host_decoder *plain = pawl_driven_decoder(&d, 8);
	const float *logits, *wanted;
	struct pawl_host_speculation *s;

	PAWL_HOST_OK(api->speculation_create(decoder, &settings, &s));
	PAWL_HOST_OK(api->decoder_append(decoder, pawl_driven_tokens(1, 0, PROMPT), PROMPT, &logits));
	PAWL_HOST_OK(api->decoder_append(plain, pawl_driven_tokens(1, 0, PROMPT), PROMPT, &wanted));
	PAWL_HOST_OK(api->speculation_begin(s, pawl_driven_tokens(1, 0, PROMPT), PROMPT));
	for (int64_t i = PROMPT; i < N; i++) {
		uint32_t token = is_periodic ? (uint32_t)(i % 5) : pawl_driven_likeliest(wanted);

		PAWL_HOST_OK(api->speculation_step(s, token, &logits));
		PAWL_HOST_OK(api->decoder_append(plain, &token, 1, &wanted));
		for (int j = 0; j < N_VOCAB; j++)
			ck_assert(pawl_eval_same(wanted[j], logits[j]));
	}
	ck_assert_uint_gt(counter(s, "accepted"), 0);
	ck_assert_uint_lt(counter(s, "runs"), N - PROMPT);
	api->decoder_release(decoder);
	api->decoder_release(plain);
	api->decoder_release(draft);
	api->speculation_release(s);
}

START_TEST(a_draft_or_the_sequence_itself_guesses)
{
	struct pawl_host_decoder *draft = pawl_driven_decoder(&d, 8);

	/* Whatever it holds. */
	PAWL_HOST_OK(api->decoder_append(draft, pawl_driven_tokens(3, 0, 5), 5, NULL));
	decode_greedily(draft, false);
	decode_greedily(NULL, true);
}
END_TEST

/* Tokens that the model does not have end a guess, and are none. */
START_TEST(a_guess_ends_at_a_token_of_no_model)
{
	struct guesser g = {.wrong = 3, .beyond = N_VOCAB};
	const struct pawl_speculation_settings settings = guessed_by(&g);
	struct pawl_host_decoder *decoder = pawl_driven_decoder(&d, 8);
	struct pawl_host_speculation *s;
	const float *logits;

	PAWL_HOST_OK(api->decoder_append(decoder, pawl_driven_tokens(1, 0, PROMPT), PROMPT, NULL));
	PAWL_HOST_OK(api->speculation_create(decoder, &settings, &s));
	PAWL_HOST_OK(api->speculation_begin(s, pawl_driven_tokens(1, 0, PROMPT), PROMPT));
	for (int64_t i = PROMPT; i < N; i++) {
		PAWL_HOST_OK(api->speculation_step(s, *pawl_driven_tokens(1, i, 1), &logits));
		pawl_driven_expect(&d, logits, 1, i + 1);
		g.beyond = UINT32_MAX;
	}
	ck_assert_uint_gt(counter(s, "proposed"), 0);
	ck_assert_uint_eq(counter(s, "proposed"), counter(s, "accepted"));
	api->decoder_release(decoder);
	api->speculation_release(s);
}
END_TEST

START_TEST(a_guesser_may_fail)
{
	struct guesser g = {.wrong = 3, .fails = 1};
	const struct pawl_speculation_settings settings = guessed_by(&g);
	struct pawl_host_decoder *decoder = pawl_driven_decoder(&d, 8);
	const uint32_t token = *pawl_driven_tokens(1, PROMPT, 1);
	struct pawl_host_speculation *s;
	const float *logits = NULL;

	PAWL_HOST_OK(api->decoder_append(decoder, pawl_driven_tokens(1, 0, PROMPT), PROMPT, NULL));
	PAWL_HOST_OK(api->speculation_create(decoder, &settings, &s));
	PAWL_HOST_OK(api->speculation_begin(s, pawl_driven_tokens(1, 0, PROMPT), PROMPT));
	pawl_test_host_refused(
		api->speculation_step(s, token, &logits), PAWL_CODE_ENVIRONMENT, "failed to guess");
	g.fails = 0;
	for (g.more = 1; g.more > -6; g.more -= 6)
		pawl_test_host_refused(api->speculation_step(s, token, &logits),
			PAWL_CODE_ENVIRONMENT, "asked for 4 at most");
	ck_assert_ptr_null(logits);
	ck_assert_int_eq(api->decoder_len(decoder), PROMPT);
	g.more = 0;
	follow(s);
	api->decoder_release(decoder);
	api->speculation_release(s);
}
END_TEST

/* Another context, whose decoders are of no use for guessing here. */
static void
refuse_strangers(struct pawl_host_decoder *decoder, struct pawl_speculation_settings settings)
{
	struct pawl_host_speculation *s = NULL;
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	const struct pawl_decoder_settings own = {.struct_size = sizeof(own), .capacity = CAPACITY};
	struct pawl_model_options options = pawl_driven_options(&d);
	struct pawl_host_decoder *draft;
	struct pawl_host_model *model;
	struct pawl_driven other;

	pawl_driven_init(&other, "ref", 1, NULL, &tiny);
	options = pawl_driven_options(&other);
	PAWL_HOST_OK(api->model_create(other.context, other.lender.weights, &options, &other.model));
	PAWL_HOST_OK(api->decoder_create(other.model, &own, &draft));
	settings.draft = draft;
	pawl_test_host_invalid(api->speculation_create(decoder, &settings, &s),
		"of another context");
	api->decoder_release(draft);
	pawl_driven_end(&other);
	options = pawl_driven_options(&d);
	options.n_vocab = N_VOCAB - 1;
	PAWL_HOST_OK(api->model_create(d.context, d.lender.weights, &options, &model));
	PAWL_HOST_OK(api->decoder_create(model, &own, &draft));
	settings.draft = draft;
	pawl_test_host_invalid(api->speculation_create(decoder, &settings, &s),
		"the draft has 39 tokens");
	api->decoder_release(draft);
	api->model_release(model);
	ck_assert_ptr_null(s);
}

START_TEST(wrong_use_is_refused)
{
	struct guesser g = {.wrong = 3};
	struct pawl_speculation_settings settings = guessed_by(&g);
	struct pawl_host_decoder *decoder = pawl_driven_decoder(&d, 8);
	struct pawl_counter found = {.struct_size = sizeof(found)};
	struct pawl_host_speculation *s = NULL;
	const float *logits = NULL;

	PAWL_HOST_OK(api->decoder_append(decoder, pawl_driven_tokens(1, 0, PROMPT), PROMPT, NULL));
	for (settings.n_guess = 0; settings.n_guess <= 32; settings.n_guess += 32)
		pawl_test_host_invalid(api->speculation_create(decoder, &settings, &s),
			"1 to 31 are possible");
	settings.n_guess = 4;
	settings.capacity = -1;
	pawl_test_host_invalid(api->speculation_create(decoder, &settings, &s), "-1 tokens");
	settings.capacity = 0;
	settings.propose = NULL;
	settings.least_repeat = 5;
	pawl_test_host_invalid(api->speculation_create(decoder, &settings, &s),
		"repeats of 5 to 4 tokens");
	settings.least_repeat = 0;
	settings.draft = decoder;
	pawl_test_host_invalid(api->speculation_create(decoder, &settings, &s),
		"the decoder itself");
	settings.draft = (struct pawl_host_decoder *)d.context;
	pawl_test_host_invalid(api->speculation_create(decoder, &settings, &s), "no decoder");
	refuse_strangers(decoder, settings);
	settings = guessed_by(&g);
	settings.struct_size = 56;
	pawl_test_host_invalid(api->speculation_create(decoder, &settings, &s), "struct_size");
	pawl_test_host_invalid(api->speculation_create(decoder, NULL, &s), "NULL");
	ck_assert_ptr_null(s);
	for (int i = 0; i < 2; i++) {
		void *no = i ? (void *)d.context : NULL;

		settings = guessed_by(&g);
		pawl_test_host_invalid(api->speculation_create(no, &settings, &s), "no decoder");
		pawl_test_host_invalid(api->speculation_of_sequence(no, 1, &settings, &s),
			"no pool");
		pawl_test_host_invalid(api->speculation_begin(no, pawl_driven_tokens(1, 0, 1), 1),
			"no speculation");
		pawl_test_host_invalid(api->speculation_step(no, 1, &logits), "no speculation");
		pawl_test_host_invalid(api->speculation_settle(no), "no speculation");
		ck_assert_int_eq(api->speculation_counter(no, 0, &found), 0);
		api->speculation_release(no);
	}
	PAWL_HOST_OK(api->speculation_create(decoder, &settings, &s));
	pawl_test_host_invalid(api->speculation_step(s, 1, &logits), "the target has 7 positions");
	pawl_test_host_invalid(api->speculation_begin(s, pawl_driven_tokens(1, 0, 6), 6),
		"6 tokens are said");
	pawl_test_host_invalid(api->speculation_begin(s, NULL, 0), "NULL");
	PAWL_HOST_OK(api->speculation_begin(s, pawl_driven_tokens(1, 0, PROMPT), PROMPT));
	pawl_test_host_invalid(api->speculation_step(s, N_VOCAB, &logits), "40");
	pawl_test_host_invalid(api->speculation_step(s, 1, NULL), "NULL");
	/* What the host does to the decoder meanwhile is not undone. */
	PAWL_HOST_OK(api->speculation_step(s, *pawl_driven_tokens(1, PROMPT, 1), &logits));
	ck_assert_int_gt(api->decoder_len(decoder), PROMPT + 1);
	PAWL_HOST_OK(api->decoder_set_len(decoder, 2, NULL));
	PAWL_HOST_OK(api->decoder_append(decoder, pawl_driven_tokens(1, 2, 20), 20, NULL));
	pawl_test_host_invalid(api->speculation_step(s, 1, &logits), "the target has 22 positions");
	PAWL_HOST_OK(api->speculation_settle(s));
	ck_assert_int_eq(api->decoder_len(decoder), 22);
	ck_assert_int_eq(api->speculation_counter(s, 3, &found), 0);
	ck_assert_int_eq(api->speculation_counter(s, 0, NULL), 0);
	api->decoder_release(decoder);
	api->speculation_release(s);
}
END_TEST

Suite *
pawl_host_speculation_suite(void)
{
	Suite *suite = suite_create("host_speculation");
	TCase *tcase = tcase_create("host_speculation");

	tcase_add_checked_fixture(tcase, begin_driven, end_driven);
	tcase_add_test(tcase, guesses_change_no_logits);
	tcase_add_test(tcase, a_sequence_of_a_pool_is_guessed_too);
	tcase_add_test(tcase, a_draft_or_the_sequence_itself_guesses);
	tcase_add_test(tcase, a_guess_ends_at_a_token_of_no_model);
	tcase_add_test(tcase, a_guesser_may_fail);
	tcase_add_test(tcase, wrong_use_is_refused);
	suite_add_tcase(suite, tcase);
	return suite;
}

/* Speculation changes no bit: every count of accepted guesses, rollbacks, edges, errors. */
#include "runtime/speculative.h"

#include "runtime/memory.h"
#include "tests/model_fixture.h"
#include "tests/story.h"
#include "tests/suites.h"
#include "tools/sampler.h"

#include <stdlib.h>
#include <string.h>

enum {
	PROMPT = PAWL_STORY_PROMPT,
	STEPS = PAWL_STORY_STEPS,
	N_VOCAB = PAWL_STORY_VOCAB,
	N_GUESS = 4
};

static struct pawl_error err;

static struct pawl_story story;

static void
begin(void)
{
	begin_model();
	pawl_story_tell(&story, model);
}

static struct pawl_speculative *
speculate(struct pawl_decoder *decoder, struct pawl_proposer proposer, int64_t n_guess)
{
	const struct pawl_speculative_target target = pawl_speculative_decoder(decoder);
	struct pawl_speculative *s;

	ck_assert_int_eq(pawl_speculative_new(&target, &proposer, n_guess,
				 pawl_decoder_capacity(decoder), &s, &err),
		PAWL_OK);
	return s;
}

/* A target with the prompt, and speculation on it. */
static struct pawl_speculative *
start(struct pawl_proposer proposer, int64_t n_guess, struct pawl_decoder **decoder)
{
	struct pawl_speculative *s;

	*decoder = pawl_test_decoder(model, &options);
	pawl_test_prefill(*decoder, 1, 0, PROMPT);
	s = speculate(*decoder, proposer, n_guess);
	ck_assert_int_eq(pawl_speculative_begin(s, story.tokens, PROMPT, &err), PAWL_OK);
	return s;
}

static void
follow(struct pawl_speculative *s, int first, int last)
{
	pawl_story_follow(&story, s, first, last);
}

START_TEST(every_count_of_accepted_guesses_gives_the_plain_bits)
{
	struct pawl_script script = {.story = &story, .right = _i};
	struct pawl_decoder *decoder;
	struct pawl_speculative *s = start(pawl_script_proposer(&script), N_GUESS, &decoder);
	struct pawl_speculative_stats stats;
	const float *logits;

	follow(s, 0, STEPS - 1);
	stats = pawl_speculative_stats(s);
	ck_assert_uint_eq(stats.runs, (STEPS - 1 + _i) / (_i + 1));
	ck_assert_uint_eq(stats.accepted, STEPS - 1 - stats.runs);
	ck_assert_uint_eq(stats.proposed, stats.runs * N_GUESS);
	ck_assert_int_eq(script.calls, (int64_t)stats.runs);

	/* Nothing of what was guessed is left in the cache. */
	pawl_speculative_settle(s);
	ck_assert_int_eq(pawl_decoder_len(decoder), PROMPT + STEPS - 1);
	ck_assert_int_eq(
		pawl_decoder_step(decoder, story.tokens[PROMPT + STEPS - 1], &logits, &err),
		PAWL_OK);
	ck_assert_mem_eq(logits, story.plain[STEPS - 1], sizeof(story.plain[0]));
	pawl_speculative_free(s);
	pawl_decoder_free(decoder);
}
END_TEST

START_TEST(a_generation_costs_two_plans_and_no_allocation)
{
	struct pawl_script script = {.story = &story, .right = _i};
	struct pawl_decoder *decoder;
	struct pawl_speculative *s = start(pawl_script_proposer(&script), N_GUESS, &decoder);
	struct pawl_decoder_stats before, after;
	uint64_t runs;

	follow(s, 0, 1);
	before = stats_of(decoder);
	runs = pawl_speculative_stats(s).runs;
	follow(s, 1, STEPS);
	after = stats_of(decoder);
	/* The cache, the chunk of the prompt, its last token, the guess. */
	ck_assert_uint_eq(before.counters.optimizes, 4);
	ck_assert_uint_eq(after.counters.optimizes, 4);
	ck_assert_uint_eq(pawl_counters_rebuilds(&after.counters), 0);
	ck_assert_uint_eq(after.allocations, before.allocations);
	ck_assert_uint_eq(after.kernel_compiles, before.kernel_compiles);
	ck_assert_uint_eq(
		after.counters.runs - before.counters.runs, pawl_speculative_stats(s).runs - runs);
	pawl_speculative_free(s);
	pawl_decoder_free(decoder);
}
END_TEST

START_TEST(lookup_and_guesses_of_any_size_give_the_plain_bits)
{
	struct pawl_lookup lookup = {1, 3};
	struct pawl_decoder *decoder;
	struct pawl_speculative *s;

	options.capacity = 96;
	s = start(pawl_lookup_proposer(&lookup), _i, &decoder);
	follow(s, 0, STEPS);
	ck_assert_uint_gt(pawl_speculative_stats(s).accepted, 0);
	pawl_speculative_free(s);
	pawl_decoder_free(decoder);
}
END_TEST

/* By the model itself, and by another one. */
START_TEST(drafts_give_the_plain_bits)
{
	bool other = _i;
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_tiny_model *small;
	struct pawl_decoder *decoder, *guesser;
	struct pawl_speculative *s;
	struct pawl_speculative_stats stats;
	struct pawl_draft *draft;
	const float *logits;
	float *fresh;

	tiny.n_layers = 1;
	small = pawl_tiny_model_new(&tiny);
	guesser = pawl_test_decoder(other ? small : model, &options);
	ck_assert_int_eq(pawl_draft_new(guesser, &draft, &err), PAWL_OK);
	s = start(pawl_draft_proposer(draft), N_GUESS, &decoder);
	follow(s, 0, STEPS);
	stats = pawl_speculative_stats(s);
	if (other)
		ck_assert_uint_lt(stats.accepted, stats.proposed);
	else
		ck_assert_uint_eq(stats.runs, STEPS / (N_GUESS + 1));
	ck_assert_uint_eq(stats.accepted + stats.runs, STEPS);

	/* What the draft's cache has of the sequence is what it would have computed alone. */
	ck_assert_int_ge(pawl_decoder_len(guesser), PROMPT);
	pawl_decoder_truncate(guesser, PROMPT);
	fresh = pawl_test_fresh(other ? small : model, &options, 1, PROMPT + 1);
	logits = pawl_test_step(guesser, 1, PROMPT);
	ck_assert(pawl_test_same(guesser, logits, fresh));
	free(fresh);
	pawl_speculative_free(s);
	pawl_draft_free(draft);
	pawl_decoder_free(guesser);
	pawl_decoder_free(decoder);
	pawl_tiny_model_free(small);
}
END_TEST

static struct pawl_sampler *
sampler_of(uint64_t seed)
{
	const struct pawl_sampler_options draws = {.temp = 1.5, .top_p = 1, .seed = seed};
	struct pawl_sampler *sampler;

	ck_assert_int_eq(pawl_sampler_new(&draws, N_VOCAB, &sampler, &err), PAWL_OK);
	return sampler;
}

START_TEST(draws_are_those_of_plain_decoding)
{
	struct pawl_sampler *one = sampler_of((uint64_t)_i), *other = sampler_of((uint64_t)_i);
	struct pawl_lookup lookup = {1, 3};
	struct pawl_decoder *decoder, *alone = pawl_test_decoder(model, &options);
	struct pawl_speculative *s = start(pawl_lookup_proposer(&lookup), N_GUESS, &decoder);
	const float *logits = pawl_test_prefill(alone, 1, 0, PROMPT), *guessed = logits;
	struct pawl_speculative_stats stats;

	for (int i = 0; i < STEPS; i++) {
		uint32_t wanted, drawn;

		ck_assert_int_eq(pawl_sampler_pick(one, logits, &wanted, &err), PAWL_OK);
		ck_assert_int_eq(pawl_sampler_pick(other, guessed, &drawn, &err), PAWL_OK);
		ck_assert_int_eq(drawn, wanted);
		ck_assert_int_eq(
			pawl_decoder_step(alone, (uint32_t)wanted, &logits, &err), PAWL_OK);
		ck_assert_int_eq(
			pawl_speculative_step(s, (uint32_t)drawn, &guessed, &err), PAWL_OK);
		ck_assert(pawl_test_same(alone, guessed, logits));
	}
	stats = pawl_speculative_stats(s);
	ck_assert_uint_gt(stats.proposed, stats.accepted);
	pawl_sampler_free(one);
	pawl_sampler_free(other);
	pawl_speculative_free(s);
	pawl_decoder_free(alone);
	pawl_decoder_free(decoder);
}
END_TEST

START_TEST(the_end_of_the_capacity_goes_one_by_one)
{
	struct pawl_script script = {.story = &story, .right = N_GUESS};
	struct pawl_decoder *decoder;
	struct pawl_speculative *s;
	const float *logits = NULL;
	uint64_t digest;

	options.capacity = 32;
	s = start(pawl_script_proposer(&script), N_GUESS, &decoder);
	/* 12 in use: runs of 5 up to 32, the last of which fills the cache. */
	follow(s, 0, 20);
	ck_assert_uint_eq(pawl_speculative_stats(s).runs, 4);
	pawl_speculative_settle(s);
	digest = pawl_test_cache_digest(pawl_decoder_cache(decoder));
	ck_assert_int_eq(pawl_speculative_step(s, 5, &logits, &err), PAWL_CAPACITY);
	ck_assert_ptr_null(logits);
	ck_assert_uint_eq(pawl_test_cache_digest(pawl_decoder_cache(decoder)), digest);

	/* 16 in use: three runs of 5, then one token. */
	pawl_decoder_truncate(decoder, PROMPT + 4);
	ck_assert_int_eq(pawl_speculative_begin(s, story.tokens, PROMPT + 4, &err), PAWL_OK);
	follow(s, 4, 20);
	ck_assert_uint_eq(pawl_speculative_stats(s).runs, 4 + 3 + 1);
	ck_assert_int_eq(script.calls, 4 + 3);
	ck_assert_int_eq(pawl_decoder_len(decoder), 32);
	pawl_speculative_free(s);
	pawl_decoder_free(decoder);
}
END_TEST

START_TEST(an_error_advances_nothing)
{
	struct pawl_script script = {.story = &story, .right = 2};
	struct pawl_decoder *decoder;
	struct pawl_speculative *s = start(pawl_script_proposer(&script), N_GUESS, &decoder);
	const float *logits = NULL;
	struct pawl_speculative_stats stats;

	/* One guess is accepted, one more right, two are wrong. */
	follow(s, 0, 2);
	stats = pawl_speculative_stats(s);
	ck_assert_int_eq(pawl_speculative_step(s, N_VOCAB, &logits, &err), PAWL_INVALID_ARGUMENT);
	script.fail = PAWL_ENVIRONMENT;
	ck_assert_int_eq(pawl_speculative_step(s, story.tokens[PROMPT + 2], &logits, &err),
		PAWL_ENVIRONMENT);
	ck_assert_str_eq(err.text, "no guess");
	ck_assert_ptr_null(logits);
	ck_assert_int_eq(pawl_decoder_len(decoder), PROMPT + 2);
	ck_assert_uint_eq(pawl_speculative_stats(s).runs, stats.runs);
	ck_assert_uint_eq(pawl_speculative_stats(s).accepted, stats.accepted);
	script.fail = PAWL_OK;
	follow(s, 2, STEPS);
	pawl_speculative_free(s);
	pawl_decoder_free(decoder);
}
END_TEST

START_TEST(without_memory_nothing_advances)
{
	struct pawl_script script = {.story = &story, .right = 2};
	struct pawl_decoder *decoder;
	struct pawl_speculative *s = start(pawl_script_proposer(&script), N_GUESS, &decoder);
	const float *logits = NULL;
	uint64_t digest = pawl_test_cache_digest(pawl_decoder_cache(decoder));
	enum pawl_status status = PAWL_OUT_OF_MEMORY;
	int64_t failures;

	for (failures = 0; status; failures++) {
		pawl_memory_fail_after(failures);
		status = pawl_speculative_step(s, story.tokens[PROMPT], &logits, &err);
		pawl_memory_fail_after(-1);
		if (!status)
			break;
		ck_assert_int_eq(status, PAWL_OUT_OF_MEMORY);
		ck_assert_uint_eq(pawl_test_cache_digest(pawl_decoder_cache(decoder)), digest);
	}
	ck_assert_int_gt(failures, 3);
	ck_assert_mem_eq(logits, story.plain[0], sizeof(story.plain[0]));
	follow(s, 1, STEPS);
	pawl_speculative_free(s);
	pawl_decoder_free(decoder);
}
END_TEST

START_TEST(guesses_outside_of_the_vocabulary_are_cut)
{
	struct pawl_script script = {.story = &story, .right = _i, .outside = true};
	struct pawl_decoder *decoder;
	struct pawl_speculative *s = start(pawl_script_proposer(&script), N_GUESS, &decoder);
	struct pawl_speculative_stats stats;

	follow(s, 0, STEPS);
	stats = pawl_speculative_stats(s);
	ck_assert_uint_eq(stats.proposed, stats.runs * (unsigned)_i);
	ck_assert_uint_eq(stats.runs, (STEPS + _i) / (_i + 1));
	pawl_speculative_free(s);
	pawl_decoder_free(decoder);
}
END_TEST

START_TEST(one_plan_computes_guesses_of_all_lengths)
{
	struct pawl_script script = {.story = &story, .outside = true};
	struct pawl_decoder *decoder;
	struct pawl_speculative *s = start(pawl_script_proposer(&script), N_GUESS, &decoder);

	for (int i = 0; i < STEPS; i++) {
		script.right = script.calls % (N_GUESS + 1);
		follow(s, i, i + 1);
	}
	ck_assert_int_eq(script.calls, 2 * (N_GUESS + 1));
	/* The cache, the chunk of the prompt, the single token, the guess. */
	ck_assert_uint_eq(stats_of(decoder).counters.optimizes, 4);
	pawl_speculative_free(s);
	pawl_decoder_free(decoder);
}
END_TEST

START_TEST(misuse_is_refused)
{
	struct pawl_script script = {.story = &story, .right = 2};
	const struct pawl_proposer proposer = pawl_script_proposer(&script);
	struct pawl_decoder *decoder;
	struct pawl_speculative *s = start(proposer, N_GUESS, &decoder), *none;
	const struct pawl_speculative_target target = pawl_speculative_decoder(decoder);
	const float *logits = NULL;

	ck_assert_int_eq(
		pawl_speculative_begin(s, story.tokens, PROMPT - 1, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "11 tokens are said to be in the target, 12 are");
	follow(s, 0, 2);
	/* Somebody else moved the target. */
	pawl_decoder_truncate(decoder, PROMPT);
	ck_assert_int_eq(pawl_speculative_step(s, story.tokens[PROMPT + 2], &logits, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "the target has 12 positions, speculation left it with 17");
	ck_assert_int_eq(pawl_speculative_begin(s, story.tokens, PROMPT, &err), PAWL_OK);
	follow(s, 0, STEPS);
	for (int64_t n_guess = 0; n_guess <= PAWL_MAX_GUESS + 1; n_guess += PAWL_MAX_GUESS + 1)
		ck_assert_int_eq(pawl_speculative_new(&target, &proposer, n_guess, 64, &none, &err),
			PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(
		pawl_speculative_new(&target, &proposer, 1, 0, &none, &err), PAWL_INVALID_ARGUMENT);
	for (int64_t i = 0; i < 2; i++) {
		pawl_memory_fail_after(i);
		ck_assert_int_eq(pawl_speculative_new(&target, &proposer, 1, 64, &none, &err),
			PAWL_OUT_OF_MEMORY);
	}
	pawl_memory_fail_after(-1);

	ck_assert_int_eq(pawl_speculative_new(&target, &proposer, 1, 20, &none, &err), PAWL_OK);
	ck_assert_int_eq(
		pawl_speculative_begin(none, story.tokens, pawl_decoder_len(decoder), &err),
		PAWL_CAPACITY);
	pawl_decoder_truncate(decoder, 19);
	ck_assert_int_eq(pawl_speculative_begin(none, story.tokens, 19, &err), PAWL_OK);
	ck_assert_int_eq(pawl_speculative_step(none, story.tokens[19], &logits, &err), PAWL_OK);
	ck_assert_int_eq(
		pawl_speculative_step(none, story.tokens[20], &logits, &err), PAWL_CAPACITY);
	pawl_speculative_free(none);
	pawl_speculative_free(s);
	pawl_speculative_free(NULL);
	pawl_decoder_free(decoder);
}
END_TEST

/* A run of 1 + n_guess rows must leave in the rings what its first row sees. */
START_TEST(guesses_fit_the_rings)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_decoder_options with_rings = options;
	struct pawl_script script = {.story = &story, .right = 2};
	const struct pawl_proposer proposer = pawl_script_proposer(&script);
	struct pawl_speculative_target target;
	struct pawl_speculative *s;
	struct pawl_tiny_model *windows;
	struct pawl_decoder *decoder;
	const float *logits;
	uint32_t tokens[29];

	tiny.window = 100;
	tiny.window_layers = 2;
	windows = pawl_tiny_model_new(&tiny);
	with_rings.capacity = 256;
	with_rings.rings = true;
	decoder = pawl_test_decoder(windows, &with_rings);
	target = pawl_speculative_decoder(decoder);
	ck_assert_int_eq(target.max_rows, 29);
	ck_assert_int_eq(pawl_speculative_new(&target, &proposer, 29, 256, &s, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "guesses of 29 tokens; 1 to 28 are possible");
	ck_assert_int_eq(pawl_speculative_new(&target, &proposer, 28, 256, &s, &err), PAWL_OK);
	pawl_speculative_free(s);
	for (int i = 0; i < 29; i++)
		tokens[i] = pawl_test_token(1, i);
	ck_assert_int_eq(target.extend(target.ctx, tokens, 29, 29, &logits, &err), PAWL_OK);
	pawl_decoder_free(decoder);
	pawl_tiny_model_free(windows);
}
END_TEST

START_TEST(extend_gives_every_row_in_one_plan)
{
	struct pawl_decoder *decoder = pawl_test_decoder(model, &options);
	const uint32_t *tokens = story.tokens + PROMPT;
	const float *rows = NULL;
	uint64_t optimizes;

	pawl_test_prefill(decoder, 1, 0, PROMPT);
	for (int n = 1; n <= 5; n++) {
		ck_assert_int_eq(pawl_decoder_extend(decoder, tokens, n, 5, &rows, &err), PAWL_OK);
		ck_assert_int_eq(pawl_decoder_len(decoder), PROMPT + n);
		ck_assert_mem_eq(rows, story.plain, sizeof(story.plain[0]) * (size_t)n);
		pawl_decoder_truncate(decoder, PROMPT);
		if (n == 1)
			optimizes = stats_of(decoder).counters.optimizes;
		ck_assert_uint_eq(stats_of(decoder).counters.optimizes, optimizes);
	}
	ck_assert_int_eq(
		pawl_decoder_extend(decoder, tokens, 3, 2, &rows, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "3 tokens in a run of 2 rows");
	ck_assert_int_eq(
		pawl_decoder_extend(decoder, tokens, 0, 2, &rows, &err), PAWL_INVALID_ARGUMENT);
	ck_assert_int_eq(
		pawl_decoder_extend(decoder, tokens, 1, INT64_MAX, &rows, &err), PAWL_CAPACITY);
	ck_assert_int_eq(pawl_decoder_len(decoder), PROMPT);
	pawl_decoder_free(decoder);
}
END_TEST

Suite *
pawl_speculative_suite(void)
{
	Suite *suite = suite_create("speculative");
	TCase *tcase = tcase_create("speculative");

	tcase_add_checked_fixture(tcase, begin, end_model);
	tcase_add_loop_test(
		tcase, every_count_of_accepted_guesses_gives_the_plain_bits, 0, N_GUESS + 1);
	tcase_add_loop_test(tcase, a_generation_costs_two_plans_and_no_allocation, 0, N_GUESS + 1);
	tcase_add_loop_test(tcase, lookup_and_guesses_of_any_size_give_the_plain_bits, 1, 9);
	tcase_add_loop_test(tcase, drafts_give_the_plain_bits, 0, 2);
	tcase_add_loop_test(tcase, draws_are_those_of_plain_decoding, 1, 4);
	tcase_add_test(tcase, the_end_of_the_capacity_goes_one_by_one);
	tcase_add_test(tcase, an_error_advances_nothing);
	tcase_add_test(tcase, without_memory_nothing_advances);
	tcase_add_loop_test(tcase, guesses_outside_of_the_vocabulary_are_cut, 0, N_GUESS + 1);
	tcase_add_test(tcase, one_plan_computes_guesses_of_all_lengths);
	tcase_add_test(tcase, misuse_is_refused);
	tcase_add_test(tcase, guesses_fit_the_rings);
	tcase_add_test(tcase, extend_gives_every_row_in_one_plan);
	suite_add_tcase(suite, tcase);
	return suite;
}

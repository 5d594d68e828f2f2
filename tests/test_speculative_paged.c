/* The same as in test_speculative.c for a sequence in pages. */
#include "runtime/speculative.h"

#include "tests/decoding.h"
#include "tests/story.h"
#include "tests/suites.h"

enum { PROMPT = PAWL_STORY_PROMPT, STEPS = PAWL_STORY_STEPS, N_GUESS = 4 };

static struct pawl_tiny_model *model;
static struct pawl_story story;
static struct pawl_error err;

static void
begin(void)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();

	model = pawl_tiny_model_new(&tiny);
	pawl_story_tell(&story, model);
}

static void
end(void)
{
	pawl_tiny_model_free(model);
}

static void
follow(struct pawl_speculative *s, int first, int last)
{
	pawl_story_follow(&story, s, first, last);
}

/* The prompt in pages, in a pool of n_blocks of which a sequence may have four, and speculation. */
static struct pawl_speculative *
start_paged(struct pawl_proposer proposer, int64_t n_blocks, struct pawl_paged_sequence *sequence)
{
	const struct pawl_paged_options paged = {.n_blocks = n_blocks,
		.block_size = 16,
		.max_blocks = 4,
		.kv_dtype = PAWL_DTYPE_F16,
		.n_threads = 1,
		.prefill_chunk = 8};
	struct pawl_speculative_target target;
	struct pawl_speculative *s;
	const float *logits;

	ck_assert_int_eq(pawl_paged_decoder_new(pawl_tiny_model_source(model), pawl_test_device(),
				 &paged, &sequence->decoder, &err),
		PAWL_OK);
	ck_assert_int_eq(
		pawl_paged_decoder_open(sequence->decoder, &sequence->session, &err), PAWL_OK);
	ck_assert_int_eq(pawl_paged_decoder_prefill(sequence->decoder, sequence->session,
				 story.tokens, PROMPT, &logits, &err),
		PAWL_OK);
	target = pawl_speculative_paged(sequence);
	ck_assert_int_eq(pawl_speculative_new(&target, &proposer, N_GUESS, 64, &s, &err), PAWL_OK);
	ck_assert_int_eq(pawl_speculative_begin(s, story.tokens, PROMPT, &err), PAWL_OK);
	return s;
}

static struct pawl_decoder_stats
paged_stats_of(const struct pawl_paged_sequence *sequence)
{
	struct pawl_decoder_stats stats;

	pawl_paged_decoder_stats(sequence->decoder, &stats);
	return stats;
}

START_TEST(every_count_of_accepted_guesses_gives_the_plain_bits)
{
	struct pawl_script script = {.story = &story, .right = _i};
	struct pawl_paged_sequence sequence;
	struct pawl_speculative *s = start_paged(pawl_script_proposer(&script), 8, &sequence);
	struct pawl_kv_block_pool *pool = pawl_paged_decoder_pool(sequence.decoder);
	struct pawl_decoder_stats before, after;
	const float *logits;

	follow(s, 0, 1);
	before = paged_stats_of(&sequence);
	follow(s, 1, STEPS - 1);
	after = paged_stats_of(&sequence);
	ck_assert_uint_eq(pawl_speculative_stats(s).runs, (STEPS - 1 + _i) / (_i + 1));
	ck_assert_uint_eq(after.counters.optimizes, before.counters.optimizes);
	ck_assert_uint_eq(pawl_counters_rebuilds(&after.counters), 0);
	ck_assert_uint_eq(after.allocations, before.allocations);

	pawl_speculative_settle(s);
	ck_assert_int_eq(pawl_kv_block_pool_session_len(pool, sequence.session), 41);
	ck_assert_int_eq(pawl_kv_block_pool_free_blocks(pool), 8 - 3);
	ck_assert_int_eq(pawl_paged_decoder_extend(sequence.decoder, sequence.session,
				 story.tokens + 41, 1, &logits, &err),
		PAWL_OK);
	ck_assert_mem_eq(logits, story.plain[STEPS - 1], sizeof(story.plain[0]));
	pawl_speculative_free(s);
	pawl_paged_decoder_free(sequence.decoder);
}
END_TEST

START_TEST(guesses_in_pages_leave_a_fork_alone)
{
	struct pawl_script script = {.story = &story, .right = 1};
	struct pawl_paged_sequence sequence, fork;
	struct pawl_speculative *s = start_paged(pawl_script_proposer(&script), 8, &sequence);
	const float *logits;

	fork.decoder = sequence.decoder;
	ck_assert_int_eq(pawl_kv_block_pool_fork(pawl_paged_decoder_pool(sequence.decoder),
				 sequence.session, &fork.session, &err),
		PAWL_OK);
	follow(s, 0, STEPS);
	ck_assert_int_eq(pawl_paged_decoder_prefill(fork.decoder, fork.session,
				 story.tokens + PROMPT, STEPS, &logits, &err),
		PAWL_OK);
	ck_assert_mem_eq(logits, story.plain[STEPS - 1], sizeof(story.plain[0]));
	pawl_speculative_free(s);
	pawl_paged_decoder_free(sequence.decoder);
}
END_TEST

START_TEST(a_pool_that_is_full_ends_guesses_and_then_steps)
{
	struct pawl_script script = {.story = &story, .right = N_GUESS};
	struct pawl_paged_sequence sequence;
	struct pawl_speculative *s = start_paged(pawl_script_proposer(&script), 4, &sequence);
	struct pawl_kv_block_pool *pool = pawl_paged_decoder_pool(sequence.decoder);
	struct pawl_kv_session_id other;
	const float *logits = NULL;
	uint64_t digest;

	ck_assert_int_eq(pawl_paged_decoder_open(sequence.decoder, &other, &err), PAWL_OK);
	ck_assert_int_eq(
		pawl_paged_decoder_prefill(sequence.decoder, other, story.tokens, 32, NULL, &err),
		PAWL_OK);
	/* 12 + 1 of 32 in use by a wrong turn, hence 19 are left: three runs of 5, and four of 1.
	 */
	script.right = 0;
	follow(s, 0, 1);
	script.right = N_GUESS;
	follow(s, 1, 20);
	ck_assert_uint_eq(pawl_speculative_stats(s).runs, 1 + 3 + 4);
	ck_assert_int_eq(script.calls, 1 + 3);
	digest = pawl_kv_block_pool_digest(pool);
	ck_assert_int_eq(pawl_speculative_step(s, 5, &logits, &err), PAWL_CAPACITY);
	ck_assert_ptr_null(logits);
	ck_assert_uint_eq(pawl_kv_block_pool_digest(pool), digest);
	/* With the other gone, guesses have room again, up to the length of a sequence. */
	ck_assert_int_eq(pawl_paged_decoder_close(sequence.decoder, other, &err), PAWL_OK);
	follow(s, 20, STEPS);
	ck_assert_uint_eq(pawl_speculative_stats(s).runs, 1 + 3 + 4 + 2);
	pawl_speculative_free(s);
	pawl_paged_decoder_free(sequence.decoder);
}
END_TEST

START_TEST(pages_bound_the_guess)
{
	struct pawl_script script = {.story = &story};
	const struct pawl_proposer proposer = pawl_script_proposer(&script);
	struct pawl_paged_sequence sequence;
	struct pawl_speculative *s = start_paged(proposer, 8, &sequence), *other;
	const struct pawl_speculative_target target = pawl_speculative_paged(&sequence);

	ck_assert_int_eq(pawl_speculative_new(&target, &proposer, 8, 64, &other, &err),
		PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(err.text, "guesses of 8 tokens; 1 to 7 are possible");
	ck_assert_int_eq(pawl_speculative_new(&target, &proposer, 7, 64, &other, &err), PAWL_OK);
	pawl_speculative_free(other);
	pawl_speculative_free(s);
	pawl_paged_decoder_free(sequence.decoder);
}
END_TEST

Suite *
pawl_speculative_paged_suite(void)
{
	Suite *suite = suite_create("speculative_paged");
	TCase *tcase = tcase_create("speculative_paged");

	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_loop_test(
		tcase, every_count_of_accepted_guesses_gives_the_plain_bits, 0, N_GUESS + 1);
	tcase_add_test(tcase, guesses_in_pages_leave_a_fork_alone);
	tcase_add_test(tcase, a_pool_that_is_full_ends_guesses_and_then_steps);
	tcase_add_test(tcase, pages_bound_the_guess);
	suite_add_tcase(suite, tcase);
	return suite;
}

/* What lookup and drafts guess. */
#include "runtime/propose.h"

#include "runtime/memory.h"
#include "tests/decoding.h"
#include "tests/suites.h"

#include <stdlib.h>
#include <string.h>

static struct pawl_error err;

/* Letters are tokens. */
static void
expect_lookup(struct pawl_lookup lookup, const char *text, int64_t most, const char *expected)
{
	struct pawl_proposer proposer = pawl_lookup_proposer(&lookup);
	uint32_t tokens[64], guess[64];
	int64_t n = (int64_t)strlen(text), n_guess = -1;
	char got[65];

	for (int64_t i = 0; i < n; i++)
		tokens[i] = (uint32_t)text[i];
	for (int64_t i = 0; i < 64; i++)
		guess[i] = '!';
	ck_assert_int_eq(
		proposer.propose(proposer.ctx, tokens, n, most, guess, &n_guess, &err), PAWL_OK);
	ck_assert_int_le(n_guess, most);
	for (int64_t i = 0; i < 64; i++)
		got[i] = (char)guess[i];
	for (int64_t i = n_guess; i < 64; i++)
		ck_assert_int_eq(got[i], '!');
	got[n_guess] = 0;
	ck_assert_str_eq(got, expected);
}

START_TEST(lookup_goes_on_where_the_end_stood_before)
{
	const struct pawl_lookup two = {2, 3};

	expect_lookup(two, "abcdefab", 3, "cde");
	expect_lookup(two, "abcdefab", 1, "c");
	/* The longer match wins over the later one, the later over the earlier of one length. */
	expect_lookup(two, "xabc.yabd.xab", 2, "c.");
	expect_lookup(two, "qabc.yabd.xab", 2, "d.");
	/* No more than three are compared: the later of "-abc" and "+abc". */
	expect_lookup(two, "-abc1+abc2-abc", 1, "2");
	expect_lookup((struct pawl_lookup){2, 4}, "-abc1+abc2-abc", 1, "1");
}
END_TEST

START_TEST(lookup_guesses_nothing_below_its_least)
{
	expect_lookup((struct pawl_lookup){2, 3}, "abcb", 4, "");
	expect_lookup((struct pawl_lookup){1, 3}, "abcb", 4, "cbcb");
	expect_lookup((struct pawl_lookup){1, 3}, "abcd", 4, "");
	expect_lookup((struct pawl_lookup){1, 3}, "a", 4, "");
	expect_lookup((struct pawl_lookup){3, 3}, "abab", 4, "");
}
END_TEST

START_TEST(lookup_repeats_a_period)
{
	expect_lookup((struct pawl_lookup){1, 4}, "aa", 5, "aaaaa");
	expect_lookup((struct pawl_lookup){2, 4}, "xabcabc", 8, "abcabcab");
	expect_lookup((struct pawl_lookup){2, 2}, "ababab", 3, "aba");
}
END_TEST

/* The likeliest tokens after the first n of sequence `seed`, one by one. */
static void
plain(const struct pawl_tiny_model *model, const struct pawl_decoder_options *options,
	unsigned seed, int64_t n, int64_t most, uint32_t *out)
{
	struct pawl_decoder *decoder = pawl_test_decoder(model, options);
	const float *logits = pawl_test_prefill(decoder, seed, 0, n);

	for (int64_t i = 0; i < most; i++) {
		out[i] = 0;
		for (uint32_t j = 1; j < 40; j++)
			if (logits[j] > logits[out[i]])
				out[i] = j;
		if (i + 1 < most)
			ck_assert_int_eq(
				pawl_decoder_step(decoder, out[i], &logits, &err), PAWL_OK);
	}
	pawl_decoder_free(decoder);
}

static uint64_t
tokens_computed(const struct pawl_decoder *decoder)
{
	struct pawl_decoder_stats stats;

	pawl_decoder_stats(decoder, &stats);
	return stats.counters.tokens;
}

START_TEST(a_draft_computes_what_it_does_not_have)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_tiny_model *model = pawl_tiny_model_new(&tiny);
	const struct pawl_decoder_options options = pawl_test_decoder_options();
	struct pawl_decoder *decoder = pawl_test_decoder(model, &options);
	struct pawl_proposer proposer;
	struct pawl_draft *draft;
	uint32_t tokens[64], guess[8], expected[8];
	uint64_t before;
	int64_t n_guess;

	/* What is in the cache is not mistaken for the sequence. */
	pawl_test_prefill(decoder, 3, 0, 9);
	ck_assert_int_eq(pawl_draft_new(decoder, &draft, &err), PAWL_OK);
	proposer = pawl_draft_proposer(draft);
	for (int i = 0; i < 20; i++)
		tokens[i] = pawl_test_token(1, i);
	for (int round = 0; round < 2; round++) {
		plain(model, &options, 1, 20, 4, expected);
		before = tokens_computed(decoder);
		ck_assert_int_eq(
			proposer.propose(proposer.ctx, tokens, 20, 4, guess, &n_guess, &err),
			PAWL_OK);
		ck_assert_int_eq(n_guess, 4);
		ck_assert_mem_eq(guess, expected, sizeof(*guess) * 4);
		/* The second time only the last token and three guesses. */
		ck_assert_uint_eq(tokens_computed(decoder) - before, round ? 1 + 3 : 20 + 3);
	}
	/* All four right and a fifth. */
	memcpy(tokens + 20, guess, sizeof(*guess) * 4);
	tokens[24] = 7;
	for (int round = 0; round < 2; round++) {
		before = tokens_computed(decoder);
		ck_assert_int_eq(
			proposer.propose(proposer.ctx, tokens, 25, 1, guess, &n_guess, &err),
			PAWL_OK);
		ck_assert_int_eq(n_guess, 1);
		/* Again only the last token, for its logits. */
		ck_assert_uint_eq(tokens_computed(decoder) - before, round ? 1 : 2);
	}
	/* Another sequence that begins alike. */
	tokens[5] = (tokens[5] + 1) % 40;
	before = tokens_computed(decoder);
	ck_assert_int_eq(
		proposer.propose(proposer.ctx, tokens, 10, 1, guess, &n_guess, &err), PAWL_OK);
	ck_assert_uint_eq(tokens_computed(decoder) - before, 5);
	pawl_draft_free(draft);
	pawl_decoder_free(decoder);
	pawl_tiny_model_free(model);
}
END_TEST

/* A sequence that parts from the one before further back than rings go is computed anew. */
START_TEST(a_draft_whose_rings_go_back_less_far)
{
	enum { N = 300, PARTS = 100, MOST = 6 };
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_decoder_options options = pawl_test_decoder_options();
	uint32_t tokens[N], guess[2][MOST];
	struct pawl_tiny_model *model;

	tiny.window = 20;
	tiny.window_layers = 1;
	model = pawl_tiny_model_new(&tiny);
	options.capacity = 512;
	for (int rings = 0; rings < 2; rings++) {
		struct pawl_decoder *decoder;
		struct pawl_draft *draft;
		struct pawl_proposer proposer;
		int64_t n;

		options.rings = rings;
		decoder = pawl_test_decoder(model, &options);
		ck_assert_int_eq(pawl_draft_new(decoder, &draft, &err), PAWL_OK);
		proposer = pawl_draft_proposer(draft);
		for (int64_t i = 0; i < N; i++)
			tokens[i] = pawl_test_token(1, i);
		ck_assert_int_eq(proposer.propose(proposer.ctx, tokens, N, MOST, guess[rings], &n,
					 &err),
			PAWL_OK);
		ck_assert_int_eq(pawl_kv_cache_least_len(pawl_decoder_cache(decoder)) > PARTS,
			rings);
		for (int64_t i = PARTS; i < N; i++)
			tokens[i] = pawl_test_token(2, i);
		ck_assert_int_eq(proposer.propose(proposer.ctx, tokens, N, MOST, guess[rings], &n,
					 &err),
			PAWL_OK);
		ck_assert_int_eq(n, MOST);
		ck_assert_int_eq(pawl_decoder_len(decoder), N + MOST - 1);
		pawl_draft_free(draft);
		pawl_decoder_free(decoder);
	}
	ck_assert_mem_eq(guess[0], guess[1], sizeof(guess[0]));
	pawl_tiny_model_free(model);
}
END_TEST

START_TEST(a_draft_ends_with_its_capacity)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_tiny_model *model = pawl_tiny_model_new(&tiny);
	struct pawl_decoder_options options = pawl_test_decoder_options();
	struct pawl_decoder *decoder;
	struct pawl_proposer proposer;
	struct pawl_draft *draft;
	uint32_t tokens[33], guess[8];
	int64_t n_guess;

	options.capacity = 32;
	decoder = pawl_test_decoder(model, &options);
	ck_assert_int_eq(pawl_draft_new(decoder, &draft, &err), PAWL_OK);
	proposer = pawl_draft_proposer(draft);
	for (int i = 0; i < 33; i++)
		tokens[i] = pawl_test_token(1, i);
	for (int64_t n = 28; n <= 33; n++) {
		ck_assert_int_eq(
			proposer.propose(proposer.ctx, tokens, n, 4, guess, &n_guess, &err),
			PAWL_OK);
		/* The guess after the last position needs no position. */
		ck_assert_int_eq(n_guess, n > 32 ? 0 : n > 29 ? 33 - n : 4);
	}
	pawl_draft_free(draft);
	pawl_decoder_free(decoder);
	pawl_tiny_model_free(model);
}
END_TEST

START_TEST(a_draft_without_memory_is_none)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_tiny_model *model = pawl_tiny_model_new(&tiny);
	const struct pawl_decoder_options options = pawl_test_decoder_options();
	struct pawl_decoder *decoder = pawl_test_decoder(model, &options);
	struct pawl_draft *draft;

	for (int64_t i = 0; i < 2; i++) {
		pawl_memory_fail_after(i);
		ck_assert_int_eq(pawl_draft_new(decoder, &draft, &err), PAWL_OUT_OF_MEMORY);
	}
	pawl_memory_fail_after(-1);
	ck_assert_int_eq(pawl_draft_new(decoder, &draft, &err), PAWL_OK);
	pawl_draft_free(draft);
	pawl_draft_free(NULL);
	pawl_decoder_free(decoder);
	pawl_tiny_model_free(model);
}
END_TEST

Suite *
pawl_propose_suite(void)
{
	Suite *suite = suite_create("propose");
	TCase *tcase = tcase_create("propose");

	tcase_add_test(tcase, lookup_goes_on_where_the_end_stood_before);
	tcase_add_test(tcase, lookup_guesses_nothing_below_its_least);
	tcase_add_test(tcase, lookup_repeats_a_period);
	tcase_add_test(tcase, a_draft_computes_what_it_does_not_have);
	tcase_add_test(tcase, a_draft_whose_rings_go_back_less_far);
	tcase_add_test(tcase, a_draft_ends_with_its_capacity);
	tcase_add_test(tcase, a_draft_without_memory_is_none);
	suite_add_tcase(suite, tcase);
	return suite;
}

#include "tools/sampler.h"

#include "tests/suites.h"

#include <math.h>

enum { N = 5, DRAWS = 4000 };

static struct pawl_error err;

static struct pawl_sampler *
make(struct pawl_sampler_options options)
{
	struct pawl_sampler *sampler;

	ck_assert_int_eq(pawl_sampler_new(&options, N, &sampler, &err), PAWL_OK);
	return sampler;
}

/* A sampler that keeps everything. */
static struct pawl_sampler_options
at(double temp)
{
	return (struct pawl_sampler_options){.temp = temp, .top_p = 1, .seed = 1};
}

static uint32_t
pick(struct pawl_sampler *sampler, const float *logits)
{
	uint32_t token;

	ck_assert_int_eq(pawl_sampler_pick(sampler, logits, &token, &err), PAWL_OK);
	return token;
}

/* How often each token is drawn. */
static void
count(struct pawl_sampler_options options, const float *logits, int counts[N])
{
	struct pawl_sampler *sampler = make(options);

	for (int i = 0; i < N; i++)
		counts[i] = 0;
	for (int i = 0; i < DRAWS; i++)
		counts[pick(sampler, logits)]++;
	pawl_sampler_free(sampler);
}

/* log of 0.4, 0.3, 0.15, 0.1, 0.05, not in order */
static const float logits[N] = {-2.995732f, -1.203973f, -0.916291f, -2.302585f, -1.897120f};

START_TEST(the_first_of_the_largest_wins)
{
	static const float ties[N] = {-1, 2, 2, 0, 2};
	static const double temps[] = {0, -1, -1e300, 1e-9, 1e-300};

	for (int i = 0; i < 3; i++) {
		struct pawl_sampler *sampler = make(at(temps[i]));

		ck_assert_int_eq(pick(sampler, ties), 1);
		ck_assert_int_eq(pick(sampler, logits), 2);
		pawl_sampler_free(sampler);
	}
	for (int i = 3; i < 5; i++) {
		struct pawl_sampler *sampler = make(at(temps[i]));

		for (int j = 0; j < 100; j++)
			ck_assert_int_eq(pick(sampler, logits), 2);
		pawl_sampler_free(sampler);
	}
}
END_TEST

START_TEST(greedy_choice_draws_nothing)
{
	struct pawl_sampler_options options = at(1);
	struct pawl_sampler *a = make(options), *b = make(options);
	int n_same = 0, n_other = 0;
	uint32_t first = pick(a, logits);

	options.temp = 0;
	ck_assert_int_eq(pick(b, logits), first);
	for (int i = 0; i < 50; i++) {
		uint32_t x = pick(a, logits);

		n_same += x == pick(b, logits);
		n_other += x != first;
	}
	ck_assert_int_eq(n_same, 50);
	ck_assert_int_gt(n_other, 5);
	pawl_sampler_free(a);
	pawl_sampler_free(b);
}
END_TEST

START_TEST(frequencies_are_the_probabilities)
{
	static const double p[N] = {0.05, 0.3, 0.4, 0.1, 0.15};
	int counts[N];

	count(at(1), logits, counts);
	for (int i = 0; i < N; i++)
		ck_assert_double_eq_tol(counts[i] / (double)DRAWS, p[i], 0.03);
	/* At temperature 0.5 they are squared. */
	count(at(0.5), logits, counts);
	ck_assert_double_eq_tol(counts[2] / (double)DRAWS, 0.16 / 0.285, 0.03);
	ck_assert_double_eq_tol(counts[0] / (double)DRAWS, 0.0025 / 0.285, 0.01);
	count(at(1e9), logits, counts);
	for (int i = 0; i < N; i++)
		ck_assert_double_eq_tol(counts[i] / (double)DRAWS, 0.2, 0.03);
}
END_TEST

START_TEST(what_is_kept_and_what_is_not)
{
	static const struct {
		int64_t top_k;
		double top_p, min_p;
		int kept; /* bit i: token i may be drawn */
	} cases[] = {
		{0, 1, 0, 0x1f},
		{1, 1, 0, 0x04},
		{2, 1, 0, 0x06},
		{4, 1, 0, 0x1e},
		{5, 1, 0, 0x1f},
		{99, 1, 0, 0x1f},
		{0, 0, 0, 0x04},
		{0, 0.39, 0, 0x04},
		{0, 0.41, 0, 0x06},
		{0, 0.69, 0, 0x06},
		{0, 0.71, 0, 0x16},
		{0, 0.94, 0, 0x1e},
		{0, 1, 1, 0x04},
		{0, 1, 0.74, 0x06},
		{0, 1, 0.76, 0x04},
		{0, 1, 0.2, 0x1e},
		{3, 0.7, 0, 0x06}, /* of 0.85: 0.4 and 0.3 are 0.82 of it */
		{3, 0.83, 0, 0x16},
		{3, 1, 0.5, 0x06},
		{2, 0.5, 0.9, 0x04},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int counts[N];

		count((struct pawl_sampler_options){1, cases[i].top_k, cases[i].top_p,
			      cases[i].min_p, 3},
			logits, counts);
		for (int j = 0; j < N; j++)
			ck_assert_msg((counts[j] > 0) == (cases[i].kept >> j & 1),
				"case %zu: token %d was drawn %d times", i, j, counts[j]);
	}
}
END_TEST

START_TEST(a_seed_decides)
{
	struct pawl_sampler_options options = at(1);
	struct pawl_sampler *a = make(options), *b = make(options), *c;
	int n_other = 0;

	options.seed = 2;
	c = make(options);
	for (int i = 0; i < 200; i++) {
		uint32_t x = pick(a, logits);

		ck_assert_int_eq(x, pick(b, logits));
		n_other += x != pick(c, logits);
	}
	ck_assert_int_gt(n_other, 50);
	pawl_sampler_free(a);
	pawl_sampler_free(b);
	pawl_sampler_free(c);
}
END_TEST

START_TEST(equal_logits_are_kept_in_order_of_their_ids)
{
	static const float ties[N] = {1, 1, 1, 1, 1};
	int counts[N];

	count((struct pawl_sampler_options){1, 2, 1, 0, 1}, ties, counts);
	ck_assert_int_eq(counts[0] + counts[1], DRAWS);
	ck_assert_int_gt(counts[1], DRAWS / 3);
}
END_TEST

START_TEST(logits_that_are_no_numbers_are_refused)
{
	static const float wrong[] = {NAN, INFINITY, -INFINITY};

	for (int temp = 0; temp < 2; temp++) {
		struct pawl_sampler *sampler = make(at(temp));

		for (int i = 0; i < 3; i++) {
			float row[N] = {1, 2, 3, 4, 5};
			uint32_t token;

			row[3] = wrong[i];
			ck_assert_int_eq(pawl_sampler_pick(sampler, row, &token, &err),
				PAWL_INVALID_ARGUMENT);
			ck_assert_str_eq(err.text, i ? "the logit of token 3 is infinite"
						     : "the logit of token 3 is not a number");
		}
		ck_assert_uint_lt(pick(sampler, logits), N);
		pawl_sampler_free(sampler);
	}
}
END_TEST

START_TEST(options_that_mean_nothing_are_refused)
{
	static const struct pawl_sampler_options wrong[] = {
		{NAN, 0, 1, 0, 1},
		{1, 0, NAN, 0, 1},
		{1, 0, 1.5, 0, 1},
		{1, 0, 1, -0.5, 1},
		{1, 0, 1, NAN, 1},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct pawl_sampler *sampler = NULL;

		ck_assert_int_eq(
			pawl_sampler_new(&wrong[i], N, &sampler, &err), PAWL_INVALID_ARGUMENT);
		ck_assert_ptr_null(sampler);
	}
}
END_TEST

Suite *
pawl_sampler_suite(void)
{
	Suite *suite = suite_create("sampler");
	TCase *tcase = tcase_create("all");

	tcase_add_test(tcase, the_first_of_the_largest_wins);
	tcase_add_test(tcase, greedy_choice_draws_nothing);
	tcase_add_test(tcase, frequencies_are_the_probabilities);
	tcase_add_test(tcase, what_is_kept_and_what_is_not);
	tcase_add_test(tcase, a_seed_decides);
	tcase_add_test(tcase, equal_logits_are_kept_in_order_of_their_ids);
	tcase_add_test(tcase, logits_that_are_no_numbers_are_refused);
	tcase_add_test(tcase, options_that_mean_nothing_are_refused);
	suite_add_tcase(suite, tcase);
	return suite;
}

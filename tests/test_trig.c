/* Rotary angles. */
#include "ir/fpenv.h"
#include "ir/trig.h"
#include "tests/arithmetic_cases.h"
#include "tests/suites.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

START_TEST(sincos_follows_long_double)
{
	uint32_t state = 3;
	long double worst = 0.0L;
	int i;

	for (i = 0; i < 400000; i++) {
		double angle = ldexp(
			pawl_case_value(&state) + pawl_case_value(&state) * 0x1p-24, i % 39 - 6);
		double sine, cosine;
		long double error;

		ck_assert(fabs(angle) <= PAWL_TRIG_MOST);
		pawl_sincos(angle, &sine, &cosine);
		error = fmaxl(fabsl(sine - sinl(angle)), fabsl(cosine - cosl(angle)));
		worst = error > worst ? error : worst;
	}
	ck_assert_double_lt((double)worst, 2e-16);
}
END_TEST

/*
 * Sines to 20 digits, from big-number arithmetic, of angles where a reduction with too short
 * a pi fails: near a multiple of pi / 2, and large.
 */
START_TEST(sincos_gives_known_values)
{
	static const struct {
		double angle, sine, cosine;
	} cases[] = {
		{0x1.0000000000000p-1, 4.79425538604203000273e-1, 8.77582561890372716116e-1},
		{0x1.921fb54442d18p+0, 1.00000000000000000000e+0, 6.12323399573676588613e-17},
		{0x1.921fb54442d18p+1, 1.22464679914735317723e-16, -1.00000000000000000000e+0},
		{0x1.0000000000000p+20, 3.30493140021734671640e-1, 9.43808393901311984006e-1},
		{0x1.6300000000000p+8, -3.01443533594884492143e-5, -9.99999999545658980166e-1},
		{0x1.0000000000000p+40, -4.05705011532828719821e-1, -9.14004071991557002300e-1},
		{-0x1.fffffffffe000p+39, -5.49904553343715432696e-1, -8.35227503265935818363e-1},
		{0x1.dcd6500000000p+29, 5.45843449448699564244e-1, 8.37887181363902334390e-1},
		{0x1.887e063000000p+28, 2.53671605196367647965e-9, 9.99999999999999996783e-1},
		{0x1.921fb54442d18p+18, -1.60516905257841875645e-11, 1.00000000000000000000e+0},
		{0x1.9639000000000p+16, -1.91293357784237502243e-5, 9.99999999817034256321e-1},
		{0x1.4ac55c0000000p+22, -3.82004750708966019185e-8, -9.99999999999999270362e-1},
		{0x1.39b8216940000p+34, 1.75338050824221430108e-12, -1.00000000000000000000e+0},
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double sine, cosine;

		pawl_sincos(cases[i].angle, &sine, &cosine);
		ck_assert_double_le(fabs(sine - cases[i].sine), 2e-16);
		ck_assert_double_le(fabs(cosine - cases[i].cosine), 2e-16);
		/* Small ones are also right relative to themselves, or f32 would lose digits. */
		ck_assert_double_le(fabs(sine - cases[i].sine), 1e-9 * fabs(cases[i].sine));
		ck_assert_double_le(fabs(cosine - cases[i].cosine), 1e-9 * fabs(cases[i].cosine));
	}
}
END_TEST

START_TEST(sincos_has_edges)
{
	double sine, cosine;

	pawl_sincos(0.0, &sine, &cosine);
	ck_assert(sine == 0.0 && cosine == 1.0);
	pawl_sincos(nextafter(PAWL_TRIG_MOST, INFINITY), &sine, &cosine);
	ck_assert(isnan(sine) && isnan(cosine));
	pawl_sincos(-INFINITY, &sine, &cosine);
	ck_assert(isnan(sine) && isnan(cosine));
	pawl_sincos(NAN, &sine, &cosine);
	ck_assert(isnan(sine) && isnan(cosine));
}
END_TEST

START_TEST(frequencies_follow_long_double)
{
	static const double bases[] = {1.0, 1.5, 100.0, 10000.0, 500000.0, 1e6, 1e9};
	size_t b;
	int width, pair;

	for (b = 0; b < sizeof(bases) / sizeof(bases[0]); b++) {
		for (width = 2; width <= 256; width += 2) {
			ck_assert(pawl_rope_frequency(bases[b], 0, width) == 1.0);
			for (pair = 1; pair < width / 2; pair++) {
				long double exact = powl(bases[b], -2.0L * pair / width);
				double frequency = pawl_rope_frequency(bases[b], pair, width);

				ck_assert_double_lt(
					fabs((double)(frequency / exact - 1.0L)), 1e-14);
			}
		}
	}
}
END_TEST

START_TEST(rows_are_rounded_once)
{
	double frequency[32];
	float c[32], s[32], c2[32], s2[32];
	uint32_t saved;
	int i;

	for (i = 0; i < 32; i++)
		frequency[i] = pawl_rope_frequency(10000.0, i, 64);
	pawl_rope_row(131071, frequency, 32, c, s);
	for (i = 0; i < 32; i++) {
		ck_assert(c[i] == (float)cosl((long double)(131071 * frequency[i])));
		ck_assert(s[i] == (float)sinl((long double)(131071 * frequency[i])));
	}
	saved = pawl_fpenv_enter();
	pawl_rope_row(131071, frequency, 32, c2, s2);
	pawl_fpenv_leave(saved);
	for (i = 0; i < 32; i++)
		ck_assert(c[i] == c2[i] && s[i] == s2[i]);
	pawl_rope_row(0, frequency, 32, c, s);
	ck_assert(c[0] == 1.0f && s[31] == 0.0f);
}
END_TEST

static bool
is_same(float a, float b)
{
	return !memcmp(&a, &b, sizeof(a)) || (isnan(a) && isnan(b));
}

/* A row is made four angles at a time where the machine can; the bits are those of each alone. */
START_TEST(rows_are_made_of_angles)
{
	double frequency[11], sine, cosine;
	uint32_t state = 7;
	float c[12], s[12];

	for (int turn = 0; turn < 100000; turn++) {
		int64_t position = (int64_t)ldexp(fabs(pawl_case_value(&state)), turn % 45);
		int n = turn % 12;

		for (int i = 0; i < n; i++)
			frequency[i] = ldexp(pawl_case_value(&state), -(turn / 12 % 30));
		c[n] = s[n] = 7;
		pawl_rope_row(position, frequency, n, c, s);
		for (int i = 0; i < n; i++) {
			pawl_sincos((double)position * frequency[i], &sine, &cosine);
			ck_assert(is_same(c[i], (float)cosine) && is_same(s[i], (float)sine));
		}
		ck_assert(c[n] == 7 && s[n] == 7);
	}
}
END_TEST

Suite *
pawl_trig_suite(void)
{
	Suite *suite = suite_create("trig");
	TCase *tcase = tcase_create("trig");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, sincos_follows_long_double);
	tcase_add_test(tcase, sincos_gives_known_values);
	tcase_add_test(tcase, sincos_has_edges);
	tcase_add_test(tcase, frequencies_follow_long_double);
	tcase_add_test(tcase, rows_are_rounded_once);
	tcase_add_test(tcase, rows_are_made_of_angles);
	suite_add_tcase(suite, tcase);
	return suite;
}

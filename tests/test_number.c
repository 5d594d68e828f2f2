#include "ir/parse.h"
#include "ir/print.h"
#include "ir/random_parts.h"

#include "tests/skip.h"
#include "tests/suites.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	double value;
	const char *text;
} numbers[] = {
	{0, "0"},
	{-0.0, "-0"},
	{1, "1"},
	{-1, "-1"},
	{1.5, "1.5"},
	{0.1, "0.1"},
	{1e-5, "1e-05"},
	{1.25e-5, "1.25e-05"},
	{0.0001, "0.0001"},
	{0.00012, "0.00012"},
	{123456, "123456"},
	{123456.75, "123456.75"},
	{100000000000000.0, "100000000000000"},
	{1e15, "1e+15"},
	{1.5e300, "1.5e+300"},
	{1e100, "1e+100"},
	{0.1f, "0.10000000149011612"},
	{1.0 / 3, "0.3333333333333333"},
	{0.1 + 0.2, "0.30000000000000004"},
	{9007199254740993.0, "9.007199254740992e+15"},
	{DBL_MAX, "1.7976931348623157e+308"},
	{DBL_MIN, "2.2250738585072014e-308"},
	{0x1p-1074, "4.94065645841247e-324"},
	{INFINITY, "inf"},
	{-INFINITY, "-inf"},
};

static void
check_numbers(void)
{
	char text[64];
	double back;
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		int n = pawl_print_double(text, sizeof(text), numbers[i].value);

		ck_assert_str_eq(text, numbers[i].text);
		ck_assert_int_eq(n, (int)strlen(text));
		ck_assert(pawl_parse_double(text, (size_t)n, &back));
		ck_assert_int_eq(memcmp(&back, &numbers[i].value, sizeof(back)), 0);
	}
	ck_assert_int_eq(pawl_print_double(text, sizeof(text), NAN), 3);
	ck_assert(pawl_parse_double(text, 3, &back));
	ck_assert(isnan(back));
}

static void
check_random_bits(int n)
{
	uint64_t state = 1;

	while (n--) {
		uint64_t bits = pawl_random_next(&state);
		char text[64];
		double value, back;

		memcpy(&value, &bits, sizeof(value));
		if (!isfinite(value))
			continue;
		ck_assert(pawl_parse_double(
			text, (size_t)pawl_print_double(text, sizeof(text), value), &back));
		ck_assert_msg(!memcmp(&value, &back, sizeof(value)), "%a as %s", value, text);
	}
}

START_TEST(doubles_print_shortest_and_read_back)
{
	check_numbers();
	check_random_bits(20000);
}
END_TEST

START_TEST(doubles_are_refused)
{
	static const char *const texts[] = {"", "-", "+1", ".5", "5.", "1e", "1e+", "1,5", "1.5f",
		"0x10", " 1", "1 ", "1e309", "-1e309", "infinity", "INF", "-nan", "nan0", "1e5e5",
		"1.2.3", "--1"};
	char longer[402];
	double value;
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		ck_assert_msg(
			!pawl_parse_double(texts[i], strlen(texts[i]), &value), "'%s'", texts[i]);
	memset(longer, '0', sizeof(longer));
	ck_assert(pawl_parse_double(longer, 400, &value));
	ck_assert(!pawl_parse_double(longer, 401, &value));
}
END_TEST

START_TEST(doubles_are_read_in_other_forms)
{
	double value;

	ck_assert(pawl_parse_double("00012.500", 9, &value) && value == 12.5);
	ck_assert(pawl_parse_double("125e-1", 6, &value) && value == 12.5);
	ck_assert(pawl_parse_double("1e-99999999999999999999", 23, &value) && value == 0);
	ck_assert(pawl_parse_double("0e99999999999999999999", 22, &value) && value == 0);
	ck_assert(pawl_parse_double("12345", 2, &value) && value == 12);
}
END_TEST

START_TEST(ints)
{
	static const char *const texts[] = {"", "-", "+1", "1.0", "1e3", " 1",
		"9223372036854775808", "-9223372036854775809", "99999999999999999999999", "0x1"};
	int64_t value;
	size_t i;

	ck_assert(pawl_parse_int("9223372036854775807", 19, &value) && value == INT64_MAX);
	ck_assert(pawl_parse_int("-9223372036854775808", 20, &value) && value == INT64_MIN);
	ck_assert(pawl_parse_int("-0", 2, &value) && value == 0);
	ck_assert(pawl_parse_int("007", 3, &value) && value == 7);
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		ck_assert_msg(
			!pawl_parse_int(texts[i], strlen(texts[i]), &value), "'%s'", texts[i]);
}
END_TEST

/* A locale with a decimal comma: one that is installed, or one compiled for the test. */
static bool
use_comma_locale(const char *folder)
{
	static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
	char command[256];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (setlocale(LC_ALL, names[i]) && !strcmp(localeconv()->decimal_point, ","))
			return true;
	}
	snprintf(command, sizeof(command),
		"localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/log 2>&1", folder, folder);
	if (system(command) != 0 || setenv("LOCPATH", folder, 1) != 0)
		return false;
	return setlocale(LC_ALL, "de_DE.UTF-8") && !strcmp(localeconv()->decimal_point, ",");
}

START_TEST(the_locale_does_not_matter)
{
	char folder[] = "/tmp/pawl-locale-XXXXXX", command[64], text[16];

	ck_assert_ptr_nonnull(mkdtemp(folder));
	if (use_comma_locale(folder)) {
		snprintf(text, sizeof(text), "%.1f", 1.5);
		ck_assert_str_eq(text, "1,5");
		check_numbers();
		check_random_bits(1000);
	} else {
		pawl_skip("the_locale_does_not_matter", "no locale with a decimal comma");
	}
	setlocale(LC_ALL, "C");
	unsetenv("LOCPATH");
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	ck_assert_int_eq(system(command), 0);
}
END_TEST

Suite *
pawl_number_suite(void)
{
	Suite *suite = suite_create("number");
	TCase *tcase = tcase_create("number");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, doubles_print_shortest_and_read_back);
	tcase_add_test(tcase, doubles_are_refused);
	tcase_add_test(tcase, doubles_are_read_in_other_forms);
	tcase_add_test(tcase, ints);
	tcase_add_test(tcase, the_locale_does_not_matter);
	suite_add_tcase(suite, tcase);
	return suite;
}

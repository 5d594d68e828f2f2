/*
 * Numbers as text, whatever the locale: strtod and printf only ever see whole numbers with an
 * exponent, so that no decimal point has to be agreed on.
 */
#include "ir/parse.h"
#include "ir/print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_TEXT = 400,     /* of a number that is read */
	MAX_DIGITS = 17,    /* that tell any two doubles apart */
	MAX_EXPONENT = 9999 /* beyond every double, even with MAX_TEXT digits in front */
};

static bool
is_digit(char ch)
{
	return ch >= '0' && ch <= '9';
}

/* value = digits * 10^exponent. */
static double
from_decimal(bool negative, const char *digits, int n_digits, int exponent)
{
	char text[MAX_TEXT + 32];

	snprintf(text, sizeof(text), "%s%.*se%d", negative ? "-" : "", n_digits, digits, exponent);
	return strtod(text, NULL);
}

/* The exponent after 'e', saturated; false when text[0..n) is none. */
static bool
scan_exponent(const char *text, size_t n, int *out)
{
	bool negative = n > 0 && text[0] == '-';
	size_t i = n > 0 && (text[0] == '-' || text[0] == '+');
	int value = 0;

	if (i == n)
		return false;
	for (; i < n; i++) {
		if (!is_digit(text[i]))
			return false;
		if (value <= MAX_EXPONENT)
			value = 10 * value + (text[i] - '0');
	}
	*out = negative ? -value : value;
	return true;
}

bool
pawl_parse_double(const char *text, size_t n, double *out)
{
	char digits[MAX_TEXT];
	bool negative = n > 0 && text[0] == '-';
	int n_digits = 0, exponent = 0;
	size_t i = negative, whole;

	if (n - i == 3 && !memcmp(text + i, "inf", 3)) {
		*out = negative ? -INFINITY : INFINITY;
		return true;
	}
	if (n == 3 && !memcmp(text, "nan", 3)) {
		*out = NAN;
		return true;
	}
	if (n > MAX_TEXT)
		return false;
	for (whole = i; i < n && is_digit(text[i]); i++)
		digits[n_digits++] = text[i];
	if (i == whole)
		return false;
	if (i < n && text[i] == '.') {
		size_t fraction = ++i;

		for (; i < n && is_digit(text[i]); i++)
			digits[n_digits++] = text[i];
		if (i == fraction)
			return false;
		whole = i - fraction;
	} else {
		whole = 0;
	}
	if (i < n && (text[i] != 'e' || !scan_exponent(text + i + 1, n - i - 1, &exponent)))
		return false;
	*out = from_decimal(negative, digits, n_digits, exponent - (int)whole);
	return isfinite(*out);
}

bool
pawl_parse_int(const char *text, size_t n, int64_t *out)
{
	bool negative = n > 0 && text[0] == '-';
	size_t i = negative;
	int64_t value = 0;

	if (i == n)
		return false;
	for (; i < n; i++) {
		if (!is_digit(text[i]) || __builtin_mul_overflow(value, 10, &value))
			return false;
		if (negative ? __builtin_sub_overflow(value, text[i] - '0', &value)
			     : __builtin_add_overflow(value, text[i] - '0', &value))
			return false;
	}
	*out = value;
	return true;
}

/* The fewest of 15, 16, 17 digits that read back as value (finite, positive); no zeros at the end.
 */
static int
shortest_digits(double value, char digits[MAX_DIGITS], int *exponent)
{
	char text[64];
	int n_digits, precision;

	for (precision = 15; precision <= MAX_DIGITS; precision++) {
		const char *p;

		snprintf(text, sizeof(text), "%.*e", precision - 1, value);
		n_digits = 0;
		for (p = text; *p != 'e'; p++) {
			if (is_digit(*p))
				digits[n_digits++] = *p;
		}
		scan_exponent(p + 1, strlen(p + 1), exponent);
		if (precision == MAX_DIGITS ||
			from_decimal(false, digits, n_digits, *exponent - n_digits + 1) == value)
			break;
	}
	while (n_digits > 1 && digits[n_digits - 1] == '0')
		n_digits--;
	return n_digits;
}

int
pawl_print_double(char *out, size_t n, double value)
{
	const char *sign = signbit(value) ? "-" : "";
	char digits[MAX_DIGITS];
	int n_digits, exponent;

	if (isnan(value))
		return snprintf(out, n, "nan");
	if (isinf(value))
		return snprintf(out, n, "%sinf", sign);
	if (value == 0)
		return snprintf(out, n, "%s0", sign);
	n_digits = shortest_digits(fabs(value), digits, &exponent);
	if (exponent < -4 || exponent >= 15)
		return snprintf(out, n, "%s%c%s%.*se%s%02d", sign, digits[0],
			n_digits > 1 ? "." : "", n_digits - 1, digits + 1, exponent < 0 ? "-" : "+",
			abs(exponent));
	if (exponent < 0)
		return snprintf(
			out, n, "%s0.%.*s%.*s", sign, -exponent - 1, "000", n_digits, digits);
	if (exponent >= n_digits - 1)
		return snprintf(out, n, "%s%.*s%.*s", sign, n_digits, digits,
			exponent - n_digits + 1, "00000000000000");
	return snprintf(out, n, "%s%.*s.%.*s", sign, exponent + 1, digits, n_digits - exponent - 1,
		digits + exponent + 1);
}

/*
 * The values of a GGUF file: what is converted, what stands in, what is refused, and how they
 * print.
 */
#include "models/gguf.h"

#include "tests/gguf_build.h"
#include "tests/gguf_fixture.h"
#include "tests/skip.h"
#include "tests/suites.h"

#include <locale.h>
#include <string.h>

START_TEST(integers_of_any_width_are_taken_when_they_fit)
{
	uint32_t u32 = 0;
	uint64_t u64 = 0;

	ck_assert_int_eq(pawl_gguf_need_u32(gguf, "u8", &u32, &err), PAWL_OK);
	ck_assert_uint_eq(u32, UINT8_MAX);
	ck_assert_int_eq(pawl_gguf_need_u32(gguf, "u16", &u32, &err), PAWL_OK);
	ck_assert_uint_eq(u32, UINT16_MAX);
	ck_assert_int_eq(pawl_gguf_get_u32(gguf, "u32", 7, &u32, &err), PAWL_OK);
	ck_assert_uint_eq(u32, UINT32_MAX);
	ck_assert_int_eq(pawl_gguf_need_u64(gguf, "u32", &u64, &err), PAWL_OK);
	ck_assert_uint_eq(u64, UINT32_MAX);
	ck_assert_int_eq(pawl_gguf_get_u64(gguf, "u64", 7, &u64, &err), PAWL_OK);
	ck_assert_uint_eq(u64, UINT64_MAX);
}
END_TEST

START_TEST(integers_that_do_not_fit_are_refused)
{
	static const struct {
		const char *key, *says;
	} rows[] = {
		{"i8", "t.gguf: byte 53: metadata 1 (i8): value: -128 is no u32"},
		{"i16", "-32768 is no u32"},
		{"i32", "-2147483648 is no u32"},
		{"i64", "-9223372036854775808 is no u32"},
		{"u64", "18446744073709551615 is no u32"},
	};
	uint32_t u32 = 5;
	uint64_t u64 = 5;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ck_assert_int_eq(
			pawl_gguf_need_u32(gguf, rows[i].key, &u32, &err), PAWL_INVALID_FILE);
		ck_assert_msg(strstr(err.text, rows[i].says), "%s", err.text);
	}
	ck_assert_int_eq(pawl_gguf_get_u64(gguf, "i64", 0, &u64, &err), PAWL_INVALID_FILE);
	ck_assert_ptr_nonnull(strstr(err.text, "-9223372036854775808 is no u64"));
	ck_assert_uint_eq(u32, 5);
	ck_assert_uint_eq(u64, 5);
}
END_TEST

START_TEST(other_scalars)
{
	struct pawl_gguf_string string;
	float f32 = 0;
	bool truth = false;

	ck_assert_int_eq(pawl_gguf_need_f32(gguf, "f32", &f32, &err), PAWL_OK);
	ck_assert(f32 == 0.1f);
	ck_assert_int_eq(pawl_gguf_need_bool(gguf, "bool", &truth, &err), PAWL_OK);
	ck_assert(truth);
	ck_assert_int_eq(pawl_gguf_need_string(gguf, "string", &string, &err), PAWL_OK);
	ck_assert(string_is(string, "a\tb"));
}
END_TEST

START_TEST(fallbacks_stand_in_for_missing_keys)
{
	struct pawl_gguf_string string = {"x", 1};
	uint32_t u32 = 0;
	uint64_t u64 = 0;
	float f32 = 0;
	bool truth = false;

	ck_assert_int_eq(pawl_gguf_get_u32(gguf, "none", 7, &u32, &err), PAWL_OK);
	ck_assert_uint_eq(u32, 7);
	ck_assert_int_eq(pawl_gguf_get_u64(gguf, "none", UINT64_MAX, &u64, &err), PAWL_OK);
	ck_assert_uint_eq(u64, UINT64_MAX);
	ck_assert_int_eq(pawl_gguf_get_f32(gguf, "none", 0.5f, &f32, &err), PAWL_OK);
	ck_assert(f32 == 0.5f);
	ck_assert_int_eq(pawl_gguf_get_bool(gguf, "none", true, &truth, &err), PAWL_OK);
	ck_assert(truth);
	ck_assert_int_eq(pawl_gguf_get_string(gguf, "none", "abc", &string, &err), PAWL_OK);
	ck_assert(string_is(string, "abc"));
	ck_assert_int_eq(pawl_gguf_get_string(gguf, "none", NULL, &string, &err), PAWL_OK);
	ck_assert_ptr_null(string.text);
	ck_assert_uint_eq(string.n, 0);
}
END_TEST

START_TEST(missing_keys_are_errors_where_needed)
{
	struct pawl_gguf_string string;
	uint32_t u32;
	uint64_t u64;
	float f32;
	bool truth;

	ck_assert_int_eq(pawl_gguf_need_u32(gguf, "none", &u32, &err), PAWL_INVALID_FILE);
	ck_assert_str_eq(err.text, "t.gguf: metadata (none): is missing (wanted u32)");
	ck_assert_int_eq(pawl_gguf_need_u64(gguf, "none", &u64, &err), PAWL_INVALID_FILE);
	ck_assert_int_eq(pawl_gguf_need_f32(gguf, "none", &f32, &err), PAWL_INVALID_FILE);
	ck_assert_int_eq(pawl_gguf_need_bool(gguf, "none", &truth, &err), PAWL_INVALID_FILE);
	ck_assert_int_eq(pawl_gguf_need_string(gguf, "none", &string, &err), PAWL_INVALID_FILE);
	ck_assert_str_eq(err.text, "t.gguf: metadata (none): is missing (wanted string)");
}
END_TEST

START_TEST(nothing_but_integers_is_converted)
{
	struct pawl_gguf_string string;
	uint32_t u32;
	float f32;
	bool truth;

	ck_assert_int_eq(pawl_gguf_get_u32(gguf, "f32", 1, &u32, &err), PAWL_INVALID_FILE);
	ck_assert_ptr_nonnull(strstr(err.text, "(f32): value: wanted u32, found f32"));
	ck_assert_int_eq(pawl_gguf_get_u32(gguf, "bool", 1, &u32, &err), PAWL_INVALID_FILE);
	ck_assert_int_eq(pawl_gguf_need_u32(gguf, "string", &u32, &err), PAWL_INVALID_FILE);
	ck_assert_int_eq(pawl_gguf_need_u32(gguf, "i32s", &u32, &err), PAWL_INVALID_FILE);
	ck_assert_ptr_nonnull(strstr(err.text, "wanted u32, found array of i32"));
	ck_assert_int_eq(pawl_gguf_get_f32(gguf, "f64", 1, &f32, &err), PAWL_INVALID_FILE);
	ck_assert_int_eq(pawl_gguf_need_f32(gguf, "u8", &f32, &err), PAWL_INVALID_FILE);
	ck_assert_int_eq(pawl_gguf_get_bool(gguf, "u8", true, &truth, &err), PAWL_INVALID_FILE);
	ck_assert_int_eq(pawl_gguf_need_bool(gguf, "bools", &truth, &err), PAWL_INVALID_FILE);
	ck_assert_int_eq(
		pawl_gguf_get_string(gguf, "strings", NULL, &string, &err), PAWL_INVALID_FILE);
	ck_assert_int_eq(pawl_gguf_need_string(gguf, "f32", &string, &err), PAWL_INVALID_FILE);
}
END_TEST

START_TEST(arrays_are_read)
{
	const struct pawl_gguf_string *strings;
	const uint32_t *u32s;
	const int32_t *i32s;
	const float *f32s;
	size_t n;

	ck_assert_int_eq(pawl_gguf_get_strings(gguf, "strings", &arena, &strings, &n, &err), 0);
	ck_assert_uint_eq(n, 3);
	ck_assert(string_is(strings[0], "") && string_is(strings[1], "a"));
	ck_assert(string_is(strings[2], "longer word"));
	ck_assert_int_eq(pawl_gguf_get_i32s(gguf, "i32s", &arena, &i32s, &n, &err), PAWL_OK);
	ck_assert_uint_eq(n, 3);
	ck_assert(i32s[0] == 1 && i32s[1] == -2 && i32s[2] == 3);
	ck_assert_int_eq(pawl_gguf_get_f32s(gguf, "f32s", &arena, &f32s, &n, &err), PAWL_OK);
	ck_assert_uint_eq(n, 2);
	ck_assert(f32s[0] == 0.5f && f32s[1] == -1.0f);
	ck_assert_int_eq(pawl_gguf_get_u32s(gguf, "none", &arena, &u32s, &n, &err), PAWL_OK);
	ck_assert_ptr_null(u32s);
	ck_assert_uint_eq(n, 0);
	ck_assert_int_eq(pawl_gguf_get_strings(gguf, "none", &arena, &strings, &n, &err), PAWL_OK);
	ck_assert_ptr_null(strings);
}
END_TEST

START_TEST(arrays_of_another_type_are_refused)
{
	const struct pawl_gguf_string *strings;
	const uint32_t *u32s;
	const int32_t *i32s;
	const float *f32s;
	size_t n;

	ck_assert_int_eq(
		pawl_gguf_get_u32s(gguf, "i32s", &arena, &u32s, &n, &err), PAWL_INVALID_FILE);
	ck_assert_ptr_nonnull(strstr(err.text, "(i32s): value: element 1: -2 is no u32"));
	ck_assert_int_eq(
		pawl_gguf_get_f32s(gguf, "i32s", &arena, &f32s, &n, &err), PAWL_INVALID_FILE);
	ck_assert_ptr_nonnull(strstr(err.text, "wanted array of f32, found array of i32"));
	ck_assert_int_eq(
		pawl_gguf_get_i32s(gguf, "bools", &arena, &i32s, &n, &err), PAWL_INVALID_FILE);
	ck_assert_int_eq(
		pawl_gguf_get_i32s(gguf, "i32", &arena, &i32s, &n, &err), PAWL_INVALID_FILE);
	ck_assert_ptr_nonnull(strstr(err.text, "wanted array of i32, found i32"));
	ck_assert_int_eq(
		pawl_gguf_get_strings(gguf, "f32s", &arena, &strings, &n, &err), PAWL_INVALID_FILE);
	ck_assert_int_eq(pawl_gguf_get_strings(gguf, "string", &arena, &strings, &n, &err),
		PAWL_INVALID_FILE);
}
END_TEST

START_TEST(arrays_of_narrow_integers_are_widened)
{
	struct pawl_gguf_build *b = pawl_gguf_build_new(2);
	const uint32_t *u32s;
	const int32_t *i32s;
	const float *f32s;
	size_t n;

	pawl_gguf_build_array(b, "u8s", PAWL_GGUF_U8, (uint8_t[]){0, 255}, 2);
	pawl_gguf_build_array(b, "i8s", PAWL_GGUF_I8, (int8_t[]){-128, 127}, 2);
	pawl_gguf_build_array(b, "i64s", PAWL_GGUF_I64, (int64_t[]){5, INT32_MAX + 1ll}, 2);
	pawl_gguf_build_array(b, "empty", PAWL_GGUF_I32, NULL, 0);
	bytes = pawl_gguf_build_finish(b, &n_bytes);
	open_bytes();
	ck_assert_int_eq(pawl_gguf_get_i32s(gguf, "u8s", &arena, &i32s, &n, &err), PAWL_OK);
	ck_assert(n == 2 && i32s[0] == 0 && i32s[1] == 255);
	ck_assert_int_eq(pawl_gguf_get_i32s(gguf, "i8s", &arena, &i32s, &n, &err), PAWL_OK);
	ck_assert(n == 2 && i32s[0] == -128 && i32s[1] == 127);
	ck_assert_int_eq(pawl_gguf_get_u32s(gguf, "i64s", &arena, &u32s, &n, &err), PAWL_OK);
	ck_assert(n == 2 && u32s[0] == 5 && u32s[1] == INT32_MAX + 1u);
	ck_assert_int_eq(
		pawl_gguf_get_i32s(gguf, "i64s", &arena, &i32s, &n, &err), PAWL_INVALID_FILE);
	ck_assert_ptr_nonnull(strstr(err.text, "element 1: 2147483648 is no i32"));
	ck_assert_int_eq(
		pawl_gguf_get_f32s(gguf, "u8s", &arena, &f32s, &n, &err), PAWL_INVALID_FILE);
	ck_assert_int_eq(pawl_gguf_get_i32s(gguf, "empty", &arena, &i32s, &n, &err), PAWL_OK);
	ck_assert_uint_eq(n, 0);
	close_bytes();
}
END_TEST

START_TEST(values_are_printed_shortly)
{
	static const struct {
		const char *key, *text;
	} rows[] = {
		{"u8", "255"},
		{"i8", "-128"},
		{"i16", "-32768"},
		{"u64", "18446744073709551615"},
		{"i64", "-9223372036854775808"},
		{"f32", "0.1"},
		{"f64", "0.1"},
		{"bool", "true"},
		{"string", "\"a\\tb\""},
		{"strings", "string[3] \"\", \"a\", \"longer word\""},
		{"i32s", "i32[3] 1, -2, 3"},
		{"f32s", "f32[2] 0.5, -1"},
		{"bools", "bool[2] false, true"},
	};
	char text[64];
	size_t i, size;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct pawl_gguf_value *value = pawl_gguf_find(gguf, rows[i].key);

		pawl_gguf_format_value(value, text, sizeof(text));
		ck_assert_str_eq(text, rows[i].text);
	}
	for (size = 1; size < sizeof(text); size++) {
		memset(text, '#', sizeof(text));
		pawl_gguf_format_value(pawl_gguf_find(gguf, "strings"), text, size);
		ck_assert_uint_lt(strnlen(text, sizeof(text)), size);
		ck_assert_int_eq(text[size], '#');
	}
	pawl_gguf_format_value(pawl_gguf_find(gguf, "strings"), text, 24);
	ck_assert_str_eq(text, "string[3] \"\", \"a\"...");
}
END_TEST

START_TEST(printed_strings_cannot_steer_a_terminal)
{
	struct pawl_gguf_build *b = pawl_gguf_build_new(3);
	char text[64];

	pawl_gguf_build_string(b, "s", "\33[2J\\\"\n\xc2\x9b\xc3\xa9\xff");
	bytes = pawl_gguf_build_finish(b, &n_bytes);
	open_bytes();
	pawl_gguf_format_value(&gguf->values[0], text, sizeof(text));
	ck_assert_str_eq(text, "\"\\x1b[2J\\\\\\\"\\n\\xc2\\x9b\xc3\xa9\\xff\"");
	close_bytes();
}
END_TEST

START_TEST(numbers_ignore_the_locale)
{
	char text[64];

	if (!setlocale(LC_ALL, "de_DE.UTF-8")) {
		pawl_skip("numbers_ignore_the_locale", "there is no locale de_DE.UTF-8");
		return;
	}
	pawl_gguf_format_value(pawl_gguf_find(gguf, "f32"), text, sizeof(text));
	setlocale(LC_ALL, "C");
	ck_assert_str_eq(text, "0.1");
}
END_TEST

Suite *
pawl_gguf_values_suite(void)
{
	Suite *suite = suite_create("gguf_values");
	TCase *small = tcase_create("small file");
	TCase *others = tcase_create("other files");

	tcase_add_checked_fixture(small, open_small, close_bytes);
	tcase_add_test(small, integers_of_any_width_are_taken_when_they_fit);
	tcase_add_test(small, integers_that_do_not_fit_are_refused);
	tcase_add_test(small, other_scalars);
	tcase_add_test(small, fallbacks_stand_in_for_missing_keys);
	tcase_add_test(small, missing_keys_are_errors_where_needed);
	tcase_add_test(small, nothing_but_integers_is_converted);
	tcase_add_test(small, arrays_are_read);
	tcase_add_test(small, arrays_of_another_type_are_refused);
	tcase_add_test(small, values_are_printed_shortly);
	tcase_add_test(small, numbers_ignore_the_locale);
	suite_add_tcase(suite, small);
	tcase_add_test(others, arrays_of_narrow_integers_are_widened);
	tcase_add_test(others, printed_strings_cannot_steer_a_terminal);
	suite_add_tcase(suite, others);
	return suite;
}

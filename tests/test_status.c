#include "ir/status.h"

#include "tests/suites.h"

#include <string.h>

START_TEST(fail_stores_status_and_text)
{
	struct pawl_error err = { 0 };

	ck_assert_int_eq(pawl_fail(&err, PAWL_CAPACITY, "slot %d of %d", 8, 8), PAWL_CAPACITY);
	ck_assert_int_eq(err.status, PAWL_CAPACITY);
	ck_assert_str_eq(err.text, "slot 8 of 8");
	ck_assert_int_eq(pawl_fail(NULL, PAWL_STALE, "dropped"), PAWL_STALE);
}
END_TEST

START_TEST(prefix_goes_in_front)
{
	struct pawl_error err = { 0 };

	pawl_fail(&err, PAWL_INVALID_FILE, "bad magic at offset 0");
	ck_assert_int_eq(pawl_error_prefix(&err, "%s", "x.gguf"), PAWL_INVALID_FILE);
	ck_assert_str_eq(err.text, "x.gguf: bad magic at offset 0");
}
END_TEST

START_TEST(long_texts_are_cut)
{
	struct pawl_error err = { 0 };
	char longer[2 * sizeof(err.text)];

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	pawl_fail(&err, PAWL_INTERNAL, "%s", longer);
	ck_assert_uint_eq(strlen(err.text), sizeof(err.text) - 1);
	pawl_error_prefix(&err, "front");
	ck_assert_uint_lt(strlen(err.text), sizeof(err.text));
	ck_assert_int_eq(strncmp(err.text, "front: xxx", 10), 0);
}
END_TEST

START_TEST(names)
{
	ck_assert_str_eq(pawl_status_name(PAWL_OK), "OK");
	ck_assert_str_eq(pawl_status_name(PAWL_INTERNAL), "INTERNAL");
	ck_assert_str_eq(pawl_status_name((enum pawl_status)1000), "UNKNOWN");
}
END_TEST

Suite *
pawl_status_suite(void)
{
	Suite *suite = suite_create("status");
	TCase *tcase = tcase_create("status");

	tcase_add_test(tcase, fail_stores_status_and_text);
	tcase_add_test(tcase, prefix_goes_in_front);
	tcase_add_test(tcase, long_texts_are_cut);
	tcase_add_test(tcase, names);
	suite_add_tcase(suite, tcase);
	return suite;
}

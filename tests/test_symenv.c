#include "runtime/symenv.h"

#include "tests/suites.h"

#include <string.h>

static const struct pawl_program_symbol symbols[] = {
	{"cached_len", 0, 256, 1},
	{"attended_len", 16, 256, 16},
};

static struct pawl_symenv env;
static struct pawl_error err;

static void
begin(void)
{
	ck_assert_int_eq(pawl_symenv_init(&env, symbols, 2, &err), PAWL_OK);
}

static void
end(void)
{
	pawl_symenv_release(&env);
}

START_TEST(unbound_until_bound)
{
	int64_t value = -7;

	ck_assert_int_eq(pawl_symenv_get(&env, 0, &value, &err), PAWL_SYMBOL);
	ck_assert_str_eq(err.text, "symbol cached_len is unbound");
	ck_assert_int_eq(value, -7);
	ck_assert_int_eq(pawl_symenv_bind(&env, 0, 5, &err), PAWL_OK);
	ck_assert_int_eq(pawl_symenv_get(&env, 0, &value, &err), PAWL_OK);
	ck_assert_int_eq(value, 5);
	ck_assert_int_eq(pawl_symenv_check_bound(&env, &err), PAWL_SYMBOL);
	ck_assert_str_eq(err.text, "symbol attended_len is unbound");
	ck_assert_int_eq(pawl_symenv_bind_name(&env, "attended_len", 32, &err), PAWL_OK);
	ck_assert_int_eq(pawl_symenv_check_bound(&env, &err), PAWL_OK);
}
END_TEST

START_TEST(write_once)
{
	int64_t value;

	ck_assert_int_eq(pawl_symenv_bind(&env, 0, 5, &err), PAWL_OK);
	ck_assert_int_eq(pawl_symenv_bind(&env, 0, 5, &err), PAWL_OK);
	ck_assert_int_eq(pawl_symenv_bind(&env, 0, 6, &err), PAWL_SYMBOL);
	ck_assert_str_eq(
		err.text, "symbol cached_len is bound to 5 in this step and cannot become 6");
	ck_assert_int_eq(pawl_symenv_get(&env, 0, &value, &err), PAWL_OK);
	ck_assert_int_eq(value, 5);
}
END_TEST

START_TEST(clear_begins_a_step)
{
	int64_t value;

	ck_assert_int_eq(pawl_symenv_bind(&env, 0, 5, &err), PAWL_OK);
	pawl_symenv_clear(&env);
	ck_assert_int_eq(pawl_symenv_get(&env, 0, &value, &err), PAWL_SYMBOL);
	ck_assert_int_eq(pawl_symenv_bind(&env, 0, 6, &err), PAWL_OK);
}
END_TEST

START_TEST(range)
{
	ck_assert_int_eq(pawl_symenv_bind(&env, 0, 257, &err), PAWL_SYMBOL);
	ck_assert_str_eq(err.text, "symbol cached_len = 257 is outside its range 0 to 256");
	ck_assert_int_eq(pawl_symenv_bind(&env, 0, -1, &err), PAWL_SYMBOL);
	ck_assert_int_eq(pawl_symenv_bind(&env, 1, 0, &err), PAWL_SYMBOL);
	ck_assert(!env.is_bound[0] && !env.is_bound[1]);
	ck_assert_int_eq(pawl_symenv_bind(&env, 0, 256, &err), PAWL_OK);
}
END_TEST

START_TEST(divisibility)
{
	ck_assert_int_eq(pawl_symenv_bind(&env, 1, 40, &err), PAWL_SYMBOL);
	ck_assert_str_eq(err.text, "symbol attended_len = 40 is not a multiple of 16");
	ck_assert(!env.is_bound[1]);
	ck_assert_int_eq(pawl_symenv_bind(&env, 1, 48, &err), PAWL_OK);
}
END_TEST

START_TEST(unknown)
{
	ck_assert_int_eq(pawl_symenv_bind(&env, 2, 0, &err), PAWL_SYMBOL);
	ck_assert_int_eq(pawl_symenv_bind(&env, -1, 0, &err), PAWL_SYMBOL);
	ck_assert_int_eq(pawl_symenv_bind_name(&env, "window", 0, &err), PAWL_SYMBOL);
	ck_assert_str_eq(err.text, "the plan has no symbol window");
}
END_TEST

Suite *
pawl_symenv_suite(void)
{
	Suite *suite = suite_create("symenv");
	TCase *tcase = tcase_create("symenv");

	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, unbound_until_bound);
	tcase_add_test(tcase, write_once);
	tcase_add_test(tcase, clear_begins_a_step);
	tcase_add_test(tcase, range);
	tcase_add_test(tcase, divisibility);
	tcase_add_test(tcase, unknown);
	suite_add_tcase(suite, tcase);
	return suite;
}

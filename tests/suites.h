/* The Check suites of tests/unit; rows in tests/suites.def. */
#ifndef PAWL_TESTS_SUITES_H
#define PAWL_TESTS_SUITES_H

#include <check.h>

#define PAWL_SUITE(name) Suite *pawl_##name##_suite(void);
#include "tests/suites.def"

#endif

/*
 * Tests that cannot run here.  Check knows no skipped tests, so unit.c counts them and takes
 * them off what Check reports as passed.
 */
#ifndef PAWL_TESTS_SKIP_H
#define PAWL_TESTS_SKIP_H

/* Call before the tests fork. */
void pawl_skip_init(void);
/*
 * Says on stdout that a test did not run and why.  The test then returns without asserting
 * anything; at most one call per test.
 */
void pawl_skip(const char *test, const char *reason);
int pawl_skipped(void);

#endif

/*
 * Runs every Check suite.  The environment steers it as usual with Check: CK_RUN_SUITE,
 * CK_RUN_CASE, CK_FORK=no, CK_VERBOSITY, CK_DEFAULT_TIMEOUT.  The last line is
 * "N passed, N failed, N skipped".
 */
#include "tests/skip.h"
#include "tests/suites.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static Suite *(*const suites[])(void) = {
#define PAWL_SUITE(name) pawl_##name##_suite,
#include "tests/suites.def"
};

int
main(void)
{
	SRunner *runner = srunner_create(NULL);
	int run, failed, skipped;

	setvbuf(stdout, NULL, _IOLBF, 0);
	pawl_skip_init();
	for (size_t i = 0; i < sizeof(suites) / sizeof(suites[0]); i++)
		srunner_add_suite(runner, suites[i]());
	srunner_run_all(runner, CK_ENV);
	run = srunner_ntests_run(runner);
	failed = srunner_ntests_failed(runner);
	skipped = pawl_skipped();
	srunner_free(runner);
	printf("%d passed, %d failed, %d skipped\n", run - failed - skipped, failed, skipped);
	return run > 0 && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

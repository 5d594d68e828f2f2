/*
 * Runs every Check suite.  The environment steers it as usual with Check: CK_RUN_SUITE (a name of
 * tests/suites.def), CK_RUN_CASE, CK_FORK=no, CK_VERBOSITY, CK_DEFAULT_TIMEOUT.  Tests find the
 * trees by top_srcdir, top_builddir and PAWL_PLUGIN_PATH, which are those of this build where they
 * are not set.  The last line is "N passed, N failed, N skipped".
 */
#include "tests/skip.h"
#include "tests/suites.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	Suite *(*make)(void);
} suites[] = {
#define PAWL_SUITE(name) {#name, pawl_##name##_suite},
#include "tests/suites.def"
};

enum { N_SUITES = sizeof(suites) / sizeof(suites[0]) };

static bool
is_suite(const char *name)
{
	for (size_t i = 0; i < N_SUITES; i++) {
		if (!strcmp(suites[i].name, name))
			return true;
	}
	return false;
}

static int
refuse_suite(const char *name)
{
	fprintf(stderr, "CK_RUN_SUITE: '%s' is none of", name);
	for (size_t i = 0; i < N_SUITES; i++)
		fprintf(stderr, " %s", suites[i].name);
	fprintf(stderr, "\n");
	return EXIT_FAILURE;
}

int
main(void)
{
	const char *only = getenv("CK_RUN_SUITE");
	SRunner *runner;
	int run, failed, skipped;

	if (only && !is_suite(only))
		return refuse_suite(only);
	setenv("CK_DEFAULT_TIMEOUT", "120", 0);
	setenv("top_srcdir", PAWL_SOURCE_DIR, 0);
	setenv("top_builddir", PAWL_BUILD_DIR, 0);
	setenv("PAWL_PLUGIN_PATH", PAWL_BUILD_DIR "/plugins/.libs", 0);
	/* Tests see the compiler at work, whatever ran before. */
	setenv("PAWL_KERNEL_CACHE", "off", 1);
	runner = srunner_create(NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	pawl_skip_init();
	for (size_t i = 0; i < N_SUITES; i++)
		srunner_add_suite(runner, suites[i].make());
	srunner_run_all(runner, CK_ENV);
	run = srunner_ntests_run(runner);
	failed = srunner_ntests_failed(runner);
	skipped = pawl_skipped();
	srunner_free(runner);
	printf("%d passed, %d failed, %d skipped\n", run - failed - skipped, failed, skipped);
	return run > 0 && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

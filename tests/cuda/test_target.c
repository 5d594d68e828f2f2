/* Target cuda from end to end, on the mock of tests/cuda/mock.h. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/cuda/mock_use.h"

int
main(void)
{
	Suite *suite = suite_create("cuda target");
	SRunner *runner;
	int run, failed;

	suite_add_tcase(suite, pawl_cuda_open_tcase());
	suite_add_tcase(suite, pawl_cuda_life_tcase());
	suite_add_tcase(suite, pawl_cuda_session_tcase());
	suite_add_tcase(suite, pawl_cuda_state_tcase());
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	run = srunner_ntests_run(runner);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	printf("%d passed, %d failed, 0 skipped\n", run - failed, failed);
	return run > 0 && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#include "tests/failing_device.h"

#include <check.h>

#include "tests/decoding.h"

int pawl_test_runs_left = -1;

static struct pawl_target_api failing;

static enum pawl_status
run(const struct pawl_code *code, const struct pawl_run *what, struct pawl_error *err)
{
	enum pawl_status status = pawl_test_device()->api->run(code, what, err);

	if (!status && pawl_test_runs_left >= 0 && pawl_test_runs_left-- == 0)
		return pawl_fail(err, PAWL_ENVIRONMENT, "the device fell off the bus");
	return status;
}

struct pawl_device *
pawl_test_failing_device(void)
{
	struct pawl_error err = {0};
	struct pawl_device *device;

	failing = *pawl_test_device()->api;
	failing.run = run;
	ck_assert_msg(!pawl_device_new(&failing, NULL, &device, &err), "%s", err.text);
	return device;
}

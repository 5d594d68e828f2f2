/* The reference target on a device whose runs fail when they are told to. */
#ifndef PAWL_TESTS_FAILING_DEVICE_H
#define PAWL_TESTS_FAILING_DEVICE_H

#include "runtime/device.h"

/* After so many more runs one fails with PAWL_ENVIRONMENT, having done its work; < 0: none. */
extern int pawl_test_runs_left;

/* One reference is given.  Asserts that it works. */
struct pawl_device *pawl_test_failing_device(void);

#endif

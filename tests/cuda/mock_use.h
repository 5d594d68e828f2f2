/*
 * Target cuda on the mock of tests/cuda/mock.h: what its tests share.  Each test is a process,
 * which begins with a driver that nothing was asked of.  Everything asserts that it works.
 */
#ifndef PAWL_TESTS_CUDA_MOCK_USE_H
#define PAWL_TESTS_CUDA_MOCK_USE_H

#include <check.h>

#include "runtime/bindings.h"
#include "tests/cuda/mock.h"

extern struct pawl_error pawl_cuda_err;

#define PAWL_CUDA_OK(call) ck_assert_msg((call) == PAWL_OK, "%s", pawl_cuda_err.text)

/* Names the mock's libraries to the target, and gives its state. */
struct pawl_mock *pawl_mock_use(void);
struct pawl_device *pawl_mock_device(void);

/* For one thread. */
enum pawl_status pawl_mock_bindings(struct pawl_plan *plan, struct pawl_bindings **out);

/* That nothing is left of what was made, and nothing was done wrong. */
void pawl_mock_check_end(const struct pawl_mock *mock);

/* Whether make check-cuda runs: then all of what is otherwise a part. */
bool pawl_mock_is_long(void);

/* The suites. */
TCase *pawl_cuda_open_tcase(void);
TCase *pawl_cuda_session_tcase(void);
TCase *pawl_cuda_state_tcase(void);
TCase *pawl_cuda_life_tcase(void);

#endif

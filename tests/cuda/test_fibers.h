/* Tests of the fibers, part of tests/cuda-kernels. */
#ifndef PAWL_TESTS_CUDA_TEST_FIBERS_H
#define PAWL_TESTS_CUDA_TEST_FIBERS_H

#include <check.h>

TCase *pawl_fibers_tcase(void);

#endif

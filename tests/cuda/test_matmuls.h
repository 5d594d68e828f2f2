/* Tests of matmuls element by element, part of tests/cuda-kernels. */
#ifndef PAWL_TESTS_CUDA_TEST_MATMULS_H
#define PAWL_TESTS_CUDA_TEST_MATMULS_H

#include <check.h>

TCase *pawl_cuda_matmuls_tcase(void);

#endif

/*
 * The fixture of a suite whose tests compute in the floating-point environment of kernels.
 * Included by the one source of a suite, whose own the static is.
 */
#ifndef PAWL_TESTS_FPENV_FIXTURE_H
#define PAWL_TESTS_FPENV_FIXTURE_H

#include <stdint.h>

#include "ir/fpenv.h"

static uint32_t saved_environment;

static inline void
enter(void)
{
	saved_environment = pawl_fpenv_enter();
}

static inline void
leave(void)
{
	pawl_fpenv_leave(saved_environment);
}

#endif

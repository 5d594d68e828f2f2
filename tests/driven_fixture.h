/*
 * The fixture of a suite that drives one model on target ref through the ABI.  Included by the one
 * source of a suite, whose own the statics are.
 */
#ifndef PAWL_TESTS_DRIVEN_FIXTURE_H
#define PAWL_TESTS_DRIVEN_FIXTURE_H

#include "tests/driven.h"

static const struct pawl_api *api;
static struct pawl_driven d;

static inline void
begin_driven(void)
{
	api = pawl_test_host_api();
	pawl_driven_begin(&d, "ref", 1, NULL);
}

static inline void
end_driven(void)
{
	pawl_driven_end(&d);
}

#endif

/*
 * The fixture of a suite on one context of the ABI, of one thread on target ref.  Included by the
 * one source of a suite, whose own the statics are.
 */
#ifndef PAWL_TESTS_CONTEXT_FIXTURE_H
#define PAWL_TESTS_CONTEXT_FIXTURE_H

#include "tests/host_fixture.h"

static const struct pawl_api *api;
static struct pawl_host_context *context;

static inline void
begin_context(void)
{
	api = pawl_test_host_api();
	context = pawl_test_host_context("ref", 1, NULL);
}

static inline void
end_context(void)
{
	pawl_test_host_context_end(context);
}

#endif

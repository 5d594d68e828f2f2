/*
 * The fixture of a suite that steps a session of a decoder's plan by hand.  Included by the one source
 * of a suite, whose own the statics are.
 */
#ifndef PAWL_TESTS_HAND_SESSION_FIXTURE_H
#define PAWL_TESTS_HAND_SESSION_FIXTURE_H

#include <check.h>

#include "runtime/decode_session.h"
#include "tests/decoder_fixture.h"

static struct pawl_error err;

static inline struct pawl_plan *
plan_of_step(void)
{
	const struct pawl_plan *plan;

	ck_assert_int_eq(pawl_decoder_prepare(decoder, 1, PAWL_LOGITS_LAST, &plan, &err), PAWL_OK);
	return (struct pawl_plan *)(uintptr_t)plan;
}

static inline struct pawl_decode_session *
session_on(struct pawl_plan *plan, struct pawl_kv_cache *cache)
{
	struct pawl_decode_session *session;

	if (pawl_decode_session_new(plan, pawl_tiny_model_source(model)->weights, cache,
		    pawl_inference_context_team(pawl_decoder_context(decoder)), &session, &err))
		ck_abort_msg("%s", err.text);
	return session;
}

#endif

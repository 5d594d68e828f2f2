/*
 * The fixture of a suite on one decoder of a tiny model.  Included by the one source of a suite,
 * whose own the statics are.
 */
#ifndef PAWL_TESTS_DECODER_FIXTURE_H
#define PAWL_TESTS_DECODER_FIXTURE_H

#include "tests/model_fixture.h"

static struct pawl_decoder *decoder;

static inline void
begin_decoder(void)
{
	begin_model();
	decoder = pawl_test_decoder(model, &options);
}

static inline void
end_decoder(void)
{
	pawl_decoder_free(decoder);
	end_model();
}

static inline struct pawl_decoder_stats
stats_now(void)
{
	return stats_of(decoder);
}

#endif

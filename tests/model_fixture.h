/*
 * The fixture of a suite on one tiny model of the defaults.  Included by the one source of a suite,
 * whose own the statics are.
 */
#ifndef PAWL_TESTS_MODEL_FIXTURE_H
#define PAWL_TESTS_MODEL_FIXTURE_H

#include "tests/decoding.h"

static struct pawl_tiny_model *model;
static struct pawl_decoder_options options;

static inline void
begin_model(void)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();

	model = pawl_tiny_model_new(&tiny);
	options = pawl_test_decoder_options();
}

static inline void
end_model(void)
{
	pawl_tiny_model_free(model);
}

static inline struct pawl_decoder_stats
stats_of(const struct pawl_decoder *of)
{
	struct pawl_decoder_stats stats;

	pawl_decoder_stats(of, &stats);
	return stats;
}

#endif

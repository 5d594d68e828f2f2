/*
 * What suites on growing caches share: kinds of caches, and models and decoders of each.  Included
 * by the one source of a suite, whose own the statics are.
 */
#ifndef PAWL_TESTS_KV_GROW_FIXTURE_H
#define PAWL_TESTS_KV_GROW_FIXTURE_H

#include "tests/decoding.h"

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static const struct kind {
	enum pawl_dtype dtype;
	enum pawl_layout k_layout;
} kinds[] = {
	{PAWL_DTYPE_F16, PAWL_LAYOUT_K16},
	{PAWL_DTYPE_F16, PAWL_LAYOUT_ROWS},
	{PAWL_DTYPE_F32, PAWL_LAYOUT_K16},
	{PAWL_DTYPE_F32, PAWL_LAYOUT_ROWS},
	{PAWL_DTYPE_BF16, PAWL_LAYOUT_K16},
	{PAWL_DTYPE_Q8_0, PAWL_LAYOUT_K16},
	{PAWL_DTYPE_Q8_0, PAWL_LAYOUT_ROWS},
};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static inline struct pawl_tiny_model *
model_of(const struct kind *kind, bool has_mask)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();

	tiny.k_layout = kind->k_layout;
	if (pawl_dtype_is_blocked(kind->dtype))
		tiny.head_dim = 32;
	tiny.has_mask = has_mask;
	return pawl_tiny_model_new(&tiny);
}

static inline struct pawl_decoder_options
options_of(const struct kind *kind, int64_t capacity)
{
	struct pawl_decoder_options options = pawl_test_decoder_options();

	options.kv_dtype = kind->dtype;
	options.capacity = capacity;
	return options;
}

static inline struct pawl_decoder_stats
stats_of(const struct pawl_decoder *decoder)
{
	struct pawl_decoder_stats stats;

	pawl_decoder_stats(decoder, &stats);
	return stats;
}

#endif

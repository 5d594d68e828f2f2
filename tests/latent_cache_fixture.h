/*
 * The fixture of a suite on caches of latents of one shape in a context of its own.  Included by
 * the one source of a suite, whose own the statics are.
 */
#ifndef PAWL_TESTS_LATENT_CACHE_FIXTURE_H
#define PAWL_TESTS_LATENT_CACHE_FIXTURE_H

#include <check.h>

#include "runtime/inference_context.h"
#include "runtime/latent_kv_cache.h"
#include "tests/decoding.h"

enum { N_LAYERS = 2, WIDTH = 16, ROPE = 8, CAPACITY = 48 };

static struct pawl_inference_context *context;
static struct pawl_latent_shape shape;
static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static inline struct pawl_latent_kv_cache *
new_cache(void)
{
	struct pawl_latent_kv_cache *cache;

	OK(pawl_latent_kv_cache_with_capacity(context, &shape, &cache, &err));
	return cache;
}

static inline void
begin_shape(void)
{
	OK(pawl_inference_context_new(pawl_test_device(), 1, &context, &err));
	shape = (struct pawl_latent_shape){.n_layers = N_LAYERS,
		.n_slots = 2,
		.max_seq_len = CAPACITY,
		.dtype = PAWL_DTYPE_F16,
		.trailing = {{1, {WIDTH}}, {1, {ROPE}}}};
}

static inline void
end_shape(void)
{
	pawl_inference_context_free(context);
}

#endif

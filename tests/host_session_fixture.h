/*
 * The fixture of a suite on sessions of the ABI: a tiny model, a session of one token of it, and
 * what is expected of both: the logits of a decoder of the runtime.  Included by the one source of
 * a suite, whose own the statics are.
 */
#ifndef PAWL_TESTS_HOST_SESSION_FIXTURE_H
#define PAWL_TESTS_HOST_SESSION_FIXTURE_H

#include <check.h>
#include <stdlib.h>

#include "ir/eval.h"
#include "tests/context_fixture.h"
#include "tests/decoding.h"

enum { N_VOCAB = 40, CAPACITY = 64, CHUNK = 8 };

static struct pawl_tiny_model *model;
static struct pawl_test_host host;

static inline struct pawl_graph_request
request_of(int64_t n_tokens, int64_t capacity)
{
	return (struct pawl_graph_request){.n_tokens = n_tokens,
		.capacity = capacity,
		.kv_dtype = PAWL_DTYPE_F16,
		.logits = PAWL_LOGITS_LAST};
}

static inline void
begin_session(void)
{
	const struct pawl_tiny_options options = pawl_tiny_defaults();
	const struct pawl_graph_request request = request_of(1, CAPACITY);

	begin_context();
	model = pawl_tiny_model_new(&options);
	pawl_test_host_init(&host, context, pawl_tiny_model_source(model), &request);
}

static inline void
end_session(void)
{
	pawl_test_host_release(&host);
	end_context();
	pawl_tiny_model_free(model);
}

static inline struct pawl_host_cache *
make_cache(const struct pawl_test_host *of)
{
	struct pawl_host_cache *cache;

	PAWL_HOST_OK(api->cache_create(of->plan, NULL, &cache));
	return cache;
}

/* Tokens of a sequence up to length n, one by one; the logits after the last. */
static inline const float *
feed(struct pawl_test_host *with, struct pawl_host_cache *cache, unsigned seed, int64_t n)
{
	const float *logits = NULL;

	PAWL_HOST_OK(api->session_use_cache(with->session, cache, NULL));
	for (int64_t i = api->cache_len(cache); i < n; i++) {
		uint32_t token = pawl_test_token(seed, i);

		logits = pawl_test_host_step(with, cache, &token);
	}
	return logits;
}

static inline void
expect(const float *logits, unsigned seed, int64_t n)
{
	struct pawl_decoder_options options = pawl_test_decoder_options();
	float *wanted;

	options.capacity = n > CAPACITY ? n : CAPACITY;
	wanted = pawl_test_fresh(model, &options, seed, n);
	ck_assert_ptr_nonnull(logits);
	for (int64_t i = 0; i < N_VOCAB; i++)
		ck_assert_msg(pawl_eval_same(wanted[i], logits[i]), "logit %d of %d tokens: %a, %a",
			(int)i, (int)n, (double)wanted[i], (double)logits[i]);
	free(wanted);
}

#endif

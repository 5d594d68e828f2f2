/*
 * The fixture of a suite on paged decoders of one tiny model.  Included by the one source of a
 * suite, whose own the statics are.
 */
#ifndef PAWL_TESTS_PAGED_FIXTURE_H
#define PAWL_TESTS_PAGED_FIXTURE_H

#include "runtime/paged_decoder.h"

#include "tests/decoding.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { N_VOCAB = 40, ROW_BYTES = N_VOCAB * sizeof(float) };

static struct pawl_tiny_model *model;
static struct pawl_paged_options options;
static struct pawl_paged_decoder *decoder;
static struct pawl_error err;

static inline struct pawl_paged_decoder *
new_decoder(void)
{
	struct pawl_paged_decoder *made;

	ck_assert_msg(pawl_paged_decoder_new(pawl_tiny_model_source(model), pawl_test_device(),
			      &options, &made, &err) == PAWL_OK,
		"%s", err.text);
	return made;
}

static inline void
begin(void)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();

	model = pawl_tiny_model_new(&tiny);
	options = (struct pawl_paged_options){.n_blocks = 12,
		.block_size = 16,
		.max_blocks = 4,
		.kv_dtype = PAWL_DTYPE_F16,
		.n_threads = 1,
		.prefill_chunk = 8};
	decoder = new_decoder();
}

static inline void
end(void)
{
	pawl_paged_decoder_free(decoder);
	pawl_tiny_model_free(model);
}

/* Logits after the first n tokens of a sequence, alone in a contiguous cache. */
static inline float *
alone(unsigned seed, int64_t n)
{
	struct pawl_decoder_options contiguous = pawl_test_decoder_options();

	contiguous.kv_dtype = options.kv_dtype;
	return pawl_test_fresh(model, &contiguous, seed, n);
}

static inline struct pawl_kv_session_id
open_sequence(void)
{
	struct pawl_kv_session_id session;

	ck_assert_int_eq(pawl_paged_decoder_open(decoder, &session, &err), PAWL_OK);
	return session;
}

static inline int64_t
length_of(struct pawl_kv_session_id session)
{
	return pawl_kv_block_pool_session_len(pawl_paged_decoder_pool(decoder), session);
}

static inline const float *
prefill(struct pawl_kv_session_id session, unsigned seed, int64_t n)
{
	int64_t first = length_of(session), i;
	uint32_t tokens[64];
	const float *logits;

	for (i = 0; i < n; i++)
		tokens[i] = pawl_test_token(seed, first + i);
	ck_assert_msg(pawl_paged_decoder_prefill(decoder, session, tokens, n, &logits, &err) ==
			      PAWL_OK,
		"%s", err.text);
	ck_assert_int_eq(length_of(session), first + n);
	return logits;
}

static inline void
check_logits(const float *logits, unsigned seed, int64_t n)
{
	float *want = alone(seed, n);

	ck_assert_msg(!memcmp(logits, want, ROW_BYTES), "sequence %u of %d tokens: %.9g, not %.9g",
		seed, (int)n, logits[0], want[0]);
	free(want);
}

/* One token each for sequences `first` .. `first` + n - 1, whose seeds are their numbers. */
static inline void
step(const struct pawl_kv_session_id *sessions, unsigned first, int64_t n)
{
	struct pawl_paged_row rows[PAWL_MAX_BATCH];
	const float *logits;
	int64_t i;

	for (i = 0; i < n; i++) {
		unsigned seed = first + (unsigned)i;

		rows[i] = (struct pawl_paged_row){
			sessions[seed], pawl_test_token(seed, length_of(sessions[seed]))};
	}
	ck_assert_msg(pawl_paged_decoder_step(decoder, rows, n, &logits, &err) == PAWL_OK, "%s",
		err.text);
	for (i = 0; i < n; i++)
		check_logits(logits + i * N_VOCAB, first + (unsigned)i,
			length_of(sessions[first + (unsigned)i]));
}

#endif

/*
 * What tests of sessions share: the reference device, decoders over a tiny model, token sequences,
 * logits kept for comparison.  Everything asserts that it works.
 */
#ifndef PAWL_TESTS_DECODING_H
#define PAWL_TESTS_DECODING_H

#include "runtime/decoder.h"
#include "tests/tiny_model.h"

/* The module target_ref, opened once per process. */
struct pawl_device *pawl_test_device(void);

/* Capacity 64, f16, a16, 1 thread, chunks of 8. */
struct pawl_decoder_options pawl_test_decoder_options(void);
struct pawl_decoder *pawl_test_decoder(
	const struct pawl_tiny_model *model, const struct pawl_decoder_options *options);

struct pawl_decoder *pawl_test_decoder_on(struct pawl_device *device,
	const struct pawl_tiny_model *model, const struct pawl_decoder_options *options);

/* Token i of sequence `seed`, below n_vocab = 40. */
uint32_t pawl_test_token(unsigned seed, int64_t i);
/* Appends tokens first .. first + n - 1 of a sequence; the logits after the last. */
const float *pawl_test_prefill(
	struct pawl_decoder *decoder, unsigned seed, int64_t first, int64_t n);
const float *pawl_test_step(struct pawl_decoder *decoder, unsigned seed, int64_t i);

/* malloc'ed copy of one row. */
float *pawl_test_keep(const struct pawl_decoder *decoder, const float *logits);
/* Bitwise. */
bool pawl_test_same(const struct pawl_decoder *decoder, const float *a, const float *b);

/* The logits of a fresh decoder after the first n tokens of a sequence; malloc'ed. */
float *pawl_test_fresh(const struct pawl_tiny_model *model,
	const struct pawl_decoder_options *options, unsigned seed, int64_t n);

/* FNV-1a over the bytes of every storage of a cache, its length, versions and ids. */
uint64_t pawl_test_cache_digest(const struct pawl_kv_cache *cache);
/* Over its length and what the next token sees: all positions before it, of a ring its window. */
uint64_t pawl_test_seen_digest(const struct pawl_kv_cache *cache);

#endif

/*
 * What runs a tiny_mla model (tests/tiny_mla.h) over a cache of latents: a session for chunks and one for
 * single tokens.  Everything asserts that it works.
 */
#ifndef PAWL_TESTS_LATENT_RUNNER_H
#define PAWL_TESTS_LATENT_RUNNER_H

#include "runtime/decode_session.h"
#include "runtime/inference_context.h"
#include "runtime/token_data.h"
#include "tests/tiny_mla.h"

enum { PAWL_LATENT_BLOCK = 16, PAWL_LATENT_N_VOCAB = 40 };

struct pawl_latent_way {
	const char *target;
	int n_threads;
	int64_t chunk;
	enum pawl_dtype kv;
	enum pawl_precision precision;
	bool is_paged; /* in blocks of PAWL_LATENT_BLOCK in no order */
	int64_t capacity;
	bool is_clean; /* the cache is zero at first, not NaN */
};

/* The reference, 1 thread, chunks of 8, f16, a16, capacity 160. */
extern const struct pawl_latent_way pawl_latent_plain;

struct pawl_latent_held {
	struct pawl_plan *plan;
	struct pawl_decode_session *session;
	struct pawl_token_buffers buffers;
};

struct pawl_latent_runner {
	struct pawl_latent_way way;
	const struct pawl_model_source *source;
	struct pawl_device *device;
	struct pawl_inference_context *context;
	struct pawl_latent_kv_cache *cache;
	struct pawl_latent_held held[2]; /* of way.chunk tokens, and of one */
};

void pawl_latent_runner_init(struct pawl_latent_runner *r, const struct pawl_tiny_mla *model,
	const struct pawl_latent_way *way);
void pawl_latent_runner_release(struct pawl_latent_runner *r);

/* Another cache for it. */
struct pawl_latent_kv_cache *pawl_latent_runner_cache(
	const struct pawl_latent_runner *r, const struct pawl_tiny_mla *model);
void pawl_latent_runner_swap(
	struct pawl_latent_runner *r, struct pawl_latent_kv_cache **cache);

/* What became of session i when it was asked whether it serves the cache. */
enum pawl_disposition_kind pawl_latent_runner_refresh(struct pawl_latent_runner *r, int i);
/* Session i is made for the cache, its plan regrown from the one before where there is one. */
enum pawl_status pawl_latent_runner_hold(
	struct pawl_latent_runner *r, int i, struct pawl_error *err);
void pawl_latent_runner_let_go(struct pawl_latent_runner *r, int i);
/* Owns the cache and makes both sessions serve it: kept, rebound, regrown (counted) or built. */
void pawl_latent_runner_ready(struct pawl_latent_runner *r);

/* Runs n tokens of a session and advances; *logits [n][PAWL_LATENT_N_VOCAB]. */
enum pawl_status pawl_latent_runner_forward(struct pawl_latent_runner *r,
	struct pawl_latent_held *held, const uint32_t *tokens, int64_t n, const float **logits,
	struct pawl_error *err);
/* Tokens first .. first + n - 1 of a sequence in chunks, then one by one; the logits of each. */
void pawl_latent_runner_feed(
	struct pawl_latent_runner *r, unsigned seed, int64_t first, int64_t n, float *logits);

const struct pawl_counters *pawl_latent_runner_counters(const struct pawl_latent_runner *r);

/* Slots of 1, 2 and 4 parts and dims of all kinds. */
extern const struct pawl_latent_shape pawl_latent_many_slots;
/* An empty cache of any shape. */
struct pawl_latent_kv_cache *pawl_latent_cache_of(
	struct pawl_inference_context *context, const struct pawl_latent_shape *shape);

/* n rows of logits, to the bit. */
void pawl_latent_expect_same(
	const float *wanted, const float *got, int64_t n, const char *what);

/* FNV-1a over the bytes of every storage of a cache, its length, versions and ids. */
uint64_t pawl_latent_digest(const struct pawl_latent_kv_cache *cache);

#endif

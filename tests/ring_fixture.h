/*
 * What suites on rings share: a model whose layers have a window, decoders of it with and without
 * rings, and snapshots of theirs.  Included by the one source of a suite, whose own the statics
 * are.
 */
#ifndef PAWL_TESTS_RING_FIXTURE_H
#define PAWL_TESTS_RING_FIXTURE_H

#include <check.h>
#include <math.h>
#include <string.h>

#include "ir/eval.h"
#include "tests/decoding.h"
#include "tests/snapshot_file.h"

enum { N_TOKENS = 450, CAPACITY = 512, N_VOCAB = 40, WINDOW = 20, RING = 128 };

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

/* Layers 0 and 2 see a window, layer 1 everything. */
static inline struct pawl_tiny_options
model_options(int64_t window, enum pawl_layout k_layout)
{
	struct pawl_tiny_options options = pawl_tiny_defaults();

	options.n_layers = 3;
	options.n_embd = 32;
	options.n_ff = 32;
	options.window = window;
	options.window_layers = 5;
	options.k_layout = k_layout;
	return options;
}

static inline struct pawl_tiny_model *
make_model(int64_t window, enum pawl_layout k_layout)
{
	const struct pawl_tiny_options options = model_options(window, k_layout);

	return pawl_tiny_model_new(&options);
}

static inline struct pawl_decoder_options
options_of(bool rings)
{
	struct pawl_decoder_options options = pawl_test_decoder_options();

	options.capacity = CAPACITY;
	options.rings = rings;
	return options;
}

static inline void
poison(struct pawl_decoder *d)
{
	struct pawl_kv_cache *cache = pawl_decoder_cache(d);

	for (int32_t i = 0; i < pawl_kv_cache_shape(cache)->n_layers * PAWL_N_KV_SLOTS; i++) {
		struct pawl_storage *storage = pawl_kv_cache_storage(
			cache, (struct pawl_kv_layer_id){i / 2, (enum pawl_kv_slot)(i % 2)});

		memset(storage->bytes, 0xff, (size_t)storage->n_bytes);
	}
}

static inline struct pawl_decoder *
open_decoder(const char *target, const struct pawl_tiny_model *model,
	const struct pawl_decoder_options *options)
{
	struct pawl_decoder *d;
	struct pawl_device *device;

	OK(pawl_device_open(target, NULL, &device, &err));
	OK(pawl_decoder_new(pawl_tiny_model_source(model), device, options, &d, &err));
	pawl_device_unref(device);
	poison(d);
	return d;
}

static inline enum pawl_status
keep_row(void *arg, int64_t position, const float *logits, struct pawl_error *e)
{
	float *all = arg;

	(void)e;
	memcpy(all + position * N_VOCAB, logits, N_VOCAB * sizeof(float));
	return PAWL_OK;
}

/* Tokens of sequence `seed` up to length n; logits[position] of those that are new. */
static inline void
feed(struct pawl_decoder *d, unsigned seed, int64_t n, float *logits)
{
	uint32_t tokens[N_TOKENS];
	int64_t len = pawl_decoder_len(d);

	for (int64_t i = len; i < n; i++)
		tokens[i] = pawl_test_token(seed, i);
	OK(pawl_decoder_eval(d, tokens + len, n - len, keep_row, logits, &err));
}

static inline void
expect_same(const float *wanted, const float *got, int64_t first, int64_t end, const char *what)
{
	for (int64_t i = first * N_VOCAB; i < end * N_VOCAB; i++) {
		ck_assert(isfinite(wanted[i]));
		ck_assert_msg(pawl_eval_same(wanted[i], got[i]), "%s: logit %d of position %d: %a, %a",
			what, (int)(i % N_VOCAB), (int)(i / N_VOCAB), (double)wanted[i],
			(double)got[i]);
	}
}

static float wanted[N_TOKENS * N_VOCAB], got[N_TOKENS * N_VOCAB];

static inline void
save(const struct pawl_decoder *d, const struct pawl_snapshot_file *file)
{
	const struct pawl_kv_snapshot_sink to = pawl_snapshot_file_begin(file);
	uint32_t tokens[N_TOKENS];

	for (int64_t i = 0; i < N_TOKENS; i++)
		tokens[i] = pawl_test_token(1, i);
	OK(pawl_decoder_save(d, tokens, pawl_decoder_len(d), &to, &err));
	pawl_snapshot_file_end(&to);
}

static inline enum pawl_status
restore(struct pawl_decoder *d, const struct pawl_snapshot_file *file)
{
	struct pawl_kv_snapshot *snapshot;
	enum pawl_status status;

	OK(pawl_kv_snapshot_open(file->path, &snapshot, &err));
	status = pawl_decoder_restore(d, snapshot, &err);
	pawl_kv_snapshot_free(snapshot);
	return status;
}

#endif

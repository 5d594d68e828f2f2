#include "tests/decoding.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/kv_layout.h"

struct pawl_device *
pawl_test_device(void)
{
	static struct pawl_device *device;
	struct pawl_error err = {0};

	if (!device && pawl_device_open("ref", NULL, &device, &err))
		ck_abort_msg("%s", err.text);
	return device;
}

struct pawl_decoder_options
pawl_test_decoder_options(void)
{
	return (struct pawl_decoder_options){
		.capacity = 64,
		.kv_dtype = PAWL_DTYPE_F16,
		.precision = PAWL_PRECISION_A16,
		.n_threads = 1,
		.prefill_chunk = 8,
	};
}

struct pawl_decoder *
pawl_test_decoder_on(struct pawl_device *device, const struct pawl_tiny_model *model,
	const struct pawl_decoder_options *options)
{
	struct pawl_decoder *decoder;
	struct pawl_error err;

	if (pawl_decoder_new(pawl_tiny_model_source(model), device, options, &decoder, &err))
		ck_abort_msg("%s", err.text);
	return decoder;
}

struct pawl_decoder *
pawl_test_decoder(
	const struct pawl_tiny_model *model, const struct pawl_decoder_options *options)
{
	return pawl_test_decoder_on(pawl_test_device(), model, options);
}

uint32_t
pawl_test_token(unsigned seed, int64_t i)
{
	return (uint32_t)((unsigned)i * (i + 3 * seed + 7) + 11 * seed) % 40;
}

const float *
pawl_test_prefill(struct pawl_decoder *decoder, unsigned seed, int64_t first, int64_t n)
{
	struct pawl_error err = {0};
	const float *logits = NULL;
	uint32_t tokens[256];

	ck_assert_int_le(n, 256);
	for (int64_t i = 0; i < n; i++)
		tokens[i] = pawl_test_token(seed, first + i);
	if (pawl_decoder_prefill(decoder, tokens, n, &logits, &err))
		ck_abort_msg("%s", err.text);
	ck_assert_ptr_nonnull(logits);
	return logits;
}

const float *
pawl_test_step(struct pawl_decoder *decoder, unsigned seed, int64_t i)
{
	struct pawl_error err = {0};
	const float *logits = NULL;

	if (pawl_decoder_step(decoder, pawl_test_token(seed, i), &logits, &err))
		ck_abort_msg("%s", err.text);
	for (int64_t j = 0; j < pawl_decoder_n_vocab(decoder); j++)
		ck_assert(isfinite(logits[j]));
	return logits;
}

float *
pawl_test_keep(const struct pawl_decoder *decoder, const float *logits)
{
	size_t n = (size_t)pawl_decoder_n_vocab(decoder) * sizeof(float);
	float *copy = malloc(n);

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, logits, n);
	return copy;
}

bool
pawl_test_same(const struct pawl_decoder *decoder, const float *a, const float *b)
{
	return !memcmp(a, b, (size_t)pawl_decoder_n_vocab(decoder) * sizeof(float));
}

float *
pawl_test_fresh(const struct pawl_tiny_model *model, const struct pawl_decoder_options *options,
	unsigned seed, int64_t n)
{
	struct pawl_decoder *decoder = pawl_test_decoder(model, options);
	float *logits = pawl_test_keep(decoder, pawl_test_prefill(decoder, seed, 0, n));

	pawl_decoder_free(decoder);
	return logits;
}

uint64_t
pawl_test_cache_digest(const struct pawl_kv_cache *cache)
{
	struct pawl_shape_key key = PAWL_SHAPE_KEY_INIT;

	pawl_shape_key_u64(&key, (uint64_t)pawl_kv_cache_len(cache));
	pawl_shape_key_u64(&key, pawl_kv_cache_alloc_id(cache).value);
	pawl_shape_key_u64(&key, (uint64_t)pawl_kv_cache_shape(cache)->max_seq_len);
	pawl_shape_key_u64(&key, pawl_kv_cache_location(cache).space);
	for (int32_t i = 0; i < pawl_kv_cache_shape(cache)->n_layers; i++)
		for (int slot = 0; slot < PAWL_N_KV_SLOTS; slot++) {
			const struct pawl_kv_tensor *tensor = &pawl_kv_cache_layer(cache, i)[slot];
			const struct pawl_storage *storage = tensor->storage;

			pawl_shape_key_u64(&key, tensor->version);
			pawl_shape_key_u64(&key, (uintptr_t)storage);
			if (storage)
				pawl_shape_key_bytes(
					&key, storage->bytes, (size_t)storage->n_bytes);
		}
	return key.value;
}

/* Positions first .. len - 1 of one storage, whatever its layout and whether it goes round. */
static void
digest_positions(const struct pawl_storage *storage, int64_t first, int64_t len,
	struct pawl_shape_key *key)
{
	const struct pawl_kv_planes planes = pawl_kv_planes_of(&storage->type, 2);
	int64_t n = planes.positions;
	char *rows = malloc((size_t)pawl_kv_logical_bytes(&planes, n));

	ck_assert_ptr_nonnull(rows);
	pawl_kv_read_positions(&planes, storage->bytes, n, rows);
	for (int64_t plane = 0; plane < planes.n; plane++)
		for (int64_t i = first; i < len; i++)
			pawl_shape_key_bytes(key, rows + (plane * n + i % n) * planes.row_bytes,
				(size_t)planes.row_bytes);
	free(rows);
}

uint64_t
pawl_test_seen_digest(const struct pawl_kv_cache *cache)
{
	const struct pawl_kv_shape *shape = pawl_kv_cache_shape(cache);
	struct pawl_shape_key key = PAWL_SHAPE_KEY_INIT;
	int64_t len = pawl_kv_cache_len(cache);

	pawl_shape_key_u64(&key, (uint64_t)len);
	for (int32_t i = 0; i < shape->n_layers * PAWL_N_KV_SLOTS; i++) {
		const struct pawl_kv_layer_id id = {
			i / PAWL_N_KV_SLOTS, (enum pawl_kv_slot)(i % PAWL_N_KV_SLOTS)};
		const struct pawl_storage *storage = pawl_kv_cache_storage(cache, id);
		bool is_ring = storage->type.dim[2].base < shape->max_seq_len;
		int64_t first = is_ring ? len - shape->rings.window + 1 : 0;

		digest_positions(storage, first < 0 ? 0 : first, len, &key);
	}
	return key.value;
}

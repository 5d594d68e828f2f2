/*
 * The bytes of the blocks of a pool.  They lie in a KV cache of n_blocks * block_size positions:
 * block b is positions [b * block_size, (b + 1) * block_size) of each of its storages.  block_size
 * is a multiple of 16, so that a block is one piece of every plane (runtime/kv_layout.h).
 *
 * The caller sees to it that numbers are in range.  On the host nothing here allocates or fails;
 * what fails on a device leaves the blocks written to in disorder, others as they were.
 */
#ifndef PAWL_RUNTIME_KV_BLOCK_BYTES_H
#define PAWL_RUNTIME_KV_BLOCK_BYTES_H

#include "ir/op.h"
#include "runtime/kv_cache.h"

enum { PAWL_MAX_ROPE_WIDTH = 1024 };

/* Bytes of one block in all storages. */
int64_t pawl_kv_block_bytes(const struct pawl_kv_cache *cache, int64_t block_size);

enum pawl_status pawl_kv_block_copy_bytes(struct pawl_kv_cache *cache, int64_t block_size,
	int64_t from, int64_t to, struct pawl_error *err);

/* Out of the cache and back; only for the same cache's geometry. */
enum pawl_status pawl_kv_block_read(const struct pawl_kv_cache *cache, int64_t block_size,
	int64_t block, void *out, struct pawl_error *err);
enum pawl_status pawl_kv_block_write(struct pawl_kv_cache *cache, int64_t block_size,
	int64_t block, const void *in, struct pawl_error *err);

/* Rows of the rope tables for the position that keys are turned by. */
struct pawl_key_turn {
	enum pawl_pairs pairs;
	int64_t width; /* at most PAWL_MAX_ROPE_WIDTH */
	const float *cos, *sin;
	const float *window_cos, *window_sin; /* of window_layers, NULL: as all */
	const struct pawl_layer_set *window_layers;
};

/*
 * As copy, for tokens that stand `shift` positions further on: V as it is, the first elements
 * of each key turned by the rope of position `shift`.
 * Since the key was rounded when it was stored and is again, this is near what computing it there
 * would give, not equal.  f32, f16 and bf16 caches.  Keys of a device are turned on the host:
 * PAWL_OUT_OF_MEMORY for their way.
 */
enum pawl_status pawl_kv_block_shift(struct pawl_kv_cache *cache, int64_t block_size, int64_t from,
	int64_t to, const struct pawl_key_turn *turn, struct pawl_error *err);

#endif

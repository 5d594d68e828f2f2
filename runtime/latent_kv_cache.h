/*
 * A cache of latents (multi-head latent attention): for each layer n_slots tensors of shape
 * [max_seq_len, trailing...], slot 0 a compressed latent, slot 1 its rotary part, or whatever a model
 * keeps.
 *
 * Otherwise like runtime/kv_cache.h: storages are private, an allocation id is minted when they
 * change, what lies beyond the length is finite but means nothing.  Belongs to one thread at a time.
 */
#ifndef PAWL_RUNTIME_LATENT_KV_CACHE_H
#define PAWL_RUNTIME_LATENT_KV_CACHE_H

#include "runtime/kv_cache.h"

enum { PAWL_MAX_LATENT_SLOTS = 4 };

struct pawl_latent_trailing {
	int rank; /* 1 .. PAWL_MAX_RANK - 1 */
	int64_t dims[PAWL_MAX_RANK - 1];
};

struct pawl_latent_shape {
	int32_t n_layers, n_slots;
	int64_t max_seq_len;   /* 0: no capacity */
	enum pawl_dtype dtype; /* f16, bf16 or f32 */
	struct pawl_latent_trailing trailing[PAWL_MAX_LATENT_SLOTS];
};

struct pawl_latent_kv_cache;

/*
 * All storages zero-filled by one run of a graph of alloc and zero_fill on the context's device.
 * max_seq_len is taken as it is.  PAWL_INVALID_ARGUMENT for a cache without layers, slots or
 * positions, a trailing shape without elements, another type, or a size that no memory has;
 * PAWL_OUT_OF_MEMORY names the bytes of the whole cache.
 */
enum pawl_status pawl_latent_kv_cache_with_capacity(struct pawl_inference_context *context,
	const struct pawl_latent_shape *shape, struct pawl_latent_kv_cache **out,
	struct pawl_error *err);
/* NULL is allowed.  Sessions that are bound keep the storages alive. */
void pawl_latent_kv_cache_free(struct pawl_latent_kv_cache *cache);

/* Bytes of a cache of that shape; -1 when it has none or the size overflows. */
int64_t pawl_latent_shape_bytes(const struct pawl_latent_shape *shape);
struct pawl_type pawl_latent_shape_type(const struct pawl_latent_shape *shape, int32_t slot);

const struct pawl_latent_shape *pawl_latent_kv_cache_shape(
	const struct pawl_latent_kv_cache *cache);
int64_t pawl_latent_kv_cache_len(const struct pawl_latent_kv_cache *cache);
struct pawl_kv_alloc_id pawl_latent_kv_cache_alloc_id(const struct pawl_latent_kv_cache *cache);
/* Of the device it was made on, also when it is cleared. */
struct pawl_location pawl_latent_kv_cache_location(const struct pawl_latent_kv_cache *cache);
/* NULL when out of range. */
const struct pawl_kv_tensor *pawl_latent_kv_cache_slot(
	const struct pawl_latent_kv_cache *cache, int32_t layer, int32_t slot);
/* No reference is given; NULL when there is none or it is out of range. */
struct pawl_storage *pawl_latent_kv_cache_storage(
	const struct pawl_latent_kv_cache *cache, int32_t layer, int32_t slot);

/* One step of a version; nothing when it is out of range or has no storage. */
void pawl_latent_kv_cache_bump(struct pawl_latent_kv_cache *cache, int32_t layer, int32_t slot);

/*
 * As pawl_kv_cache_reserve, but n is taken as it is; pawl_kv_cache_fork, _is_shared, _own.  No session
 * can be bound, or rebound, to a cache that is shared.
 */
enum pawl_status pawl_latent_kv_cache_reserve(
	struct pawl_latent_kv_cache *cache, int64_t n, struct pawl_error *err);
enum pawl_status pawl_latent_kv_cache_fork(struct pawl_latent_kv_cache *cache,
	struct pawl_latent_kv_cache **out, struct pawl_error *err);
bool pawl_latent_kv_cache_is_shared(const struct pawl_latent_kv_cache *cache);
enum pawl_status pawl_latent_kv_cache_own(
	struct pawl_latent_kv_cache *cache, struct pawl_error *err);

/*
 * Drops all storages and with them the capacity; layers, slots, trailing shapes, type and location
 * stay.  New allocation id.
 */
void pawl_latent_kv_cache_clear(struct pawl_latent_kv_cache *cache);

/* As pawl_kv_cache_truncate_to, _check_room, _advance. */
void pawl_latent_kv_cache_truncate_to(struct pawl_latent_kv_cache *cache, int64_t n);
enum pawl_status pawl_latent_kv_cache_check_room(
	const struct pawl_latent_kv_cache *cache, int64_t n, struct pawl_error *err);
void pawl_latent_kv_cache_advance(struct pawl_latent_kv_cache *cache, int64_t n);

/* The cache as a source of rebinding: `which` is the slot.  The cache must outlive it. */
struct pawl_kv_rebind_source pawl_latent_kv_cache_source(struct pawl_latent_kv_cache *cache);

#endif

/*
 * A contiguous KV cache: for each layer a K and a V of shape [1, n_kv_heads, max_seq_len,
 * head_dim].
 *
 * Storages are private: they change only through the functions below, each of which mints a new
 * allocation id, so that no plan can go on with memory it no longer serves.  What lies beyond
 * cached_len is finite but means nothing.  Belongs to one thread at a time.
 *
 * Layers of shape.rings keep the last rings.positions positions instead, each at its number modulo
 * that: enough for attention with a window.  What a run writes there takes the place of what came
 * rings.positions before.
 */
#ifndef PAWL_RUNTIME_KV_CACHE_H
#define PAWL_RUNTIME_KV_CACHE_H

#include "runtime/identity.h"
#include "runtime/kv_ring.h"
#include "runtime/rebind.h"
#include "runtime/storage.h"

enum pawl_kv_slot { PAWL_KV_K, PAWL_KV_V, PAWL_N_KV_SLOTS };

/* One tensor of a cache, whatever node wrote it last. */
struct pawl_kv_layer_id {
	int32_t layer;
	enum pawl_kv_slot slot;
};

/* Who holds the newest bytes; a record for coherence between devices. */
enum pawl_authority { PAWL_AUTHORITY_HOST, PAWL_AUTHORITY_DEVICE };

struct pawl_authority_state {
	enum pawl_authority authority;
	struct pawl_location device; /* PAWL_AUTHORITY_DEVICE */
};

struct pawl_kv_tensor {
	struct pawl_storage *storage; /* NULL: none */
	uint64_t version;
	struct pawl_authority_state authority;
};

struct pawl_kv_shape {
	int32_t n_layers;
	int64_t n_kv_heads, head_dim;
	int64_t max_seq_len;   /* 0: no capacity */
	enum pawl_dtype dtype; /* f16, bf16, f32; q8_0 where head_dim is a multiple of 32 */
	enum pawl_layout layout[PAWL_N_KV_SLOTS];
	struct pawl_kv_rings rings; /* below max_seq_len */
};

struct pawl_kv_cache;
struct pawl_inference_context;

/*
 * A cache without storage, to be given layers by pawl_kv_cache_set_layer.  It fits no plan until
 * pawl_kv_cache_set_capacity has declared what its layers are.  n_layers >= 1.
 */
enum pawl_status pawl_kv_cache_with_dims(int32_t n_layers, int64_t n_kv_heads, int64_t head_dim,
	struct pawl_kv_cache **out, struct pawl_error *err);

/*
 * All storages zero-filled by one run of a graph of 2 n_layers alloc and zero_fill on the
 * context's device.  max_seq_len is rounded up to a multiple of 16.  PAWL_INVALID_ARGUMENT for a
 * size below 1, another dtype, a head_dim that is no multiple of its block, or rings that are no multiple of 16 from the window up to
 * max_seq_len; PAWL_OUT_OF_MEMORY names the bytes of the whole cache.
 */
enum pawl_status pawl_kv_cache_with_capacity(struct pawl_inference_context *context,
	const struct pawl_kv_shape *shape, struct pawl_kv_cache **out, struct pawl_error *err);

/* NULL is allowed.  Sessions that are bound keep the storages alive. */
void pawl_kv_cache_free(struct pawl_kv_cache *cache);

/* Bytes of a cache of that shape; -1 when it has none or the size overflows. */
int64_t pawl_kv_shape_bytes(const struct pawl_kv_shape *shape);
struct pawl_type pawl_kv_shape_type(
	const struct pawl_kv_shape *shape, int32_t layer, enum pawl_kv_slot slot);

const struct pawl_kv_shape *pawl_kv_cache_shape(const struct pawl_kv_cache *cache);
int64_t pawl_kv_cache_len(const struct pawl_kv_cache *cache);
struct pawl_kv_alloc_id pawl_kv_cache_alloc_id(const struct pawl_kv_cache *cache);
/* Unknown for a cache without storage and after set_layer. */
struct pawl_location pawl_kv_cache_location(const struct pawl_kv_cache *cache);
/* The PAWL_N_KV_SLOTS tensors of a layer; NULL when out of range. */
const struct pawl_kv_tensor *pawl_kv_cache_layer(const struct pawl_kv_cache *cache, int32_t layer);
/* No reference is given; NULL when there is none or the id is out of range. */
struct pawl_storage *pawl_kv_cache_storage(
	const struct pawl_kv_cache *cache, struct pawl_kv_layer_id id);

/* One step of a version; nothing when the id is out of range or has no storage. */
void pawl_kv_cache_bump(struct pawl_kv_cache *cache, struct pawl_kv_layer_id id);

/*
 * Replaces a layer (takes references; NULL: none).  New allocation id, location unknown.
 * PAWL_INVALID_ARGUMENT when layer is out of range.  A cache that is
 * shared is owned first, with the errors of pawl_kv_cache_own.
 */
enum pawl_status pawl_kv_cache_set_layer(struct pawl_kv_cache *cache, int32_t layer,
	struct pawl_storage *k, struct pawl_storage *v, struct pawl_error *err);

/*
 * Declares capacity, dtype and layouts of a cache whose layers were all given by set_layer.
 * PAWL_INVALID_ARGUMENT, naming the layer, when one is missing or has another type.
 */
enum pawl_status pawl_kv_cache_set_capacity(struct pawl_kv_cache *cache, int64_t max_seq_len,
	enum pawl_dtype dtype, enum pawl_layout k_layout, struct pawl_error *err);

/*
 * Room for n positions at least, rounded up to a multiple of 16: larger storages with the same
 * positions 0 .. cached_len - 1, bit for bit, the rest zero.  New allocation id; versions and length
 * stay.  Nothing happens where there is room.  Runs no plan.  All or nothing: PAWL_INVALID_ARGUMENT
 * for a cache without capacity and for a size that no memory has, PAWL_UNSUPPORTED when a storage is
 * not in host memory, PAWL_OUT_OF_MEMORY, which names the bytes.
 */
enum pawl_status pawl_kv_cache_reserve(
	struct pawl_kv_cache *cache, int64_t n, struct pawl_error *err);

/*
 * A cache with the same content.  Nothing is copied: both have the same storages until one of them
 * calls pawl_kv_cache_own.  Both get new allocation ids, so that no session goes on writing what is
 * no longer its alone.  The two may live in different threads and end in any order.
 * PAWL_INVALID_ARGUMENT for a cache without capacity, or whose layers are not of its shape.
 */
enum pawl_status pawl_kv_cache_fork(
	struct pawl_kv_cache *cache, struct pawl_kv_cache **out, struct pawl_error *err);
bool pawl_kv_cache_is_shared(const struct pawl_kv_cache *cache);
/*
 * Before a write: the storages become this cache's alone.  Where they are shared, they are replaced by
 * copies of the positions cached, with a new allocation id; otherwise nothing happens.  No session
 * can be bound, or rebound, to a cache that is shared.  Errors as pawl_kv_cache_reserve.
 */
enum pawl_status pawl_kv_cache_own(struct pawl_kv_cache *cache, struct pawl_error *err);

/* Drops all storages and with them the capacity.  New allocation id, location unknown. */
void pawl_kv_cache_clear(struct pawl_kv_cache *cache);

/*
 * The rollback: forgets what lies at n and beyond; an n below 0 or not below the length changes
 * nothing.  Storages and allocation id stay; versions are
 * stepped when something was cut, since the same positions will get other content.  With rings, a
 * length other than 0 and below pawl_kv_cache_least_len is one that was overwritten: all is forgotten.
 */
void pawl_kv_cache_truncate_to(struct pawl_kv_cache *cache, int64_t n);
/* The least length that a window is still whole at, 0 without rings; 0 itself is always possible. */
int64_t pawl_kv_cache_least_len(const struct pawl_kv_cache *cache);

/* That one run may write, whatever the length; INT64_MAX without rings. */
int64_t pawl_kv_cache_most_rows(const struct pawl_kv_cache *cache);
/*
 * Whether a run may write `rows` positions from the length on: PAWL_INVALID_ARGUMENT when they would
 * cover in a ring what the first of them sees.
 */
enum pawl_status pawl_kv_cache_check_rows(
	const struct pawl_kv_cache *cache, int64_t rows, struct pawl_error *err);
/* Before such a run, however many of the rows will count: records what they overwrite in rings. */
void pawl_kv_cache_note_write(struct pawl_kv_cache *cache, int64_t rows);

/* A copy of rings, freed by pawl_memory_free. */
struct pawl_kv_kept;
/*
 * Before such a run of a call that began at length `first` and that may yet fail: where the run
 * would overwrite what is seen from there, and *kept is NULL, *kept becomes a copy of all rings.
 * The cache must not be shared.  PAWL_OUT_OF_MEMORY; PAWL_UNSUPPORTED when a ring is not in host
 * memory.
 */
enum pawl_status pawl_kv_cache_keep(const struct pawl_kv_cache *cache, int64_t first, int64_t rows,
	struct pawl_kv_kept **kept, struct pawl_error *err);
/* After the failure: what was kept, whereupon the cache can be cut to that length. */
void pawl_kv_cache_put_back(struct pawl_kv_cache *cache, const struct pawl_kv_kept *kept);

/* PAWL_CAPACITY, naming both sizes, when n more do not fit.  Changes nothing. */
enum pawl_status pawl_kv_cache_check_room(
	const struct pawl_kv_cache *cache, int64_t n, struct pawl_error *err);
/* After a forward of n tokens: cached_len += n, every version one step.  There must be room. */
void pawl_kv_cache_advance(struct pawl_kv_cache *cache, int64_t n);

/* The cache as a source of rebinding; the cache must outlive it. */
struct pawl_kv_rebind_source pawl_kv_cache_source(struct pawl_kv_cache *cache);

#endif

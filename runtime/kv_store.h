/*
 * What a cache is, whatever it keeps: n_which tensors a layer, each a storage with an axis of
 * positions; a length; an allocation id; and forks, which have the same storages until one writes.
 *
 * A form says what the storages are at some capacity; the kinds of caches differ in nothing else that
 * growing, forking and saving see.
 */
#ifndef PAWL_RUNTIME_KV_STORE_H
#define PAWL_RUNTIME_KV_STORE_H

#include "runtime/inference_context.h"
#include "runtime/kv_cache.h"

struct pawl_kv_form {
	const char *what; /* "a cache" */
	const void *shape;
	struct pawl_type (*type)(const void *shape, int32_t layer, int32_t which);
	int32_t n_layers, n_which;
	int axis;                 /* of positions, in every storage */
	int64_t positions, bytes; /* of the whole cache; positions 0: no capacity */
};

/* Caches that have the same storages.  Each may be in another thread. */
struct pawl_kv_sharing {
	atomic_int n_caches;
};

struct pawl_kv_store {
	int32_t n_layers, n_which;
	struct pawl_kv_tensor *tensors;  /* [n_layers][n_which] */
	struct pawl_kv_sharing *sharing; /* NULL: never forked; else all storages are of the form */
	int64_t len;
	struct pawl_kv_alloc_id alloc_id;
	struct pawl_location location;
};

/* Without storages, of unknown location.  A failure leaves nothing to release. */
enum pawl_status pawl_kv_store_init(
	struct pawl_kv_store *store, int32_t n_layers, int32_t n_which, struct pawl_error *err);
void pawl_kv_store_release(struct pawl_kv_store *store);

/*
 * Zeroed storages of the form, by one run on the context's device.  The store has none yet; none on
 * failure.  PAWL_INVALID_ARGUMENT for types that cannot be; PAWL_OUT_OF_MEMORY names form->bytes.
 */
enum pawl_status pawl_kv_store_alloc(struct pawl_kv_store *store, const struct pawl_kv_form *form,
	struct pawl_inference_context *context, struct pawl_error *err);
/* Drops all storages and the length.  New allocation id; the location stays. */
void pawl_kv_store_clear(struct pawl_kv_store *store);
void pawl_kv_store_drop(struct pawl_kv_tensor *tensor);

/* NULL when out of range. */
struct pawl_kv_tensor *pawl_kv_store_at(
	const struct pawl_kv_store *store, int32_t layer, int32_t which);
/* One step of a version; nothing when it is out of range or has no storage. */
void pawl_kv_store_bump(struct pawl_kv_store *store, int32_t layer, int32_t which);
/* A new length is a step of every version. */
void pawl_kv_store_set_len(struct pawl_kv_store *store, int64_t len);

/* PAWL_INVALID_ARGUMENT unless there is capacity and every storage is what the form says. */
enum pawl_status pawl_kv_store_check(
	const struct pawl_kv_store *store, const struct pawl_kv_form *form, struct pawl_error *err);
/* PAWL_UNSUPPORTED unless all storages, which are there, are reachable and in one place. */
enum pawl_status pawl_kv_store_check_reachable(
	const struct pawl_kv_store *store, struct pawl_error *err);

/*
 * Moves a store of form `from` to fresh storages of `to`, which differs in capacity at most, with the
 * positions cached, in the same memory; of a storage that has fewer, all it has.  New allocation id; no longer shared.
 * All or nothing: PAWL_INVALID_ARGUMENT where `to` has no bytes, and the errors of both checks.
 */
enum pawl_status pawl_kv_store_move(struct pawl_kv_store *store, const struct pawl_kv_form *from,
	const struct pawl_kv_form *to, struct pawl_error *err);

/* fork, initialized, gets what the store has; both get new allocation ids. */
enum pawl_status pawl_kv_store_fork(struct pawl_kv_store *store, const struct pawl_kv_form *form,
	struct pawl_kv_store *fork, struct pawl_error *err);
bool pawl_kv_store_is_shared(const struct pawl_kv_store *store);
/* Whether no other store has its storages: it forgets then that they were shared. */
bool pawl_kv_store_leave(struct pawl_kv_store *store);
/* Before a write: moves a store that is shared. */
enum pawl_status pawl_kv_store_own(
	struct pawl_kv_store *store, const struct pawl_kv_form *form, struct pawl_error *err);

/* PAWL_CAPACITY, naming the sizes, when n more do not fit. */
enum pawl_status pawl_kv_store_check_room(const struct pawl_kv_store *store, int64_t capacity,
	int64_t n, struct pawl_error *err);

/* Of rebinding.  The store must outlive it. */
struct pawl_kv_rebind_source pawl_kv_store_source(struct pawl_kv_store *store);

#endif

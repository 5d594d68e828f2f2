/* What writing and reading snapshots share. */
#ifndef PAWL_RUNTIME_KV_SNAPSHOT_PARTS_H
#define PAWL_RUNTIME_KV_SNAPSHOT_PARTS_H

#include "runtime/kv_cache_parts.h"
#include "runtime/kv_layout.h"
#include "runtime/kv_snapshot.h"
#include "runtime/latent_cache_parts.h"

_Static_assert(sizeof(struct pawl_kv_snapshot_header) == 128, "the header has no gaps");
_Static_assert(sizeof(struct pawl_kv_snapshot_rings) == 152, "nor has the geometry");
_Static_assert(sizeof(struct pawl_kv_snapshot_latents) == 168, "nor has the geometry");
_Static_assert(PAWL_MAX_RANK == 5, "a slot has as many dims as the file keeps");

/* What precedes the tokens; of the geometry as much as the kind has, the rest 0. */
struct pawl_kv_snapshot_front {
	struct pawl_kv_snapshot_header header;
	union {
		struct pawl_kv_snapshot_rings rings;
		struct pawl_kv_snapshot_latents latents;
	} geometry;
};

/* Of a kind below PAWL_N_KV_SNAPSHOT_KINDS. */
int64_t pawl_kv_snapshot_geometry_bytes(uint64_t kind);
uint64_t pawl_kv_snapshot_front_checksum(const struct pawl_kv_snapshot_front *front);

/* PAWL_INVALID_ARGUMENT when the precision is none. */
enum pawl_status pawl_kv_identity_check(
	const struct pawl_kv_identity *identity, struct pawl_error *err);

/* The front of a cache under an identity, checksum included. */
struct pawl_kv_snapshot_front pawl_kv_snapshot_front_of(const struct pawl_kv_cache *cache,
	const struct pawl_kv_identity *identity, int64_t n_tokens);
struct pawl_kv_snapshot_front pawl_latent_snapshot_front_of(
	const struct pawl_latent_kv_cache *cache, const struct pawl_kv_identity *identity,
	int64_t n_tokens);

/* PAWL_INVALID_ARGUMENT, naming what differs, unless a snapshot means the same to the cache asked. */
enum pawl_status pawl_kv_snapshot_compare(const struct pawl_kv_snapshot_front *held,
	const struct pawl_kv_snapshot_front *asked, struct pawl_error *err);

/* The shape of a cache that holds a snapshot's positions, in rows, and nothing else. */
struct pawl_kv_snapshot_shape {
	struct pawl_kv_shape kv;
	struct pawl_latent_shape latents;
};

/*
 * What the content is made of: form->bytes of it, where there are positions.  False when the front is
 * that of no cache.  The form points into *shape.
 */
bool pawl_kv_snapshot_form(const struct pawl_kv_snapshot_front *front, enum pawl_dtype dtype,
	struct pawl_kv_snapshot_shape *shape, struct pawl_kv_form *form);

#endif

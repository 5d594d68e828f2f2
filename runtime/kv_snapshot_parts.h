/* What writing and reading snapshots share. */
#ifndef PAWL_RUNTIME_KV_SNAPSHOT_PARTS_H
#define PAWL_RUNTIME_KV_SNAPSHOT_PARTS_H

#include "runtime/kv_layout.h"
#include "runtime/kv_snapshot.h"

_Static_assert(sizeof(struct pawl_kv_snapshot_header) == 128, "the header has no gaps");

/* Fails unless the cache has storages of its shape in host memory. */
enum pawl_status pawl_kv_snapshot_check_cache(
	const struct pawl_kv_cache *cache, struct pawl_error *err);

/* Storage i of 2 n_layers, K and V of a layer side by side. */
struct pawl_storage *pawl_kv_snapshot_storage(const struct pawl_kv_cache *cache, int64_t i);

/* The header of a cache under an identity, checksum included. */
struct pawl_kv_snapshot_header pawl_kv_snapshot_header_of(const struct pawl_kv_cache *cache,
	const struct pawl_kv_identity *identity, int64_t n_tokens);

#endif

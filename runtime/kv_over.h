/* Caches over storages that somebody else made: a host's own memory, lent. */
#ifndef PAWL_RUNTIME_KV_OVER_H
#define PAWL_RUNTIME_KV_OVER_H

#include "runtime/latent_kv_cache.h"

/*
 * A cache of that shape on storages [n_layers][which], of which it takes references; empty,
 * whatever they hold.  It is located where they are and differs in nothing else from one that made
 * its own; growing or owning it moves it to memory of the runtime.  PAWL_INVALID_ARGUMENT, naming
 * layer and slot, for one that is missing, has another type than the shape says, is elsewhere than
 * the first, or shares memory with another; and what the constructors of the shapes refuse.
 */
enum pawl_status pawl_kv_cache_over(const struct pawl_kv_shape *shape,
	struct pawl_storage *const *storages, struct pawl_kv_cache **out, struct pawl_error *err);
enum pawl_status pawl_latent_kv_cache_over(const struct pawl_latent_shape *shape,
	struct pawl_storage *const *storages, struct pawl_latent_kv_cache **out,
	struct pawl_error *err);

#endif

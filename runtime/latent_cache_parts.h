/* What the files of a cache of latents share. */
#ifndef PAWL_RUNTIME_LATENT_CACHE_PARTS_H
#define PAWL_RUNTIME_LATENT_CACHE_PARTS_H

#include "runtime/kv_store.h"
#include "runtime/latent_kv_cache.h"

struct pawl_latent_kv_cache {
	struct pawl_kv_store store;
	struct pawl_latent_shape shape;
};

struct pawl_kv_form pawl_latent_shape_form(const struct pawl_latent_shape *shape);

/* What pawl_latent_kv_cache_with_capacity refuses. */
enum pawl_status pawl_latent_shape_check(
	const struct pawl_latent_shape *shape, struct pawl_error *err);

/* A cache of that shape, which has been checked, without storages and of unknown location. */
enum pawl_status pawl_latent_kv_cache_bare(const struct pawl_latent_shape *shape,
	struct pawl_latent_kv_cache **out, struct pawl_error *err);

#endif

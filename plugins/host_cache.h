/* What a handle of a cache is. */
#ifndef PAWL_PLUGINS_HOST_CACHE_H
#define PAWL_PLUGINS_HOST_CACHE_H

#include "plugins/host_api.h"

struct pawl_host_cache {
	struct pawl_host_object object;
	struct pawl_host_geometry geometry; /* of it as it is now */
	struct pawl_kv_cache *kv;           /* or */
	struct pawl_latent_kv_cache *latents;
};

#endif

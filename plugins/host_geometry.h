/* The kv consts of a graph as one cache, by their names and types. */
#ifndef PAWL_PLUGINS_HOST_GEOMETRY_H
#define PAWL_PLUGINS_HOST_GEOMETRY_H

#include "ir/graph.h"
#include "runtime/latent_kv_cache.h"
#include "runtime/validity.h"

enum pawl_geometry_kind { PAWL_GEOMETRY_NONE, PAWL_GEOMETRY_KV, PAWL_GEOMETRY_LATENTS };

struct pawl_host_geometry {
	enum pawl_geometry_kind kind;
	int32_t n_layers, n_which;
	struct pawl_kv_shape kv;
	struct pawl_latent_shape latents;
	struct pawl_error why; /* NONE: what no cache can be made of */
};

enum { PAWL_KV_NAME_BYTES = 32 };

void pawl_host_geometry_of(const struct pawl_graph *graph, struct pawl_host_geometry *out);
/* "cache.k.3"; returns out. */
const char *pawl_host_kv_name(const struct pawl_host_geometry *geometry, int32_t layer,
	int32_t which, char out[PAWL_KV_NAME_BYTES]);
/* Fills in what the geometry says; leaves the other fields alone. */
void pawl_host_geometry_key(const struct pawl_host_geometry *geometry, struct pawl_plan_key *key);

#endif

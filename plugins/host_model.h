/* A model whose graphs a host builds, and what its drivers share. */
#ifndef PAWL_PLUGINS_HOST_MODEL_H
#define PAWL_PLUGINS_HOST_MODEL_H

#include "plugins/host_api.h"
#include "runtime/session_set.h"

struct pawl_host_model {
	struct pawl_host_object object;
	struct pawl_model_options options; /* window_layers is in the source */
	struct pawl_host_weights *weights;
	struct pawl_model_source source;
};

/* The type of caches that a setting names, "f16" where it is NULL. */
enum pawl_status pawl_host_kv_type(
	const char *name, enum pawl_dtype *out, struct pawl_error *err);
struct pawl_run_hooks pawl_host_hooks(struct pawl_host_context *context);
/* What a driver counted in a call, added to its context's. */
void pawl_host_note(struct pawl_host_context *context, const struct pawl_counters *before,
	const struct pawl_counters *after);

#endif

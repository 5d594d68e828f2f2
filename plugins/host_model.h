/* A model whose graphs a host builds, and what its drivers share. */
#ifndef PAWL_PLUGINS_HOST_MODEL_H
#define PAWL_PLUGINS_HOST_MODEL_H

#include "plugins/host_api.h"
#include "runtime/decoder.h"
#include "runtime/paged_decoder.h"

struct pawl_host_model {
	struct pawl_host_object object;
	struct pawl_model_options options; /* window_layers is in the source */
	struct pawl_host_weights *weights;
	struct pawl_model_source source;
};

struct pawl_host_decoder {
	struct pawl_host_object object;
	struct pawl_host_model *model;
	struct pawl_decoder *decoder;
};

struct pawl_host_pool {
	struct pawl_host_object object;
	struct pawl_host_model *model;
	struct pawl_paged_decoder *decoder;
	bool is_scheduled; /* a scheduler has it */
};

/* NULL, or why a call of that name cannot be made on the pool. */
struct pawl_host_status *pawl_host_pool_check(
	const struct pawl_host_pool *pool, bool has_pointers, const char *name);

/* The type of caches that a setting names, "f16" where it is NULL. */
enum pawl_status pawl_host_kv_type(
	const char *name, enum pawl_dtype *out, struct pawl_error *err);
struct pawl_run_hooks pawl_host_hooks(struct pawl_host_context *context);

/*
 * Around a call of a driver that may run or move bytes: its memory is the host's, and what the
 * driver counted is added to its context's.
 */
struct pawl_host_call {
	struct pawl_host_context *context;
	struct pawl_inference_context *driver;
	const struct pawl_block_source *source;
	struct pawl_counters counters;
};
void pawl_host_call_begin(struct pawl_host_call *call, struct pawl_host_context *context,
	struct pawl_inference_context *driver);
struct pawl_host_status *pawl_host_call_end(
	struct pawl_host_call *call, enum pawl_status status, const struct pawl_error *err);

#endif

/*
 * Storages of a cache, made as a plan makes them: alloc and zero_fill, all by one run.  In the
 * memory of a device they are had one by one, and no plan is made.
 */
#ifndef PAWL_RUNTIME_KV_ALLOC_H
#define PAWL_RUNTIME_KV_ALLOC_H

#include "runtime/inference_context.h"

/*
 * n zeroed storages of the given static types on the context's device; out gets a reference each.
 * Nothing is kept on failure: PAWL_INVALID_ARGUMENT for types that cannot be, PAWL_OUT_OF_MEMORY.
 */
enum pawl_status pawl_kv_alloc(struct pawl_inference_context *context, int32_t n,
	const struct pawl_type *types, struct pawl_storage **out, struct pawl_error *err);

#endif

/*
 * Storages for one batched step of k sequences: for each layer a K and a V of shape [k, n_kv_heads,
 * max_seq_len, head_dim].  No cache: it has no length, identity or versions.
 */
#ifndef PAWL_RUNTIME_KV_BATCHED_H
#define PAWL_RUNTIME_KV_BATCHED_H

#include "runtime/kv_cache.h"

struct pawl_batched_kv;

/*
 * All storages zero-filled by one run on the context's device; shape is that of one sequence, its
 * max_seq_len rounded up to a multiple of 16.  PAWL_INVALID_ARGUMENT for k or a size below 1,
 * another type or a size that no memory has; PAWL_OUT_OF_MEMORY names the bytes.
 */
enum pawl_status pawl_alloc_batched_kv(struct pawl_inference_context *context, int64_t k,
	const struct pawl_kv_shape *shape, struct pawl_batched_kv **out, struct pawl_error *err);
/* NULL is allowed. */
void pawl_batched_kv_free(struct pawl_batched_kv *kv);

int64_t pawl_batched_kv_k(const struct pawl_batched_kv *kv);
/* Of one sequence. */
const struct pawl_kv_shape *pawl_batched_kv_shape(const struct pawl_batched_kv *kv);
/* No reference is given; NULL when the id is out of range. */
struct pawl_storage *pawl_batched_kv_storage(
	const struct pawl_batched_kv *kv, struct pawl_kv_layer_id id);

#endif

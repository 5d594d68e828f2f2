#include "runtime/kv_batched.h"

#include <inttypes.h>

#include "runtime/kv_alloc.h"
#include "runtime/kv_cache_parts.h"
#include "runtime/memory.h"

struct pawl_batched_kv {
	int64_t k;
	struct pawl_kv_shape shape;
	struct pawl_storage **storages; /* K and V of a layer side by side */
};

static int32_t
n_storages(const struct pawl_batched_kv *kv)
{
	return kv->shape.n_layers * PAWL_N_KV_SLOTS;
}

/* Bytes of all storages, -1 when that overflows. */
static int64_t
bytes_of(int64_t k, const struct pawl_kv_shape *shape)
{
	int64_t one = pawl_kv_shape_bytes(shape), bytes;

	return one < 0 || __builtin_mul_overflow(one, k, &bytes) ? -1 : bytes;
}

static enum pawl_status
allocate(struct pawl_batched_kv *kv, struct pawl_inference_context *context, struct pawl_error *err)
{
	struct pawl_type *types = pawl_memory_zalloc((size_t)n_storages(kv), sizeof(*types));
	enum pawl_status status;

	kv->storages =
		pawl_memory_zalloc((size_t)n_storages(kv), sizeof(struct pawl_storage *));
	if (!types || !kv->storages) {
		pawl_memory_free(types);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for %d storages",
			n_storages(kv));
	}
	for (int32_t i = 0; i < n_storages(kv); i++) {
		types[i] = pawl_kv_shape_type(&kv->shape, i / PAWL_N_KV_SLOTS,
			(enum pawl_kv_slot)(i % PAWL_N_KV_SLOTS));
		types[i].dim[0] = pawl_dim_const(kv->k);
	}
	status = pawl_kv_alloc(context, n_storages(kv), types, kv->storages, err);
	pawl_memory_free(types);
	return status;
}

enum pawl_status
pawl_alloc_batched_kv(struct pawl_inference_context *context, int64_t k,
	const struct pawl_kv_shape *shape, struct pawl_batched_kv **out, struct pawl_error *err)
{
	struct pawl_kv_shape rounded = *shape;
	struct pawl_batched_kv *kv;
	enum pawl_status status = pawl_kv_shape_check(shape, err);

	if (status)
		return status;
	rounded.max_seq_len = pawl_kv_round_positions(shape->max_seq_len);
	if (k < 1 || bytes_of(k, &rounded) < 0)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"%" PRId64 " sequences of %" PRId64 " positions: %s", k, shape->max_seq_len,
			k < 1 ? "no content" : "larger than memory can be");
	kv = pawl_memory_zalloc(1, sizeof(*kv));
	if (!kv)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for batched storages");
	kv->k = k;
	kv->shape = rounded;
	status = allocate(kv, context, err);
	if (status) {
		if (err && status == PAWL_OUT_OF_MEMORY)
			pawl_error_prefix(err,
				"batched storages of %" PRId64 " bytes (%" PRId64 " x %d layers)",
				bytes_of(k, &rounded), k, rounded.n_layers);
		if (err && status == PAWL_INVALID_ARGUMENT)
			pawl_error_prefix(err, "%" PRId64 " sequences of %" PRId64 " positions", k,
				shape->max_seq_len);
		pawl_batched_kv_free(kv);
		return status;
	}
	*out = kv;
	return PAWL_OK;
}

void
pawl_batched_kv_free(struct pawl_batched_kv *kv)
{
	if (!kv)
		return;
	for (int32_t i = 0; kv->storages && i < n_storages(kv); i++)
		pawl_storage_unref(kv->storages[i]);
	pawl_memory_free(kv->storages);
	pawl_memory_free(kv);
}

int64_t
pawl_batched_kv_k(const struct pawl_batched_kv *kv)
{
	return kv->k;
}

const struct pawl_kv_shape *
pawl_batched_kv_shape(const struct pawl_batched_kv *kv)
{
	return &kv->shape;
}

struct pawl_storage *
pawl_batched_kv_storage(const struct pawl_batched_kv *kv, struct pawl_kv_layer_id id)
{
	if (id.layer < 0 || id.layer >= kv->shape.n_layers || (int)id.slot < 0 ||
		id.slot >= PAWL_N_KV_SLOTS)
		return NULL;
	return kv->storages[id.layer * PAWL_N_KV_SLOTS + (int32_t)id.slot];
}

#include "runtime/storage.h"

#include "codegen/pack.h"

#include <inttypes.h>
#include <stdio.h>

int64_t
pawl_storage_bytes(const struct pawl_type *type)
{
	const struct pawl_dtype_info *info = pawl_dtype_info(type->dtype);
	int64_t n = 1;

	for (int i = 0; i < type->rank; i++) {
		int64_t dim = type->dim[i].base;

		if (type->dim[i].factor || dim < 0 || __builtin_mul_overflow(n, dim, &n))
			return -1;
	}
	if (pawl_type_row_length(type) % info->block || n > INT64_MAX / 4 / info->block_bytes)
		return -1;
	if (type->layout == PAWL_LAYOUT_TILE16)
		return pawl_pack_bytes(type->dtype, type->dim[0].base, type->dim[1].base);
	return pawl_dtype_bytes(type->dtype, n);
}

static enum pawl_status
storage_make(const struct pawl_type *type, struct pawl_storage **out, struct pawl_error *err)
{
	int64_t n_bytes = pawl_storage_bytes(type);
	struct pawl_storage *storage;

	if (n_bytes < 0)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a storage needs constant dims of a size that fits");
	storage = pawl_memory_zalloc(1, sizeof(*storage));
	if (!storage)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a storage");
	atomic_init(&storage->n_refs, 1);
	storage->type = *type;
	storage->n_bytes = n_bytes;
	*out = storage;
	return PAWL_OK;
}

enum pawl_status
pawl_storage_new(const struct pawl_type *type, struct pawl_storage **out, struct pawl_error *err)
{
	return pawl_storage_new_in(NULL, type, out, err);
}

enum pawl_status
pawl_storage_new_in(struct pawl_region *region, const struct pawl_type *type,
	struct pawl_storage **out, struct pawl_error *err)
{
	struct pawl_storage *storage;
	enum pawl_status status = storage_make(type, &storage, err);

	if (status)
		return status;
	status = pawl_block_init_in(region, &storage->block, storage->n_bytes, err);
	if (status) {
		pawl_memory_free(storage);
		return status;
	}
	storage->location = PAWL_LOCATION_HOST;
	storage->bytes = storage->block.bytes;
	*out = storage;
	return PAWL_OK;
}

enum pawl_status
pawl_storage_wrap(const struct pawl_type *type, struct pawl_location location, void *bytes,
	int64_t n_bytes, void (*release)(void *arg, void *bytes), void *release_arg,
	struct pawl_storage **out, struct pawl_error *err)
{
	struct pawl_storage *storage;
	enum pawl_status status = storage_make(type, &storage, err);

	if (status)
		return status;
	if (!bytes || n_bytes < storage->n_bytes) {
		status = pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"%" PRId64 " bytes given for a value of %" PRId64 " bytes",
			bytes ? n_bytes : 0, storage->n_bytes);
		pawl_memory_free(storage);
		return status;
	}
	storage->location = location;
	storage->bytes = bytes;
	storage->release = release;
	storage->release_arg = release_arg;
	*out = storage;
	return PAWL_OK;
}

struct pawl_storage *
pawl_storage_ref(struct pawl_storage *storage)
{
	atomic_fetch_add_explicit(&storage->n_refs, 1, memory_order_relaxed);
	return storage;
}

void
pawl_storage_unref(struct pawl_storage *storage)
{
	if (!storage || atomic_fetch_sub_explicit(&storage->n_refs, 1, memory_order_acq_rel) != 1)
		return;
	if (storage->release)
		storage->release(storage->release_arg, storage->bytes);
	pawl_block_release(&storage->block);
	pawl_memory_free(storage);
}

bool
pawl_storage_overlaps(const struct pawl_storage *a, const struct pawl_storage *b)
{
	uintptr_t a0 = (uintptr_t)a->bytes, b0 = (uintptr_t)b->bytes;

	return a->location.space == b->location.space && a->location.index == b->location.index &&
	       a0 < b0 + (uintptr_t)b->n_bytes && b0 < a0 + (uintptr_t)a->n_bytes;
}

bool
pawl_location_equal(struct pawl_location a, struct pawl_location b)
{
	return a.space != PAWL_MEMORY_UNKNOWN && a.space == b.space && a.index == b.index;
}

const char *
pawl_location_text(struct pawl_location location, char *out, size_t n)
{
	switch (location.space) {
	case PAWL_MEMORY_UNKNOWN:
		snprintf(out, n, "unknown");
		break;
	case PAWL_MEMORY_HOST:
		snprintf(out, n, "host");
		break;
	case PAWL_MEMORY_CUDA:
		snprintf(out, n, "cuda:%d", location.index);
		break;
	}
	return out;
}

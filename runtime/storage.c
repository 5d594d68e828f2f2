#include "runtime/storage.h"

#include "codegen/pack.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/device.h"

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

static enum pawl_status
take_from(struct pawl_storage *storage, struct pawl_device *device, struct pawl_error *err)
{
	const struct pawl_target_memory *memory = device->api->memory;
	int64_t n = storage->n_bytes ? storage->n_bytes : 1;
	enum pawl_status status = memory->alloc(device->target, n, &storage->bytes, err);

	if (status)
		return status;
	status = memory->fill(device->target, storage->bytes, 0, n, err);
	if (status) {
		memory->free(device->target, storage->bytes);
		return status;
	}
	storage->device = pawl_device_ref(device);
	storage->location = device->location;
	return PAWL_OK;
}

enum pawl_status
pawl_storage_new_on(struct pawl_device *device, struct pawl_region *region,
	const struct pawl_type *type, struct pawl_storage **out, struct pawl_error *err)
{
	struct pawl_storage *storage;
	enum pawl_status status;

	if (!device || !device->api->memory)
		return pawl_storage_new_in(region, type, out, err);
	status = storage_make(type, &storage, err);
	if (status)
		return status;
	status = take_from(storage, device, err);
	if (status) {
		pawl_memory_free(storage);
		return status;
	}
	*out = storage;
	return PAWL_OK;
}

bool
pawl_storage_is_reachable(const struct pawl_storage *storage)
{
	return storage->device || storage->location.space == PAWL_MEMORY_HOST;
}

/* What lies at an address that may be a device's. */
static enum pawl_status
copy(struct pawl_device *device, enum pawl_copy_way way, void *to, const void *from,
	const struct pawl_copy_pieces *pieces, struct pawl_error *err)
{
	if (!pieces->n || !pieces->bytes)
		return PAWL_OK;
	if (device)
		return device->api->memory->copy(device->target, way, to, from, pieces, err);
	for (int64_t i = 0; i < pieces->n; i++)
		memcpy((char *)to + i * pieces->to_pitch,
			(const char *)from + i * pieces->from_pitch, (size_t)pieces->bytes);
	return PAWL_OK;
}

enum pawl_status
pawl_storage_read(const struct pawl_storage *from, int64_t at, void *to,
	const struct pawl_copy_pieces *pieces, struct pawl_error *err)
{
	return copy(from->device, PAWL_COPY_DOWN, to, (const char *)from->bytes + at, pieces, err);
}

enum pawl_status
pawl_storage_write(struct pawl_storage *to, int64_t at, const void *from,
	const struct pawl_copy_pieces *pieces, struct pawl_error *err)
{
	return copy(to->device, PAWL_COPY_UP, (char *)to->bytes + at, from, pieces, err);
}

enum pawl_status
pawl_storage_copy(struct pawl_storage *to, int64_t to_at, const struct pawl_storage *from,
	int64_t from_at, const struct pawl_copy_pieces *pieces, struct pawl_error *err)
{
	return copy(to->device, PAWL_COPY_WITHIN, (char *)to->bytes + to_at,
		(const char *)from->bytes + from_at, pieces, err);
}

enum pawl_status
pawl_storage_read_all(const struct pawl_storage *from, void *to, struct pawl_error *err)
{
	const struct pawl_copy_pieces all = {.n = 1, .bytes = from->n_bytes};

	return pawl_storage_read(from, 0, to, &all, err);
}

enum pawl_status
pawl_storage_write_all(struct pawl_storage *to, const void *from, struct pawl_error *err)
{
	const struct pawl_copy_pieces all = {.n = 1, .bytes = to->n_bytes};

	return pawl_storage_write(to, 0, from, &all, err);
}

enum pawl_status
pawl_storage_settle(struct pawl_storage *storage, struct pawl_device *device,
	struct pawl_storage **out, struct pawl_error *err)
{
	struct pawl_storage *copied;
	enum pawl_status status;

	if (!device->api->memory) {
		*out = storage;
		return PAWL_OK;
	}
	status = pawl_storage_new_on(device, NULL, &storage->type, &copied, err);
	if (!status) {
		status = pawl_storage_write_all(copied, storage->bytes, err);
		if (status)
			pawl_storage_unref(copied);
		else
			*out = copied;
	}
	pawl_storage_unref(storage);
	return status;
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
	if (storage->device)
		storage->device->api->memory->free(storage->device->target, storage->bytes);
	pawl_device_unref(storage->device);
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

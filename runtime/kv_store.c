#include "runtime/kv_store.h"

#include <inttypes.h>

#include "ir/each_token.h"
#include "runtime/kv_alloc.h"
#include "runtime/kv_layout.h"
#include "runtime/memory.h"

enum pawl_status
pawl_kv_store_init(
	struct pawl_kv_store *store, int32_t n_layers, int32_t n_which, struct pawl_error *err)
{
	*store = (struct pawl_kv_store){.n_layers = n_layers,
		.n_which = n_which,
		.alloc_id = pawl_kv_alloc_id_new(),
		.location = PAWL_LOCATION_UNKNOWN};
	if (n_layers > INT32_MAX / n_which)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a cache of %d layers is larger than memory can be", n_layers);
	store->tensors = pawl_memory_zalloc(
		(size_t)n_layers * (size_t)n_which, sizeof(*store->tensors));
	return store->tensors ? PAWL_OK
			      : pawl_fail(err, PAWL_OUT_OF_MEMORY,
					"no memory for a cache of %d layers", n_layers);
}

void
pawl_kv_store_drop(struct pawl_kv_tensor *tensor)
{
	pawl_storage_unref(tensor->storage);
	*tensor = (struct pawl_kv_tensor){0};
}

static int32_t
n_tensors(const struct pawl_kv_store *store)
{
	return store->n_layers * store->n_which;
}

static void
leave(struct pawl_kv_store *store)
{
	struct pawl_kv_sharing *sharing = store->sharing;

	store->sharing = NULL;
	if (sharing &&
		atomic_fetch_sub_explicit(&sharing->n_caches, 1, memory_order_acq_rel) == 1)
		pawl_memory_free(sharing);
}

void
pawl_kv_store_clear(struct pawl_kv_store *store)
{
	for (int32_t i = 0; i < n_tensors(store); i++)
		pawl_kv_store_drop(&store->tensors[i]);
	leave(store);
	store->len = 0;
	store->alloc_id = pawl_kv_alloc_id_new();
}

void
pawl_kv_store_release(struct pawl_kv_store *store)
{
	pawl_kv_store_clear(store);
	pawl_memory_free(store->tensors);
}

/* What could not be made. */
static enum pawl_status
name_size(const struct pawl_kv_form *form, enum pawl_status status, struct pawl_error *err)
{
	if (err && status == PAWL_OUT_OF_MEMORY)
		pawl_error_prefix(err, "%s of %" PRId64 " bytes (%d layers, %" PRId64 " positions)",
			form->what, form->bytes, form->n_layers, form->positions);
	if (err && status == PAWL_INVALID_ARGUMENT)
		pawl_error_prefix(err, "%s of %" PRId64 " positions", form->what, form->positions);
	return status;
}

enum pawl_status
pawl_kv_store_alloc(struct pawl_kv_store *store, const struct pawl_kv_form *form,
	struct pawl_inference_context *context, struct pawl_error *err)
{
	int32_t n = n_tensors(store);
	struct pawl_type *types = pawl_memory_zalloc((size_t)n, sizeof(*types));
	struct pawl_storage **storages =
		pawl_memory_zalloc((size_t)n, sizeof(struct pawl_storage *));
	enum pawl_status status;

	for (int32_t i = 0; types && i < n; i++)
		types[i] = form->type(form->shape, i / form->n_which, i % form->n_which);
	if (!types || !storages)
		status = pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for %d storages", n);
	else
		status = pawl_kv_alloc(context, n, types, storages, err);
	for (int32_t i = 0; i < n && !status; i++)
		store->tensors[i].storage = storages[i];
	if (!status)
		store->location = pawl_inference_context_device(context)->location;
	pawl_memory_free(storages);
	pawl_memory_free(types);
	return name_size(form, status, err);
}

struct pawl_kv_tensor *
pawl_kv_store_at(const struct pawl_kv_store *store, int32_t layer, int32_t which)
{
	if (layer < 0 || layer >= store->n_layers || which < 0 || which >= store->n_which)
		return NULL;
	return &store->tensors[layer * store->n_which + which];
}

void
pawl_kv_store_bump(struct pawl_kv_store *store, int32_t layer, int32_t which)
{
	struct pawl_kv_tensor *tensor = pawl_kv_store_at(store, layer, which);

	if (tensor && tensor->storage)
		tensor->version++;
}

PAWL_EACH_TOKEN void
pawl_kv_store_set_len(struct pawl_kv_store *store, int64_t len)
{
	struct pawl_kv_tensor *end = store->tensors + n_tensors(store);

	store->len = len;
	for (struct pawl_kv_tensor *tensor = store->tensors; tensor < end; tensor++)
		tensor->version += tensor->storage != NULL;
}

enum pawl_status
pawl_kv_store_check(
	const struct pawl_kv_store *store, const struct pawl_kv_form *form, struct pawl_error *err)
{
	if (!form->positions)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "the cache has no capacity");
	for (int32_t i = 0; i < n_tensors(store); i++) {
		int32_t layer = i / store->n_which, which = i % store->n_which;
		const struct pawl_storage *storage = store->tensors[i].storage;
		const struct pawl_type type = form->type(form->shape, layer, which);

		if (!storage || !pawl_type_equal(&storage->type, &type))
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"layer %d slot %d is not of the shape of its cache", layer, which);
	}
	return PAWL_OK;
}

enum pawl_status
pawl_kv_store_check_reachable(const struct pawl_kv_store *store, struct pawl_error *err)
{
	const struct pawl_storage *first = store->tensors[0].storage;
	char there[32], here[32];

	for (int32_t i = 0; i < n_tensors(store); i++) {
		const struct pawl_storage *storage = store->tensors[i].storage;

		if (!pawl_storage_is_reachable(storage))
			return pawl_fail(err, PAWL_UNSUPPORTED,
				"layer %d slot %d is not in host memory", i / store->n_which,
				i % store->n_which);
		if (!pawl_location_equal(storage->location, first->location))
			return pawl_fail(err, PAWL_UNSUPPORTED,
				"layer %d slot %d is on %s, others on %s", i / store->n_which,
				i % store->n_which,
				pawl_location_text(storage->location, there, sizeof(there)),
				pawl_location_text(first->location, here, sizeof(here)));
	}
	return PAWL_OK;
}

/* A storage of that type with the first n positions of `from`, or all it has. */
static enum pawl_status
copy(struct pawl_region *region, const struct pawl_type *type, int axis,
	const struct pawl_storage *from, int64_t n, struct pawl_storage **out,
	struct pawl_error *err)
{
	const struct pawl_kv_planes to_planes = pawl_kv_planes_of(type, axis),
				    from_planes = pawl_kv_planes_of(&from->type, axis);
	enum pawl_status status = pawl_storage_new_on(from->device, region, type, out, err);

	if (status)
		return status;
	status = pawl_kv_copy_positions(&to_planes, *out, &from_planes, from,
		n < from_planes.positions ? n : from_planes.positions, err);
	if (status) {
		pawl_storage_unref(*out);
		*out = NULL;
	}
	return status;
}

/* n storages of a form in place of those of the store. */
static enum pawl_status
copy_all(const struct pawl_kv_store *store, const struct pawl_kv_form *form,
	struct pawl_storage **storages, struct pawl_error *err)
{
	struct pawl_region region = {NULL};
	struct pawl_region *where = form->bytes >= PAWL_REGION_FROM ? &region : NULL;
	enum pawl_status status = PAWL_OK;
	int32_t n = n_tensors(store);

	for (int32_t i = 0; i < n && !status; i++) {
		const struct pawl_type type =
			form->type(form->shape, i / form->n_which, i % form->n_which);

		status = copy(where, &type, form->axis, store->tensors[i].storage, store->len,
			&storages[i], err);
	}
	for (int32_t i = 0; i < n && status; i++)
		pawl_storage_unref(storages[i]);
	pawl_region_release(&region);
	return status;
}

enum pawl_status
pawl_kv_store_move(struct pawl_kv_store *store, const struct pawl_kv_form *from,
	const struct pawl_kv_form *to, struct pawl_error *err)
{
	struct pawl_storage **storages;
	enum pawl_status status = pawl_kv_store_check(store, from, err);

	if (!status && to->bytes < 0)
		status = pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"%s of %" PRId64 " positions is larger than memory can be", to->what,
			to->positions);
	if (!status)
		status = pawl_kv_store_check_reachable(store, err);
	if (status)
		return status;
	storages = pawl_memory_zalloc((size_t)n_tensors(store), sizeof(struct pawl_storage *));
	if (!storages)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory to copy a cache");
	status = copy_all(store, to, storages, err);
	for (int32_t i = 0; i < n_tensors(store) && !status; i++) {
		pawl_storage_unref(store->tensors[i].storage);
		store->tensors[i].storage = storages[i];
	}
	pawl_memory_free(storages);
	if (status)
		return name_size(to, status, err);
	leave(store);
	store->alloc_id = pawl_kv_alloc_id_new();
	store->location = store->tensors[0].storage->location;
	return PAWL_OK;
}

static enum pawl_status
share(struct pawl_kv_store *store, struct pawl_error *err)
{
	if (store->sharing)
		return PAWL_OK;
	store->sharing = pawl_memory_zalloc(1, sizeof(*store->sharing));
	if (!store->sharing)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory to fork a cache");
	atomic_init(&store->sharing->n_caches, 1);
	return PAWL_OK;
}

enum pawl_status
pawl_kv_store_fork(struct pawl_kv_store *store, const struct pawl_kv_form *form,
	struct pawl_kv_store *fork, struct pawl_error *err)
{
	enum pawl_status status = pawl_kv_store_check(store, form, err);

	if (!status)
		status = share(store, err);
	if (status)
		return status;
	atomic_fetch_add_explicit(&store->sharing->n_caches, 1, memory_order_relaxed);
	fork->sharing = store->sharing;
	fork->len = store->len;
	fork->location = store->location;
	for (int32_t i = 0; i < n_tensors(store); i++) {
		fork->tensors[i] = store->tensors[i];
		pawl_storage_ref(fork->tensors[i].storage);
	}
	store->alloc_id = pawl_kv_alloc_id_new();
	return PAWL_OK;
}

PAWL_EACH_TOKEN bool
pawl_kv_store_is_shared(const struct pawl_kv_store *store)
{
	return store->sharing &&
	       atomic_load_explicit(&store->sharing->n_caches, memory_order_acquire) > 1;
}

PAWL_EACH_TOKEN bool
pawl_kv_store_leave(struct pawl_kv_store *store)
{
	if (pawl_kv_store_is_shared(store))
		return false;
	leave(store);
	return true;
}

enum pawl_status
pawl_kv_store_own(
	struct pawl_kv_store *store, const struct pawl_kv_form *form, struct pawl_error *err)
{
	return pawl_kv_store_leave(store) ? PAWL_OK : pawl_kv_store_move(store, form, form, err);
}

PAWL_EACH_TOKEN enum pawl_status
pawl_kv_store_check_room(
	const struct pawl_kv_store *store, int64_t capacity, int64_t n, struct pawl_error *err)
{
	if (n < 0 || n > capacity - store->len)
		return pawl_fail(err, PAWL_CAPACITY,
			"%" PRId64 " more positions do not fit: %" PRId64 " of %" PRId64
			" are in use",
			n, store->len, capacity);
	return PAWL_OK;
}

PAWL_EACH_TOKEN static struct pawl_kv_alloc_id
source_alloc_id(void *ctx)
{
	return ((const struct pawl_kv_store *)ctx)->alloc_id;
}

static struct pawl_location
source_location(void *ctx)
{
	return ((const struct pawl_kv_store *)ctx)->location;
}

static struct pawl_storage *
source_slot(void *ctx, int32_t layer, int which)
{
	const struct pawl_kv_tensor *tensor = pawl_kv_store_at(ctx, layer, which);

	return tensor ? tensor->storage : NULL;
}

static bool
source_is_shared(void *ctx)
{
	return pawl_kv_store_is_shared(ctx);
}

/* A storage from elsewhere makes the location unknown, and only a whole new set makes it known. */
static bool
source_is_disjoint(void *ctx)
{
	return source_location(ctx).space != PAWL_MEMORY_UNKNOWN;
}

PAWL_EACH_TOKEN struct pawl_kv_rebind_source
pawl_kv_store_source(struct pawl_kv_store *store)
{
	return (struct pawl_kv_rebind_source){store, source_alloc_id, source_location, source_slot,
		source_is_shared, source_is_disjoint};
}

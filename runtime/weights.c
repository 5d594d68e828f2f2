#include "runtime/weights.h"

#include "codegen/pack.h"
#include "runtime/pool.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { STRIPE_BYTES = 1 << 20 };

struct entry {
	char *name;
	struct pawl_storage *storage;
	struct entry *next;
};

struct pawl_weights {
	atomic_int n_refs;
	struct pawl_model_instance_id id;
	struct pawl_weight_source source;
	pthread_mutex_t lock; /* of what follows */
	struct pawl_region region;
	struct entry *entries;
	int64_t packed_bytes;
};

enum pawl_status
pawl_weights_new(
	const struct pawl_weight_source *source, struct pawl_weights **out, struct pawl_error *err)
{
	struct pawl_weights *weights = pawl_memory_zalloc(1, sizeof(*weights));

	if (!weights)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for weights");
	atomic_init(&weights->n_refs, 1);
	weights->id = pawl_model_instance_id_new();
	weights->source = *source;
	pthread_mutex_init(&weights->lock, NULL);
	*out = weights;
	return PAWL_OK;
}

struct pawl_weights *
pawl_weights_ref(struct pawl_weights *weights)
{
	atomic_fetch_add_explicit(&weights->n_refs, 1, memory_order_relaxed);
	return weights;
}

void
pawl_weights_unref(struct pawl_weights *weights)
{
	if (!weights || atomic_fetch_sub_explicit(&weights->n_refs, 1, memory_order_acq_rel) != 1)
		return;
	for (struct entry *entry = weights->entries; entry;) {
		struct entry *next = entry->next;

		pawl_storage_unref(entry->storage);
		pawl_memory_free(entry->name);
		pawl_memory_free(entry);
		entry = next;
	}
	pawl_region_release(&weights->region);
	pthread_mutex_destroy(&weights->lock);
	pawl_memory_free(weights);
}

struct pawl_model_instance_id
pawl_weights_id(const struct pawl_weights *weights)
{
	return weights->id;
}

int64_t
pawl_weights_packed_bytes(struct pawl_weights *weights)
{
	int64_t bytes;

	pthread_mutex_lock(&weights->lock);
	bytes = weights->packed_bytes;
	pthread_mutex_unlock(&weights->lock);
	return bytes;
}

/* Tiles [first, end) of a matrix. */
struct packing {
	const struct pawl_type *type;
	const void *rows;
	void *dest;
	int64_t first, end;
};

static void
pack_part(void *arg, int thread, int n_threads)
{
	const struct packing *packing = arg;
	int64_t n = packing->type->dim[0].base, k = packing->type->dim[1].base, first, last;

	pawl_pool_range(packing->end - packing->first, thread, n_threads, &first, &last);
	pawl_pack_tiles(packing->type->dtype, n, k, packing->rows, packing->dest,
		packing->first + first, packing->first + last);
}

/*
 * A stripe of the source at a time, which may then go: packing holds two copies of
 * a stripe, not of the matrix.  source may be NULL.
 */
static void
pack_stripes(
	struct packing *packing, struct pawl_team *team, const struct pawl_weight_source *source)
{
	int64_t n = packing->type->dim[0].base, k = packing->type->dim[1].base;
	int64_t n_tiles = (n + PAWL_TILE_ROWS - 1) / PAWL_TILE_ROWS;
	int64_t tile_bytes = PAWL_TILE_ROWS * pawl_dtype_bytes(packing->type->dtype, k);
	int64_t stripe = STRIPE_BYTES / tile_bytes + 1, at, bytes;

	for (at = 0; at < n_tiles; at += stripe) {
		packing->first = at;
		packing->end = at + stripe < n_tiles ? at + stripe : n_tiles;
		if (team) {
			team->work = NULL;
			team->run(team, pack_part, packing);
		} else {
			pack_part(packing, 0, 1);
		}
		bytes = packing->end < n_tiles ? stripe * tile_bytes :
			pawl_dtype_bytes(packing->type->dtype, n * k) - at * tile_bytes;
		if (source && source->drop)
			source->drop(source->ctx, (const char *)packing->rows + at * tile_bytes, bytes);
	}
}

/* region and source may be NULL. */
static enum pawl_status
pack(const struct pawl_storage *rows, const struct pawl_type *type, struct pawl_team *team,
	struct pawl_region *region, const struct pawl_weight_source *source,
	struct pawl_storage **out, struct pawl_error *err)
{
	struct packing packing = {.type = type, .rows = rows->bytes};
	enum pawl_status status;

	if (type->layout != PAWL_LAYOUT_TILE16 || type->rank != 2 ||
		rows->type.layout != PAWL_LAYOUT_ROWS || rows->type.dtype != type->dtype ||
		!pawl_type_same_dims(&rows->type, type) || pawl_storage_bytes(type) < 0)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "%s cannot be packed as %s",
			pawl_dtype_name(rows->type.dtype), pawl_layout_name(type->layout));
	status = pawl_storage_new_in(region, type, out, err);
	if (status)
		return status;
	packing.dest = (*out)->bytes;
	pack_stripes(&packing, team, source);
	return PAWL_OK;
}

enum pawl_status
pawl_storage_pack(const struct pawl_storage *rows, const struct pawl_type *type,
	struct pawl_team *team, struct pawl_region *region, struct pawl_storage **out,
	struct pawl_error *err)
{
	return pack(rows, type, team, region, NULL, out, err);
}

static void
dims_text(char *out, size_t n, const struct pawl_type *type)
{
	size_t at = 0;

	*out = '\0';
	for (int i = 0; i < type->rank && at < n; i++)
		at += (size_t)snprintf(
			out + at, n - at, "%s%" PRId64, i ? ", " : "", type->dim[i].base);
}

/* The weight as its source has it, borrowed. */
static enum pawl_status
borrow(struct pawl_weights *weights, const char *name, const struct pawl_type *wanted,
	struct pawl_storage **out, struct pawl_error *err)
{
	char have[128], want[128];
	struct pawl_weight weight = {0};
	struct pawl_type type;
	enum pawl_status status = weights->source.find(weights->source.ctx, name, &weight, err);

	if (status)
		return status;
	type = pawl_type_make(weight.dtype, weight.rank, weight.dim);
	if (type.dtype != wanted->dtype || !pawl_type_same_dims(&type, wanted)) {
		dims_text(have, sizeof(have), &type);
		dims_text(want, sizeof(want), wanted);
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"weight %s is %s [%s], the graph wants %s [%s]", name,
			pawl_dtype_name(type.dtype), have, pawl_dtype_name(wanted->dtype), want);
	}
	/* A plan only reads weights; storage has no const bytes since caches share the type. */
	status = pawl_storage_wrap(&type, PAWL_LOCATION_HOST, (void *)(uintptr_t)weight.bytes,
		weight.n_bytes, NULL, NULL, out, err);
	if (status && err)
		pawl_error_prefix(err, "weight %s", name);
	return status;
}

/*
 * A copy in place of a borrowed vector, which may then go: its few KiB are cheaper held than the
 * pages of the source that the kernel maps around them.
 */
static enum pawl_status
own(struct pawl_weights *weights, struct pawl_storage *rows, struct pawl_storage **out,
	struct pawl_error *err)
{
	const struct pawl_weight_source *source = &weights->source;
	enum pawl_status status = pawl_storage_new_in(&weights->region, &rows->type, out, err);

	if (status)
		return status;
	memcpy((*out)->bytes, rows->bytes, (size_t)rows->n_bytes);
	if (source->drop)
		source->drop(source->ctx, rows->bytes, rows->n_bytes);
	return PAWL_OK;
}

static enum pawl_status
make(struct pawl_weights *weights, const char *name, const struct pawl_type *type,
	struct pawl_team *team, struct pawl_storage **out, struct pawl_error *err)
{
	struct pawl_storage *rows;
	enum pawl_status status = borrow(weights, name, type, &rows, err);

	if (status)
		return status;
	if (type->layout == PAWL_LAYOUT_ROWS && type->rank != 1) {
		*out = rows;
		return PAWL_OK;
	}
	if (type->layout == PAWL_LAYOUT_ROWS)
		status = own(weights, rows, out, err);
	else
		status = pack(rows, type, team, &weights->region, &weights->source, out, err);
	if (!status && type->layout != PAWL_LAYOUT_ROWS)
		weights->packed_bytes += (*out)->n_bytes;
	if (status && err)
		pawl_error_prefix(err, "weight %s", name);
	pawl_storage_unref(rows);
	return status;
}

/* As make, but in the memory of a device: the source's pages may go, whatever the form. */
static enum pawl_status
make_on(struct pawl_weights *weights, struct pawl_device *device, const char *name,
	const struct pawl_type *type, struct pawl_team *team, struct pawl_storage **out,
	struct pawl_error *err)
{
	const struct pawl_weight_source *source = &weights->source;
	struct pawl_storage *rows, *host;
	enum pawl_status status = borrow(weights, name, type, &rows, err);

	if (status)
		return status;
	if (type->layout == PAWL_LAYOUT_ROWS)
		host = pawl_storage_ref(rows);
	else
		status = pack(rows, type, team, NULL, source, &host, err);
	if (!status)
		status = pawl_storage_settle(host, device, out, err);
	if (!status && type->layout == PAWL_LAYOUT_ROWS && source->drop)
		source->drop(source->ctx, rows->bytes, rows->n_bytes);
	if (!status && type->layout != PAWL_LAYOUT_ROWS)
		weights->packed_bytes += (*out)->n_bytes;
	if (status && err)
		pawl_error_prefix(err, "weight %s", name);
	pawl_storage_unref(rows);
	return status;
}

enum pawl_status
pawl_weights_bind(struct pawl_weights *weights, const char *name, const struct pawl_type *type,
	struct pawl_team *team, struct pawl_storage **out, struct pawl_error *err)
{
	return pawl_weights_bind_on(weights, NULL, name, type, team, out, err);
}

enum pawl_status
pawl_weights_bind_on(struct pawl_weights *weights, struct pawl_device *device, const char *name,
	const struct pawl_type *type, struct pawl_team *team, struct pawl_storage **out,
	struct pawl_error *err)
{
	bool is_host = !device || !device->api->memory;
	struct pawl_location location = is_host ? PAWL_LOCATION_HOST : device->location;
	enum pawl_status status = PAWL_OK;
	struct entry *entry;

	pthread_mutex_lock(&weights->lock);
	for (entry = weights->entries; entry; entry = entry->next)
		if (pawl_type_equal(&entry->storage->type, type) && !strcmp(entry->name, name) &&
			pawl_location_equal(entry->storage->location, location))
			break;
	if (!entry) {
		entry = pawl_memory_zalloc(1, sizeof(*entry));
		if (entry)
			entry->name = pawl_memory_strdup(name);
		if (!entry || !entry->name)
			status = pawl_fail(
				err, PAWL_OUT_OF_MEMORY, "no memory for weight %s", name);
		else if (is_host)
			status = make(weights, name, type, team, &entry->storage, err);
		else
			status = make_on(
				weights, device, name, type, team, &entry->storage, err);
		if (status) {
			if (entry)
				pawl_memory_free(entry->name);
			pawl_memory_free(entry);
			goto done;
		}
		entry->next = weights->entries;
		weights->entries = entry;
	}
	*out = pawl_storage_ref(entry->storage);
done:
	pthread_mutex_unlock(&weights->lock);
	return status;
}

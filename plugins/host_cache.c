#include <stdlib.h>
#include <string.h>

#include "plugins/host_api.h"
#include "plugins/host_cache.h"
#include "runtime/inference_context.h"
#include "runtime/kv_over.h"

enum { CACHE_OPTIONS_1 = 32, ALIGNMENT = 64 };

_Static_assert(sizeof(struct pawl_cache_options) >= CACHE_OPTIONS_1, "structs only grow");

/* Whom to tell that lent memory is no longer used; ends with the last storage on it. */
struct lender {
	atomic_llong n_storages;
	void (*returned)(void *user, void *bytes);
	void *user;
};

static void
give_back(void *arg, void *bytes)
{
	struct lender *lender = arg;

	if (lender->returned)
		lender->returned(lender->user, bytes);
	if (atomic_fetch_sub(&lender->n_storages, 1) == 1)
		free(lender);
}

static int32_t
n_tensors(const struct pawl_host_geometry *geometry)
{
	return geometry->n_layers * geometry->n_which;
}

static struct pawl_type
type_of(const struct pawl_host_geometry *g, int32_t i)
{
	return g->kind == PAWL_GEOMETRY_KV ? pawl_kv_shape_type(&g->kv, i / g->n_which,
						     (enum pawl_kv_slot)(i % g->n_which))
					   : pawl_latent_shape_type(&g->latents, i % g->n_which);
}

/* A storage on memory of the host for tensor i. */
static enum pawl_status
borrow(const struct pawl_host_geometry *g, int32_t i, const struct pawl_cache_options *options,
	struct lender *lender, struct pawl_storage **out, struct pawl_error *err)
{
	const struct pawl_type type = type_of(g, i);
	int64_t n_bytes = pawl_storage_bytes(&type);
	char name[PAWL_KV_NAME_BYTES];
	enum pawl_status status;
	void *bytes;

	pawl_host_kv_name(g, i / g->n_which, i % g->n_which, name);
	bytes = options->memory(options->user, name, (size_t)n_bytes);
	if (!bytes)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY,
			"cache_create: the host has no %lld bytes for %s", (long long)n_bytes,
			name);
	atomic_fetch_add(&lender->n_storages, 1);
	if ((uintptr_t)bytes % ALIGNMENT)
		status = pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"cache_create: the memory of %s is not aligned to %d bytes", name,
			ALIGNMENT);
	else
		status = pawl_storage_wrap(
			&type, PAWL_LOCATION_HOST, bytes, n_bytes, give_back, lender, out, err);
	if (status)
		give_back(lender, bytes);
	return status;
}

static enum pawl_status
make_over(const struct pawl_host_geometry *g, struct pawl_storage *const *storages,
	struct pawl_host_cache *cache, struct pawl_error *err)
{
	if (g->kind == PAWL_GEOMETRY_KV)
		return pawl_kv_cache_over(&g->kv, storages, &cache->kv, err);
	return pawl_latent_kv_cache_over(&g->latents, storages, &cache->latents, err);
}

static enum pawl_status
make_lent(const struct pawl_host_geometry *g, const struct pawl_cache_options *options,
	struct pawl_host_cache *cache, struct pawl_error *err)
{
	const struct pawl_device *device = cache->object.context->device;
	int32_t n = n_tensors(g);
	struct pawl_storage **storages;
	struct lender *lender;
	enum pawl_status status = PAWL_OK;

	if (device->location.space != PAWL_MEMORY_HOST)
		return pawl_fail(err, PAWL_UNSUPPORTED,
			"cache_create: target %s has memory of its own", device->api->name);
	storages = calloc((size_t)n, sizeof(struct pawl_storage *));
	lender = calloc(1, sizeof(*lender));
	if (!storages || !lender) {
		free(storages);
		free(lender);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a cache");
	}
	/* One for this function, so that it is there until the last storage. */
	*lender = (struct lender){1, options->returned, options->user};
	for (int32_t i = 0; i < n && !status; i++)
		status = borrow(g, i, options, lender, &storages[i], err);
	if (!status)
		status = make_over(g, storages, cache, err);
	for (int32_t i = 0; i < n; i++)
		pawl_storage_unref(storages[i]);
	free(storages);
	if (atomic_fetch_sub(&lender->n_storages, 1) == 1)
		free(lender);
	return status;
}

static enum pawl_status
make_own(const struct pawl_host_geometry *g, struct pawl_host_cache *cache, struct pawl_error *err)
{
	struct pawl_host_context *context = cache->object.context;
	struct pawl_inference_context *inference;
	enum pawl_status status = pawl_inference_context_new(context->device, 1, &inference, err);

	if (status)
		return status;
	if (g->kind == PAWL_GEOMETRY_KV)
		status = pawl_kv_cache_with_capacity(inference, &g->kv, &cache->kv, err);
	else
		status = pawl_latent_kv_cache_with_capacity(
			inference, &g->latents, &cache->latents, err);
	pawl_inference_context_free(inference);
	return status;
}

static void
cache_free(struct pawl_host_cache *cache)
{
	pawl_kv_cache_free(cache->kv);
	pawl_latent_kv_cache_free(cache->latents);
	pawl_host_object_free(cache);
}

struct pawl_host_status *
pawl_host_cache_create(struct pawl_host_plan *plan, const struct pawl_cache_options *options,
	struct pawl_host_cache **out)
{
	struct pawl_cache_options known = {0};
	const struct pawl_block_source *before;
	struct pawl_host_cache *cache;
	enum pawl_status status;
	struct pawl_error err;

	if (!pawl_host_is(plan, PAWL_HOST_PLAN) || !out)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "cache_create: no plan or a pointer is NULL");
	if (options && !pawl_host_read(&known, sizeof(known), CACHE_OPTIONS_1, options))
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "cache_create: struct_size of the options is wrong");
	if (plan->geometry.kind == PAWL_GEOMETRY_NONE)
		return pawl_host_refuse(
			PAWL_UNSUPPORTED, "cache_create: %s", plan->geometry.why.text);
	cache = pawl_host_object_new(PAWL_HOST_CACHE, plan->object.context, sizeof(*cache));
	if (!cache)
		return pawl_host_refuse(PAWL_OUT_OF_MEMORY, "no memory for a cache");
	before = pawl_host_enter(cache->object.context);
	status = known.memory ? make_lent(&plan->geometry, &known, cache, &err)
			      : make_own(&plan->geometry, cache, &err);
	pawl_host_leave(before);
	cache->geometry = plan->geometry;
	if (status)
		cache_free(cache);
	else
		*out = cache;
	return pawl_host_status(status, &err);
}

void
pawl_host_cache_release(struct pawl_host_cache *cache)
{
	if (pawl_host_drop(cache, PAWL_HOST_CACHE))
		cache_free(cache);
}

struct pawl_kv_rebind_source
pawl_host_cache_source(struct pawl_host_cache *cache)
{
	return cache->kv ? pawl_kv_cache_source(cache->kv)
			 : pawl_latent_kv_cache_source(cache->latents);
}

/* After the shape may have changed. */
static void
note_shape(struct pawl_host_cache *cache)
{
	if (cache->kv)
		cache->geometry.kv = *pawl_kv_cache_shape(cache->kv);
	else
		cache->geometry.latents = *pawl_latent_kv_cache_shape(cache->latents);
}

enum pawl_status
pawl_host_cache_own(struct pawl_host_cache *cache, struct pawl_error *err)
{
	return cache->kv ? pawl_kv_cache_own(cache->kv, err)
			 : pawl_latent_kv_cache_own(cache->latents, err);
}

enum pawl_status
pawl_host_cache_before_run(struct pawl_host_cache *cache, int64_t n, struct pawl_error *err)
{
	enum pawl_status status;

	if (cache->latents)
		return pawl_latent_kv_cache_check_room(cache->latents, n, err);
	status = pawl_kv_cache_check_room(cache->kv, n, err);
	if (!status)
		status = pawl_kv_cache_check_rows(cache->kv, n, err);
	if (!status)
		pawl_kv_cache_note_write(cache->kv, n);
	return status;
}

void
pawl_host_cache_advance(struct pawl_host_cache *cache, int64_t n)
{
	if (cache->kv)
		pawl_kv_cache_advance(cache->kv, n);
	else
		pawl_latent_kv_cache_advance(cache->latents, n);
}

int64_t
pawl_host_cache_len(const struct pawl_host_cache *cache)
{
	if (!pawl_host_is(cache, PAWL_HOST_CACHE))
		return 0;
	return cache->kv ? pawl_kv_cache_len(cache->kv) : pawl_latent_kv_cache_len(cache->latents);
}

int64_t
pawl_host_cache_capacity(const struct pawl_host_cache *cache)
{
	if (!pawl_host_is(cache, PAWL_HOST_CACHE))
		return 0;
	return cache->kv ? cache->geometry.kv.max_seq_len : cache->geometry.latents.max_seq_len;
}

struct pawl_host_status *
pawl_host_cache_set_len(struct pawl_host_cache *cache, int64_t n, int64_t *len)
{
	int64_t now = pawl_host_cache_len(cache);
	enum pawl_status status = PAWL_OK;
	struct pawl_error err;

	if (!pawl_host_is(cache, PAWL_HOST_CACHE) || n < 0)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"cache_set_len: no cache, or a length of %lld", (long long)n);
	if (n < now && cache->kv)
		pawl_kv_cache_truncate_to(cache->kv, n);
	else if (n < now)
		pawl_latent_kv_cache_truncate_to(cache->latents, n);
	else if (n > now)
		status = pawl_host_cache_before_run(cache, n - now, &err);
	if (!status && n > now)
		pawl_host_cache_advance(cache, n - now);
	if (!status && len)
		*len = pawl_host_cache_len(cache);
	return pawl_host_status(status, &err);
}

struct pawl_host_status *
pawl_host_cache_memory(
	struct pawl_host_cache *cache, const char *name, void **bytes, size_t *n_bytes)
{
	struct pawl_kv_rebind_source source;
	const struct pawl_block_source *before;
	enum pawl_status status;
	struct pawl_error err;

	if (!pawl_host_is(cache, PAWL_HOST_CACHE) || !name || !bytes || !n_bytes)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "cache_memory: no cache or a pointer is NULL");
	for (int32_t i = 0; i < n_tensors(&cache->geometry); i++) {
		int32_t n_which = cache->geometry.n_which;
		char here[PAWL_KV_NAME_BYTES];
		struct pawl_storage *storage;

		if (strcmp(name,
			    pawl_host_kv_name(&cache->geometry, i / n_which, i % n_which, here)))
			continue;
		before = pawl_host_enter(cache->object.context);
		status = pawl_host_cache_own(cache, &err);
		pawl_host_leave(before);
		if (status)
			return pawl_host_status(status, &err);
		source = pawl_host_cache_source(cache);
		storage = source.slot(source.ctx, i / n_which, i % n_which);
		if (storage->location.space != PAWL_MEMORY_HOST)
			return pawl_host_refuse(
				PAWL_UNSUPPORTED, "cache_memory: %s is not in host memory", name);
		*bytes = storage->bytes;
		*n_bytes = (size_t)storage->n_bytes;
		return NULL;
	}
	return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "cache_memory: no kv const '%.64s'", name);
}

struct pawl_host_status *
pawl_host_cache_reserve(struct pawl_host_cache *cache, int64_t n)
{
	const struct pawl_block_source *before;
	enum pawl_status status;
	struct pawl_error err;

	if (!pawl_host_is(cache, PAWL_HOST_CACHE) || n < 0)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"cache_reserve: no cache, or %lld positions", (long long)n);
	before = pawl_host_enter(cache->object.context);
	status = cache->kv ? pawl_kv_cache_reserve(cache->kv, n, &err)
			   : pawl_latent_kv_cache_reserve(cache->latents, n, &err);
	pawl_host_leave(before);
	note_shape(cache);
	return pawl_host_status(status, &err);
}

struct pawl_host_status *
pawl_host_cache_fork(struct pawl_host_cache *cache, struct pawl_host_cache **out)
{
	struct pawl_host_cache *fork;
	enum pawl_status status;
	struct pawl_error err;

	if (!pawl_host_is(cache, PAWL_HOST_CACHE) || !out)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "cache_fork: no cache or a pointer is NULL");
	fork = pawl_host_object_new(PAWL_HOST_CACHE, cache->object.context, sizeof(*fork));
	if (!fork)
		return pawl_host_refuse(PAWL_OUT_OF_MEMORY, "no memory for a cache");
	fork->geometry = cache->geometry;
	status = cache->kv ? pawl_kv_cache_fork(cache->kv, &fork->kv, &err)
			   : pawl_latent_kv_cache_fork(cache->latents, &fork->latents, &err);
	if (status)
		cache_free(fork);
	else
		*out = fork;
	return pawl_host_status(status, &err);
}

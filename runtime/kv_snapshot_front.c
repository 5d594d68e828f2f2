#include "runtime/kv_snapshot_parts.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "runtime/option_check.h"
#include "runtime/validity.h"

uint64_t
pawl_kv_checksum(uint64_t before, const void *bytes, int64_t n)
{
	const unsigned char *p = bytes;
	uint64_t hash = before ^ (uint64_t)n, word;

	for (; n > 0; n -= 8, p += 8) {
		word = 0;
		memcpy(&word, p, n < 8 ? (size_t)n : 8);
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash;
}

int64_t
pawl_kv_snapshot_geometry_bytes(uint64_t kind)
{
	static const int64_t bytes[PAWL_N_KV_SNAPSHOT_KINDS] = {
		[PAWL_KV_SNAPSHOT_RINGS] = sizeof(struct pawl_kv_snapshot_rings),
		[PAWL_KV_SNAPSHOT_LATENTS] = sizeof(struct pawl_kv_snapshot_latents),
	};

	return bytes[kind];
}

uint64_t
pawl_kv_snapshot_front_checksum(const struct pawl_kv_snapshot_front *front)
{
	uint64_t checksum = pawl_kv_checksum(
		0, &front->header, offsetof(struct pawl_kv_snapshot_header, checksum));

	return pawl_kv_checksum(checksum, &front->geometry,
		pawl_kv_snapshot_geometry_bytes(front->header.kind));
}

enum pawl_status
pawl_kv_identity_check(const struct pawl_kv_identity *identity, struct pawl_error *err)
{
	return pawl_check_option("precision", identity->precision, 0, PAWL_N_PRECISIONS - 1, err);
}

/* Without what the kind decides. */
static struct pawl_kv_snapshot_front
front_of(const struct pawl_kv_store *store, enum pawl_dtype dtype,
	const struct pawl_kv_identity *identity, int64_t n_tokens)
{
	struct pawl_kv_snapshot_front front;
	struct pawl_kv_snapshot_header *header = &front.header;

	memset(&front, 0, sizeof(front));
	memcpy(header->magic, PAWL_KV_SNAPSHOT_MAGIC, sizeof(header->magic));
	header->version = PAWL_KV_SNAPSHOT_VERSION;
	header->header_bytes = sizeof(*header);
	header->model = identity->model;
	snprintf(header->dtype, sizeof(header->dtype), "%s", pawl_dtype_name(dtype));
	snprintf(header->precision, sizeof(header->precision), "%s",
		pawl_precision_name(identity->precision));
	header->n_layers = store->n_layers;
	header->n_positions = store->len;
	header->n_tokens = n_tokens;
	return front;
}

struct pawl_kv_snapshot_front
pawl_kv_snapshot_front_of(const struct pawl_kv_cache *cache,
	const struct pawl_kv_identity *identity, int64_t n_tokens)
{
	const struct pawl_kv_shape *shape = &cache->shape;
	struct pawl_kv_snapshot_front front =
		front_of(&cache->store, shape->dtype, identity, n_tokens);
	struct pawl_kv_snapshot_rings *rings = &front.geometry.rings;

	front.header.n_kv_heads = shape->n_kv_heads;
	front.header.head_dim = shape->head_dim;
	if (shape->rings.positions) {
		front.header.kind = PAWL_KV_SNAPSHOT_RINGS;
		rings->positions = shape->rings.positions;
		rings->window = shape->rings.window;
		memcpy(rings->layers, shape->rings.layers.bits, sizeof(rings->layers));
		rings->written =
			cache->written > cache->store.len ? cache->written : cache->store.len;
	}
	front.header.checksum = pawl_kv_snapshot_front_checksum(&front);
	return front;
}

struct pawl_kv_snapshot_front
pawl_latent_snapshot_front_of(const struct pawl_latent_kv_cache *cache,
	const struct pawl_kv_identity *identity, int64_t n_tokens)
{
	const struct pawl_latent_shape *shape = &cache->shape;
	struct pawl_kv_snapshot_front front =
		front_of(&cache->store, shape->dtype, identity, n_tokens);
	struct pawl_kv_snapshot_latents *latents = &front.geometry.latents;

	front.header.kind = PAWL_KV_SNAPSHOT_LATENTS;
	latents->n_slots = shape->n_slots;
	for (int32_t i = 0; i < shape->n_slots; i++) {
		latents->slots[i].rank = shape->trailing[i].rank;
		for (int j = 0; j < shape->trailing[i].rank; j++)
			latents->slots[i].dims[j] = shape->trailing[i].dims[j];
	}
	front.header.checksum = pawl_kv_snapshot_front_checksum(&front);
	return front;
}

static enum pawl_status
differs(struct pawl_error *err, const char *what, int64_t held, int64_t asked)
{
	return pawl_fail(err, PAWL_INVALID_ARGUMENT,
		"the snapshot is of %" PRId64 " %s, the cache has %" PRId64, held, what, asked);
}

static enum pawl_status
compare_geometry(const struct pawl_kv_snapshot_front *held,
	const struct pawl_kv_snapshot_front *asked, struct pawl_error *err)
{
	const struct pawl_kv_snapshot_rings *a = &held->geometry.rings,
					    *b = &asked->geometry.rings;
	const struct pawl_kv_snapshot_latents *m = &held->geometry.latents,
					      *n = &asked->geometry.latents;

	if (held->header.kind == PAWL_KV_SNAPSHOT_RINGS) {
		if (a->positions != b->positions)
			return differs(err, "positions a ring", a->positions, b->positions);
		if (a->window != b->window)
			return differs(err, "positions a window", a->window, b->window);
		if (memcmp(a->layers, b->layers, sizeof(a->layers)))
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"the snapshot and the cache have rings in different layers");
	}
	if (held->header.kind == PAWL_KV_SNAPSHOT_LATENTS) {
		if (m->n_slots != n->n_slots)
			return differs(err, "slots a layer", m->n_slots, n->n_slots);
		for (int64_t i = 0; i < m->n_slots; i++)
			if (memcmp(&m->slots[i], &n->slots[i], sizeof(m->slots[i])))
				return pawl_fail(err, PAWL_INVALID_ARGUMENT,
					"slot %" PRId64
					" of the snapshot and of the cache differ in shape", i);
	}
	return PAWL_OK;
}

enum pawl_status
pawl_kv_snapshot_compare(const struct pawl_kv_snapshot_front *held,
	const struct pawl_kv_snapshot_front *asked, struct pawl_error *err)
{
	static const char *const kinds[PAWL_N_KV_SNAPSHOT_KINDS] = {
		"keys and values", "keys and values with rings", "latents"};
	const struct pawl_kv_snapshot_header *h = &held->header, *a = &asked->header;

	if (h->model != a->model)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"the snapshot is of another model: its fingerprint is 0x%016" PRIx64
			", not 0x%016" PRIx64,
			h->model, a->model);
	if (h->kind != a->kind)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"the snapshot is of a cache of %s, this one is of %s", kinds[h->kind],
			kinds[a->kind]);
	if (strcmp(h->dtype, a->dtype))
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"the snapshot is of a cache of %s, this one is of %s", h->dtype, a->dtype);
	if (strcmp(h->precision, a->precision))
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"the snapshot was made with activations %s, these are %s", h->precision,
			a->precision);
	if (h->n_layers != a->n_layers)
		return differs(err, "layers", h->n_layers, a->n_layers);
	if (h->n_kv_heads != a->n_kv_heads)
		return differs(err, "kv heads", h->n_kv_heads, a->n_kv_heads);
	if (h->head_dim != a->head_dim)
		return differs(err, "elements a head", h->head_dim, a->head_dim);
	return compare_geometry(held, asked, err);
}

static bool
rings_form(const struct pawl_kv_snapshot_front *front, struct pawl_kv_shape *shape)
{
	const struct pawl_kv_snapshot_rings *rings = &front->geometry.rings;
	int64_t n = front->header.n_positions;

	shape->rings = (struct pawl_kv_rings){rings->positions, rings->window, {{0}}};
	memcpy(shape->rings.layers.bits, rings->layers, sizeof(rings->layers));
	shape->max_seq_len = INT64_MAX;
	if (rings->positions < 1 || pawl_kv_shape_check(shape, NULL))
		return false;
	/* What is written beyond the length covers nothing that is still visible. */
	if (rings->written < n ||
		rings->written - n > rings->positions - rings->window + 1)
		return false;
	shape->rings.positions = n && n < rings->positions ? n : rings->positions;
	return true;
}

static bool
latents_form(const struct pawl_kv_snapshot_front *front, struct pawl_latent_shape *shape)
{
	const struct pawl_kv_snapshot_latents *latents = &front->geometry.latents;

	if (latents->n_slots < 1 || latents->n_slots > PAWL_MAX_LATENT_SLOTS ||
		front->header.n_kv_heads || front->header.head_dim)
		return false;
	shape->n_slots = (int32_t)latents->n_slots;
	for (int i = 0; i < PAWL_MAX_LATENT_SLOTS; i++) {
		struct pawl_latent_trailing *trailing = &shape->trailing[i];
		int64_t rank = latents->slots[i].rank;

		if (rank < 0 || rank >= PAWL_MAX_RANK || (i >= shape->n_slots && rank))
			return false;
		trailing->rank = (int)rank;
		for (int j = 0; j < PAWL_MAX_RANK - 1; j++) {
			trailing->dims[j] = latents->slots[i].dims[j];
			if (j >= rank && trailing->dims[j])
				return false;
		}
	}
	return !pawl_latent_shape_check(shape, NULL);
}

bool
pawl_kv_snapshot_form(const struct pawl_kv_snapshot_front *front, enum pawl_dtype dtype,
	struct pawl_kv_snapshot_shape *shape, struct pawl_kv_form *form)
{
	const struct pawl_kv_snapshot_header *h = &front->header;
	int64_t n = h->n_positions;

	if (h->n_layers < 1 || h->n_layers > INT32_MAX || n < 0 || h->n_tokens < n ||
		h->n_tokens > INT32_MAX)
		return false;
	*shape = (struct pawl_kv_snapshot_shape){
		.kv = {.n_layers = (int32_t)h->n_layers,
			.n_kv_heads = h->n_kv_heads,
			.head_dim = h->head_dim,
			.max_seq_len = n ? n : 1,
			.dtype = dtype},
		.latents = {.n_layers = (int32_t)h->n_layers,
			.max_seq_len = n ? n : 1,
			.dtype = dtype},
	};
	if (h->kind == PAWL_KV_SNAPSHOT_LATENTS) {
		if (!latents_form(front, &shape->latents))
			return false;
		*form = pawl_latent_shape_form(&shape->latents);
		return true;
	}
	if (h->kind == PAWL_KV_SNAPSHOT_RINGS && !rings_form(front, &shape->kv))
		return false;
	shape->kv.max_seq_len = n ? n : 1;
	if (h->kind == PAWL_KV_SNAPSHOT_PLAIN && pawl_kv_shape_check(&shape->kv, NULL))
		return false;
	*form = pawl_kv_shape_form(&shape->kv);
	return !n || form->bytes >= 0;
}

#include "runtime/kv_snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "runtime/kv_snapshot_parts.h"
#include "runtime/memory.h"

struct writer {
	const struct pawl_kv_snapshot_sink *to;
	uint64_t checksum;
};

static enum pawl_status
put(struct writer *w, const void *bytes, int64_t n, struct pawl_error *err)
{
	w->checksum = pawl_kv_checksum(w->checksum, bytes, n);
	return n ? w->to->write(w->to->ctx, bytes, (size_t)n, err) : PAWL_OK;
}

static enum pawl_status
write_to_file(void *file, const void *bytes, size_t n, struct pawl_error *err)
{
	errno = 0;
	return fwrite(bytes, 1, n, file) == n
		       ? PAWL_OK
		       : pawl_fail(err, PAWL_ENVIRONMENT, "%s", strerror(errno));
}

struct pawl_kv_snapshot_sink
pawl_kv_snapshot_file_sink(FILE *file)
{
	return (struct pawl_kv_snapshot_sink){write_to_file, file};
}

/* Positions of a storage in a snapshot of n: fewer where it is a ring. */
static int64_t
positions_of(const struct pawl_kv_planes *planes, int64_t n)
{
	return n < planes->positions ? n : planes->positions;
}

/* room holds the logical bytes of the largest storage. */
static enum pawl_status
write_all(struct writer *w, const struct pawl_kv_store *store, int axis,
	const struct pawl_kv_snapshot_front *front, const uint32_t *tokens, void *room,
	struct pawl_error *err)
{
	const struct pawl_kv_snapshot_header *header = &front->header;
	size_t front_bytes = sizeof(*header) +
			     (size_t)pawl_kv_snapshot_geometry_bytes(header->kind);
	enum pawl_status status = w->to->write(w->to->ctx, front, front_bytes, err);

	if (!status)
		status = put(w, tokens, header->n_tokens * (int64_t)sizeof(*tokens), err);
	for (int32_t i = 0; i < store->n_layers * store->n_which && !status; i++) {
		const struct pawl_storage *storage = store->tensors[i].storage;
		const struct pawl_kv_planes planes = pawl_kv_planes_of(&storage->type, axis);
		int64_t n = positions_of(&planes, store->len);

		status = pawl_kv_fetch_positions(&planes, storage, n, room, err);
		if (!status)
			status = put(w, room, pawl_kv_logical_bytes(&planes, n), err);
	}
	return status ? status
		      : w->to->write(w->to->ctx, &w->checksum, sizeof(w->checksum), err);
}

static enum pawl_status
check(const struct pawl_kv_store *store, const struct pawl_kv_form *form, int64_t n_tokens,
	struct pawl_error *err)
{
	enum pawl_status status = pawl_kv_store_check(store, form, err);

	if (!status)
		status = pawl_kv_store_check_reachable(store, err);
	if (!status && n_tokens > INT32_MAX)
		status = pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a snapshot of %" PRId64 " tokens; %d are possible", n_tokens, INT32_MAX);
	if (!status && n_tokens < store->len)
		status = pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"%" PRId64 " tokens are given for %" PRId64 " positions", n_tokens,
			store->len);
	return status;
}

static enum pawl_status
save(const struct pawl_kv_store *store, const struct pawl_kv_form *form,
	const struct pawl_kv_snapshot_front *front, const uint32_t *tokens,
	const struct pawl_kv_snapshot_sink *to, struct pawl_error *err)
{
	struct pawl_block room = {0};
	struct writer w = {to, 0};
	int64_t most = 0;
	enum pawl_status status = check(store, form, front->header.n_tokens, err);

	if (status)
		return status;
	for (int32_t i = 0; i < store->n_layers * store->n_which; i++) {
		const struct pawl_kv_planes planes =
			pawl_kv_planes_of(&store->tensors[i].storage->type, form->axis);
		int64_t bytes =
			pawl_kv_logical_bytes(&planes, positions_of(&planes, store->len));

		most = bytes > most ? bytes : most;
	}
	status = pawl_block_init(&room, most, err);
	if (!status)
		status = write_all(&w, store, form->axis, front, tokens, room.bytes, err);
	pawl_block_release(&room);
	return status;
}

enum pawl_status
pawl_kv_snapshot_save(const struct pawl_kv_cache *cache, const struct pawl_kv_identity *identity,
	const uint32_t *tokens, int64_t n_tokens, const struct pawl_kv_snapshot_sink *to,
	struct pawl_error *err)
{
	const struct pawl_kv_form form = pawl_kv_shape_form(&cache->shape);
	const struct pawl_kv_snapshot_front front =
		pawl_kv_snapshot_front_of(cache, identity, n_tokens);
	enum pawl_status status = pawl_kv_identity_check(identity, err);

	return status ? status : save(&cache->store, &form, &front, tokens, to, err);
}

enum pawl_status
pawl_latent_snapshot_save(const struct pawl_latent_kv_cache *cache,
	const struct pawl_kv_identity *identity, const uint32_t *tokens, int64_t n_tokens,
	const struct pawl_kv_snapshot_sink *to, struct pawl_error *err)
{
	const struct pawl_kv_form form = pawl_latent_shape_form(&cache->shape);
	const struct pawl_kv_snapshot_front front =
		pawl_latent_snapshot_front_of(cache, identity, n_tokens);
	enum pawl_status status = pawl_kv_identity_check(identity, err);

	return status ? status : save(&cache->store, &form, &front, tokens, to, err);
}

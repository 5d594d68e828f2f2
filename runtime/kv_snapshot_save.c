#include "runtime/kv_snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/kv_snapshot_parts.h"
#include "runtime/memory.h"
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

struct pawl_storage *
pawl_kv_snapshot_storage(const struct pawl_kv_cache *cache, int64_t i)
{
	const struct pawl_kv_layer_id id = {(int32_t)(i / PAWL_N_KV_SLOTS),
		(enum pawl_kv_slot)(i % PAWL_N_KV_SLOTS)};

	return pawl_kv_cache_storage(cache, id);
}

enum pawl_status
pawl_kv_snapshot_check_cache(const struct pawl_kv_cache *cache, struct pawl_error *err)
{
	const struct pawl_kv_shape *shape = pawl_kv_cache_shape(cache);

	if (!shape->max_seq_len)
		return pawl_fail(
			err, PAWL_INVALID_ARGUMENT, "a cache without capacity has no snapshot");
	if (shape->rings.positions)
		return pawl_fail(err, PAWL_UNSUPPORTED, "a cache with rings has no snapshot");
	for (int64_t i = 0; i < (int64_t)shape->n_layers * PAWL_N_KV_SLOTS; i++) {
		const struct pawl_storage *storage = pawl_kv_snapshot_storage(cache, i);
		const struct pawl_type type =
			pawl_kv_shape_type(shape, (int32_t)(i / PAWL_N_KV_SLOTS),
				(enum pawl_kv_slot)(i % PAWL_N_KV_SLOTS));

		if (!storage || !pawl_type_equal(&storage->type, &type))
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"layer %" PRId64 " slot %d is not of the shape of its cache",
				i / PAWL_N_KV_SLOTS, (int)(i % PAWL_N_KV_SLOTS));
		if (storage->location.space != PAWL_MEMORY_HOST)
			return pawl_fail(err, PAWL_UNSUPPORTED,
				"layer %" PRId64 " slot %d is not in host memory",
				i / PAWL_N_KV_SLOTS, (int)(i % PAWL_N_KV_SLOTS));
	}
	return PAWL_OK;
}

struct pawl_kv_snapshot_header
pawl_kv_snapshot_header_of(const struct pawl_kv_cache *cache,
	const struct pawl_kv_identity *identity, int64_t n_tokens)
{
	const struct pawl_kv_shape *shape = pawl_kv_cache_shape(cache);
	struct pawl_kv_snapshot_header header = {
		.version = PAWL_KV_SNAPSHOT_VERSION,
		.header_bytes = sizeof(header),
		.model = identity->model,
		.n_layers = shape->n_layers,
		.n_kv_heads = shape->n_kv_heads,
		.head_dim = shape->head_dim,
		.n_positions = pawl_kv_cache_len(cache),
		.n_tokens = n_tokens,
	};

	memcpy(header.magic, PAWL_KV_SNAPSHOT_MAGIC, sizeof(header.magic));
	snprintf(header.dtype, sizeof(header.dtype), "%s", pawl_dtype_name(shape->dtype));
	snprintf(header.precision, sizeof(header.precision), "%s",
		pawl_precision_name(identity->precision));
	header.checksum =
		pawl_kv_checksum(0, &header, offsetof(struct pawl_kv_snapshot_header, checksum));
	return header;
}

struct writer {
	FILE *file;
	uint64_t checksum;
	bool failed;
};

static void
put(struct writer *w, const void *bytes, int64_t n)
{
	w->checksum = pawl_kv_checksum(w->checksum, bytes, n);
	if (n && fwrite(bytes, (size_t)n, 1, w->file) != 1)
		w->failed = true;
}

/* All of the file; room holds the logical bytes of the largest storage. */
static bool
write_all(FILE *file, const struct pawl_kv_cache *cache,
	const struct pawl_kv_snapshot_header *header, const uint32_t *tokens, void *room)
{
	struct writer w = {file, 0, fwrite(header, sizeof(*header), 1, file) != 1};
	const int64_t n = pawl_kv_cache_len(cache);
	uint64_t checksum;

	put(&w, tokens, header->n_tokens * (int64_t)sizeof(*tokens));
	for (int64_t i = 0; i < header->n_layers * PAWL_N_KV_SLOTS && !w.failed; i++) {
		const struct pawl_storage *storage = pawl_kv_snapshot_storage(cache, i);
		const struct pawl_kv_planes planes = pawl_kv_planes_of(&storage->type, 2);

		pawl_kv_read_positions(&planes, storage->bytes, n, room);
		put(&w, room, pawl_kv_logical_bytes(&planes, n));
	}
	checksum = w.checksum;
	return !w.failed && fwrite(&checksum, sizeof(checksum), 1, file) == 1 && !fflush(file) &&
	       !fsync(fileno(file));
}

/* To a fresh file at `beside`, whose last six letters are put in. */
static enum pawl_status
write_beside(char *beside, const struct pawl_kv_cache *cache,
	const struct pawl_kv_snapshot_header *header, const uint32_t *tokens, void *room,
	struct pawl_error *err)
{
	int fd = mkstemp(beside);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "wb");
	bool ok;
	int reason;

	if (fd < 0 || !file) {
		reason = errno;
		if (fd >= 0) {
			close(fd);
			unlink(beside);
		}
		return pawl_fail(err, PAWL_ENVIRONMENT, "%.300s: %s", beside, strerror(reason));
	}
	errno = 0;
	ok = write_all(file, cache, header, tokens, room);
	reason = errno;
	if (fclose(file) && ok) {
		ok = false;
		reason = errno;
	}
	if (ok)
		return PAWL_OK;
	unlink(beside);
	return pawl_fail(err, PAWL_ENVIRONMENT, "%.300s: %s", beside, strerror(reason));
}

static enum pawl_status
save(const struct pawl_kv_cache *cache, const struct pawl_kv_snapshot_header *header,
	const uint32_t *tokens, const char *path, struct pawl_error *err)
{
	const struct pawl_type type =
		pawl_kv_shape_type(pawl_kv_cache_shape(cache), 0, PAWL_KV_K);
	const struct pawl_kv_planes planes = pawl_kv_planes_of(&type, 2);
	size_t length = strlen(path) + sizeof(".XXXXXX");
	char *beside = pawl_memory_zalloc(length, 1);
	struct pawl_block room = {0};
	enum pawl_status status;

	if (!beside)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory to save a cache");
	status = pawl_block_init(
		&room, pawl_kv_logical_bytes(&planes, header->n_positions), err);
	if (!status) {
		snprintf(beside, length, "%s.XXXXXX", path);
		status = write_beside(beside, cache, header, tokens, room.bytes, err);
	}
	if (!status && rename(beside, path)) {
		status = pawl_fail(err, PAWL_ENVIRONMENT, "%.300s: %s", path, strerror(errno));
		unlink(beside);
	}
	pawl_block_release(&room);
	pawl_memory_free(beside);
	return status;
}

enum pawl_status
pawl_kv_snapshot_save(const struct pawl_kv_cache *cache, const struct pawl_kv_identity *identity,
	const uint32_t *tokens, int64_t n_tokens, const char *path, struct pawl_error *err)
{
	struct pawl_kv_snapshot_header header;
	enum pawl_status status = pawl_kv_snapshot_check_cache(cache, err);

	if (status)
		return status;
	if (n_tokens < pawl_kv_cache_len(cache) || n_tokens > INT32_MAX)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"%" PRId64 " tokens are given for %" PRId64 " positions", n_tokens,
			pawl_kv_cache_len(cache));
	header = pawl_kv_snapshot_header_of(cache, identity, n_tokens);
	return save(cache, &header, tokens, path, err);
}

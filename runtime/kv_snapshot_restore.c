#include "runtime/kv_snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/kv_cache_parts.h"
#include "runtime/kv_snapshot_parts.h"
#include "runtime/memory.h"
#include "runtime/validity.h"

struct pawl_kv_snapshot {
	struct pawl_kv_snapshot_header header;
	struct pawl_block body; /* tokens, content, checksum */
	enum pawl_dtype dtype;
	int64_t slot_bytes; /* of one storage's content */
};

static enum pawl_status
bad(struct pawl_error *err, const char *path, const char *what)
{
	return pawl_fail(err, PAWL_INVALID_FILE, "%.300s: %s", path, what);
}

static enum pawl_status
read_all(int fd, const char *path, void *bytes, int64_t n, struct pawl_error *err)
{
	char *at = bytes;

	while (n > 0) {
		ssize_t got = read(fd, at, (size_t)n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return pawl_fail(
				err, PAWL_ENVIRONMENT, "%.300s: %s", path, strerror(errno));
		if (!got)
			return bad(err, path, "the snapshot ends early");
		at += got;
		n -= got;
	}
	return PAWL_OK;
}

static bool
is_name(const char *field)
{
	return field[0] && !field[PAWL_KV_SNAPSHOT_NAME - 1];
}

static bool
find_dtype(const char *name, enum pawl_dtype *out)
{
	for (int i = 0; i < PAWL_N_DTYPES; i++)
		if (!strcmp(pawl_dtype_name((enum pawl_dtype)i), name)) {
			*out = (enum pawl_dtype)i;
			return true;
		}
	return false;
}

/* Bytes behind the header, -1 when the sizes are no cache's. */
static int64_t
body_bytes(struct pawl_kv_snapshot *s)
{
	const struct pawl_kv_snapshot_header *h = &s->header;
	const struct pawl_dtype_info *info = pawl_dtype_info(s->dtype);
	int64_t rows, n, bytes;

	if (h->n_layers < 1 || h->n_layers > INT32_MAX || h->n_kv_heads < 1 || h->head_dim < 1 ||
		h->n_positions < 0 || h->n_tokens < h->n_positions || h->n_tokens > INT32_MAX ||
		h->head_dim % info->block)
		return -1;
	if (__builtin_mul_overflow(h->n_kv_heads, h->n_positions, &rows) ||
		__builtin_mul_overflow(rows, h->head_dim / info->block, &n) ||
		__builtin_mul_overflow(n, (int64_t)info->block_bytes, &s->slot_bytes) ||
		__builtin_mul_overflow(s->slot_bytes, h->n_layers * PAWL_N_KV_SLOTS, &bytes) ||
		__builtin_add_overflow(bytes, h->n_tokens * 4 + 8, &bytes))
		return -1;
	return bytes;
}

static enum pawl_status
check_header(const struct pawl_kv_snapshot_header *h, const char *path, struct pawl_error *err)
{
	if (memcmp(h->magic, PAWL_KV_SNAPSHOT_MAGIC, sizeof(h->magic)))
		return bad(err, path, "not a snapshot of a cache");
	if (h->version != PAWL_KV_SNAPSHOT_VERSION)
		return pawl_fail(err, PAWL_INVALID_FILE,
			"%.300s: a snapshot of version %" PRIu32 ", this library reads %d", path,
			h->version, PAWL_KV_SNAPSHOT_VERSION);
	if (h->header_bytes != sizeof(*h) ||
		h->checksum != pawl_kv_checksum(0, h, offsetof(struct pawl_kv_snapshot_header,
							     checksum)))
		return bad(err, path, "the header is damaged");
	for (size_t i = 0; i < sizeof(h->reserved) / sizeof(h->reserved[0]); i++)
		if (h->reserved[i])
			return pawl_fail(err, PAWL_INVALID_FILE,
				"%.300s: reserved field %zu of the header is not 0", path, i);
	return PAWL_OK;
}

static enum pawl_status
check_body(const struct pawl_kv_snapshot *s, const char *path, struct pawl_error *err)
{
	const char *at = s->body.bytes;
	int64_t tokens = s->header.n_tokens * 4;
	uint64_t checksum = pawl_kv_checksum(0, at, tokens), wanted;
	/* Without positions the file does not bound the layers, and they have no bytes. */
	int64_t n_slots = s->slot_bytes ? s->header.n_layers * PAWL_N_KV_SLOTS : 0;

	at += tokens;
	for (int64_t i = 0; i < n_slots; i++, at += s->slot_bytes)
		checksum = pawl_kv_checksum(checksum, at, s->slot_bytes);
	memcpy(&wanted, at, sizeof(wanted));
	return checksum == wanted ? PAWL_OK : bad(err, path, "the content is damaged");
}

static enum pawl_status
read_snapshot(struct pawl_kv_snapshot *s, int fd, const char *path, struct pawl_error *err)
{
	enum pawl_status status = read_all(fd, path, &s->header, sizeof(s->header), err);
	struct stat info;
	int64_t bytes;

	if (!status)
		status = check_header(&s->header, path, err);
	if (status)
		return status;
	if (!is_name(s->header.dtype) || !is_name(s->header.precision) ||
		!find_dtype(s->header.dtype, &s->dtype))
		return bad(err, path, "the header names no type of cache known here");
	bytes = body_bytes(s);
	if (bytes < 0)
		return bad(err, path, "the sizes in the header are those of no cache");
	if (fstat(fd, &info))
		return pawl_fail(err, PAWL_ENVIRONMENT, "%.300s: %s", path, strerror(errno));
	if (!S_ISREG(info.st_mode))
		return bad(err, path, "not a regular file");
	if (info.st_size - (int64_t)sizeof(s->header) != bytes)
		return pawl_fail(err, PAWL_INVALID_FILE,
			"%.300s: %" PRId64 " bytes, the header is that of %" PRId64, path,
			(int64_t)info.st_size, bytes + (int64_t)sizeof(s->header));
	status = pawl_block_init(&s->body, bytes, err);
	if (!status)
		status = read_all(fd, path, s->body.bytes, bytes, err);
	return status ? status : check_body(s, path, err);
}

enum pawl_status
pawl_kv_snapshot_open(const char *path, struct pawl_kv_snapshot **out, struct pawl_error *err)
{
	struct pawl_kv_snapshot *s = pawl_memory_zalloc(1, sizeof(*s));
	enum pawl_status status;
	int fd;

	if (!s)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a snapshot");
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		pawl_memory_free(s);
		return pawl_fail(err, PAWL_ENVIRONMENT, "%.300s: %s", path, strerror(errno));
	}
	status = read_snapshot(s, fd, path, err);
	close(fd);
	if (status)
		pawl_kv_snapshot_free(s);
	else
		*out = s;
	return status;
}

void
pawl_kv_snapshot_free(struct pawl_kv_snapshot *s)
{
	if (!s)
		return;
	pawl_block_release(&s->body);
	pawl_memory_free(s);
}

int64_t
pawl_kv_snapshot_positions(const struct pawl_kv_snapshot *s)
{
	return s->header.n_positions;
}

const uint32_t *
pawl_kv_snapshot_tokens(const struct pawl_kv_snapshot *s, int64_t *n)
{
	*n = s->header.n_tokens;
	return s->body.bytes;
}

static enum pawl_status
differs(struct pawl_error *err, const char *what, int64_t held, int64_t asked)
{
	return pawl_fail(err, PAWL_INVALID_ARGUMENT,
		"the snapshot is of %" PRId64 " %s, the cache has %" PRId64, held, what, asked);
}

static enum pawl_status
compare(const struct pawl_kv_snapshot_header *h, const struct pawl_kv_snapshot_header *asked,
	struct pawl_error *err)
{
	if (h->model != asked->model)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"the snapshot is of another model: its fingerprint is 0x%016" PRIx64
			", not 0x%016" PRIx64,
			h->model, asked->model);
	if (strcmp(h->dtype, asked->dtype))
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"the snapshot is of a cache of %s, this one is of %s", h->dtype,
			asked->dtype);
	if (strcmp(h->precision, asked->precision))
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"the snapshot was made with activations %s, these are %s", h->precision,
			asked->precision);
	if (h->n_layers != asked->n_layers)
		return differs(err, "layers", h->n_layers, asked->n_layers);
	if (h->n_kv_heads != asked->n_kv_heads)
		return differs(err, "kv heads", h->n_kv_heads, asked->n_kv_heads);
	if (h->head_dim != asked->head_dim)
		return differs(err, "elements a head", h->head_dim, asked->head_dim);
	return PAWL_OK;
}

enum pawl_status
pawl_kv_snapshot_restore(const struct pawl_kv_snapshot *s, const struct pawl_kv_identity *identity,
	struct pawl_kv_cache *cache, struct pawl_error *err)
{
	const struct pawl_kv_snapshot_header asked =
		pawl_kv_snapshot_header_of(cache, identity, 0);
	int64_t n = s->header.n_positions;
	const char *from = (const char *)s->body.bytes + s->header.n_tokens * 4;
	enum pawl_status status = pawl_kv_snapshot_check_cache(cache, err);

	if (!status)
		status = compare(&s->header, &asked, err);
	if (!status && n > cache->shape.max_seq_len)
		status = pawl_fail(err, PAWL_CAPACITY,
			"the snapshot holds %" PRId64 " positions, the cache has room for %" PRId64,
			n, cache->shape.max_seq_len);
	if (!status)
		status = pawl_kv_cache_own(cache, err);
	if (status)
		return status;
	for (int64_t i = 0; i < s->header.n_layers * PAWL_N_KV_SLOTS; i++, from += s->slot_bytes) {
		struct pawl_storage *storage = pawl_kv_snapshot_storage(cache, i);
		const struct pawl_kv_planes planes = pawl_kv_planes_of(&storage->type, 2);

		pawl_kv_write_positions(&planes, storage->bytes, n, from);
		cache->layers[i / PAWL_N_KV_SLOTS].version[i % PAWL_N_KV_SLOTS]++;
	}
	cache->cached_len = n;
	return PAWL_OK;
}

#include "runtime/kv_snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/kv_snapshot_parts.h"
#include "runtime/memory.h"

struct pawl_kv_snapshot {
	struct pawl_kv_snapshot_front front;
	struct pawl_block body; /* tokens, content, checksum */
	struct pawl_kv_snapshot_shape shape;
	struct pawl_kv_form form; /* of the content, in `shape` */
};

static enum pawl_status
bad(struct pawl_error *err, const char *path, const char *what)
{
	return pawl_fail(err, PAWL_INVALID_FILE, "%.300s: %s", path, what);
}

/* A snapshot as it comes: from a file, or bytes in memory. */
struct reader {
	const char *path; /* or what stands for it in messages */
	int fd;           /* -1: memory */
	const char *memory;
	int64_t n_bytes, n_read; /* of the whole; of memory, so far */
};

static enum pawl_status
read_file(const struct reader *r, void *bytes, int64_t n, struct pawl_error *err)
{
	char *at = bytes;

	while (n > 0) {
		ssize_t got = read(r->fd, at, (size_t)n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return pawl_fail(
				err, PAWL_ENVIRONMENT, "%.300s: %s", r->path, strerror(errno));
		if (!got)
			return bad(err, r->path, "the snapshot ends early");
		at += got;
		n -= got;
	}
	return PAWL_OK;
}

/* The next n bytes. */
static enum pawl_status
read_all(struct reader *r, void *bytes, int64_t n, struct pawl_error *err)
{
	if (r->fd >= 0)
		return read_file(r, bytes, n, err);
	if (n > r->n_bytes - r->n_read)
		return bad(err, r->path, "the snapshot ends early");
	if (n)
		memcpy(bytes, r->memory + r->n_read, (size_t)n);
	r->n_read += n;
	return PAWL_OK;
}

/* Padded with zeros, of which there is one at least. */
static bool
is_name(const char *field)
{
	int n = 0;

	while (n < PAWL_KV_SNAPSHOT_NAME && field[n])
		n++;
	for (int i = n; i < PAWL_KV_SNAPSHOT_NAME; i++)
		if (field[i])
			return false;
	return n && n < PAWL_KV_SNAPSHOT_NAME;
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

static enum pawl_status
read_front(struct pawl_kv_snapshot_front *front, struct reader *r, struct pawl_error *err)
{
	const char *path = r->path;
	struct pawl_kv_snapshot_header *h = &front->header;
	enum pawl_status status = read_all(r, h, sizeof(*h), err);

	if (status)
		return status;
	if (memcmp(h->magic, PAWL_KV_SNAPSHOT_MAGIC, sizeof(h->magic)))
		return bad(err, path, "not a snapshot of a cache");
	if (h->version != PAWL_KV_SNAPSHOT_VERSION)
		return pawl_fail(err, PAWL_INVALID_FILE,
			"%.300s: a snapshot of version %" PRIu32 ", this library reads %d", path,
			h->version, PAWL_KV_SNAPSHOT_VERSION);
	if (h->kind >= PAWL_N_KV_SNAPSHOT_KINDS)
		return pawl_fail(err, PAWL_INVALID_FILE,
			"%.300s: a snapshot of kind %" PRIu64 ", which is none", path, h->kind);
	status = read_all(r, &front->geometry,
		pawl_kv_snapshot_geometry_bytes(h->kind), err);
	if (status)
		return status;
	if (h->header_bytes != sizeof(*h) ||
		h->checksum != pawl_kv_snapshot_front_checksum(front))
		return bad(err, path, "the header is damaged");
	for (size_t i = 0; i < sizeof(h->reserved) / sizeof(h->reserved[0]); i++)
		if (h->reserved[i])
			return pawl_fail(err, PAWL_INVALID_FILE,
				"%.300s: reserved field %zu of the header is not 0", path, i);
	return PAWL_OK;
}

/* How the content follows from the front. */
static enum pawl_status
find_form(struct pawl_kv_snapshot *s, const char *path, struct pawl_error *err)
{
	const struct pawl_kv_snapshot_header *h = &s->front.header;
	enum pawl_dtype dtype;

	if (!is_name(h->dtype) || !is_name(h->precision) || !find_dtype(h->dtype, &dtype))
		return bad(err, path, "the header names no type of cache known here");
	if (!pawl_kv_snapshot_form(&s->front, dtype, &s->shape, &s->form) ||
		s->form.bytes > INT64_MAX - (int64_t)INT32_MAX * 5)
		return bad(err, path, "the sizes in the header are those of no cache");
	return PAWL_OK;
}

static int64_t
token_bytes(const struct pawl_kv_snapshot *s)
{
	return s->front.header.n_tokens * (int64_t)sizeof(uint32_t);
}

static enum pawl_status
check_body(const struct pawl_kv_snapshot *s, const char *path, struct pawl_error *err)
{
	const struct pawl_kv_form *form = &s->form;
	const char *at = s->body.bytes;
	uint64_t checksum = pawl_kv_checksum(0, at, token_bytes(s)), wanted;
	/* Without positions the file does not bound the layers, and they have no bytes. */
	int64_t n = s->front.header.n_positions ? (int64_t)form->n_layers * form->n_which : 0;

	at += token_bytes(s);
	for (int64_t i = 0; i < n; i++) {
		const struct pawl_type type = form->type(form->shape,
			(int32_t)(i / form->n_which), (int32_t)(i % form->n_which));
		int64_t bytes = pawl_storage_bytes(&type);

		checksum = pawl_kv_checksum(checksum, at, bytes);
		at += bytes;
	}
	memcpy(&wanted, at, sizeof(wanted));
	return checksum == wanted ? PAWL_OK : bad(err, path, "the content is damaged");
}

static enum pawl_status
read_snapshot(struct pawl_kv_snapshot *s, struct reader *r, struct pawl_error *err)
{
	int64_t front_bytes, bytes;
	enum pawl_status status = read_front(&s->front, r, err);

	if (!status)
		status = find_form(s, r->path, err);
	if (status)
		return status;
	front_bytes = (int64_t)sizeof(s->front.header) +
		      pawl_kv_snapshot_geometry_bytes(s->front.header.kind);
	bytes = token_bytes(s) + (s->front.header.n_positions ? s->form.bytes : 0) +
		(int64_t)sizeof(uint64_t);
	if (r->n_bytes - front_bytes != bytes)
		return pawl_fail(err, PAWL_INVALID_FILE,
			"%.300s: %" PRId64 " bytes, the header is that of %" PRId64, r->path,
			r->n_bytes, bytes + front_bytes);
	status = pawl_block_init(&s->body, bytes, err);
	if (!status)
		status = read_all(r, s->body.bytes, bytes, err);
	return status ? status : check_body(s, r->path, err);
}

static enum pawl_status
snapshot_new(struct reader *r, struct pawl_kv_snapshot **out, struct pawl_error *err)
{
	struct pawl_kv_snapshot *s = pawl_memory_zalloc(1, sizeof(*s));
	enum pawl_status status;

	if (!s)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a snapshot");
	status = read_snapshot(s, r, err);
	if (status)
		pawl_kv_snapshot_free(s);
	else
		*out = s;
	return status;
}

enum pawl_status
pawl_kv_snapshot_open(const char *path, struct pawl_kv_snapshot **out, struct pawl_error *err)
{
	struct reader r = {.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
	enum pawl_status status;
	struct stat info;

	if (r.fd < 0)
		return pawl_fail(err, PAWL_ENVIRONMENT, "%.300s: %s", path, strerror(errno));
	if (fstat(r.fd, &info))
		status = pawl_fail(err, PAWL_ENVIRONMENT, "%.300s: %s", path, strerror(errno));
	else if (!S_ISREG(info.st_mode))
		status = bad(err, path, "not a regular file");
	else {
		r.n_bytes = info.st_size;
		status = snapshot_new(&r, out, err);
	}
	close(r.fd);
	return status;
}

enum pawl_status
pawl_kv_snapshot_from_bytes(const void *bytes, int64_t n_bytes, struct pawl_kv_snapshot **out,
	struct pawl_error *err)
{
	struct reader r = {.path = "snapshot", .fd = -1, .memory = bytes, .n_bytes = n_bytes};

	return snapshot_new(&r, out, err);
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
	return s->front.header.n_positions;
}

const uint32_t *
pawl_kv_snapshot_tokens(const struct pawl_kv_snapshot *s, int64_t *n)
{
	*n = s->front.header.n_tokens;
	return s->body.bytes;
}

static enum pawl_status
restore(const struct pawl_kv_snapshot *s, const struct pawl_kv_snapshot_front *asked,
	const struct pawl_kv_form *form, struct pawl_kv_store *store, struct pawl_error *err)
{
	int64_t n = s->front.header.n_positions;
	const char *from = (const char *)s->body.bytes + token_bytes(s);
	enum pawl_status status = pawl_kv_store_check(store, form, err);

	if (!status)
		status = pawl_kv_store_check_reachable(store, err);
	if (!status)
		status = pawl_kv_snapshot_compare(&s->front, asked, err);
	if (!status && n > form->positions)
		status = pawl_fail(err, PAWL_CAPACITY,
			"the snapshot holds %" PRId64 " positions, the cache has room for %" PRId64,
			n, form->positions);
	if (!status)
		status = pawl_kv_store_own(store, form, err);
	if (status)
		return status;
	for (int32_t i = 0; i < store->n_layers * store->n_which && !status; i++) {
		struct pawl_storage *storage = store->tensors[i].storage;
		const struct pawl_kv_planes planes = pawl_kv_planes_of(&storage->type, form->axis);
		int64_t held = n < planes.positions ? n : planes.positions;

		status = pawl_kv_put_positions(&planes, storage, held, from, err);
		from += pawl_kv_logical_bytes(&planes, held);
	}
	if (status) {
		/* What the device holds now is neither the one nor the other. */
		pawl_kv_store_set_len(store, 0);
		return status;
	}
	pawl_kv_store_set_len(store, n);
	return PAWL_OK;
}

enum pawl_status
pawl_kv_snapshot_restore(const struct pawl_kv_snapshot *s, const struct pawl_kv_identity *identity,
	struct pawl_kv_cache *cache, struct pawl_error *err)
{
	const struct pawl_kv_form form = pawl_kv_shape_form(&cache->shape);
	const struct pawl_kv_snapshot_front asked = pawl_kv_snapshot_front_of(cache, identity, 0);
	enum pawl_status status = pawl_kv_identity_check(identity, err);

	if (!status)
		status = restore(s, &asked, &form, &cache->store, err);
	if (!status)
		cache->written = s->front.header.kind == PAWL_KV_SNAPSHOT_RINGS
					 ? s->front.geometry.rings.written
					 : cache->store.len;
	return status;
}

enum pawl_status
pawl_latent_snapshot_restore(const struct pawl_kv_snapshot *s,
	const struct pawl_kv_identity *identity, struct pawl_latent_kv_cache *cache,
	struct pawl_error *err)
{
	const struct pawl_kv_form form = pawl_latent_shape_form(&cache->shape);
	const struct pawl_kv_snapshot_front asked =
		pawl_latent_snapshot_front_of(cache, identity, 0);
	enum pawl_status status = pawl_kv_identity_check(identity, err);

	return status ? status : restore(s, &asked, &form, &cache->store, err);
}

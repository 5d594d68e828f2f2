/*
 * Storage: a reference-counted buffer of one typed value.
 *
 * Reference counting is atomic and may be done by any thread; the bytes have no lock: whoever runs
 * a plan on them sees to it that nobody else writes.
 */
#ifndef PAWL_RUNTIME_STORAGE_H
#define PAWL_RUNTIME_STORAGE_H

#include <stdatomic.h>

#include "ir/status.h"
#include "ir/type.h"
#include "runtime/memory.h"

/* Where bytes live.  Two targets that work on host memory share its location. */
enum pawl_memory_space {
	PAWL_MEMORY_UNKNOWN, /* cannot be proved; never equal to anything */
	PAWL_MEMORY_HOST,
	PAWL_MEMORY_CUDA
};

struct pawl_location {
	enum pawl_memory_space space;
	int32_t index; /* of the device within its space, 0 for the host */
};

#define PAWL_LOCATION_UNKNOWN ((struct pawl_location){PAWL_MEMORY_UNKNOWN, 0})
#define PAWL_LOCATION_HOST ((struct pawl_location){PAWL_MEMORY_HOST, 0})

struct pawl_device;
struct pawl_copy_pieces;

struct pawl_storage {
	atomic_int n_refs;
	struct pawl_type type; /* static dims */
	struct pawl_location location;
	void *bytes; /* an address there */
	int64_t n_bytes;
	struct pawl_block block;    /* empty: bytes are borrowed, or the device's */
	struct pawl_device *device; /* whose memory it is; NULL: the host's, or borrowed */
	void (*release)(
		void *arg, void *bytes); /* called at the end of a borrowed storage, or NULL */
	void *release_arg;
};

/* Zeroed host memory, 64-byte aligned.  The caller gets the only reference. */
enum pawl_status pawl_storage_new(
	const struct pawl_type *type, struct pawl_storage **out, struct pawl_error *err);

/* The same from a region. */
enum pawl_status pawl_storage_new_in(struct pawl_region *region, const struct pawl_type *type,
	struct pawl_storage **out, struct pawl_error *err);

/*
 * The same in the memory of a device, kept by the storage; from the region where that is the
 * host's. device and region may be NULL.  The device's errors.
 */
enum pawl_status pawl_storage_new_on(struct pawl_device *device, struct pawl_region *region,
	const struct pawl_type *type, struct pawl_storage **out, struct pawl_error *err);

/* Whether the functions below can get at its bytes: all but what is borrowed from elsewhere. */
bool pawl_storage_is_reachable(const struct pawl_storage *storage);

/*
 * Bytes of a reachable storage out to the host and in from it: whole pieces, their pitch in the
 * storage counted from byte `at` on.  Nothing where n or bytes is 0.  On the host these are memcpy
 * and do not fail; a device may (struct pawl_target_memory).
 */
enum pawl_status pawl_storage_read(const struct pawl_storage *from, int64_t at, void *to,
	const struct pawl_copy_pieces *pieces, struct pawl_error *err);
enum pawl_status pawl_storage_write(struct pawl_storage *to, int64_t at, const void *from,
	const struct pawl_copy_pieces *pieces, struct pawl_error *err);
/* Between two storages of one location, which may be one. */
enum pawl_status pawl_storage_copy(struct pawl_storage *to, int64_t to_at,
	const struct pawl_storage *from, int64_t from_at, const struct pawl_copy_pieces *pieces,
	struct pawl_error *err);
/* All of it, to or from the host. */
enum pawl_status pawl_storage_read_all(
	const struct pawl_storage *from, void *to, struct pawl_error *err);
enum pawl_status pawl_storage_write_all(
	struct pawl_storage *to, const void *from, struct pawl_error *err);

/*
 * A storage of the host in the memory of a device: itself where that is the host's, else a copy,
 * and the reference given is dropped; it is dropped on failure too.
 */
enum pawl_status pawl_storage_settle(struct pawl_storage *storage, struct pawl_device *device,
	struct pawl_storage **out, struct pawl_error *err);

/*
 * Memory of somebody else, which must hold n_bytes >= the bytes of the type (row-major rank-0 data
 * included) and outlive the storage; release (may be NULL) is told when it is no longer used.
 */
enum pawl_status pawl_storage_wrap(const struct pawl_type *type, struct pawl_location location,
	void *bytes, int64_t n_bytes, void (*release)(void *arg, void *bytes), void *release_arg,
	struct pawl_storage **out, struct pawl_error *err);

struct pawl_storage *pawl_storage_ref(struct pawl_storage *storage);
/* NULL is allowed. */
void pawl_storage_unref(struct pawl_storage *storage);

/* Whether two storages share a byte. */
bool pawl_storage_overlaps(const struct pawl_storage *a, const struct pawl_storage *b);

/* False when either is unknown. */
bool pawl_location_equal(struct pawl_location a, struct pawl_location b);
/* "host", "cuda:0", "unknown"; returns out. */
const char *pawl_location_text(struct pawl_location location, char *out, size_t n);

/* Bytes of a static type; -1 when dims are negative or the size overflows. */
int64_t pawl_storage_bytes(const struct pawl_type *type);

#endif

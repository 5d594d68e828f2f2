/*
 * A folder of compiled kernels that outlives the process, so that a warm start opens no compiler.
 *
 * One file an entry, named after the hash of its key:
 *
 *   header  struct pawl_object_header
 *   key     text, everything that decided the code; compared in full
 *   object  what the compiler wrote: an ELF object of the CPU, or the code of a source for a GPU
 *
 * An entry that is cut, changed, of another key, or not safe to run is a miss, never an error.
 * The folder holds code: it and the entries must belong to the user and be writable by nobody else, and
 * are opened without following a link in their place.  Entries are written under another name and
 * renamed, so that processes that fill a folder at once see whole ones only; what one that was ended
 * meanwhile leaves is removed by whoever opens the folder ten minutes later.
 *
 * Threads: find and store may be called from several at once.
 */
#ifndef PAWL_CODEGEN_OBJECT_CACHE_H
#define PAWL_CODEGEN_OBJECT_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "ir/status.h"

struct pawl_object_header {
	char magic[8]; /* "PAWLOBJ1" */
	uint64_t key_bytes, object_bytes;
	uint64_t checksum; /* FNV-1a of key and object */
};

struct pawl_object_cache {
	int folder; /* -1: there is none */
	char *path; /* of it, for messages */
};

#define PAWL_OBJECT_CACHE_NONE ((struct pawl_object_cache){-1, NULL})

/*
 * Opens the folder, making what is missing of its path.  PAWL_ENVIRONMENT when it cannot be made or
 * opened or others may write to it; the cache is then none, which finds and stores nothing.
 */
enum pawl_status pawl_object_cache_open(
	struct pawl_object_cache *cache, const char *path, struct pawl_error *err);
void pawl_object_cache_release(struct pawl_object_cache *cache);

/* The object of a key, to be freed by the caller; NULL: a miss, as also without memory. */
void *pawl_object_cache_find(const struct pawl_object_cache *cache, const char *key, size_t *size);

/* PAWL_ENVIRONMENT, naming the folder, when it cannot be written; the folder is then as it was. */
enum pawl_status pawl_object_cache_store(const struct pawl_object_cache *cache, const char *key,
	const void *object, size_t size, struct pawl_error *err);

#endif

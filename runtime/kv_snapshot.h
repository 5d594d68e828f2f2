/*
 * A cache in a file, with the tokens that made it, so that another process may go on.
 *
 * The file, little-endian:
 *   header   struct pawl_kv_snapshot_header, 128 bytes, with a checksum of its own
 *   geometry by kind: nothing, struct pawl_kv_snapshot_rings, struct pawl_kv_snapshot_latents
 *   tokens   u32 [n_tokens], the first n_positions of them in the cache
 *   content  for each layer K, then V: [kv head][position][element], as runtime/kv_layout.h's
 *            logical order, whatever the layout and capacity of the cache; of a ring the places
 *            0 .. min(n_positions, ring) - 1.  Latents: for each layer each slot, [position][...]
 *   u64      checksum of tokens and content
 * Checksums are pawl_kv_checksum.  The size of the file follows from header and geometry.
 *
 * A snapshot is read and proved whole before anything is restored from it.
 */
#ifndef PAWL_RUNTIME_KV_SNAPSHOT_H
#define PAWL_RUNTIME_KV_SNAPSHOT_H

#include "passes/pass.h"
#include "runtime/latent_kv_cache.h"

#include <stdio.h>

enum { PAWL_KV_SNAPSHOT_VERSION = 1, PAWL_KV_SNAPSHOT_NAME = 8 };

#define PAWL_KV_SNAPSHOT_MAGIC "PAWLKV\r\n"

enum pawl_kv_snapshot_kind {
	PAWL_KV_SNAPSHOT_PLAIN, /* keys and values */
	PAWL_KV_SNAPSHOT_RINGS, /* the same, some layers in rings */
	PAWL_KV_SNAPSHOT_LATENTS,
	PAWL_N_KV_SNAPSHOT_KINDS
};

struct pawl_kv_snapshot_header {
	char magic[8];
	uint32_t version, header_bytes;
	uint64_t model;                          /* fingerprint of the model, same in every process */
	char dtype[PAWL_KV_SNAPSHOT_NAME];       /* of the cache, padded with zeros */
	char precision[PAWL_KV_SNAPSHOT_NAME];   /* of activations, likewise */
	int64_t n_layers, n_kv_heads, head_dim;  /* latents: the last two are 0 */
	int64_t n_positions, n_tokens;           /* n_positions <= n_tokens */
	uint64_t kind;
	uint64_t reserved[4];                    /* 0, or the file is refused */
	uint64_t checksum;                       /* of the bytes before it, then of the geometry */
};

struct pawl_kv_snapshot_rings {
	int64_t positions, window;
	uint64_t layers[PAWL_MAX_WINDOW_LAYERS / 64];
	/* One beyond the last position written, which decides how far back a ring goes. */
	int64_t written;
};

struct pawl_kv_snapshot_latents {
	int64_t n_slots;
	struct {
		int64_t rank, dims[4]; /* behind the position; 0 where there are none */
	} slots[PAWL_MAX_LATENT_SLOTS];
};

/* What decides, beside the geometry of the cache, whether its content means the same. */
struct pawl_kv_identity {
	uint64_t model;
	enum pawl_precision precision;
};

/* 64 bits over bytes; any change of one word of 8 bytes changes it. */
uint64_t pawl_kv_checksum(uint64_t before, const void *bytes, int64_t n);

/* Takes the bytes of a snapshot in order.  A status other than PAWL_OK ends the saving with it. */
struct pawl_kv_snapshot_sink {
	enum pawl_status (*write)(
		void *ctx, const void *bytes, size_t n, struct pawl_error *err);
	void *ctx;
};

/*
 * A sink that writes to file; PAWL_ENVIRONMENT, with the reason of the system alone, since it knows
 * no path.  Closing is the caller's, and so is to look whether that fails.
 */
struct pawl_kv_snapshot_sink pawl_kv_snapshot_file_sink(FILE *file);

/*
 * tokens are n_tokens >= the cache's length.  PAWL_INVALID_ARGUMENT for fewer or a cache without
 * capacity, PAWL_UNSUPPORTED when it is not in host memory: nothing is written then.
 */
enum pawl_status pawl_kv_snapshot_save(const struct pawl_kv_cache *cache,
	const struct pawl_kv_identity *identity, const uint32_t *tokens, int64_t n_tokens,
	const struct pawl_kv_snapshot_sink *to, struct pawl_error *err);
enum pawl_status pawl_latent_snapshot_save(const struct pawl_latent_kv_cache *cache,
	const struct pawl_kv_identity *identity, const uint32_t *tokens, int64_t n_tokens,
	const struct pawl_kv_snapshot_sink *to, struct pawl_error *err);

struct pawl_kv_snapshot;

/*
 * Reads a file whole and proves it.  PAWL_INVALID_FILE, naming what is wrong, for anything that
 * save did not write; no memory is taken for more than the file has.
 */
enum pawl_status pawl_kv_snapshot_open(
	const char *path, struct pawl_kv_snapshot **out, struct pawl_error *err);
/* The same of bytes in memory, which are copied. */
enum pawl_status pawl_kv_snapshot_from_bytes(const void *bytes, int64_t n_bytes,
	struct pawl_kv_snapshot **out, struct pawl_error *err);
/* NULL is allowed. */
void pawl_kv_snapshot_free(struct pawl_kv_snapshot *snapshot);

int64_t pawl_kv_snapshot_positions(const struct pawl_kv_snapshot *snapshot);
/* Valid while the snapshot is. */
const uint32_t *pawl_kv_snapshot_tokens(const struct pawl_kv_snapshot *snapshot, int64_t *n);

/*
 * Makes the cache hold the snapshot's positions in place of its own; storages and allocation id stay
 * unless they were shared with a fork, versions are stepped.  Rings go as far back as those that were
 * saved (pawl_kv_cache_least_len).  All or nothing: PAWL_INVALID_ARGUMENT, naming the field and both
 * values, when model, kind, precision or geometry differ; PAWL_CAPACITY when there is no room;
 * PAWL_UNSUPPORTED when the cache is not in host memory.
 */
enum pawl_status pawl_kv_snapshot_restore(const struct pawl_kv_snapshot *snapshot,
	const struct pawl_kv_identity *identity, struct pawl_kv_cache *cache,
	struct pawl_error *err);
enum pawl_status pawl_latent_snapshot_restore(const struct pawl_kv_snapshot *snapshot,
	const struct pawl_kv_identity *identity, struct pawl_latent_kv_cache *cache,
	struct pawl_error *err);

#endif

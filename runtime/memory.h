/*
 * Memory of the runtime.  Every allocation that runtime/ makes goes through here and is counted,
 * so that "0 allocations per token" can be read off a counter (a malloc hook in the tests checks
 * the counter).  Any thread.
 */
#ifndef PAWL_RUNTIME_MEMORY_H
#define PAWL_RUNTIME_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "ir/status.h"

/* Zeroed; NULL when memory is exhausted or the size overflows.  Freed by pawl_memory_free. */
void *pawl_memory_zalloc(size_t count, size_t size);
void pawl_memory_free(void *memory);
char *pawl_memory_strdup(const char *text);

/*
 * A block for buffers: zeroed, 64-byte aligned.  From 1 MiB on it is an anonymous mapping that
 * asks for huge pages; pages nobody touches cost nothing.
 */
struct pawl_block {
	void *bytes;
	size_t n_bytes;           /* as asked for */
	size_t n_mapped;          /* 0: from the heap, a source or of a chunk */
	struct pawl_chunk *chunk; /* of a region, NULL: none */
	const struct pawl_block_source *source; /* NULL: the heap, or a mapping */
};

/* Somebody else's memory for blocks.  Both functions are called from any thread. */
struct pawl_block_source {
	/*
	 * At least n_bytes, a multiple of alignment, which is a power of two; NULL: there is none.
	 */
	void *(*alloc)(void *user, size_t n_bytes, size_t alignment);
	void (*free)(void *user, void *bytes, size_t n_bytes);
	void *user;
};

/*
 * From now on the calling thread takes its blocks there, each by itself, whatever its region; NULL:
 * from the heap, as mappings and in regions.  The source must outlive the blocks.  Returns the one
 * there was.
 */
const struct pawl_block_source *pawl_memory_use(const struct pawl_block_source *source);

/*
 * Blocks that live about as long, such as the weights of a model, side by side in chunks that ask
 * for huge pages: matrices of less than a huge page would otherwise be read through small ones.  A
 * chunk is unmapped when its region and all of its blocks are released, in any order.  A region
 * belongs to one thread at a time, its blocks to any.
 */
enum { PAWL_REGION_FROM = 1 << 20 }; /* bytes for which one is worth its 2 MiB */

struct pawl_region {
	struct pawl_chunk *chunk; /* of the next block, NULL: none yet */
};

/* PAWL_OUT_OF_MEMORY names the size. */
enum pawl_status pawl_block_init(struct pawl_block *block, int64_t n_bytes, struct pawl_error *err);
/* The same from a region; NULL: none.  PAWL_OUT_OF_MEMORY names the size of the chunk too. */
enum pawl_status pawl_block_init_in(struct pawl_region *region, struct pawl_block *block,
	int64_t n_bytes, struct pawl_error *err);
void pawl_block_release(struct pawl_block *block);
void pawl_region_release(struct pawl_region *region);

/*
 * Bytes of all blocks there are, as asked for; a mapped one or a region may take up to 2 MiB more.
 */
int64_t pawl_memory_block_bytes(void);

/* Allocations of this process so far. */
uint64_t pawl_memory_allocations(void);

/* For tests: after n more allocations one fails, then none; n < 0: none. */
void pawl_memory_fail_after(int64_t n);

#endif

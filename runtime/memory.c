#include "runtime/memory.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20, MAP_FROM = 1 << 20, CHUNK_BYTES = 32 << 20 };

static _Atomic uint64_t n_allocations;

static _Atomic int64_t block_bytes;
static _Atomic int64_t failing_after = -1;
static _Thread_local const struct pawl_block_source *present_source;

/* Counts an allocation; true when it is the one that is to fail. */
static bool
count(void)
{
	atomic_fetch_add_explicit(&n_allocations, 1, memory_order_relaxed);
	return atomic_load_explicit(&failing_after, memory_order_relaxed) >= 0 &&
		!atomic_fetch_sub_explicit(&failing_after, 1, memory_order_relaxed);
}

void *
pawl_memory_zalloc(size_t n, size_t size)
{
	if (count())
		return NULL;
	return calloc(n ? n : 1, size ? size : 1);
}

void
pawl_memory_free(void *memory)
{
	free(memory);
}

char *
pawl_memory_strdup(const char *text)
{
	if (count())
		return NULL;
	return strdup(text);
}

/* Zeroed pages from a huge page's boundary on; n is a multiple of one. */
static char *
map(size_t n)
{
	char *start = mmap(NULL, n + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);
	char *bytes;

	if (start == MAP_FAILED)
		return NULL;
	bytes = (char *)(((uintptr_t)start + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
	if (bytes > start)
		munmap(start, (size_t)(bytes - start));
	if (start + HUGE_PAGE > bytes)
		munmap(bytes + n, (size_t)(start + HUGE_PAGE - bytes));
	madvise(bytes, n, MADV_HUGEPAGE);
	return bytes;
}

/* At the start of its own memory. */
struct pawl_chunk {
	atomic_int n_refs; /* the region's and each block's */
	size_t used, n_mapped;
};

static void
chunk_unref(struct pawl_chunk *chunk)
{
	if (chunk && atomic_fetch_sub_explicit(&chunk->n_refs, 1, memory_order_acq_rel) == 1)
		munmap(chunk, chunk->n_mapped);
}

/* Zeroed, n being a multiple of ALIGNMENT; NULL when the source has none that is so aligned. */
static void *
take_from(const struct pawl_block_source *source, size_t n)
{
	void *bytes = source->alloc(source->user, n, ALIGNMENT);

	if ((uintptr_t)bytes % ALIGNMENT) {
		source->free(source->user, bytes, n);
		return NULL;
	}
	return bytes ? memset(bytes, 0, n) : NULL;
}

const struct pawl_block_source *
pawl_memory_use(const struct pawl_block_source *source)
{
	const struct pawl_block_source *before = present_source;

	present_source = source;
	return before;
}

static size_t
round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static bool
has_room(const struct pawl_region *region, size_t n)
{
	const struct pawl_chunk *chunk = region->chunk;

	return chunk && n <= chunk->n_mapped - chunk->used;
}

/* Bytes of a new chunk whose first block has n bytes. */
static size_t
chunk_bytes(size_t n)
{
	return round_up(n + ALIGNMENT, CHUNK_BYTES);
}

/* A chunk of the region with room for n bytes, NULL without memory. */
static struct pawl_chunk *
chunk_for(struct pawl_region *region, size_t n)
{
	size_t n_mapped = chunk_bytes(n);
	struct pawl_chunk *chunk;

	if (has_room(region, n))
		return region->chunk;
	chunk = (struct pawl_chunk *)map(n_mapped);
	if (!chunk)
		return NULL;
	atomic_init(&chunk->n_refs, 1);
	chunk->used = ALIGNMENT;
	chunk->n_mapped = n_mapped;
	chunk_unref(region->chunk);
	region->chunk = chunk;
	return chunk;
}

void
pawl_region_release(struct pawl_region *region)
{
	chunk_unref(region->chunk);
	*region = (struct pawl_region){NULL};
}

static void
take(struct pawl_block *block, struct pawl_region *region, size_t n)
{
	if (present_source) {
		block->source = present_source;
		block->bytes = take_from(present_source, n);
	} else if (region) {
		block->chunk = chunk_for(region, n);
		if (!block->chunk)
			return;
		block->bytes = (char *)block->chunk + block->chunk->used;
		block->chunk->used += n;
		atomic_fetch_add_explicit(&block->chunk->n_refs, 1, memory_order_relaxed);
	} else if (n >= MAP_FROM) {
		block->n_mapped = round_up(n, HUGE_PAGE);
		block->bytes = map(block->n_mapped);
	} else {
		block->bytes = aligned_alloc(ALIGNMENT, n);
		if (block->bytes)
			memset(block->bytes, 0, n);
	}
}

enum pawl_status
pawl_block_init_in(struct pawl_region *region, struct pawl_block *block, int64_t n_bytes,
	struct pawl_error *err)
{
	bool is_size = n_bytes >= 0 && n_bytes <= INT64_MAX / 2;
	size_t n = is_size ? round_up(n_bytes ? (size_t)n_bytes : 1, ALIGNMENT) : 0;

	*block = (struct pawl_block){.n_bytes = (size_t)n_bytes};
	if (!count() && is_size)
		take(block, region, n);
	if (!block->bytes) {
		*block = (struct pawl_block){0};
		if (region && !present_source && is_size && !has_room(region, n))
			return pawl_fail(err, PAWL_OUT_OF_MEMORY,
				"a chunk of %zu bytes of memory for %" PRId64 " could not be had",
				chunk_bytes(n), n_bytes);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY,
			"%" PRId64 " bytes of memory could not be had", n_bytes);
	}
	atomic_fetch_add_explicit(&block_bytes, n_bytes, memory_order_relaxed);
	return PAWL_OK;
}

enum pawl_status
pawl_block_init(struct pawl_block *block, int64_t n_bytes, struct pawl_error *err)
{
	return pawl_block_init_in(NULL, block, n_bytes, err);
}

void
pawl_block_release(struct pawl_block *block)
{
	atomic_fetch_sub_explicit(&block_bytes, (int64_t)block->n_bytes, memory_order_relaxed);
	if (block->chunk)
		chunk_unref(block->chunk);
	else if (block->source)
		block->source->free(block->source->user, block->bytes,
			round_up(block->n_bytes ? block->n_bytes : 1, ALIGNMENT));
	else if (block->n_mapped)
		munmap(block->bytes, block->n_mapped);
	else
		free(block->bytes);
	*block = (struct pawl_block){0};
}

int64_t
pawl_memory_block_bytes(void)
{
	return atomic_load_explicit(&block_bytes, memory_order_relaxed);
}

uint64_t
pawl_memory_allocations(void)
{
	return atomic_load_explicit(&n_allocations, memory_order_relaxed);
}

void
pawl_memory_fail_after(int64_t n)
{
	atomic_store_explicit(&failing_after, n, memory_order_relaxed);
}

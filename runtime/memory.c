#include "runtime/memory.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20, MAP_FROM = 1 << 20 };

static _Atomic uint64_t n_allocations;

static _Atomic int64_t block_bytes;
static _Atomic int64_t failing_after = -1;

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

static void *
map(size_t n)
{
	void *bytes = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return bytes == MAP_FAILED ? NULL : bytes;
}

enum pawl_status
pawl_block_init(struct pawl_block *block, int64_t n_bytes, struct pawl_error *err)
{
	size_t n = n_bytes > 0 ? (size_t)n_bytes : 1;

	*block = (struct pawl_block){.n_bytes = (size_t)n_bytes};
	if (count() || n_bytes < 0 || n > SIZE_MAX / 2)
		goto failed;
	if (n >= MAP_FROM) {
		block->n_mapped = (n + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
		block->bytes = map(block->n_mapped);
		if (!block->bytes)
			goto failed;
		madvise(block->bytes, block->n_mapped, MADV_HUGEPAGE);
	} else {
		n = (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
		block->bytes = aligned_alloc(ALIGNMENT, n);
		if (!block->bytes)
			goto failed;
		memset(block->bytes, 0, n);
	}
	atomic_fetch_add_explicit(&block_bytes, n_bytes, memory_order_relaxed);
	return PAWL_OK;
failed:
	*block = (struct pawl_block){0};
	return pawl_fail(
		err, PAWL_OUT_OF_MEMORY, "%" PRId64 " bytes of memory could not be had", n_bytes);
}

void
pawl_block_release(struct pawl_block *block)
{
	atomic_fetch_sub_explicit(&block_bytes, (int64_t)block->n_bytes, memory_order_relaxed);
	if (block->n_mapped)
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

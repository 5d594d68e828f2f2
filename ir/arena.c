#include "ir/arena.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 64 * 1024, ALIGN = 16 };

struct pawl_arena_chunk {
	struct pawl_arena_chunk *next;
	size_t used, size;
	_Alignas(ALIGN) char bytes[];
};

void
pawl_arena_init(struct pawl_arena *arena)
{
	arena->chunks = NULL;
	arena->n_bytes = 0;
}

void
pawl_arena_release(struct pawl_arena *arena)
{
	struct pawl_arena_chunk *chunk, *next;

	for (chunk = arena->chunks; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	pawl_arena_init(arena);
}

static struct pawl_arena_chunk *
add_chunk(struct pawl_arena *arena, size_t n)
{
	size_t size = n > CHUNK_BYTES ? n : CHUNK_BYTES;
	struct pawl_arena_chunk *chunk = calloc(1, sizeof(*chunk) + size);

	if (!chunk)
		return NULL;
	chunk->size = size;
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	return chunk;
}

void *
pawl_arena_alloc(struct pawl_arena *arena, size_t count, size_t size)
{
	struct pawl_arena_chunk *chunk = arena->chunks;
	size_t n;
	void *p;

	if (__builtin_mul_overflow(count, size, &n) || n > (size_t)-1 / 4)
		return NULL;
	n = (n + ALIGN - 1) / ALIGN * ALIGN;
	if (!chunk || chunk->size - chunk->used < n) {
		chunk = add_chunk(arena, n);
		if (!chunk)
			return NULL;
	}
	p = chunk->bytes + chunk->used;
	chunk->used += n;
	arena->n_bytes += n;
	return p;
}

char *
pawl_arena_strndup(struct pawl_arena *arena, const char *text, size_t n)
{
	char *copy = pawl_arena_alloc(arena, n + 1, 1);

	if (copy)
		memcpy(copy, text, n);
	return copy;
}

char *
pawl_arena_strdup(struct pawl_arena *arena, const char *text)
{
	return pawl_arena_strndup(arena, text, strlen(text));
}

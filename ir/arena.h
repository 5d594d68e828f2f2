/*
 * Bump allocator.  Everything allocated lives until the arena is released; nothing is freed
 * alone.  Memory is zeroed and 16-byte aligned.  One thread at a time.
 */
#ifndef PAWL_IR_ARENA_H
#define PAWL_IR_ARENA_H

#include <stddef.h>

struct pawl_arena {
	struct pawl_arena_chunk *chunks; /* newest first */
	size_t n_bytes;                  /* handed out so far */
};

void pawl_arena_init(struct pawl_arena *arena);
void pawl_arena_release(struct pawl_arena *arena);

/* NULL when memory is exhausted or count * size overflows. */
void *pawl_arena_alloc(struct pawl_arena *arena, size_t count, size_t size);
char *pawl_arena_strdup(struct pawl_arena *arena, const char *text);
char *pawl_arena_strndup(struct pawl_arena *arena, const char *text, size_t n);

#endif

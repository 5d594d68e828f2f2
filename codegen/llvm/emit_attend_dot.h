/*
 * The keys that a chunk of attention reads: how they lie, their dot products with the queries, and
 * what is fetched ahead meanwhile.
 */
#ifndef PAWL_CODEGEN_LLVM_EMIT_ATTEND_DOT_H
#define PAWL_CODEGEN_LLVM_EMIT_ATTEND_DOT_H

#include "codegen/llvm/emit_attend.h"

/* Some query heads of a unit that are computed together. */
struct pawl_heads {
	const struct pawl_attend *a;
	const struct pawl_attend_unit *unit;
	int64_t first; /* within those that share the key head */
	int n;
	LLVMValueRef chunk_start; /* position */
	/* Where this chunk and the next begin if each lies in one piece; NULL: find every position. */
	LLVMValueRef slot, next_slot;
};

/* The fields behind chunk_start, of which the first is set. */
void pawl_heads_find(struct pawl_emit *e, struct pawl_heads *h);

/* Where the key and value of a position lie; 16 from a multiple of 16 on are neighbours. */
LLVMValueRef pawl_heads_slot(
	struct pawl_emit *e, const struct pawl_heads *h, LLVMValueRef position);

/* Lanes of a group of 16 positions that are visible. */
LLVMValueRef pawl_heads_seen(
	struct pawl_emit *e, const struct pawl_heads *h, LLVMValueRef position);

/*
 * Rows of keys that lie dense, whose vectors of columns can be turned into vectors of positions:
 * 16 positions at a time.
 */
bool pawl_heads_keys_are_rows(const struct pawl_heads *h);

/* q . k for n_groups times 16 positions and all heads: dot[group * heads + head]. */
void pawl_heads_dot(struct pawl_emit *e, const struct pawl_heads *h, LLVMValueRef position,
	int n_groups, LLVMValueRef *dot);

/* Bytes of the keys of a chunk, 0 where they lie so that nothing is fetched ahead. */
int64_t pawl_heads_key_bytes(const struct pawl_heads *h);

/* Fetches n_bytes (a constant) of the next chunk's keys from byte `at` (i64) on. */
void pawl_heads_prefetch_keys(
	struct pawl_emit *e, const struct pawl_heads *h, LLVMValueRef at, int64_t n_bytes);

#endif

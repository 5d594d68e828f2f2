/*
 * Finds the tokens that are cut out of a text before anything else is done with it.  Immutable
 * once made; may be shared by threads.
 */
#ifndef PAWL_MODELS_SPECIAL_TOKENS_H
#define PAWL_MODELS_SPECIAL_TOKENS_H

#include "ir/arena.h"
#include "ir/status.h"
#include "models/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest text of such a token, which bounds how far is read beyond one that was found. */
#define PAWL_SPECIAL_TOKEN_MAX_BYTES 1024

struct pawl_special_tokens {
	struct pawl_special_node *nodes;
	size_t n_nodes, capacity;
	int32_t roots[256]; /* node of a first byte, or -1 */
};

/* n_bytes: how many bytes the texts that will be added have together. */
enum pawl_status pawl_special_tokens_init(struct pawl_special_tokens *specials,
	struct pawl_arena *arena, size_t n_bytes, struct pawl_error *err);

/* always: found also where control tokens are not looked for. */
void pawl_special_tokens_add(
	struct pawl_special_tokens *specials, struct pawl_text text, int32_t id, bool always);

/* Once, after all were added and before any is looked for. */
enum pawl_status pawl_special_tokens_link(
	struct pawl_special_tokens *specials, struct pawl_error *err);

struct pawl_special_match {
	size_t start, n;
	int32_t id;
};

/*
 * The first match at or after start, the longest of those that begin there.  False when there is
 * none.  control: whether tokens added without `always` count.
 */
bool pawl_special_tokens_find(const struct pawl_special_tokens *specials, const char *text,
	size_t n, size_t start, bool control, struct pawl_special_match *match);

#endif

/*
 * Finds a token by its text: sorted, so that no choice of texts makes it slow.  Immutable once
 * made; may be shared by threads.
 */
#ifndef PAWL_MODELS_TOKEN_INDEX_H
#define PAWL_MODELS_TOKEN_INDEX_H

#include "ir/arena.h"
#include "ir/status.h"
#include "models/text.h"

#include <stddef.h>
#include <stdint.h>

struct pawl_token_index {
	const struct pawl_token_key *keys;
	size_t n;
};

/*
 * The texts are kept, not copied.  Where two are equal: INVALID_FILE with both ids.  Empty texts
 * are left out.
 */
enum pawl_status pawl_token_index_init(struct pawl_token_index *index, struct pawl_arena *arena,
	const struct pawl_text *texts, size_t n, struct pawl_error *err);

/* The id of the token with this text, or -1. */
int32_t pawl_token_index_find(const struct pawl_token_index *index, const char *bytes, size_t n);

#endif

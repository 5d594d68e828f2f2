/*
 * Buffers for the token data of one session, filled for each run: ids, rope tables, offset, mask; or
 * positions, write indices and block table.  What goes there depends on the tokens, their positions
 * and places alone.
 */
#ifndef PAWL_RUNTIME_TOKEN_DATA_H
#define PAWL_RUNTIME_TOKEN_DATA_H

#include "runtime/decode_session.h"
#include "runtime/model_source.h"

/* PAWL_INVALID_ARGUMENT for n < 1 or an id that the model does not have. */
enum pawl_status pawl_check_tokens(const struct pawl_model_source *source, const uint32_t *tokens,
	int64_t n, struct pawl_error *err);

struct pawl_token_buffers {
	int64_t seq, rope_width, window_rope_width;
	uint32_t *ids;
	struct pawl_rope_tables rope; /* the session's */
	struct pawl_type mask_type;
	void *mask; /* NULL: the plan has none */
	int64_t offset;
	int64_t n_sequences, max_blocks; /* 0: a plan over one sequence */
	int64_t *positions;
	int64_t *write_index;
	uint32_t *block_table; /* [n_sequences][max_blocks] */
	struct pawl_symenv env;
	int32_t cached_len, attended_len; /* symbols of those names, -1: none */
};

/* For a session, which must outlive this, and whose rope tables are filled in by it. */
enum pawl_status pawl_token_buffers_init(struct pawl_token_buffers *buffers,
	const struct pawl_decode_session *session, struct pawl_error *err);
void pawl_token_buffers_release(struct pawl_token_buffers *buffers);

/*
 * n <= seq tokens that stand at position, position + 1, ...; rows beyond n are filled up with id 0.
 * Binds the symbols cached_len = position and attended_len = position + seq where the plan has
 * them; PAWL_SYMBOL when one is out of range.  *data points into the buffers.
 */
enum pawl_status pawl_token_buffers_fill(struct pawl_token_buffers *buffers,
	const struct pawl_model_source *source, const uint32_t *tokens, int64_t n, int64_t position,
	struct pawl_token_data *data, struct pawl_error *err);

/* A row of a plan over blocks; position < 0: an idle one, of which nothing else matters. */
struct pawl_token_row {
	uint32_t token;
	int64_t position;
	int64_t write_index; /* negative: nowhere */
};

/*
 * All seq rows of such a plan, buffers->block_table having been filled in.  Binds attended_len = the
 * largest position + 1, at least 1.
 */
enum pawl_status pawl_token_buffers_fill_rows(struct pawl_token_buffers *buffers,
	const struct pawl_model_source *source, const struct pawl_token_row *rows,
	struct pawl_token_data *data, struct pawl_error *err);

#endif

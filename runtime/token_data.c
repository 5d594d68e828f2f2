#include "runtime/token_data.h"

#include "ir/each_token.h"
#include "runtime/memory.h"

#include <inttypes.h>
#include <string.h>

PAWL_EACH_TOKEN enum pawl_status
pawl_check_tokens(const struct pawl_model_source *source, const uint32_t *tokens, int64_t n,
	struct pawl_error *err)
{
	if (n < 1)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "no tokens are given");
	for (int64_t i = 0; i < n; i++)
		if (tokens[i] >= source->n_vocab)
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"token %" PRId64 " is %u, the model has %" PRId64, i, tokens[i],
				source->n_vocab);
	return PAWL_OK;
}

static int32_t
find_symbol(const struct pawl_program *program, const char *name)
{
	for (int32_t i = 0; i < program->n_symbols; i++)
		if (!strcmp(program->symbols[i].name, name))
			return i;
	return -1;
}

enum pawl_status
pawl_token_buffers_init(struct pawl_token_buffers *b, const struct pawl_decode_session *session,
	struct pawl_error *err)
{
	const struct pawl_plan *plan = pawl_decode_session_plan(session);
	const struct pawl_type *mask = pawl_decode_session_mask_type(session);
	const struct pawl_program *program = plan->program;
	size_t n = (size_t)plan->key.seq;

	*b = (struct pawl_token_buffers){.seq = plan->key.seq,
		.rope_width = pawl_decode_session_rope_width(session),
		.window_rope_width = pawl_decode_session_window_rope_width(session),
		.rope = pawl_decode_session_rope_tables(session)};
	b->ids = pawl_memory_zalloc(n, sizeof(*b->ids));
	b->positions = pawl_memory_zalloc(n, sizeof(*b->positions));
	if (mask) {
		b->mask_type = *mask;
		b->mask = pawl_memory_zalloc((size_t)pawl_storage_bytes(mask), 1);
	}
	b->n_sequences = plan->key.n_sequences;
	b->max_blocks = plan->key.max_blocks;
	if (b->n_sequences) {
		b->write_index = pawl_memory_zalloc(n, sizeof(*b->write_index));
		b->block_table = pawl_memory_zalloc(
			(size_t)(b->n_sequences * b->max_blocks), sizeof(*b->block_table));
	}
	if (!b->ids || !b->positions || (mask && !b->mask) ||
		(b->n_sequences && (!b->write_index || !b->block_table))) {
		pawl_token_buffers_release(b);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY,
			"no memory for the token data of %lld tokens", (long long)n);
	}
	b->cached_len = find_symbol(program, "cached_len");
	b->attended_len = find_symbol(program, "attended_len");
	return pawl_symenv_init(&b->env, program->symbols, program->n_symbols, err);
}

void
pawl_token_buffers_release(struct pawl_token_buffers *b)
{
	pawl_symenv_release(&b->env);
	pawl_memory_free(b->block_table);
	pawl_memory_free(b->write_index);
	pawl_memory_free(b->positions);
	pawl_memory_free(b->mask);
	pawl_memory_free(b->ids);
	*b = (struct pawl_token_buffers){0};
}

/* Row q sees positions 0 .. position + q. */
static void
fill_mask(struct pawl_token_buffers *b, int64_t position)
{
	int64_t width = pawl_type_row_length(&b->mask_type);

	for (int64_t q = 0; q < b->seq; q++)
		for (int64_t k = 0; k < width; k++) {
			bool is_seen = k <= position + q;
			int64_t i = q * width + k;

			if (b->mask_type.dtype == PAWL_DTYPE_F32)
				((uint32_t *)b->mask)[i] = is_seen ? 0 : 0xff800000u;
			else
				((uint16_t *)b->mask)[i] = is_seen ? 0
							   : b->mask_type.dtype == PAWL_DTYPE_F16
								   ? 0xfc00
								   : 0xff80;
		}
}

PAWL_EACH_TOKEN static void
fill_rope(struct pawl_token_buffers *b, const struct pawl_model_source *source, int64_t row,
	int64_t position)
{
	const struct pawl_rope_tables *rope = &b->rope;
	int64_t width = b->rope_width, at = row * width;

	if (width)
		source->rope(source->ctx, position, width, rope->cos + at, rope->sin + at);
	width = b->window_rope_width;
	at = row * width;
	if (width)
		source->window_rope(
			source->ctx, position, width, rope->window_cos + at, rope->window_sin + at);
}

PAWL_EACH_TOKEN enum pawl_status
pawl_token_buffers_fill(struct pawl_token_buffers *b, const struct pawl_model_source *source,
	const uint32_t *tokens, int64_t n, int64_t position, struct pawl_token_data *data,
	struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;

	for (int64_t i = 0; i < b->seq; i++) {
		b->ids[i] = i < n ? tokens[i] : 0;
		b->positions[i] = position + i;
		fill_rope(b, source, i, position + i);
	}
	b->offset = position;
	if (b->mask)
		fill_mask(b, position);
	pawl_symenv_clear(&b->env);
	if (b->cached_len >= 0)
		status = pawl_symenv_bind(&b->env, b->cached_len, position, err);
	if (!status && b->attended_len >= 0)
		status = pawl_symenv_bind(&b->env, b->attended_len, position + b->seq, err);
	*data = (struct pawl_token_data){.token_ids = b->ids,
		.rope_cos = b->rope.cos,
		.rope_sin = b->rope.sin,
		.window_cos = b->rope.window_cos,
		.window_sin = b->rope.window_sin,
		.mask = b->mask,
		.offset = &b->offset,
		.positions = b->positions};
	return status;
}

enum pawl_status
pawl_token_buffers_fill_rows(struct pawl_token_buffers *b, const struct pawl_model_source *source,
	const struct pawl_token_row *rows, struct pawl_token_data *data, struct pawl_error *err)
{
	int64_t longest = 0;

	for (int64_t i = 0; i < b->seq; i++) {
		bool is_idle = rows[i].position < 0;

		b->ids[i] = is_idle ? 0 : rows[i].token;
		b->positions[i] = is_idle ? -1 : rows[i].position;
		b->write_index[i] = is_idle ? -1 : rows[i].write_index;
		if (!is_idle && rows[i].position > longest)
			longest = rows[i].position;
		fill_rope(b, source, i, is_idle ? 0 : rows[i].position);
	}
	*data = (struct pawl_token_data){.token_ids = b->ids,
		.rope_cos = b->rope.cos,
		.rope_sin = b->rope.sin,
		.window_cos = b->rope.window_cos,
		.window_sin = b->rope.window_sin,
		.positions = b->positions,
		.write_index = b->write_index,
		.block_table = b->block_table};
	pawl_symenv_clear(&b->env);
	if (b->attended_len < 0)
		return PAWL_OK;
	return pawl_symenv_bind(&b->env, b->attended_len, longest + 1, err);
}

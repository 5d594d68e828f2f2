#include "runtime/speculative.h"

static enum pawl_status
extend_decoder(void *ctx, const uint32_t *tokens, int64_t n, int64_t rows, const float **logits,
	struct pawl_error *err)
{
	return pawl_decoder_extend(ctx, tokens, n, rows, logits, err);
}

static void
truncate_decoder(void *ctx, int64_t n)
{
	pawl_decoder_truncate(ctx, n);
}

static int64_t
decoder_len(void *ctx)
{
	return pawl_decoder_len(ctx);
}

static bool
decoder_has_room(void *ctx, int64_t rows)
{
	return rows <= pawl_decoder_capacity(ctx) - pawl_decoder_len(ctx);
}

struct pawl_speculative_target
pawl_speculative_decoder(struct pawl_decoder *decoder)
{
	int64_t most = pawl_kv_cache_most_rows(pawl_decoder_cache(decoder));

	return (struct pawl_speculative_target){decoder, pawl_decoder_n_vocab(decoder),
		most <= PAWL_MAX_GUESS ? most : 1 + PAWL_MAX_GUESS, extend_decoder, truncate_decoder, decoder_len,
		decoder_has_room};
}

/* Rows beyond n are not asked for: the decoder has its own buckets. */
static enum pawl_status
extend_paged(void *ctx, const uint32_t *tokens, int64_t n, int64_t rows, const float **logits,
	struct pawl_error *err)
{
	const struct pawl_paged_sequence *s = ctx;

	(void)rows;
	return pawl_paged_decoder_extend(s->decoder, s->session, tokens, n, logits, err);
}

static void
truncate_paged(void *ctx, int64_t n)
{
	const struct pawl_paged_sequence *s = ctx;

	pawl_kv_block_pool_truncate(pawl_paged_decoder_pool(s->decoder), s->session, n, NULL);
}

static int64_t
paged_len(void *ctx)
{
	const struct pawl_paged_sequence *s = ctx;

	return pawl_kv_block_pool_session_len(pawl_paged_decoder_pool(s->decoder), s->session);
}

static bool
paged_has_room(void *ctx, int64_t rows)
{
	const struct pawl_paged_sequence *s = ctx;

	return pawl_paged_decoder_has_room(s->decoder, s->session, rows);
}

struct pawl_speculative_target
pawl_speculative_paged(struct pawl_paged_sequence *sequence)
{
	return (struct pawl_speculative_target){sequence,
		pawl_paged_decoder_n_vocab(sequence->decoder), PAWL_MAX_BATCH, extend_paged,
		truncate_paged, paged_len, paged_has_room};
}

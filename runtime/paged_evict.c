/* Bytes of blocks that leave the pool and come back, or go to another position. */
#include "runtime/kv_block_bytes.h"
#include "runtime/memory.h"
#include "runtime/paged_decoder.h"
#include "runtime/paged_parts.h"

#include <inttypes.h>

static bool
is_alive(const struct pawl_paged_decoder *d, struct pawl_kv_handle_id handle)
{
	struct pawl_kv_handle_info info;

	return d->pool && !pawl_kv_block_pool_handle(d->pool, handle, &info, NULL);
}

void
pawl_paged_forget_evicted(struct pawl_paged_decoder *d)
{
	struct pawl_evicted **link = &d->evicted;

	while (*link) {
		struct pawl_evicted *evicted = *link;

		if (is_alive(d, evicted->handle)) {
			link = &evicted->next;
			continue;
		}
		*link = evicted->next;
		pawl_memory_free(evicted->bytes);
		pawl_memory_free(evicted);
	}
}

enum pawl_status
pawl_paged_decoder_close(struct pawl_paged_decoder *d, struct pawl_kv_session_id session,
	struct pawl_error *err)
{
	enum pawl_status status = pawl_kv_block_pool_close(d->pool, session, err);

	if (!status)
		pawl_paged_forget_evicted(d);
	return status;
}

int64_t
pawl_paged_decoder_evicted_bytes(const struct pawl_paged_decoder *d)
{
	const struct pawl_evicted *evicted;
	int64_t bytes = 0;

	for (evicted = d->evicted; evicted; evicted = evicted->next)
		bytes += evicted->n_bytes;
	return bytes;
}

/* The block of a slot if it is this session's alone, else -1. */
static int32_t
sole_block(const struct pawl_paged_decoder *d, struct pawl_kv_session_id session, int64_t slot)
{
	int32_t block;

	if (pawl_kv_block_pool_slot(d->pool, session, slot, &block, NULL) || block < 0)
		return -1;
	return pawl_kv_block_pool_owners(d->pool, block) == 1 ? block : -1;
}

enum pawl_status
pawl_paged_decoder_evict(struct pawl_paged_decoder *d, struct pawl_kv_session_id session,
	struct pawl_kv_evict_report *report, struct pawl_error *err)
{
	int64_t n_slots = pawl_kv_block_pool_session_slots(d->pool, session), n = 0, size;
	struct pawl_evicted *evicted = pawl_memory_zalloc(1, sizeof(*evicted));
	enum pawl_status status = PAWL_OK;
	char *to;

	for (int64_t i = 0; i < n_slots; i++)
		n += sole_block(d, session, i) >= 0;
	size = pawl_kv_block_bytes(d->cache, d->options.block_size);
	if (evicted)
		evicted->bytes = pawl_memory_zalloc((size_t)n, (size_t)size);
	if (!evicted || !evicted->bytes) {
		pawl_memory_free(evicted);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY,
			"no memory for %" PRId64 " evicted blocks of %" PRId64 " bytes", n, size);
	}
	to = evicted->bytes;
	for (int64_t i = 0; i < n_slots && !status; i++) {
		int32_t block = sole_block(d, session, i);

		if (block < 0)
			continue;
		status = pawl_kv_block_read(d->cache, d->options.block_size, block, to, err);
		to += size;
	}
	if (!status)
		status = pawl_kv_block_pool_evict(d->pool, session, PAWL_KV_EXACT, report, err);
	if (status) {
		pawl_memory_free(evicted->bytes);
		pawl_memory_free(evicted);
		return status;
	}
	evicted->handle = report->handle;
	evicted->n_bytes = n * size;
	evicted->next = d->evicted;
	d->evicted = evicted;
	return PAWL_OK;
}

static const struct pawl_evicted *
find_evicted(const struct pawl_paged_decoder *d, struct pawl_kv_handle_id handle)
{
	const struct pawl_evicted *evicted = d->evicted;

	while (evicted && evicted->handle.value != handle.value)
		evicted = evicted->next;
	return evicted;
}

enum pawl_status
pawl_paged_decoder_restore(
	struct pawl_paged_decoder *d, struct pawl_kv_handle_id handle, struct pawl_error *err)
{
	const struct pawl_evicted *evicted = find_evicted(d, handle);
	int64_t size = pawl_kv_block_bytes(d->cache, d->options.block_size);
	struct pawl_kv_handle_info info;
	enum pawl_status status;

	if (!evicted)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"nothing was evicted under handle %" PRIu64, handle.value);
	status = pawl_kv_block_pool_restore_reserve(d->pool, handle, err);
	if (!status)
		status = pawl_kv_block_pool_handle(d->pool, handle, &info, err);
	if (status)
		return status;
	for (int64_t i = 0; i < info.n_slots && !status; i++)
		status = pawl_kv_block_write(d->cache, d->options.block_size, info.slots[i].block,
			(const char *)evicted->bytes + i * size, err);
	if (status) {
		pawl_kv_block_pool_restore_abort(d->pool, handle, NULL);
		return status;
	}
	status = pawl_kv_block_pool_restore_commit(d->pool, handle, err);
	pawl_paged_forget_evicted(d);
	return status;
}

/* Turns copied keys by the distance; cos and sin of that position come from the model. */
static enum pawl_status
shift_blocks(struct pawl_paged_decoder *d, const struct pawl_kv_copy_info *info,
	struct pawl_error *err)
{
	int64_t width = d->source.rope_width;
	float cos[PAWL_MAX_ROPE_WIDTH], sin[PAWL_MAX_ROPE_WIDTH];
	float window_cos[PAWL_MAX_ROPE_WIDTH], window_sin[PAWL_MAX_ROPE_WIDTH];
	struct pawl_key_turn turn = {.pairs = d->source.rope_pairs,
		.width = width,
		.cos = cos,
		.sin = sin,
		.window_layers = &d->source.window_layers};
	enum pawl_status status = PAWL_OK;

	if (!d->source.rope || width < 1 || width > PAWL_MAX_ROPE_WIDTH)
		return pawl_fail(err, PAWL_UNSUPPORTED,
			"the model's positions are no rotation of %" PRId64 " elements", width);
	if (pawl_dtype_is_blocked(d->options.kv_dtype))
		return pawl_fail(err, PAWL_UNSUPPORTED,
			"keys of %s are not turned to another position: that would round them again",
			pawl_dtype_name(d->options.kv_dtype));
	d->source.rope(d->source.ctx, info->shift, width, cos, sin);
	if (d->source.window_rope) {
		d->source.window_rope(d->source.ctx, info->shift, width, window_cos, window_sin);
		turn.window_cos = window_cos;
		turn.window_sin = window_sin;
	}
	for (int64_t i = 0; i < info->n_blocks && !status; i++)
		status = pawl_kv_block_shift(d->cache, d->options.block_size, info->blocks[i].from,
			info->blocks[i].to, &turn, err);
	return status;
}

enum pawl_status
pawl_paged_decoder_append_shifted(struct pawl_paged_decoder *d, struct pawl_kv_prefix_id prefix,
	int64_t n_blocks, struct pawl_kv_session_id session, struct pawl_error *err)
{
	struct pawl_kv_copy_info info;
	struct pawl_kv_copy_id copy;
	enum pawl_status status;

	status = pawl_kv_block_pool_shift_reserve(d->pool, prefix, n_blocks, session,
		pawl_kv_block_pool_session_len(d->pool, session), &copy, err);
	if (status)
		return status;
	status = pawl_kv_block_pool_copy(d->pool, copy, &info, err);
	if (!status)
		status = shift_blocks(d, &info, err);
	if (status) {
		pawl_kv_block_pool_copy_abort(d->pool, copy, NULL);
		return status;
	}
	return pawl_kv_block_pool_copy_commit(d->pool, copy, err);
}

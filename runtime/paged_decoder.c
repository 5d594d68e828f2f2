#include "runtime/paged_decoder.h"

#include "runtime/kv_block_bytes.h"
#include "runtime/memory.h"
#include "runtime/option_check.h"
#include "runtime/paged_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static enum pawl_status
check_options(const struct pawl_paged_options *o, struct pawl_error *err)
{
	enum pawl_status status =
		pawl_check_option("n_blocks", o->n_blocks, 1, PAWL_MAX_KV_BLOCKS, err);

	if (!status)
		status = pawl_check_option("block_size", o->block_size, 16, INT32_MAX, err);
	if (!status && o->block_size % 16)
		status = pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"block_size is %" PRId64 ", no multiple of 16", o->block_size);
	if (!status)
		status = pawl_check_option("max_blocks", o->max_blocks, 1, o->n_blocks, err);
	if (!status)
		status = pawl_check_option(
			"prefill_chunk", o->prefill_chunk, 0, PAWL_MAX_PREFILL_CHUNK, err);
	if (!status)
		status = pawl_check_option("kv_dtype", o->kv_dtype, 0, PAWL_N_DTYPES - 1, err);
	if (!status)
		status = pawl_check_option("policy", o->policy, 0, PAWL_PAGED_REPLAN, err);
	return status;
}

static enum pawl_status
make_pool(struct pawl_paged_decoder *d, struct pawl_error *err)
{
	const struct pawl_model_source *source = &d->source;
	const struct pawl_paged_options *o = &d->options;
	const struct pawl_kv_shape shape = {
		.n_layers = source->n_layers,
		.n_kv_heads = source->n_kv_heads,
		.head_dim = source->head_dim,
		.max_seq_len = o->n_blocks * o->block_size,
		.dtype = o->kv_dtype,
		.layout = {source->k_layout, PAWL_LAYOUT_ROWS},
	};
	const struct pawl_kv_pool_geometry geometry = {
		.n_layers = source->n_layers,
		.n_blocks = o->n_blocks,
		.block_size = o->block_size,
		.n_kv_heads = source->n_kv_heads,
		.row_bytes = pawl_dtype_bytes(o->kv_dtype, source->head_dim),
	};
	enum pawl_status status =
		pawl_kv_cache_with_capacity(d->sessions.context, &shape, &d->cache, err);

	return status ? status : pawl_kv_block_pool_new(&geometry, &d->pool, err);
}

enum pawl_status
pawl_paged_decoder_new(const struct pawl_model_source *source, struct pawl_device *device,
	const struct pawl_paged_options *options, struct pawl_paged_decoder **out,
	struct pawl_error *err)
{
	const struct pawl_session_options sessions = {
		.n_threads = options->n_threads,
		.precision = options->precision,
		.replan = options->policy == PAWL_PAGED_REPLAN,
		.block_size = options->block_size,
		.max_blocks = options->max_blocks,
		.plans = options->plans,
		.hooks = options->hooks,
		.built = options->built,
		.arg = options->arg,
	};
	enum pawl_status status = check_options(options, err);
	struct pawl_paged_decoder *d;

	if (status)
		return status;
	d = pawl_memory_zalloc(1, sizeof(*d));
	if (!d)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a paged decoder");
	d->source = *source;
	d->options = *options;
	if (!d->options.prefill_chunk)
		d->options.prefill_chunk = PAWL_PREFILL_CHUNK;
	status = pawl_session_set_init(&d->sessions, source, device, &sessions, err);
	d->rows = pawl_memory_zalloc((size_t)(d->options.prefill_chunk + PAWL_MAX_BATCH),
		sizeof(*d->rows));
	if (!status && !d->rows)
		status = pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for the rows of a run");
	if (!status)
		status = make_pool(d, err);
	if (status) {
		pawl_paged_decoder_free(d);
		return status;
	}
	*out = d;
	return PAWL_OK;
}

void
pawl_paged_decoder_free(struct pawl_paged_decoder *d)
{
	if (!d)
		return;
	pawl_kv_block_pool_free(d->pool);
	d->pool = NULL;
	pawl_paged_forget_evicted(d);
	pawl_kv_cache_free(d->cache);
	pawl_session_set_release(&d->sessions);
	pawl_memory_free(d->rows);
	pawl_memory_free(d);
}

const struct pawl_paged_options *
pawl_paged_decoder_options(const struct pawl_paged_decoder *d)
{
	return &d->options;
}

int64_t
pawl_paged_decoder_n_vocab(const struct pawl_paged_decoder *d)
{
	return d->source.n_vocab;
}

struct pawl_kv_block_pool *
pawl_paged_decoder_pool(struct pawl_paged_decoder *d)
{
	return d->pool;
}

struct pawl_kv_cache *
pawl_paged_decoder_cache(struct pawl_paged_decoder *d)
{
	return d->cache;
}

struct pawl_inference_context *
pawl_paged_decoder_context(struct pawl_paged_decoder *d)
{
	return d->sessions.context;
}

/* With room in its list for all it may get, so that appending allocates nothing. */
enum pawl_status
pawl_paged_decoder_open(
	struct pawl_paged_decoder *d, struct pawl_kv_session_id *out, struct pawl_error *err)
{
	return pawl_kv_block_pool_open(
		d->pool, d->options.max_blocks * d->options.block_size, out, err);
}

/* Sequences that get the same number of tokens each, in one run. */
struct lot {
	struct pawl_kv_session_id sessions[PAWL_MAX_BATCH];
	int64_t before[PAWL_MAX_BATCH]; /* their lengths */
	int32_t tails[PAWL_MAX_BATCH];  /* the blocks of tails that were broken, -1: not broken */
	/*
	 * Shorter ones first: of those that share a tail the last may write to it, beyond what
	 * any of them sees, so that all may go back to it.
	 */
	int64_t order[PAWL_MAX_BATCH];
	int64_t n, each;
	const uint32_t *tokens; /* [n][each] */
	struct pawl_step_kind kind;
};

static enum pawl_status
refuse(const struct pawl_paged_decoder *d, const struct lot *lot, int64_t need,
	struct pawl_error *err)
{
	char copy[80] = "";

	for (int64_t i = 0; i < lot->n && !*copy; i++)
		if (pawl_kv_block_pool_tail_is_shared(d->pool, lot->sessions[i]))
			snprintf(copy, sizeof(copy),
				", one to copy the last block of session %" PRIu64
				", which is shared",
				lot->sessions[i].value);
	return pawl_fail(err, PAWL_CAPACITY,
		"%" PRId64 " blocks are needed%s, %" PRId64 " of %" PRId64 " are free", need, copy,
		pawl_kv_block_pool_free_blocks(d->pool), d->options.n_blocks);
}

static enum pawl_status
check_room(struct pawl_paged_decoder *d, struct lot *lot, struct pawl_error *err)
{
	int64_t most = d->options.max_blocks * d->options.block_size, need;
	struct pawl_kv_append appends[PAWL_MAX_BATCH];
	enum pawl_status status;

	for (int64_t i = 0; i < lot->n; i++)
		appends[i] = (struct pawl_kv_append){lot->sessions[i], lot->each};
	status = pawl_kv_block_pool_blocks_to_append(d->pool, appends, lot->n, &need, err);
	if (status)
		return status;
	for (int64_t i = 0; i < lot->n; i++) {
		lot->before[i] = pawl_kv_block_pool_session_len(d->pool, lot->sessions[i]);
		if (lot->each > most - lot->before[i])
			return pawl_fail(err, PAWL_CAPACITY,
				"%" PRId64 " more tokens do not fit: session %" PRIu64
				" holds %" PRId64 " of %" PRId64,
				lot->each, lot->sessions[i].value, lot->before[i], most);
	}
	return need > pawl_kv_block_pool_free_blocks(d->pool) ? refuse(d, lot, need, err)
							      : PAWL_OK;
}

/* A tail that others have too gets a copy, to be written to. */
static enum pawl_status
own_tail(struct pawl_paged_decoder *d, struct lot *lot, int64_t i, struct pawl_error *err)
{
	struct pawl_kv_session_id session = lot->sessions[i];
	int64_t slot = pawl_kv_block_pool_session_slots(d->pool, session) - 1;
	struct pawl_kv_copy_info info;
	struct pawl_kv_copy_id copy;
	enum pawl_status status;

	lot->tails[i] = -1;
	if (!pawl_kv_block_pool_tail_is_shared(d->pool, session))
		return PAWL_OK;
	status = pawl_kv_block_pool_cow_reserve(d->pool, session, slot, &copy, err);
	if (status || !copy.value)
		return status;
	status = pawl_kv_block_pool_copy(d->pool, copy, &info, err);
	if (status)
		return status;
	status = pawl_kv_block_copy_bytes(
		d->cache, d->options.block_size, info.blocks[0].from, info.blocks[0].to, err);
	if (status) {
		pawl_kv_block_pool_copy_abort(d->pool, copy, NULL);
		return status;
	}
	lot->tails[i] = info.blocks[0].from;
	return pawl_kv_block_pool_copy_commit(d->pool, copy, err);
}

/* The first n in order are as they were. */
static void
take_back(struct pawl_paged_decoder *d, const struct lot *lot, int64_t n)
{
	while (n--) {
		int64_t i = lot->order[n];
		struct pawl_kv_session_id session = lot->sessions[i];

		pawl_kv_block_pool_truncate(d->pool, session, lot->before[i], NULL);
		if (lot->tails[i] >= 0)
			pawl_kv_block_pool_copy_undo(d->pool, session,
				pawl_kv_block_pool_session_slots(d->pool, session) - 1,
				lot->tails[i], NULL);
	}
}

static void
sort(struct lot *lot)
{
	for (int64_t i = 0; i < lot->n; i++) {
		int64_t at = i;

		for (; at > 0 && lot->before[lot->order[at - 1]] > lot->before[i]; at--)
			lot->order[at] = lot->order[at - 1];
		lot->order[at] = i;
	}
}

static enum pawl_status
append_all(struct pawl_paged_decoder *d, struct lot *lot, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;
	int64_t n = 0;

	sort(lot);
	while (n < lot->n && !status) {
		int64_t i = lot->order[n++];

		status = own_tail(d, lot, i, err);
		if (!status)
			status = pawl_kv_block_pool_append(
				d->pool, lot->sessions[i], lot->each, err);
	}
	if (status)
		take_back(d, lot, n);
	return status;
}

static enum pawl_status
fill_sequence(struct pawl_paged_decoder *d, const struct lot *lot, int64_t i,
	struct pawl_token_row *rows, uint32_t *table, struct pawl_error *err)
{
	int64_t block_size = d->options.block_size;
	enum pawl_status status = pawl_kv_block_pool_block_table(
		d->pool, lot->sessions[i], table, d->options.max_blocks, err);

	for (int64_t j = 0; j < lot->each && !status; j++) {
		int64_t position = lot->before[i] + j;

		rows[j] = (struct pawl_token_row){
			.token = lot->tokens[i * lot->each + j],
			.position = position,
			.write_index = table[position / block_size] * block_size +
				       position % block_size,
		};
	}
	return status;
}

static enum pawl_status
run_session(struct pawl_paged_decoder *d, const struct lot *lot, struct pawl_held_session *held,
	struct pawl_error *err)
{
	struct pawl_token_buffers *buffers = &held->buffers;
	int64_t rows_each = lot->kind.seq / lot->kind.n_sequences;
	struct pawl_token_row *rows = d->rows;
	enum pawl_status status = PAWL_OK;
	struct pawl_token_data data;

	for (int64_t i = 0; i < lot->kind.seq; i++)
		rows[i] = (struct pawl_token_row){.position = -1};
	memset(buffers->block_table, 0,
		(size_t)(buffers->n_sequences * buffers->max_blocks) *
			sizeof(*buffers->block_table));
	for (int64_t i = 0; i < lot->n && !status; i++)
		status = fill_sequence(d, lot, i, rows + i * rows_each,
			buffers->block_table + i * buffers->max_blocks, err);
	if (!status)
		status = pawl_token_buffers_fill_rows(buffers, &d->source, rows, &data, err);
	if (!status)
		status = pawl_decode_session_realize(held->session, &data, &buffers->env,
			pawl_inference_context_counters(d->sessions.context), err);
	return status;
}

static enum pawl_status
run_lot(struct pawl_paged_decoder *d, struct lot *lot, const float **logits, struct pawl_error *err)
{
	struct pawl_held_session *held;
	enum pawl_status status = check_room(d, lot, err);

	if (!status)
		status = pawl_session_set_ready(&d->sessions, d->cache, lot->kind, &held, err);
	if (!status)
		status = append_all(d, lot, err);
	if (status)
		return status;
	status = run_session(d, lot, held, err);
	if (status) {
		take_back(d, lot, lot->n);
		return status;
	}
	pawl_inference_context_counters(d->sessions.context)->tokens += (uint64_t)(lot->n * lot->each);
	if (logits)
		*logits = pawl_decode_session_output(held->session, 0, NULL);
	return PAWL_OK;
}

/* The smallest of 1, 2, 4, 8 that holds n <= 8. */
static int64_t
bucket_of(int64_t n)
{
	int64_t bucket = 1;

	while (bucket < n)
		bucket *= 2;
	return bucket;
}

static enum pawl_status
check_batch(int64_t n, struct pawl_error *err)
{
	if (n > PAWL_MAX_BATCH)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"%" PRId64 " rows in one run, %d are possible", n, PAWL_MAX_BATCH);
	return PAWL_OK;
}

enum pawl_status
pawl_paged_decoder_step(struct pawl_paged_decoder *d, const struct pawl_paged_row *rows, int64_t n,
	const float **logits, struct pawl_error *err)
{
	struct lot lot = {.n = n, .each = 1};
	uint32_t tokens[PAWL_MAX_BATCH];
	enum pawl_status status = check_batch(n, err);
	int64_t bucket;

	if (status)
		return status;
	bucket = bucket_of(n);
	lot.kind = (struct pawl_step_kind){bucket, bucket, PAWL_LOGITS_ALL};
	for (int64_t i = 0; i < n; i++) {
		lot.sessions[i] = rows[i].session;
		tokens[i] = rows[i].token;
	}
	lot.tokens = tokens;
	status = pawl_check_tokens(&d->source, tokens, n, err);
	return status ? status : run_lot(d, &lot, logits, err);
}

enum pawl_status
pawl_paged_decoder_extend(struct pawl_paged_decoder *d, struct pawl_kv_session_id session,
	const uint32_t *tokens, int64_t n, const float **logits, struct pawl_error *err)
{
	struct lot lot = {.sessions = {session}, .n = 1, .each = n, .tokens = tokens};
	enum pawl_status status = check_batch(n, err);

	if (status)
		return status;
	lot.kind = (struct pawl_step_kind){bucket_of(n), 1, PAWL_LOGITS_ALL};
	status = pawl_check_tokens(&d->source, tokens, n, err);
	return status ? status : run_lot(d, &lot, logits, err);
}

bool
pawl_paged_decoder_has_room(
	struct pawl_paged_decoder *d, struct pawl_kv_session_id session, int64_t n)
{
	struct lot lot = {.sessions = {session}, .n = 1, .each = n};

	return !check_room(d, &lot, NULL);
}

/* The ids must have been checked. */
static enum pawl_status
feed(struct pawl_paged_decoder *d, struct pawl_kv_session_id session, const uint32_t *tokens,
	int64_t n, int64_t *taken, struct pawl_error *err)
{
	int64_t chunk = d->options.prefill_chunk;
	bool is_chunk = chunk > 1 && n > chunk / 4;
	struct lot lot = {
		.sessions = {session},
		.n = 1,
		.each = !is_chunk ? 1 : n < chunk ? n : chunk,
		.tokens = tokens,
		.kind = {is_chunk ? chunk : 1, 1, is_chunk ? PAWL_LOGITS_NONE : PAWL_LOGITS_ALL},
	};
	enum pawl_status status = run_lot(d, &lot, NULL, err);

	if (!status)
		*taken = lot.each;
	return status;
}

enum pawl_status
pawl_paged_decoder_feed(struct pawl_paged_decoder *d, struct pawl_kv_session_id session,
	const uint32_t *tokens, int64_t n, int64_t *taken, struct pawl_error *err)
{
	int64_t most = n < d->options.prefill_chunk ? n : d->options.prefill_chunk;
	enum pawl_status status = pawl_check_tokens(&d->source, tokens, most, err);

	return status ? status : feed(d, session, tokens, n, taken, err);
}

enum pawl_status
pawl_paged_decoder_prefill(struct pawl_paged_decoder *d, struct pawl_kv_session_id session,
	const uint32_t *tokens, int64_t n, const float **logits, struct pawl_error *err)
{
	struct lot all = {.sessions = {session}, .n = 1, .each = n};
	/* As many as have room may be looked at. */
	enum pawl_status status = n < 1 ? PAWL_OK : check_room(d, &all, err);
	int64_t take;

	if (!status)
		status = pawl_check_tokens(&d->source, tokens, n, err);
	if (!status)
		status = own_tail(d, &all, 0, err);
	if (status)
		return status;
	/* The last token brings the logits. */
	for (int64_t done = 0; done < n - 1 && !status; done += take)
		status = feed(d, session, tokens + done, n - 1 - done, &take, err);
	if (!status) {
		struct lot last = {.sessions = {session},
			.n = 1,
			.each = 1,
			.tokens = tokens + n - 1,
			.kind = {1, 1, PAWL_LOGITS_ALL}};

		status = run_lot(d, &last, logits, err);
	}
	if (status)
		take_back(d, &all, 1);
	return status;
}

void
pawl_paged_decoder_stats(const struct pawl_paged_decoder *d, struct pawl_decoder_stats *out)
{
	pawl_session_set_stats(&d->sessions, d->cache, out);
}

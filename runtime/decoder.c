#include "runtime/decoder.h"

#include "ir/each_token.h"
#include "runtime/memory.h"
#include "runtime/option_check.h"
#include "runtime/session_set.h"

#include <inttypes.h>

struct pawl_decoder {
	struct pawl_model_source source;
	struct pawl_decoder_options options;
	struct pawl_session_set sessions;
	struct pawl_kv_cache *cache;
};

static struct pawl_counters *
counters_of(struct pawl_decoder *d)
{
	return pawl_inference_context_counters(d->sessions.context);
}

enum pawl_status
pawl_decoder_rings(const struct pawl_model_source *source, const struct pawl_decoder_options *o,
	struct pawl_kv_rings *out, struct pawl_error *err)
{
	int64_t chunk = o->prefill_chunk ? o->prefill_chunk : PAWL_PREFILL_CHUNK, n;

	*out = (struct pawl_kv_rings){0};
	if (!o->rings || !source->window)
		return PAWL_OK;
	n = pawl_kv_ring_capacity(source->window, chunk, o->ring_rollback);
	if (n < 0)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"no ring holds a window of %" PRId64 ", chunks of %" PRId64
			" and a rollback of %" PRId64,
			source->window, chunk, o->ring_rollback);
	if (n < o->capacity)
		*out = (struct pawl_kv_rings){n, source->window, source->window_layers};
	return PAWL_OK;
}

enum pawl_status
pawl_decoder_new(const struct pawl_model_source *source, struct pawl_device *device,
	const struct pawl_decoder_options *options, struct pawl_decoder **out,
	struct pawl_error *err)
{
	struct pawl_kv_shape shape = {
		.n_layers = source->n_layers,
		.n_kv_heads = source->n_kv_heads,
		.head_dim = source->head_dim,
		.max_seq_len = options->capacity,
		.dtype = options->kv_dtype,
		.layout = {source->k_layout, PAWL_LAYOUT_ROWS},
	};
	const struct pawl_session_options sessions = {
		.n_threads = options->n_threads,
		.precision = options->precision,
		.replan = options->replan,
		.no_reuse = options->no_reuse,
		.plans = options->plans,
		.hooks = options->hooks,
		.built = options->built,
		.arg = options->arg,
	};
	enum pawl_status status;
	struct pawl_decoder *d;

	if (options->prefill_chunk < 0 || options->prefill_chunk > PAWL_MAX_PREFILL_CHUNK)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a prefill chunk of %" PRId64 " tokens; 1 to %d are possible",
			options->prefill_chunk, PAWL_MAX_PREFILL_CHUNK);
	status = pawl_check_option("kv_dtype", options->kv_dtype, 0, PAWL_N_DTYPES - 1, err);
	if (!status)
		status = pawl_decoder_rings(source, options, &shape.rings, err);
	if (status)
		return status;
	d = pawl_memory_zalloc(1, sizeof(*d));
	if (!d)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a decoder");
	d->source = *source;
	d->options = *options;
	if (!d->options.prefill_chunk)
		d->options.prefill_chunk = PAWL_PREFILL_CHUNK;
	status = pawl_session_set_init(&d->sessions, source, device, &sessions, err);
	if (!status)
		status = pawl_kv_cache_with_capacity(d->sessions.context, &shape, &d->cache, err);
	if (status) {
		pawl_decoder_free(d);
		return status;
	}
	*out = d;
	return PAWL_OK;
}

void
pawl_decoder_free(struct pawl_decoder *d)
{
	if (!d)
		return;
	pawl_kv_cache_free(d->cache);
	pawl_session_set_release(&d->sessions);
	pawl_memory_free(d);
}

static enum pawl_status
ready_session(struct pawl_decoder *d, int64_t seq, enum pawl_logits logits,
	struct pawl_held_session **out, struct pawl_error *err)
{
	const struct pawl_step_kind kind = {.seq = seq, .logits = logits};

	return pawl_session_set_ready(&d->sessions, d->cache, kind, out, err);
}

/* What a call of several runs has to return to when one of them fails. */
struct start {
	int64_t len;
	struct pawl_kv_kept *kept; /* NULL: rings still hold what is seen from there */
};

static void
end_runs(struct pawl_decoder *d, struct start *start, enum pawl_status status)
{
	if (status && start->kept)
		pawl_kv_cache_put_back(d->cache, start->kept);
	if (status)
		pawl_kv_cache_truncate_to(d->cache, start->len);
	pawl_memory_free(start->kept);
}

/*
 * Runs n <= seq tokens and advances the cache by n.  start: of a call of several runs, or NULL.
 * output: what `logits` gives, or NULL.
 */
PAWL_EACH_TOKEN static enum pawl_status
forward(struct pawl_decoder *d, struct start *start, const uint32_t *tokens, int64_t n, int64_t seq,
	enum pawl_logits logits, const void **output, struct pawl_error *err)
{
	enum pawl_status status = pawl_kv_cache_check_room(d->cache, seq, err);
	struct pawl_token_data data;
	struct pawl_held_session *held;

	if (!status)
		status = pawl_kv_cache_check_rows(d->cache, seq, err);
	if (!status)
		status = pawl_kv_cache_own(d->cache, err);
	if (!status)
		status = ready_session(d, seq, logits, &held, err);
	if (!status)
		status = pawl_token_buffers_fill(&held->buffers, &d->source, tokens, n,
			pawl_kv_cache_len(d->cache), &data, err);
	if (!status && start)
		status = pawl_kv_cache_keep(d->cache, start->len, seq, &start->kept, err);
	if (status)
		return status;
	pawl_kv_cache_note_write(d->cache, seq);
	status = pawl_decode_session_realize(
		held->session, &data, &held->buffers.env, counters_of(d), err);
	if (status)
		return status;
	pawl_kv_cache_advance(d->cache, n);
	counters_of(d)->tokens += (uint64_t)n;
	if (output)
		*output = pawl_decode_session_output(held->session, 0, NULL);
	return PAWL_OK;
}

static enum pawl_status
check_tokens(
	const struct pawl_decoder *d, const uint32_t *tokens, int64_t n, struct pawl_error *err)
{
	/* As many as have room may be looked at. */
	enum pawl_status status = n < 1 ? PAWL_OK : pawl_kv_cache_check_room(d->cache, n, err);

	return status ? status : pawl_check_tokens(&d->source, tokens, n, err);
}

/* Whether a chunk, filled up, is worth more than `n` single tokens, and fits. */
static bool
takes_chunk(const struct pawl_decoder *d, int64_t n)
{
	int64_t chunk = d->options.prefill_chunk;

	return chunk > 1 && n > chunk / 4 && !pawl_kv_cache_check_room(d->cache, chunk, NULL);
}

/* last: what the last token brings. */
static enum pawl_status
prefill(struct pawl_decoder *d, const uint32_t *tokens, int64_t n, enum pawl_logits last,
	const void **output, struct pawl_error *err)
{
	struct start start = {.len = pawl_kv_cache_len(d->cache)};
	int64_t chunk = d->options.prefill_chunk, take;
	enum pawl_status status = check_tokens(d, tokens, n, err);

	for (int64_t done = 0; done < n && !status; done += take) {
		int64_t left = n - done - 1;

		if (left > 0 && takes_chunk(d, left)) {
			take = left < chunk ? left : chunk;
			status = forward(d, &start, tokens + done, take, chunk, PAWL_LOGITS_NONE,
				NULL, err);
		} else {
			take = 1;
			status = forward(d, &start, tokens + done, 1, 1, last, output, err);
		}
	}
	end_runs(d, &start, status);
	return status;
}

enum pawl_status
pawl_decoder_prefill(struct pawl_decoder *d, const uint32_t *tokens, int64_t n,
	const float **logits, struct pawl_error *err)
{
	const void *output;
	enum pawl_status status = prefill(d, tokens, n, PAWL_LOGITS_LAST, &output, err);

	if (!status && logits)
		*logits = output;
	return status;
}

PAWL_EACH_TOKEN enum pawl_status
pawl_decoder_step(
	struct pawl_decoder *d, uint32_t token, const float **logits, struct pawl_error *err)
{
	const void *output;
	enum pawl_status status = check_tokens(d, &token, 1, err);

	if (!status)
		status = forward(d, NULL, &token, 1, 1, PAWL_LOGITS_LAST, &output, err);
	if (!status && logits)
		*logits = output;
	return status;
}

/* The output of a step that chooses. */
PAWL_EACH_TOKEN static enum pawl_status
take_choice(
	const struct pawl_decoder *d, const int32_t *choice, uint32_t *next, struct pawl_error *err)
{
	if (*choice < 0)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a logit after position %" PRId64 " is not a number",
			pawl_kv_cache_len(d->cache) - 1);
	*next = (uint32_t)*choice;
	return PAWL_OK;
}

enum pawl_status
pawl_decoder_prefill_greedy(struct pawl_decoder *d, const uint32_t *tokens, int64_t n,
	uint32_t *next, struct pawl_error *err)
{
	const void *choice;
	enum pawl_status status = prefill(d, tokens, n, PAWL_LOGITS_GREEDY, &choice, err);

	return status ? status : take_choice(d, choice, next, err);
}

PAWL_EACH_TOKEN enum pawl_status
pawl_decoder_step_greedy(
	struct pawl_decoder *d, uint32_t token, uint32_t *next, struct pawl_error *err)
{
	const void *choice;
	enum pawl_status status = check_tokens(d, &token, 1, err);

	if (!status)
		status = forward(d, NULL, &token, 1, 1, PAWL_LOGITS_GREEDY, &choice, err);
	return status ? status : take_choice(d, choice, next, err);
}

enum pawl_status
pawl_decoder_extend(struct pawl_decoder *d, const uint32_t *tokens, int64_t n, int64_t rows,
	const float **logits, struct pawl_error *err)
{
	const void *output;
	enum pawl_status status = check_tokens(d, tokens, n, err);

	if (!status && rows < n)
		status = pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"%" PRId64 " tokens in a run of %" PRId64 " rows", n, rows);
	if (!status)
		status = forward(d, NULL, tokens, n, rows,
			rows == 1 ? PAWL_LOGITS_LAST : PAWL_LOGITS_ALL, &output, err);
	if (!status)
		*logits = output;
	return status;
}

enum pawl_status
pawl_decoder_eval(struct pawl_decoder *d, const uint32_t *tokens, int64_t n,
	enum pawl_status (*row)(
		void *arg, int64_t position, const float *logits, struct pawl_error *err),
	void *arg, struct pawl_error *err)
{
	struct start start = {.len = pawl_kv_cache_len(d->cache)};
	int64_t chunk = d->options.prefill_chunk, take;
	enum pawl_status status = check_tokens(d, tokens, n, err);

	for (int64_t done = 0; done < n && !status; done += take) {
		int64_t position = pawl_kv_cache_len(d->cache);
		const void *rows;

		if (takes_chunk(d, n - done)) {
			take = n - done < chunk ? n - done : chunk;
			status = forward(d, &start, tokens + done, take, chunk, PAWL_LOGITS_ALL,
				&rows, err);
		} else {
			take = 1;
			status = forward(d, &start, tokens + done, 1, 1, PAWL_LOGITS_LAST, &rows,
				err);
		}
		for (int64_t i = 0; i < take && !status; i++)
			status = row(arg, position + i,
				(const float *)rows + i * d->source.n_vocab, err);
	}
	end_runs(d, &start, status);
	return status;
}

int64_t
pawl_decoder_len(const struct pawl_decoder *d)
{
	return pawl_kv_cache_len(d->cache);
}

int64_t
pawl_decoder_capacity(const struct pawl_decoder *d)
{
	return pawl_kv_cache_shape(d->cache)->max_seq_len;
}

int64_t
pawl_decoder_n_vocab(const struct pawl_decoder *d)
{
	return d->source.n_vocab;
}

enum pawl_status
pawl_decoder_reserve(struct pawl_decoder *d, int64_t n, struct pawl_error *err)
{
	return pawl_kv_cache_reserve(d->cache, n, err);
}

static enum pawl_status
identify(const struct pawl_decoder *d, struct pawl_kv_identity *out, struct pawl_error *err)
{
	if (!d->source.fingerprint)
		return pawl_fail(err, PAWL_UNSUPPORTED, "the model has no fingerprint");
	*out = (struct pawl_kv_identity){
		d->source.fingerprint(d->source.ctx), d->options.precision};
	return PAWL_OK;
}

enum pawl_status
pawl_decoder_save(const struct pawl_decoder *d, const uint32_t *tokens, int64_t n_tokens,
	const struct pawl_kv_snapshot_sink *to, struct pawl_error *err)
{
	struct pawl_kv_identity identity;
	enum pawl_status status = identify(d, &identity, err);

	return status ? status
		      : pawl_kv_snapshot_save(d->cache, &identity, tokens, n_tokens, to, err);
}

enum pawl_status
pawl_decoder_restore(
	struct pawl_decoder *d, const struct pawl_kv_snapshot *snapshot, struct pawl_error *err)
{
	struct pawl_kv_identity identity;
	enum pawl_status status = identify(d, &identity, err);

	return status ? status : pawl_kv_snapshot_restore(snapshot, &identity, d->cache, err);
}

void
pawl_decoder_truncate(struct pawl_decoder *d, int64_t n)
{
	pawl_kv_cache_truncate_to(d->cache, n);
}

struct pawl_kv_cache *
pawl_decoder_cache(struct pawl_decoder *d)
{
	return d->cache;
}

void
pawl_decoder_swap_cache(struct pawl_decoder *d, struct pawl_kv_cache **cache)
{
	struct pawl_kv_cache *other = *cache;

	*cache = d->cache;
	d->cache = other;
}

struct pawl_inference_context *
pawl_decoder_context(struct pawl_decoder *d)
{
	return d->sessions.context;
}

static enum pawl_status
prepare(struct pawl_decoder *d, int64_t n_tokens, enum pawl_logits logits,
	struct pawl_held_session **held, struct pawl_error *err)
{
	enum pawl_status status;

	if (n_tokens < 1 || n_tokens > pawl_decoder_capacity(d))
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a step of %" PRId64 " tokens on a cache of %" PRId64, n_tokens,
			pawl_decoder_capacity(d));
	status = pawl_check_option("logits", logits, 0, PAWL_N_LOGITS - 1, err);
	if (!status)
		status = pawl_kv_cache_check_rows(d->cache, n_tokens, err);
	if (!status)
		status = pawl_kv_cache_own(d->cache, err);
	return status ? status : ready_session(d, n_tokens, logits, held, err);
}

enum pawl_status
pawl_decoder_prepare(struct pawl_decoder *d, int64_t n_tokens, enum pawl_logits logits,
	const struct pawl_plan **plan, struct pawl_error *err)
{
	struct pawl_held_session *held;
	enum pawl_status status = prepare(d, n_tokens, logits, &held, err);

	if (!status && plan)
		*plan = pawl_decode_session_plan(held->session);
	return status;
}

enum pawl_status
pawl_decoder_time_steps(struct pawl_decoder *d, int64_t *step_ns, struct pawl_error *err)
{
	const struct pawl_device *device = pawl_inference_context_device(d->sessions.context);
	struct pawl_held_session *held;
	enum pawl_status status;

	if (!device->api->times_steps)
		return pawl_fail(err, PAWL_UNSUPPORTED, "target %s does not time its steps",
			device->api->name);
	status = prepare(d, 1, PAWL_LOGITS_LAST, &held, err);
	if (!status)
		pawl_bindings_time_steps(pawl_decode_session_bindings(held->session), step_ns);
	return status;
}

void
pawl_decoder_stats(const struct pawl_decoder *d, struct pawl_decoder_stats *out)
{
	pawl_session_set_stats(&d->sessions, d->cache, out);
}

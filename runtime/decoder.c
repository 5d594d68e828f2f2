#include "runtime/decoder.h"

#include "runtime/cpu_count.h"
#include "runtime/memory.h"
#include "runtime/token_data.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MAX_SESSIONS = 8, DEFAULT_CHUNK = 32 };

struct held {
	int64_t seq; /* 0: free */
	enum pawl_logits logits;
	uint64_t last_used;
	struct pawl_decode_session *session; /* NULL after it was dropped */
	struct pawl_plan *plan;              /* of the last session: may be regrown */
	struct pawl_token_buffers buffers;
};

struct pawl_decoder {
	struct pawl_model_source source;
	struct pawl_decoder_options options;
	struct pawl_inference_context *context;
	struct pawl_kv_cache *cache;
	struct held held[MAX_SESSIONS];
	uint64_t clock;
	struct pawl_disposition last;
	double build_seconds;
	char threads[160];
};

static struct pawl_counters *
counters_of(struct pawl_decoder *d)
{
	return pawl_inference_context_counters(d->context);
}

static enum pawl_status
check_options(const struct pawl_model_source *source, const struct pawl_decoder_options *o,
	struct pawl_error *err)
{
	if (source->n_layers < 1 || source->n_vocab < 1)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a model of %d layers and %" PRId64 " tokens", source->n_layers,
			source->n_vocab);
	if (o->prefill_chunk < 0 || o->prefill_chunk > 4096)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a prefill chunk of %" PRId64 " tokens; 1 to 4096 are possible",
			o->prefill_chunk);
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
	enum pawl_status status = check_options(source, options, err);
	struct pawl_decoder *d;
	int n_threads = options->n_threads;

	if (status)
		return status;
	d = pawl_memory_zalloc(1, sizeof(*d));
	if (!d)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a decoder");
	d->source = *source;
	d->options = *options;
	d->last.verdict.field = PAWL_KEY_NONE;
	if (!d->options.prefill_chunk)
		d->options.prefill_chunk = DEFAULT_CHUNK;
	pawl_weights_ref(source->weights);
	if (n_threads)
		snprintf(d->threads, sizeof(d->threads), "%d threads: as asked for", n_threads);
	else
		status = pawl_default_threads(d->threads, sizeof(d->threads), &n_threads, err);
	if (!status)
		status = pawl_inference_context_new(device, n_threads, &d->context, err);
	if (!status)
		status = pawl_kv_cache_with_capacity(d->context, &shape, &d->cache, err);
	if (status) {
		pawl_decoder_free(d);
		return status;
	}
	*out = d;
	return PAWL_OK;
}

static void
drop(struct held *held)
{
	pawl_token_buffers_release(&held->buffers);
	pawl_decode_session_free(held->session);
	pawl_plan_unref(held->plan);
	*held = (struct held){0};
}

void
pawl_decoder_free(struct pawl_decoder *d)
{
	if (!d)
		return;
	for (int i = 0; i < MAX_SESSIONS; i++)
		drop(&d->held[i]);
	pawl_kv_cache_free(d->cache);
	pawl_inference_context_free(d->context);
	pawl_weights_unref(d->source.weights);
	pawl_memory_free(d);
}

/* What a step of that kind needs now; the cache's side is asked anew each time. */
static struct pawl_plan_key
asked_key(const struct pawl_decoder *d, int64_t seq, enum pawl_logits logits)
{
	const struct pawl_kv_shape *shape = pawl_kv_cache_shape(d->cache);
	struct pawl_shape_key model = d->source.shape_key;

	pawl_shape_key_u64(&model, logits);
	return (struct pawl_plan_key){
		.seq = seq,
		.max_seq_len = shape->max_seq_len,
		.n_layers = d->source.n_layers,
		.cache_dtype = shape->dtype,
		.shape_key = model.value,
		.precision = d->options.precision,
		.n_kv_heads = shape->n_kv_heads,
		.head_dim = shape->head_dim,
		.k_layout = shape->layout[PAWL_KV_K],
		.v_layout = shape->layout[PAWL_KV_V],
		.device = pawl_inference_context_device(d->context)->id,
	};
}

/* The entry for that kind of step; the least recently used one makes room. */
static struct held *
find_held(struct pawl_decoder *d, int64_t seq, enum pawl_logits logits)
{
	struct held *oldest = &d->held[0];

	for (int i = 0; i < MAX_SESSIONS; i++) {
		struct held *held = &d->held[i];

		if (held->seq == seq && held->logits == logits) {
			oldest = held;
			goto found;
		}
		if (held->last_used < oldest->last_used)
			oldest = held;
	}
	drop(oldest);
	oldest->seq = seq;
	oldest->logits = logits;
found:
	oldest->last_used = ++d->clock;
	return oldest;
}

static bool
serves(const struct pawl_plan_key *held, const struct pawl_plan_key *key)
{
	const struct pawl_kv_alloc_id any = {0};

	return pawl_plan_validity(held, any, key, any).validity == PAWL_VALID;
}

/* Whether a plan would serve `key` if it were of that capacity. */
static bool
may_regrow(const struct pawl_plan *plan, const struct pawl_plan_key *key)
{
	struct pawl_plan_key grown;

	if (!plan || plan->key.max_seq_len == key->max_seq_len)
		return false;
	grown = plan->key;
	grown.max_seq_len = key->max_seq_len;
	return serves(&grown, key);
}

static enum pawl_status
plan_graph(struct pawl_decoder *d, const struct held *held, const struct pawl_graph *graph,
	const struct pawl_plan_options *options, enum pawl_rebuild_reason reason,
	struct pawl_plan **out, struct pawl_error *err)
{
	enum pawl_status status = PAWL_UNSUPPORTED;

	if (!d->options.replan && may_regrow(held->plan, &options->key))
		status = pawl_plan_regrow(held->plan, graph, options, out, err);
	if (!status)
		counters_of(d)->regrows++;
	if (status != PAWL_UNSUPPORTED)
		return status;
	status = pawl_plan_build(
		graph, pawl_inference_context_device(d->context), options, out, err);
	if (status)
		return status;
	counters_of(d)->builds[reason]++;
	if (d->options.built)
		d->options.built(d->options.arg, *out);
	return PAWL_OK;
}

static enum pawl_status
make_plan(struct pawl_decoder *d, const struct held *held, const struct pawl_plan_key *key,
	enum pawl_rebuild_reason reason, struct pawl_plan **out, struct pawl_error *err)
{
	const struct pawl_graph_request request = {
		key->seq, key->max_seq_len, key->cache_dtype, held->logits};
	const struct pawl_plan_options options = {
		.key = *key, .no_reuse = d->options.no_reuse, .counters = counters_of(d)};
	struct pawl_graph *graph;
	enum pawl_status status;

	*out = NULL;
	/* A session that could not be made left its plan. */
	if (reason == PAWL_REBUILD_FIRST && held->plan && serves(&held->plan->key, key))
		*out = pawl_plan_ref(held->plan);
	else if (d->options.plans && !d->options.replan)
		*out = pawl_plan_cache_find(d->options.plans, key);
	if (*out)
		return PAWL_OK;
	status = d->source.build(d->source.ctx, &request, &graph, err);
	if (status)
		return status;
	status = plan_graph(d, held, graph, &options, reason, out, err);
	pawl_graph_free(graph);
	if (!status && d->options.plans)
		pawl_plan_cache_put(d->options.plans, *out);
	return status;
}

static double
seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static enum pawl_status
build_session(struct pawl_decoder *d, struct held *held, const struct pawl_plan_key *key,
	enum pawl_rebuild_reason reason, struct pawl_error *err)
{
	struct pawl_plan *plan;
	enum pawl_status status = make_plan(d, held, key, reason, &plan, err);

	if (status)
		return status;
	pawl_plan_unref(held->plan);
	held->plan = plan;
	pawl_token_buffers_release(&held->buffers);
	status = pawl_decode_session_new(plan, d->source.weights, d->cache,
		pawl_inference_context_team(d->context), &held->session, err);
	if (!status)
		status = pawl_token_buffers_init(&held->buffers, held->session, err);
	if (!status && held->buffers.rope_width && !d->source.rope)
		status = pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"the graph has rope tables, the model source none");
	if (status) {
		pawl_token_buffers_release(&held->buffers);
		pawl_decode_session_free(held->session);
		held->session = NULL;
	}
	return status;
}

/* A session that may serve the present cache. */
static enum pawl_status
ready_session(struct pawl_decoder *d, int64_t seq, enum pawl_logits logits, struct held **out,
	struct pawl_error *err)
{
	const struct pawl_plan_key key = asked_key(d, seq, logits);
	const struct pawl_kv_rebind_source source = pawl_kv_cache_source(d->cache);
	struct held *held = find_held(d, seq, logits);
	enum pawl_rebuild_reason reason = PAWL_REBUILD_FIRST;
	enum pawl_status status;
	double start;

	*out = held;
	if (held->session && d->options.replan) {
		pawl_token_buffers_release(&held->buffers);
		pawl_decode_session_free(held->session);
		held->session = NULL;
		reason = PAWL_REBUILD_ASKED;
	}
	pawl_decode_session_refresh(&held->session, &key, &source,
		(struct pawl_invalidate){NULL, NULL}, counters_of(d), &d->last);
	if (held->session)
		return PAWL_OK;
	if (d->last.kind == PAWL_SESSION_DROPPED)
		reason = d->last.refusal.kind ? PAWL_REBUILD_REFUSED : PAWL_REBUILD_STALE;
	start = seconds_now();
	status = build_session(d, held, &key, reason, err);
	d->build_seconds += seconds_now() - start;
	return status;
}

/* Runs n <= seq tokens and advances the cache by n. */
static enum pawl_status
forward(struct pawl_decoder *d, const uint32_t *tokens, int64_t n, int64_t seq,
	enum pawl_logits logits, const float **rows, struct pawl_error *err)
{
	enum pawl_status status = pawl_kv_cache_check_room(d->cache, seq, err);
	struct pawl_token_data data;
	struct held *held;

	if (!status)
		status = pawl_kv_cache_own(d->cache, err);
	if (!status)
		status = ready_session(d, seq, logits, &held, err);
	if (!status)
		status = pawl_token_buffers_fill(&held->buffers, &d->source, tokens, n,
			pawl_kv_cache_len(d->cache), &data, err);
	if (!status)
		status = pawl_decode_session_realize(
			held->session, &data, &held->buffers.env, counters_of(d), err);
	if (status)
		return status;
	pawl_kv_cache_advance(d->cache, n);
	counters_of(d)->tokens += (uint64_t)n;
	if (rows)
		*rows = pawl_decode_session_output(held->session, 0, NULL);
	return PAWL_OK;
}

static enum pawl_status
check_tokens(
	const struct pawl_decoder *d, const uint32_t *tokens, int64_t n, struct pawl_error *err)
{
	if (n < 1)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "no tokens are given");
	for (int64_t i = 0; i < n; i++)
		if (tokens[i] >= d->source.n_vocab)
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"token %" PRId64 " is %u, the model has %" PRId64, i, tokens[i],
				d->source.n_vocab);
	return pawl_kv_cache_check_room(d->cache, n, err);
}

/* Whether a chunk, filled up, is worth more than `n` single tokens, and fits. */
static bool
takes_chunk(const struct pawl_decoder *d, int64_t n)
{
	int64_t chunk = d->options.prefill_chunk;

	return chunk > 1 && n > chunk / 4 && !pawl_kv_cache_check_room(d->cache, chunk, NULL);
}

enum pawl_status
pawl_decoder_prefill(struct pawl_decoder *d, const uint32_t *tokens, int64_t n,
	const float **logits, struct pawl_error *err)
{
	int64_t before = pawl_kv_cache_len(d->cache), chunk = d->options.prefill_chunk, take;
	enum pawl_status status = check_tokens(d, tokens, n, err);

	for (int64_t done = 0; done < n && !status; done += take) {
		int64_t left = n - done - 1; /* the last token brings the logits */

		if (left > 0 && takes_chunk(d, left)) {
			take = left < chunk ? left : chunk;
			status =
				forward(d, tokens + done, take, chunk, PAWL_LOGITS_NONE, NULL, err);
		} else {
			take = 1;
			status = forward(d, tokens + done, 1, 1, PAWL_LOGITS_LAST, logits, err);
		}
	}
	if (status)
		pawl_kv_cache_truncate_to(d->cache, before);
	return status;
}

enum pawl_status
pawl_decoder_step(
	struct pawl_decoder *d, uint32_t token, const float **logits, struct pawl_error *err)
{
	enum pawl_status status = check_tokens(d, &token, 1, err);

	return status ? status : forward(d, &token, 1, 1, PAWL_LOGITS_LAST, logits, err);
}

enum pawl_status
pawl_decoder_eval(struct pawl_decoder *d, const uint32_t *tokens, int64_t n,
	enum pawl_status (*row)(
		void *arg, int64_t position, const float *logits, struct pawl_error *err),
	void *arg, struct pawl_error *err)
{
	int64_t before = pawl_kv_cache_len(d->cache), chunk = d->options.prefill_chunk, take;
	enum pawl_status status = check_tokens(d, tokens, n, err);

	for (int64_t done = 0; done < n && !status; done += take) {
		int64_t position = pawl_kv_cache_len(d->cache);
		const float *rows;

		if (takes_chunk(d, n - done)) {
			take = n - done < chunk ? n - done : chunk;
			status =
				forward(d, tokens + done, take, chunk, PAWL_LOGITS_ALL, &rows, err);
		} else {
			take = 1;
			status = forward(d, tokens + done, 1, 1, PAWL_LOGITS_LAST, &rows, err);
		}
		for (int64_t i = 0; i < take && !status; i++)
			status = row(arg, position + i, rows + i * d->source.n_vocab, err);
	}
	if (status)
		pawl_kv_cache_truncate_to(d->cache, before);
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
	const char *path, struct pawl_error *err)
{
	struct pawl_kv_identity identity;
	enum pawl_status status = identify(d, &identity, err);

	return status ? status
		      : pawl_kv_snapshot_save(d->cache, &identity, tokens, n_tokens, path, err);
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
	return d->context;
}

enum pawl_status
pawl_decoder_prepare(struct pawl_decoder *d, int64_t n_tokens, enum pawl_logits logits,
	const struct pawl_plan **plan, struct pawl_error *err)
{
	struct held *held;
	enum pawl_status status;

	if (n_tokens < 1 || n_tokens > pawl_decoder_capacity(d))
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a step of %" PRId64 " tokens on a cache of %" PRId64, n_tokens,
			pawl_decoder_capacity(d));
	status = pawl_kv_cache_own(d->cache, err);
	if (!status)
		status = ready_session(d, n_tokens, logits, &held, err);
	if (!status && plan)
		*plan = pawl_decode_session_plan(held->session);
	return status;
}

void
pawl_decoder_stats(const struct pawl_decoder *d, struct pawl_decoder_stats *out)
{
	*out = (struct pawl_decoder_stats){
		.counters = *pawl_inference_context_counters(d->context),
		.kernel_compiles =
			pawl_device_kernel_compiles(pawl_inference_context_device(d->context)),
		.allocations = pawl_memory_allocations(),
		.kv_bytes = pawl_kv_shape_bytes(pawl_kv_cache_shape(d->cache)),
		.packed_bytes = pawl_weights_packed_bytes(d->source.weights),
		.build_seconds = d->build_seconds,
		.last = d->last,
	};
	for (int i = 0; i < MAX_SESSIONS; i++)
		out->n_sessions += d->held[i].session != NULL;
	memcpy(out->threads, d->threads, sizeof(out->threads));
}

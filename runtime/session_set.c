#include "runtime/session_set.h"

#include "ir/each_token.h"
#include "runtime/clock.h"
#include "runtime/cpu_count.h"
#include "runtime/memory.h"
#include "runtime/option_check.h"
#include "runtime/step_graph.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum pawl_status
pawl_session_set_init(struct pawl_session_set *set, const struct pawl_model_source *source,
	struct pawl_device *device, const struct pawl_session_options *options,
	struct pawl_error *err)
{
	const struct pawl_run_hooks none = {.is_stopped = NULL};
	int n_threads = options->n_threads;
	enum pawl_status status = pawl_check_option(
		"precision", options->precision, 0, PAWL_N_PRECISIONS - 1, err);

	*set = (struct pawl_session_set){
		.source = *source, .options = *options, .last.verdict.field = PAWL_KEY_NONE};
	pawl_weights_ref(source->weights);
	if (status)
		return status;
	if (source->n_layers < 1 || source->n_vocab < 1)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a model of %d layers and %" PRId64 " tokens", source->n_layers,
			source->n_vocab);
	if (n_threads)
		snprintf(set->threads, sizeof(set->threads), "%d thread%s: as asked for",
			n_threads, n_threads == 1 ? "" : "s");
	else
		status = pawl_default_threads(
			set->threads, sizeof(set->threads), &n_threads, err);
	set->options.hooks = NULL;
	return status ? status
		      : pawl_inference_context_new_with(device, n_threads,
				options->hooks ? options->hooks : &none, &set->context, err);
}

static void
drop_session(struct pawl_held_session *held)
{
	pawl_token_buffers_release(&held->buffers);
	pawl_decode_session_free(held->session);
	held->session = NULL;
}

static void
drop(struct pawl_held_session *held)
{
	drop_session(held);
	pawl_plan_unref(held->plan);
	*held = (struct pawl_held_session){0};
}

void
pawl_session_set_release(struct pawl_session_set *set)
{
	for (int i = 0; i < PAWL_MAX_HELD_SESSIONS; i++)
		drop(&set->held[i]);
	pawl_inference_context_free(set->context);
	pawl_weights_unref(set->source.weights);
	*set = (struct pawl_session_set){0};
}

void
pawl_session_set_stats(const struct pawl_session_set *set, const struct pawl_kv_cache *cache,
	struct pawl_decoder_stats *out)
{
	struct pawl_target_counters target;

	pawl_device_counters(pawl_inference_context_device(set->context), &target);
	*out = (struct pawl_decoder_stats){
		.counters = *pawl_inference_context_counters(set->context),
		.kernel_compiles = target.kernel_compiles,
		.kernels_read = target.kernels_read,
		.captures = target.captures,
		.graph_launches = target.graph_launches,
		.capture_failures = target.capture_failures,
		.capture_fault = target.capture_fault,
		.thread_step_backs = pawl_inference_context_step_backs(set->context),
		.allocations = pawl_memory_allocations(),
		.kv_bytes = pawl_kv_shape_bytes(pawl_kv_cache_shape(cache)),
		.packed_bytes = pawl_weights_packed_bytes(set->source.weights),
		.build_seconds = set->build_seconds,
		.last = set->last,
	};
	for (int i = 0; i < PAWL_MAX_HELD_SESSIONS; i++)
		out->n_sessions += set->held[i].session != NULL;
	memcpy(out->threads, set->threads, sizeof(out->threads));
}

static struct pawl_counters *
counters_of(struct pawl_session_set *set)
{
	return pawl_inference_context_counters(set->context);
}

/* What a step of that kind needs now; the cache's side is asked anew each time. */
PAWL_EACH_TOKEN static struct pawl_plan_key
asked_key(const struct pawl_session_set *set, const struct pawl_kv_cache *cache,
	struct pawl_step_kind kind)
{
	const struct pawl_kv_shape *shape = pawl_kv_cache_shape(cache);
	struct pawl_shape_key model = set->source.shape_key;

	pawl_shape_key_u64(&model, kind.logits);
	return (struct pawl_plan_key){
		.seq = kind.seq,
		.max_seq_len = shape->max_seq_len,
		.n_layers = set->source.n_layers,
		.cache_dtype = shape->dtype,
		.shape_key = model.value,
		.precision = set->options.precision,
		.n_kv_heads = shape->n_kv_heads,
		.head_dim = shape->head_dim,
		.k_layout = shape->layout[PAWL_KV_K],
		.v_layout = shape->layout[PAWL_KV_V],
		.device = pawl_inference_context_device(set->context)->id,
		.ring = shape->rings.positions,
		.ring_window = shape->rings.positions ? shape->rings.window : 0,
		.n_sequences = kind.n_sequences,
		.block_size = kind.n_sequences ? set->options.block_size : 0,
		.max_blocks = kind.n_sequences ? set->options.max_blocks : 0,
	};
}

/* A plan bakes the model's windows, on which depends how far back a cache of rings may go. */
PAWL_EACH_TOKEN static enum pawl_status
check_rings(const struct pawl_model_source *source, const struct pawl_kv_rings *rings,
	struct pawl_error *err)
{
	if (!rings->positions)
		return PAWL_OK;
	if (rings->window != source->window)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"the cache has rings for a window of %" PRId64 ", the model has %" PRId64,
			rings->window, source->window);
	for (int64_t i = 0; i < source->n_layers; i++)
		if (pawl_layer_set_has(&rings->layers, i) !=
			pawl_layer_set_has(&source->window_layers, i))
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"layer %" PRId64 " has %s ring in the cache and %s window in the "
				"model", i,
				pawl_layer_set_has(&rings->layers, i) ? "a" : "no",
				pawl_layer_set_has(&source->window_layers, i) ? "a" : "no");
	return PAWL_OK;
}

static bool
is_same_kind(struct pawl_step_kind a, struct pawl_step_kind b)
{
	return a.seq == b.seq && a.n_sequences == b.n_sequences && a.logits == b.logits;
}

/* The entry for that kind of step; the least recently used one makes room. */
PAWL_EACH_TOKEN static struct pawl_held_session *
find_held(struct pawl_session_set *set, struct pawl_step_kind kind)
{
	struct pawl_held_session *oldest = &set->held[0];

	for (int i = 0; i < PAWL_MAX_HELD_SESSIONS; i++) {
		struct pawl_held_session *held = &set->held[i];

		if (is_same_kind(held->kind, kind)) {
			oldest = held;
			goto found;
		}
		if (held->last_used < oldest->last_used)
			oldest = held;
	}
	drop(oldest);
	oldest->kind = kind;
found:
	oldest->last_used = ++set->clock;
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
plan_graph(struct pawl_session_set *set, const struct pawl_held_session *held,
	const struct pawl_graph *graph, const struct pawl_plan_options *options,
	enum pawl_rebuild_reason reason, struct pawl_plan **out, struct pawl_error *err)
{
	enum pawl_status status = PAWL_UNSUPPORTED;

	if (!set->options.replan && may_regrow(held->plan, &options->key))
		status = pawl_plan_regrow(held->plan, graph, options, out, err);
	if (!status)
		counters_of(set)->regrows++;
	if (status != PAWL_UNSUPPORTED)
		return status;
	status = pawl_plan_build(
		graph, pawl_inference_context_device(set->context), options, out, err);
	if (status)
		return status;
	counters_of(set)->builds[reason]++;
	if (set->options.built)
		set->options.built(set->options.arg, *out);
	return PAWL_OK;
}

static enum pawl_status
make_plan(struct pawl_session_set *set, const struct pawl_held_session *held,
	const struct pawl_kv_shape *shape, const struct pawl_plan_key *key,
	enum pawl_rebuild_reason reason, struct pawl_plan **out, struct pawl_error *err)
{
	const struct pawl_graph_request request = {
		.n_tokens = key->seq,
		.capacity = key->max_seq_len,
		.kv_dtype = key->cache_dtype,
		.logits = held->kind.logits,
		.ring = key->ring,
		.n_sequences = key->n_sequences,
		.block_size = key->block_size,
		.max_blocks = key->max_blocks,
	};
	const struct pawl_plan_options options = {
		.key = *key, .no_reuse = set->options.no_reuse, .counters = counters_of(set)};
	struct pawl_graph *graph;
	enum pawl_status status;

	*out = NULL;
	/* A session that could not be made left its plan. */
	if (reason == PAWL_REBUILD_FIRST && held->plan && serves(&held->plan->key, key))
		*out = pawl_plan_ref(held->plan);
	else if (set->options.plans && !set->options.replan)
		*out = pawl_plan_cache_find(set->options.plans, key);
	if (*out)
		return PAWL_OK;
	status = set->source.build(set->source.ctx, &request, &graph, err);
	if (status)
		return status;
	status = pawl_step_graph_check(graph, &set->source, &request, shape, err);
	if (!status)
		status = plan_graph(set, held, graph, &options, reason, out, err);
	pawl_graph_free(graph);
	if (!status && set->options.plans)
		pawl_plan_cache_put(set->options.plans, *out);
	return status;
}

static enum pawl_status
build_session(struct pawl_session_set *set, struct pawl_kv_cache *cache,
	struct pawl_held_session *held, const struct pawl_plan_key *key,
	enum pawl_rebuild_reason reason, struct pawl_error *err)
{
	const struct pawl_run_hooks *hooks = pawl_inference_context_hooks(set->context);
	struct pawl_plan *plan;
	enum pawl_status status = make_plan(
		set, held, pawl_kv_cache_shape(cache), key, reason, &plan, err);

	if (status)
		return status;
	pawl_plan_unref(held->plan);
	held->plan = plan;
	status = pawl_decode_session_new(plan, set->source.weights, cache,
		pawl_inference_context_team(set->context), &held->session, err);
	if (!status)
		pawl_bindings_set_stop(pawl_decode_session_bindings(held->session),
			hooks->is_stopped, hooks->stop_arg);
	if (!status)
		status = pawl_token_buffers_init(&held->buffers, held->session, err);
	if (status)
		drop_session(held);
	/* Another one may be built next time, of other consts. */
	if (status == PAWL_INVALID_GRAPH || status == PAWL_INVALID_ARGUMENT) {
		pawl_plan_unref(held->plan);
		held->plan = NULL;
	}
	return status;
}

PAWL_EACH_TOKEN enum pawl_status
pawl_session_set_ready(struct pawl_session_set *set, struct pawl_kv_cache *cache,
	struct pawl_step_kind kind, struct pawl_held_session **out, struct pawl_error *err)
{
	const struct pawl_plan_key key = asked_key(set, cache, kind);
	const struct pawl_kv_rebind_source source = pawl_kv_cache_source(cache);
	enum pawl_status status =
		check_rings(&set->source, &pawl_kv_cache_shape(cache)->rings, err);
	enum pawl_rebuild_reason reason = PAWL_REBUILD_FIRST;
	struct pawl_held_session *held;
	double start;

	if (status)
		return status;
	held = *out = find_held(set, kind);
	if (held->session && set->options.replan) {
		drop_session(held);
		reason = PAWL_REBUILD_ASKED;
	}
	pawl_decode_session_refresh(&held->session, &key, &source,
		(struct pawl_invalidate){NULL, NULL}, counters_of(set), &set->last);
	if (held->session)
		return PAWL_OK;
	pawl_token_buffers_release(&held->buffers);
	if (set->last.kind == PAWL_SESSION_DROPPED)
		reason = set->last.refusal.kind ? PAWL_REBUILD_REFUSED : PAWL_REBUILD_STALE;
	start = pawl_seconds();
	status = build_session(set, cache, held, &key, reason, err);
	set->build_seconds += pawl_seconds() - start;
	return status;
}

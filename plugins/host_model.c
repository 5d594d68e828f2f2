#include "plugins/host_model.h"

#include <string.h>

#include "ir/print.h"

/* Sizes of version 1. */
enum { MODEL_OPTIONS_1 = 120, TYPE_BYTES = 96 };

_Static_assert(sizeof(struct pawl_model_options) >= MODEL_OPTIONS_1, "structs only grow");

enum pawl_status
pawl_host_kv_type(const char *name, enum pawl_dtype *out, struct pawl_error *err)
{
	for (int i = 0; i < PAWL_N_DTYPES; i++)
		if (!strcmp(name ? name : "f16", pawl_dtype_name((enum pawl_dtype)i))) {
			*out = (enum pawl_dtype)i;
			return PAWL_OK;
		}
	return pawl_fail(err, PAWL_INVALID_ARGUMENT, "kv_type '%.32s' is no element type", name);
}

struct pawl_run_hooks
pawl_host_hooks(struct pawl_host_context *context)
{
	return (struct pawl_run_hooks){
		.threads = {context->services.parallel_for, context->services.user},
		.is_stopped = context->services.is_aborted ? pawl_host_is_aborted : NULL,
		.stop_arg = context,
	};
}

static uint64_t
n_builds(const struct pawl_counters *counters)
{
	return counters->builds[PAWL_REBUILD_FIRST] + pawl_counters_rebuilds(counters);
}

static void
note(struct pawl_host_context *context, const struct pawl_counters *before,
	const struct pawl_counters *after)
{
	struct pawl_host_counts *counts = &context->counts;

	atomic_fetch_add(&counts->plans, n_builds(after) - n_builds(before));
	atomic_fetch_add(&counts->regrown, after->regrows - before->regrows);
	atomic_fetch_add(&counts->runs, after->runs - before->runs);
	atomic_fetch_add(&counts->run_ns, after->run_ns - before->run_ns);
	atomic_fetch_add(&counts->positions, after->tokens - before->tokens);
	atomic_fetch_add(&counts->bytes_bound, after->bytes_bound - before->bytes_bound);
	atomic_fetch_add(&counts->verdicts[PAWL_CACHE_KEPT],
		after->verdicts[PAWL_VALID] - before->verdicts[PAWL_VALID]);
	atomic_fetch_add(&counts->verdicts[PAWL_CACHE_REBOUND], after->rebinds - before->rebinds);
	atomic_fetch_add(&counts->verdicts[PAWL_CACHE_STALE],
		after->verdicts[PAWL_PLAN_STALE] - before->verdicts[PAWL_PLAN_STALE]);
}

void
pawl_host_call_begin(struct pawl_host_call *call, struct pawl_host_context *context,
	struct pawl_inference_context *driver)
{
	*call = (struct pawl_host_call){context, driver, pawl_host_enter(context),
		*pawl_inference_context_counters(driver)};
}

struct pawl_host_status *
pawl_host_call_end(
	struct pawl_host_call *call, enum pawl_status status, const struct pawl_error *err)
{
	pawl_host_leave(call->source);
	note(call->context, &call->counters, pawl_inference_context_counters(call->driver));
	if (status)
		atomic_fetch_add(&call->context->counts.failed_runs, 1);
	return pawl_host_status(status, err);
}

static void
kv_text(char out[TYPE_BYTES], const struct pawl_host_model *model, enum pawl_dtype dtype,
	int64_t positions, enum pawl_layout layout)
{
	const int64_t dims[] = {1, model->options.n_kv_heads, positions, model->options.head_dim};
	struct pawl_type type = pawl_type_make(dtype, 4, dims);

	type.layout = layout;
	pawl_print_type(out, TYPE_BYTES, NULL, &type);
}

/* Of pawl_model_source: asks the host for the graph. */
static enum pawl_status
build(void *ctx, const struct pawl_graph_request *asked, struct pawl_graph **out,
	struct pawl_error *err)
{
	struct pawl_host_model *model = ctx;
	enum pawl_layout k_layout = model->source.k_layout;
	char types[4][TYPE_BYTES] = {"", "", "", ""};
	struct pawl_step_request request = {.struct_size = sizeof(request),
		.n_tokens = asked->n_tokens,
		.capacity = asked->capacity,
		.logits = (int64_t)asked->logits,
		.k_type = types[0],
		.v_type = types[1],
		.ring_k_type = types[2],
		.ring_v_type = types[3],
		.ring = asked->ring,
		.n_sequences = asked->n_sequences,
		.block_size = asked->block_size,
		.max_blocks = asked->max_blocks};
	struct pawl_host_graph *graph;
	struct pawl_host_status *failed =
		pawl_host_graph_create(model->object.context, "step", &graph);
	enum pawl_status status = PAWL_OK;

	if (failed) {
		pawl_host_status_free(failed);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a graph");
	}
	kv_text(types[0], model, asked->kv_dtype, asked->capacity, k_layout);
	kv_text(types[1], model, asked->kv_dtype, asked->capacity, PAWL_LAYOUT_ROWS);
	if (asked->ring) {
		kv_text(types[2], model, asked->kv_dtype, asked->ring, k_layout);
		kv_text(types[3], model, asked->kv_dtype, asked->ring, PAWL_LAYOUT_ROWS);
	}
	if (model->options.build(model->options.user, &request, graph)) {
		status = pawl_fail(err, PAWL_ENVIRONMENT, "the host built no graph of %lld tokens",
			(long long)asked->n_tokens);
	} else {
		*out = pawl_text_graph_take(graph->text);
		graph->text = NULL;
	}
	pawl_host_graph_release(graph);
	return status;
}

static void
rope(void *ctx, int64_t position, int64_t width, float *cos, float *sin)
{
	const struct pawl_host_model *model = ctx;

	(void)width;
	model->options.rope(model->options.user, position, cos, sin);
}

static void
window_rope(void *ctx, int64_t position, int64_t width, float *cos, float *sin)
{
	const struct pawl_host_model *model = ctx;

	(void)width;
	model->options.window_rope(model->options.user, position, cos, sin);
}

static uint64_t
fingerprint(void *ctx)
{
	return ((const struct pawl_host_model *)ctx)->options.model;
}

static enum pawl_status
check(const struct pawl_model_options *o, struct pawl_error *err)
{
	if (!o->build)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "model_create: build is NULL");
	if (o->n_layers < 1 || o->n_layers > PAWL_MAX_WINDOW_LAYERS || o->n_kv_heads < 1 ||
		o->head_dim < 1 || o->n_vocab < 1 || o->n_vocab > UINT32_MAX)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"model_create: %lld layers (1 to %d are possible), %lld kv heads of %lld, "
			"%lld tokens",
			(long long)o->n_layers, PAWL_MAX_WINDOW_LAYERS, (long long)o->n_kv_heads,
			(long long)o->head_dim, (long long)o->n_vocab);
	if (o->rope_width < 0 || (o->rope_width && !o->rope) || o->rope_halves < 0 ||
		o->rope_halves > 1)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"model_create: a rope of width %lld without its function",
			(long long)o->rope_width);
	if (o->window < 0 || o->n_window_layers < 0 || (o->n_window_layers && !o->window_layers) ||
		!o->window != !o->n_window_layers)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"model_create: a window of %lld in %lld layers", (long long)o->window,
			(long long)o->n_window_layers);
	for (int64_t i = 0; i < o->n_window_layers; i++)
		if (o->window_layers[i] < 0 || o->window_layers[i] >= o->n_layers)
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"model_create: a window in layer %lld of %lld",
				(long long)o->window_layers[i], (long long)o->n_layers);
	return PAWL_OK;
}

static void
fill_source(struct pawl_host_model *model)
{
	const struct pawl_model_options *o = &model->options;

	model->source = (struct pawl_model_source){
		.ctx = model,
		.weights = pawl_host_weights_of(model->weights),
		.shape_key = PAWL_SHAPE_KEY_INIT,
		.n_layers = (int32_t)o->n_layers,
		.n_kv_heads = o->n_kv_heads,
		.head_dim = o->head_dim,
		.n_vocab = o->n_vocab,
		.k_layout = PAWL_LAYOUT_K16,
		.window = o->window,
		.rope_width = o->rope_width,
		.rope_pairs = o->rope_halves ? PAWL_PAIRS_HALVES : PAWL_PAIRS_ADJACENT,
		.build = build,
		.rope = o->rope ? rope : NULL,
		.window_rope = o->window_rope ? window_rope : NULL,
		.fingerprint = o->model ? fingerprint : NULL,
	};
	for (int64_t i = 0; i < o->n_window_layers; i++)
		pawl_layer_set_add(&model->source.window_layers, o->window_layers[i]);
	pawl_shape_key_instance(&model->source.shape_key, pawl_model_instance_id_new());
	model->options.window_layers = NULL;
}

struct pawl_host_status *
pawl_host_model_create(struct pawl_host_context *context, struct pawl_host_weights *weights,
	const struct pawl_model_options *options, struct pawl_host_model **out)
{
	struct pawl_model_options known;
	struct pawl_host_model *model;
	enum pawl_status status;
	struct pawl_error err;

	if (!pawl_host_is(context, PAWL_HOST_CONTEXT) ||
		!pawl_host_is(weights, PAWL_HOST_WEIGHTS) || !options || !out)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"model_create: no context, no weights or a pointer is NULL");
	if (!pawl_host_read(&known, sizeof(known), MODEL_OPTIONS_1, options))
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "model_create: struct_size of the options is wrong");
	status = check(&known, &err);
	if (status)
		return pawl_host_status(status, &err);
	model = pawl_host_object_new(PAWL_HOST_MODEL, context, sizeof(*model));
	if (!model)
		return pawl_host_refuse(PAWL_OUT_OF_MEMORY, "no memory for a model");
	model->options = known;
	pawl_host_retain(weights);
	model->weights = weights;
	fill_source(model);
	*out = model;
	return NULL;
}

void
pawl_host_model_release(struct pawl_host_model *model)
{
	if (!pawl_host_drop(model, PAWL_HOST_MODEL))
		return;
	pawl_host_weights_release(model->weights);
	pawl_host_object_free(model);
}

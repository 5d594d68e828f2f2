#include "plugins/host_model.h"

enum { DECODER_SETTINGS_1 = 48 };

_Static_assert(sizeof(struct pawl_decoder_settings) >= DECODER_SETTINGS_1, "structs only grow");

static enum pawl_status
make(struct pawl_host_decoder *decoder, const struct pawl_decoder_settings *settings,
	struct pawl_error *err)
{
	struct pawl_host_context *context = decoder->object.context;
	const struct pawl_run_hooks hooks = pawl_host_hooks(context);
	struct pawl_decoder_options options = {
		.capacity = settings->capacity,
		.precision = context->precision,
		.n_threads = context->n_threads,
		.prefill_chunk = settings->prefill_chunk,
		.rings = settings->rings != 0,
		.ring_rollback = settings->ring_rollback,
		.hooks = &hooks,
	};
	enum pawl_status status = pawl_host_kv_type(settings->kv_type, &options.kv_dtype, err);

	return status ? status
		      : pawl_decoder_new(&decoder->model->source, context->device, &options,
				&decoder->decoder, err);
}

struct pawl_host_status *
pawl_host_decoder_create(struct pawl_host_model *model,
	const struct pawl_decoder_settings *settings, struct pawl_host_decoder **out)
{
	struct pawl_decoder_settings known;
	const struct pawl_block_source *before;
	struct pawl_host_decoder *decoder;
	enum pawl_status status;
	struct pawl_error err;

	if (!pawl_host_is(model, PAWL_HOST_MODEL) || !settings || !out)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "decoder_create: no model or a pointer is NULL");
	if (!pawl_host_read(&known, sizeof(known), DECODER_SETTINGS_1, settings))
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"decoder_create: struct_size of the settings is wrong");
	decoder = pawl_host_object_new(PAWL_HOST_DECODER, model->object.context, sizeof(*decoder));
	if (!decoder)
		return pawl_host_refuse(PAWL_OUT_OF_MEMORY, "no memory for a decoder");
	pawl_host_retain(model);
	decoder->model = model;
	before = pawl_host_enter(decoder->object.context);
	status = make(decoder, &known, &err);
	pawl_host_leave(before);
	if (status)
		pawl_host_decoder_release(decoder);
	else
		*out = decoder;
	return pawl_host_status(status, &err);
}

void
pawl_host_decoder_release(struct pawl_host_decoder *decoder)
{
	if (!pawl_host_drop(decoder, PAWL_HOST_DECODER))
		return;
	pawl_decoder_free(decoder->decoder);
	pawl_host_model_release(decoder->model);
	pawl_host_object_free(decoder);
}

static void
begin(const struct pawl_host_decoder *decoder, struct pawl_host_call *call)
{
	pawl_host_call_begin(
		call, decoder->object.context, pawl_decoder_context(decoder->decoder));
}

struct pawl_host_status *
pawl_host_decoder_append(
	struct pawl_host_decoder *decoder, const uint32_t *tokens, int64_t n, const float **logits)
{
	const float *last = NULL;
	enum pawl_status status;
	struct pawl_error err;
	struct pawl_host_call call;

	if (!pawl_host_is(decoder, PAWL_HOST_DECODER) || !tokens)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "decoder_append: no decoder or no tokens");
	begin(decoder, &call);
	status = pawl_decoder_prefill(decoder->decoder, tokens, n, &last, &err);
	if (!status && logits)
		*logits = last;
	return pawl_host_call_end(&call, status, &err);
}

struct pawl_host_status *
pawl_host_decoder_verify(struct pawl_host_decoder *decoder, const uint32_t *tokens, int64_t n,
	int64_t rows, const float **logits)
{
	enum pawl_status status;
	struct pawl_error err;
	struct pawl_host_call call;

	if (!pawl_host_is(decoder, PAWL_HOST_DECODER) || !tokens || !logits || n < 1 || rows < n)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"decoder_verify: no decoder, a pointer is NULL, or %lld tokens in %lld "
			"rows",
			(long long)n, (long long)rows);
	begin(decoder, &call);
	status = pawl_decoder_extend(decoder->decoder, tokens, n, rows, logits, &err);
	return pawl_host_call_end(&call, status, &err);
}

int64_t
pawl_host_decoder_len(const struct pawl_host_decoder *decoder)
{
	return pawl_host_is(decoder, PAWL_HOST_DECODER) ? pawl_decoder_len(decoder->decoder) : 0;
}

int64_t
pawl_host_decoder_capacity(const struct pawl_host_decoder *decoder)
{
	return pawl_host_is(decoder, PAWL_HOST_DECODER) ? pawl_decoder_capacity(decoder->decoder)
							: 0;
}

struct pawl_host_status *
pawl_host_decoder_set_len(struct pawl_host_decoder *decoder, int64_t n, int64_t *len)
{
	if (!pawl_host_is(decoder, PAWL_HOST_DECODER) || n < 0 ||
		n > pawl_decoder_len(decoder->decoder))
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"decoder_set_len: no decoder, or %lld of %lld positions", (long long)n,
			(long long)pawl_host_decoder_len(decoder));
	pawl_decoder_truncate(decoder->decoder, n);
	if (len)
		*len = pawl_decoder_len(decoder->decoder);
	return NULL;
}

struct pawl_host_status *
pawl_host_decoder_reserve(struct pawl_host_decoder *decoder, int64_t n)
{
	const struct pawl_block_source *before;
	enum pawl_status status;
	struct pawl_error err;

	if (!pawl_host_is(decoder, PAWL_HOST_DECODER) || n < 0)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"decoder_reserve: no decoder, or %lld positions", (long long)n);
	before = pawl_host_enter(decoder->object.context);
	status = pawl_decoder_reserve(decoder->decoder, n, &err);
	pawl_host_leave(before);
	return pawl_host_status(status, &err);
}

struct pawl_host_status *
pawl_host_decoder_save(const struct pawl_host_decoder *decoder, const uint32_t *tokens,
	int64_t n_tokens, pawl_sink *sink, void *user)
{
	struct pawl_host_to_sink to = {sink, user, "decoder_save"};
	const struct pawl_kv_snapshot_sink write = {pawl_host_write_to_sink, &to};
	const struct pawl_block_source *before;
	enum pawl_status status;
	struct pawl_error err;

	if (!pawl_host_is(decoder, PAWL_HOST_DECODER) || !sink || n_tokens < 0 ||
		(n_tokens && !tokens))
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "decoder_save: no decoder, no tokens or no sink");
	before = pawl_host_enter(decoder->object.context);
	status = pawl_decoder_save(decoder->decoder, tokens, n_tokens, &write, &err);
	pawl_host_leave(before);
	return pawl_host_status(status, &err);
}

struct pawl_host_status *
pawl_host_decoder_restore(struct pawl_host_decoder *decoder, const void *bytes, size_t n_bytes,
	uint32_t *tokens, int64_t max_tokens, int64_t *n_tokens)
{
	struct pawl_kv_snapshot *snapshot = NULL;
	const struct pawl_block_source *before;
	enum pawl_status status;
	struct pawl_error err;

	if (!pawl_host_is(decoder, PAWL_HOST_DECODER) || !bytes || n_bytes > INT64_MAX)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "decoder_restore: no decoder or no snapshot");
	before = pawl_host_enter(decoder->object.context);
	status = pawl_kv_snapshot_from_bytes(bytes, (int64_t)n_bytes, &snapshot, &err);
	if (!status)
		status = pawl_decoder_restore(decoder->decoder, snapshot, &err);
	if (!status)
		pawl_host_give_tokens(snapshot, tokens, max_tokens, n_tokens);
	pawl_kv_snapshot_free(snapshot);
	pawl_host_leave(before);
	return pawl_host_status(status, &err);
}

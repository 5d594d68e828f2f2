#include "plugins/host_model.h"

enum { POOL_SETTINGS_1 = 48 };

_Static_assert(sizeof(struct pawl_pool_settings) >= POOL_SETTINGS_1, "structs only grow");

static enum pawl_status
make(struct pawl_host_pool *pool, const struct pawl_pool_settings *settings, struct pawl_error *err)
{
	struct pawl_host_context *context = pool->object.context;
	const struct pawl_run_hooks hooks = pawl_host_hooks(context);
	struct pawl_paged_options options = {
		.n_blocks = settings->n_blocks,
		.block_size = settings->block_size,
		.max_blocks = settings->max_blocks,
		.precision = context->precision,
		.n_threads = context->n_threads,
		.prefill_chunk = settings->prefill_chunk,
		.hooks = &hooks,
	};
	enum pawl_status status = pawl_host_kv_type(settings->kv_type, &options.kv_dtype, err);

	return status ? status
		      : pawl_paged_decoder_new(&pool->model->source, context->device, &options,
				&pool->decoder, err);
}

struct pawl_host_status *
pawl_host_pool_create(struct pawl_host_model *model, const struct pawl_pool_settings *settings,
	struct pawl_host_pool **out)
{
	struct pawl_pool_settings known;
	const struct pawl_block_source *before;
	struct pawl_host_pool *pool;
	enum pawl_status status;
	struct pawl_error err;

	if (!pawl_host_is(model, PAWL_HOST_MODEL) || !settings || !out)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "pool_create: no model or a pointer is NULL");
	if (!pawl_host_read(&known, sizeof(known), POOL_SETTINGS_1, settings))
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "pool_create: struct_size of the settings is wrong");
	pool = pawl_host_object_new(PAWL_HOST_POOL, model->object.context, sizeof(*pool));
	if (!pool)
		return pawl_host_refuse(PAWL_OUT_OF_MEMORY, "no memory for a pool");
	pawl_host_retain(model);
	pool->model = model;
	before = pawl_host_enter(pool->object.context);
	status = make(pool, &known, &err);
	pawl_host_leave(before);
	if (status)
		pawl_host_pool_release(pool);
	else
		*out = pool;
	return pawl_host_status(status, &err);
}

void
pawl_host_pool_release(struct pawl_host_pool *pool)
{
	if (!pawl_host_drop(pool, PAWL_HOST_POOL))
		return;
	pawl_paged_decoder_free(pool->decoder);
	pawl_host_model_release(pool->model);
	pawl_host_object_free(pool);
}

struct pawl_host_status *
pawl_host_pool_check(const struct pawl_host_pool *pool, bool has_pointers, const char *name)
{
	if (!pawl_host_is(pool, PAWL_HOST_POOL) || !has_pointers)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "%s: no pool or a pointer is NULL", name);
	if (pool->is_scheduled)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "%s: a scheduler has the pool", name);
	return NULL;
}

static struct pawl_kv_session_id
id(uint64_t sequence)
{
	return (struct pawl_kv_session_id){sequence};
}

struct pawl_host_status *
pawl_host_pool_open(struct pawl_host_pool *pool, uint64_t *sequence)
{
	struct pawl_host_status *failed = pawl_host_pool_check(pool, sequence != NULL, "pool_open");
	struct pawl_kv_session_id opened;
	enum pawl_status status;
	struct pawl_error err;

	if (failed)
		return failed;
	status = pawl_paged_decoder_open(pool->decoder, &opened, &err);
	if (!status)
		*sequence = opened.value;
	return pawl_host_status(status, &err);
}

struct pawl_host_status *
pawl_host_pool_close(struct pawl_host_pool *pool, uint64_t sequence)
{
	struct pawl_host_status *failed = pawl_host_pool_check(pool, true, "pool_close");
	struct pawl_error err;

	if (failed)
		return failed;
	return pawl_host_status(pawl_paged_decoder_close(pool->decoder, id(sequence), &err), &err);
}

struct pawl_host_status *
pawl_host_pool_fork(struct pawl_host_pool *pool, uint64_t sequence, uint64_t *fork)
{
	struct pawl_host_status *failed = pawl_host_pool_check(pool, fork != NULL, "pool_fork");
	struct pawl_kv_session_id made;
	enum pawl_status status;
	struct pawl_error err;

	if (failed)
		return failed;
	status = pawl_kv_block_pool_fork(
		pawl_paged_decoder_pool(pool->decoder), id(sequence), &made, &err);
	if (!status)
		*fork = made.value;
	return pawl_host_status(status, &err);
}

int64_t
pawl_host_pool_len(const struct pawl_host_pool *pool, uint64_t sequence)
{
	if (!pawl_host_is(pool, PAWL_HOST_POOL))
		return -1;
	return pawl_kv_block_pool_session_len(pawl_paged_decoder_pool(pool->decoder), id(sequence));
}

struct pawl_host_status *
pawl_host_pool_set_len(struct pawl_host_pool *pool, uint64_t sequence, int64_t n)
{
	struct pawl_host_status *failed = pawl_host_pool_check(pool, true, "pool_set_len");
	struct pawl_error err;

	if (failed)
		return failed;
	return pawl_host_status(pawl_kv_block_pool_truncate(pawl_paged_decoder_pool(pool->decoder),
					id(sequence), n, &err),
		&err);
}

int64_t
pawl_host_pool_free_blocks(const struct pawl_host_pool *pool)
{
	if (!pawl_host_is(pool, PAWL_HOST_POOL))
		return 0;
	return pawl_kv_block_pool_free_blocks(pawl_paged_decoder_pool(pool->decoder));
}

static void
begin(const struct pawl_host_pool *pool, struct pawl_host_call *call)
{
	pawl_host_call_begin(
		call, pool->object.context, pawl_paged_decoder_context(pool->decoder));
}

struct pawl_host_status *
pawl_host_pool_append(struct pawl_host_pool *pool, uint64_t sequence, const uint32_t *tokens,
	int64_t n, const float **logits)
{
	struct pawl_host_status *failed = pawl_host_pool_check(pool, tokens != NULL, "pool_append");
	const float *last = NULL;
	enum pawl_status status;
	struct pawl_error err;
	struct pawl_host_call call;

	if (failed)
		return failed;
	begin(pool, &call);
	status = pawl_paged_decoder_prefill(pool->decoder, id(sequence), tokens, n, &last, &err);
	if (!status && logits)
		*logits = last;
	return pawl_host_call_end(&call, status, &err);
}

struct pawl_host_status *
pawl_host_pool_step(struct pawl_host_pool *pool, const uint64_t *sequences, const uint32_t *tokens,
	int64_t n, const float **logits)
{
	struct pawl_host_status *failed =
		pawl_host_pool_check(pool, sequences && tokens && logits, "pool_step");
	struct pawl_paged_row rows[PAWL_MAX_BATCH];
	enum pawl_status status;
	struct pawl_error err;
	struct pawl_host_call call;

	if (failed)
		return failed;
	if (n < 1 || n > PAWL_MAX_BATCH)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"pool_step: %lld sequences; 1 to %d are possible", (long long)n,
			PAWL_MAX_BATCH);
	for (int64_t i = 0; i < n; i++)
		rows[i] = (struct pawl_paged_row){id(sequences[i]), tokens[i]};
	begin(pool, &call);
	status = pawl_paged_decoder_step(pool->decoder, rows, n, logits, &err);
	return pawl_host_call_end(&call, status, &err);
}

struct pawl_host_status *
pawl_host_pool_evict(
	struct pawl_host_pool *pool, uint64_t sequence, uint64_t *handle, int64_t *n_freed)
{
	struct pawl_host_status *failed = pawl_host_pool_check(pool, handle != NULL, "pool_evict");
	struct pawl_kv_evict_report report;
	const struct pawl_block_source *before;
	enum pawl_status status;
	struct pawl_error err;

	if (failed)
		return failed;
	before = pawl_host_enter(pool->object.context);
	status = pawl_paged_decoder_evict(pool->decoder, id(sequence), &report, &err);
	pawl_host_leave(before);
	if (status)
		return pawl_host_status(status, &err);
	*handle = report.handle.value;
	if (n_freed)
		*n_freed = report.n_freed;
	return NULL;
}

struct pawl_host_status *
pawl_host_pool_restore(struct pawl_host_pool *pool, uint64_t handle)
{
	struct pawl_host_status *failed = pawl_host_pool_check(pool, true, "pool_restore");
	struct pawl_error err;

	if (failed)
		return failed;
	return pawl_host_status(
		pawl_paged_decoder_restore(pool->decoder, (struct pawl_kv_handle_id){handle}, &err),
		&err);
}

struct pawl_host_status *
pawl_host_pool_keep_prefix(struct pawl_host_pool *pool, uint64_t sequence, const uint32_t *tokens,
	int64_t n, uint64_t *prefix)
{
	struct pawl_host_status *failed = pawl_host_pool_check(pool, tokens && prefix, "pool_keep_prefix");
	const struct pawl_kv_prefix_key key = {.tokens = tokens, .n_tokens = n};
	struct pawl_kv_prefix_id kept;
	enum pawl_status status;
	struct pawl_error err;

	if (failed)
		return failed;
	status = pawl_kv_block_pool_register_prefix(
		pawl_paged_decoder_pool(pool->decoder), id(sequence), &key, &kept, &err);
	if (!status)
		*prefix = kept.value;
	return pawl_host_status(status, &err);
}

struct pawl_host_status *
pawl_host_pool_use_prefix(struct pawl_host_pool *pool, uint64_t sequence, const uint32_t *tokens,
	int64_t n, int64_t *n_shared)
{
	struct pawl_host_status *failed =
		pawl_host_pool_check(pool, tokens && n_shared, "pool_use_prefix");
	/* A token is left to run. */
	const struct pawl_kv_prefix_key key = {.tokens = tokens, .n_tokens = n - 1};
	struct pawl_kv_block_pool *blocks;
	struct pawl_kv_prefix_match match;
	enum pawl_status status;
	struct pawl_error err;

	if (failed)
		return failed;
	blocks = pawl_paged_decoder_pool(pool->decoder);
	if (n < 1 || pawl_kv_block_pool_session_len(blocks, id(sequence)) != 0)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"pool_use_prefix: %lld tokens, or sequence %llu is not open and empty",
			(long long)n, (unsigned long long)sequence);
	if (!pawl_kv_block_pool_find_prefix(blocks, &key, &match)) {
		*n_shared = 0;
		return NULL;
	}
	status = pawl_kv_block_pool_splice_prefix_from(
		blocks, match.prefix, match.n_blocks, id(sequence), &err);
	if (!status)
		*n_shared = pawl_kv_block_pool_session_len(blocks, id(sequence));
	return pawl_host_status(status, &err);
}

struct pawl_host_status *
pawl_host_pool_drop_prefix(struct pawl_host_pool *pool, uint64_t prefix)
{
	struct pawl_host_status *failed = pawl_host_pool_check(pool, true, "pool_drop_prefix");
	struct pawl_error err;

	if (failed)
		return failed;
	return pawl_host_status(
		pawl_kv_block_pool_release_prefix(pawl_paged_decoder_pool(pool->decoder),
			(struct pawl_kv_prefix_id){prefix}, &err),
		&err);
}

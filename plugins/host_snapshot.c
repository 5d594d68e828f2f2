#include <string.h>

#include "plugins/host_api.h"
#include "plugins/host_cache.h"
#include "runtime/kv_snapshot.h"

enum pawl_status
pawl_host_write_to_sink(void *ctx, const void *bytes, size_t n, struct pawl_error *err)
{
	const struct pawl_host_to_sink *to = ctx;

	return to->sink(to->user, bytes, n)
		       ? pawl_fail(err, PAWL_ENVIRONMENT, "%s: the sink refused", to->call)
		       : PAWL_OK;
}

struct pawl_host_status *
pawl_host_cache_save(const struct pawl_host_cache *cache, uint64_t model, const uint32_t *tokens,
	int64_t n_tokens, pawl_sink *sink, void *user)
{
	struct pawl_host_to_sink to = {sink, user, "cache_save"};
	const struct pawl_kv_snapshot_sink write = {pawl_host_write_to_sink, &to};
	const struct pawl_block_source *before;
	struct pawl_kv_identity identity;
	enum pawl_status status;
	struct pawl_error err;

	if (!pawl_host_is(cache, PAWL_HOST_CACHE) || !sink || n_tokens < 0 || (n_tokens && !tokens))
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "cache_save: no cache, no tokens or no sink");
	identity = (struct pawl_kv_identity){model, cache->object.context->precision};
	before = pawl_host_enter(cache->object.context);
	status = cache->kv ? pawl_kv_snapshot_save(
				     cache->kv, &identity, tokens, n_tokens, &write, &err)
			   : pawl_latent_snapshot_save(
				     cache->latents, &identity, tokens, n_tokens, &write, &err);
	pawl_host_leave(before);
	return pawl_host_status(status, &err);
}

void
pawl_host_give_tokens(const struct pawl_kv_snapshot *snapshot, uint32_t *tokens, int64_t max_tokens,
	int64_t *n_tokens)
{
	int64_t n;
	const uint32_t *held = pawl_kv_snapshot_tokens(snapshot, &n);

	if (n_tokens)
		*n_tokens = n;
	if (tokens && max_tokens > 0 && n)
		memcpy(tokens, held, (size_t)(n < max_tokens ? n : max_tokens) * sizeof(*tokens));
}

struct pawl_host_status *
pawl_host_cache_restore(struct pawl_host_cache *cache, uint64_t model, const void *bytes,
	size_t n_bytes, uint32_t *tokens, int64_t max_tokens, int64_t *n_tokens)
{
	struct pawl_kv_snapshot *snapshot = NULL;
	const struct pawl_block_source *before;
	struct pawl_kv_identity identity;
	enum pawl_status status;
	struct pawl_error err;

	if (!pawl_host_is(cache, PAWL_HOST_CACHE) || !bytes || n_bytes > INT64_MAX)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "cache_restore: no cache or no snapshot");
	identity = (struct pawl_kv_identity){model, cache->object.context->precision};
	before = pawl_host_enter(cache->object.context);
	status = pawl_kv_snapshot_from_bytes(bytes, (int64_t)n_bytes, &snapshot, &err);
	if (!status)
		status = cache->kv ? pawl_kv_snapshot_restore(snapshot, &identity, cache->kv, &err)
				   : pawl_latent_snapshot_restore(
					     snapshot, &identity, cache->latents, &err);
	if (!status)
		pawl_host_give_tokens(snapshot, tokens, max_tokens, n_tokens);
	pawl_kv_snapshot_free(snapshot);
	pawl_host_leave(before);
	return pawl_host_status(status, &err);
}

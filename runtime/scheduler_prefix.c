/* Prefixes that prompts leave behind for later ones. */
#include "runtime/scheduler_parts.h"

static struct pawl_shared_prefix *
find_entry(struct pawl_scheduler *s, struct pawl_kv_prefix_id id)
{
	for (int64_t i = 0; i < s->stats.n_prefixes; i++)
		if (s->prefixes[i].id.value == id.value)
			return &s->prefixes[i];
	return NULL;
}

/* Prefixes of others than the scheduler may serve too, but live by themselves. */
static void
use(struct pawl_scheduler *s, struct pawl_kv_prefix_id id)
{
	struct pawl_shared_prefix *entry = find_entry(s, id);

	if (entry)
		entry->last_used = ++s->clock;
}

static void
release(struct pawl_scheduler *s, struct pawl_shared_prefix *entry)
{
	pawl_kv_block_pool_release_prefix(s->pool, entry->id, NULL);
	*entry = s->prefixes[--s->stats.n_prefixes];
}

static bool
is_idle(const struct pawl_scheduler *s, const struct pawl_shared_prefix *entry)
{
	int64_t n;
	const int32_t *blocks = pawl_kv_block_pool_prefix_blocks(s->pool, entry->id, &n);

	for (int64_t i = 0; blocks && i < n; i++)
		if (pawl_kv_block_pool_owners(s->pool, blocks[i]) == 1)
			return true;
	return false;
}

static struct pawl_shared_prefix *
oldest(struct pawl_scheduler *s, bool must_be_idle)
{
	struct pawl_shared_prefix *entry = NULL;

	for (int64_t i = 0; i < s->stats.n_prefixes; i++)
		if ((!entry || s->prefixes[i].last_used < entry->last_used) &&
			(!must_be_idle || is_idle(s, &s->prefixes[i])))
			entry = &s->prefixes[i];
	return entry;
}

bool
pawl_scheduler_release_idle_prefix(struct pawl_scheduler *s)
{
	struct pawl_shared_prefix *entry = oldest(s, true);

	if (entry)
		release(s, entry);
	return entry != NULL;
}

void
pawl_scheduler_release_prefixes(struct pawl_scheduler *s)
{
	while (s->stats.n_prefixes)
		release(s, s->prefixes);
}

int64_t
pawl_scheduler_share_prefix(struct pawl_scheduler *s, struct pawl_request *r)
{
	const struct pawl_kv_prefix_key key = {.tokens = r->tokens, .n_tokens = r->n_tokens - 1};
	struct pawl_kv_prefix_match match;

	if (!r->is_sharing || !pawl_kv_block_pool_find_prefix(s->pool, &key, &match) ||
		pawl_kv_block_pool_splice_prefix_from(
			s->pool, match.prefix, match.n_blocks, r->session, NULL))
		return 0;
	use(s, match.prefix);
	return match.n_blocks * s->block_size;
}

void
pawl_scheduler_offer_prefix(struct pawl_scheduler *s, struct pawl_request *r)
{
	int64_t n_blocks = r->info.n_prompt / s->block_size;
	const struct pawl_kv_prefix_key key = {
		.tokens = r->tokens, .n_tokens = n_blocks * s->block_size};
	struct pawl_kv_prefix_match match;
	struct pawl_kv_prefix_id id;

	if (!r->is_sharing || r->is_offered || !n_blocks ||
		pawl_kv_block_pool_session_len(s->pool, r->session) < key.n_tokens)
		return;
	r->is_offered = true;
	if (pawl_kv_block_pool_find_prefix(s->pool, &key, &match) && match.n_blocks == n_blocks) {
		use(s, match.prefix);
		return;
	}
	if (pawl_kv_block_pool_register_prefix(s->pool, r->session, &key, &id, NULL)) {
		s->stats.prefixes_lost++;
		return;
	}
	if (s->stats.n_prefixes == s->options.max_prefixes)
		release(s, oldest(s, false));
	s->prefixes[s->stats.n_prefixes++] = (struct pawl_shared_prefix){id, ++s->clock};
}

#include "runtime/identity.h"
#include "runtime/kv_block_parts.h"
#include "runtime/memory.h"

#include <inttypes.h>
#include <string.h>

enum { FIRST_ENTRIES = 64 };

/* What stands in front of a text in the hash, so that no part can pass for another. */
enum domain { NO_TEXT, ADAPTER, SALT };

static uint64_t
mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

static uint64_t
mix_text(uint64_t hash, enum domain domain, const char *text)
{
	if (!text)
		return mix(hash, NO_TEXT);
	hash = mix(mix(hash, domain), strlen(text));
	for (; *text; text++)
		hash = mix(hash, (unsigned char)*text);
	return hash;
}

static uint64_t
mix_tokens(uint64_t hash, const uint32_t *tokens, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		hash = mix(hash, tokens[i]);
	return hash;
}

static uint64_t
hash_start(const struct pawl_kv_prefix_key *key)
{
	return mix_text(mix_text(1, ADAPTER, key->adapter), SALT, key->salt);
}

static bool
texts_equal(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool
key_fits(
	const struct pawl_kv_prefix *prefix, const struct pawl_kv_prefix_key *key, int64_t n_tokens)
{
	return texts_equal(prefix->adapter, key->adapter) && texts_equal(prefix->salt, key->salt) &&
	       !memcmp(prefix->tokens, key->tokens, (size_t)n_tokens * sizeof(*key->tokens));
}

/* The next entry from *place on with that hash and length; *place moves behind it. */
static const struct pawl_kv_prefix_entry *
next_entry(const struct pawl_kv_block_pool *pool, uint64_t hash, int64_t n_blocks, uint64_t *place)
{
	uint64_t mask = (uint64_t)pool->index_size - 1;

	for (; pool->index_size && pool->index[*place & mask].prefix; ++*place) {
		const struct pawl_kv_prefix_entry *entry = &pool->index[*place & mask];

		if (entry->hash == hash && entry->n_blocks == n_blocks) {
			++*place;
			return entry;
		}
	}
	return NULL;
}

static void
insert(struct pawl_kv_prefix_entry *index, int64_t size, const struct pawl_kv_prefix *prefix)
{
	for (int64_t i = 0; i < prefix->n_blocks; i++) {
		uint64_t place = prefix->hashes[i];

		while (index[place & ((uint64_t)size - 1)].prefix)
			place++;
		index[place & ((uint64_t)size - 1)] =
			(struct pawl_kv_prefix_entry){prefix->hashes[i], prefix->id, i + 1};
	}
}

/* Room for n_more entries in an index that stays half empty. */
static enum pawl_status
reserve_index(struct pawl_kv_block_pool *pool, int64_t n_more, struct pawl_error *err)
{
	int64_t size = pool->index_size ? pool->index_size : FIRST_ENTRIES;
	struct pawl_kv_prefix_entry *index;

	while (size / 2 < pool->n_index + n_more)
		size *= 2;
	if (size == pool->index_size)
		return PAWL_OK;
	index = pawl_memory_zalloc((size_t)size, sizeof(*index));
	if (!index)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY,
			"no memory for an index of %" PRId64 " prefix blocks", size);
	for (int64_t i = 0; i < pool->prefixes.n; i++)
		insert(index, size, pool->prefixes.items[i]);
	pawl_memory_free(pool->index);
	pool->index = index;
	pool->index_size = size;
	return PAWL_OK;
}

struct pawl_kv_prefix *
pawl_kv_prefix_find(
	const struct pawl_kv_block_pool *pool, struct pawl_kv_prefix_id id, struct pawl_error *err)
{
	struct pawl_kv_prefix *prefix = pawl_object_table_find(&pool->prefixes, id.value);

	if (!prefix)
		pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"prefix %" PRIu64 " is not alive in this pool", id.value);
	return prefix;
}

void
pawl_kv_prefix_free(struct pawl_kv_prefix *prefix)
{
	if (!prefix)
		return;
	pawl_memory_free(prefix->blocks);
	pawl_memory_free(prefix->tokens);
	pawl_memory_free(prefix->hashes);
	pawl_memory_free(prefix->adapter);
	pawl_memory_free(prefix->salt);
	pawl_memory_free(prefix);
}

static bool
copy_text(const char *text, char **out)
{
	*out = text ? pawl_memory_strdup(text) : NULL;
	return !text || *out;
}

/* A prefix of n_blocks under a copy of the key, its blocks not set; NULL when memory is exhausted.
 */
static struct pawl_kv_prefix *
make(const struct pawl_kv_block_pool *pool, const struct pawl_kv_prefix_key *key, int64_t n_blocks)
{
	int64_t size = pool->geometry.block_size;
	struct pawl_kv_prefix *prefix = pawl_memory_zalloc(1, sizeof(*prefix));
	uint64_t hash = hash_start(key);

	if (!prefix)
		return NULL;
	prefix->n_blocks = n_blocks;
	prefix->blocks = pawl_memory_zalloc((size_t)n_blocks, sizeof(*prefix->blocks));
	prefix->tokens = pawl_memory_zalloc((size_t)key->n_tokens, sizeof(*prefix->tokens));
	prefix->hashes = pawl_memory_zalloc((size_t)n_blocks, sizeof(*prefix->hashes));
	if (!prefix->blocks || !prefix->tokens || !prefix->hashes ||
		!copy_text(key->adapter, &prefix->adapter) ||
		!copy_text(key->salt, &prefix->salt)) {
		pawl_kv_prefix_free(prefix);
		return NULL;
	}
	memcpy(prefix->tokens, key->tokens, (size_t)key->n_tokens * sizeof(*key->tokens));
	for (int64_t i = 0; i < n_blocks; i++) {
		hash = mix_tokens(hash, key->tokens + i * size, size);
		prefix->hashes[i] = hash & pool->hash_mask;
	}
	return prefix;
}

enum pawl_status
pawl_kv_block_pool_register_prefix(struct pawl_kv_block_pool *pool, struct pawl_kv_session_id id,
	const struct pawl_kv_prefix_key *key, struct pawl_kv_prefix_id *out, struct pawl_error *err)
{
	const struct pawl_kv_session *session = pawl_kv_session_find(pool, id, err);
	struct pawl_kv_prefix *prefix;
	int64_t n_blocks;
	enum pawl_status status;

	if (!session)
		return PAWL_INVALID_ARGUMENT;
	if (key->n_tokens < 1 || key->n_tokens % pool->geometry.block_size ||
		key->n_tokens > session->n_tokens)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a prefix of %" PRId64 " tokens is not whole blocks of %" PRId64
			" among the %" PRId64 " tokens of session %" PRIu64,
			key->n_tokens, pool->geometry.block_size, session->n_tokens, id.value);
	n_blocks = key->n_tokens / pool->geometry.block_size;
	status = pawl_kv_session_check_resident(session, 0, n_blocks, err);
	if (!status)
		status = pawl_object_table_reserve(&pool->prefixes, err);
	if (!status)
		status = reserve_index(pool, n_blocks, err);
	if (status)
		return status;
	prefix = make(pool, key, n_blocks);
	if (!prefix)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY,
			"no memory for a prefix of %" PRId64 " tokens", key->n_tokens);
	for (int64_t i = 0; i < n_blocks; i++) {
		prefix->blocks[i] = session->blocks[i];
		pawl_kv_blocks_share(pool, prefix->blocks[i]);
	}
	out->value =
		pawl_object_table_add(&pool->prefixes, prefix, pawl_kv_object_id_new());
	insert(pool->index, pool->index_size, prefix);
	pool->n_index += n_blocks;
	return PAWL_OK;
}

enum pawl_status
pawl_kv_block_pool_release_prefix(
	struct pawl_kv_block_pool *pool, struct pawl_kv_prefix_id id, struct pawl_error *err)
{
	struct pawl_kv_prefix *prefix = pawl_kv_prefix_find(pool, id, err);

	if (!prefix)
		return PAWL_INVALID_ARGUMENT;
	for (int64_t i = prefix->n_blocks; i > 0;)
		pawl_kv_blocks_drop(pool, prefix->blocks[--i]);
	pawl_object_table_remove(&pool->prefixes, prefix);
	pool->n_index -= prefix->n_blocks;
	pawl_kv_prefix_free(prefix);
	memset(pool->index, 0, (size_t)pool->index_size * sizeof(*pool->index));
	for (int64_t i = 0; i < pool->prefixes.n; i++)
		insert(pool->index, pool->index_size, pool->prefixes.items[i]);
	return PAWL_OK;
}

const int32_t *
pawl_kv_block_pool_prefix_blocks(
	const struct pawl_kv_block_pool *pool, struct pawl_kv_prefix_id id, int64_t *n)
{
	const struct pawl_kv_prefix *prefix = pawl_kv_prefix_find(pool, id, NULL);

	*n = prefix ? prefix->n_blocks : 0;
	return prefix ? prefix->blocks : NULL;
}

/* Among prefixes under this hash, the oldest whose first n_blocks blocks have this key; 0: none. */
static uint64_t
match(const struct pawl_kv_block_pool *pool, const struct pawl_kv_prefix_key *key, uint64_t hash,
	int64_t n_blocks)
{
	const struct pawl_kv_prefix_entry *entry;
	uint64_t place = hash, oldest = 0;

	while ((entry = next_entry(pool, hash, n_blocks, &place)) != NULL) {
		const struct pawl_kv_prefix *prefix =
			pawl_object_table_find(&pool->prefixes, entry->prefix);

		if ((!oldest || prefix->id < oldest) &&
			key_fits(prefix, key, n_blocks * pool->geometry.block_size))
			oldest = prefix->id;
	}
	return oldest;
}

bool
pawl_kv_block_pool_find_prefix(const struct pawl_kv_block_pool *pool,
	const struct pawl_kv_prefix_key *key, struct pawl_kv_prefix_match *out)
{
	int64_t size = pool->geometry.block_size, n = 0;
	uint64_t start = hash_start(key), hash = start;

	/* A prefix found by its block n is found by all blocks before. */
	while ((n + 1) * size <= key->n_tokens) {
		uint64_t more = mix_tokens(hash, key->tokens + n * size, size),
			 place = more & pool->hash_mask;

		if (!next_entry(pool, more & pool->hash_mask, n + 1, &place))
			break;
		hash = more;
		n++;
	}
	/* More than one round only when hashes collide. */
	for (; n > 0; n--) {
		hash = mix_tokens(start, key->tokens, n * size) & pool->hash_mask;
		out->prefix.value = match(pool, key, hash, n);
		out->n_blocks = n;
		if (out->prefix.value)
			return true;
	}
	return false;
}

enum pawl_status
pawl_kv_block_pool_splice_prefix_from(struct pawl_kv_block_pool *pool,
	struct pawl_kv_prefix_id prefix_id, int64_t n_blocks, struct pawl_kv_session_id dst_id,
	struct pawl_error *err)
{
	const struct pawl_kv_prefix *prefix = pawl_kv_prefix_find(pool, prefix_id, err);
	struct pawl_kv_session *dst = prefix ? pawl_kv_session_find(pool, dst_id, err) : NULL;
	enum pawl_status status;

	if (!dst)
		return PAWL_INVALID_ARGUMENT;
	if (n_blocks < 1 || n_blocks > prefix->n_blocks)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"prefix %" PRIu64 " of %" PRId64 " blocks has no %" PRId64, prefix->id,
			prefix->n_blocks, n_blocks);
	if (dst->n_slots)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"session %" PRIu64 " of %" PRId64 " tokens is not empty", dst->id,
			dst->n_tokens);
	status = pawl_kv_copies_check_end(pool, dst, err);
	if (!status)
		status = pawl_kv_session_grow(dst, n_blocks, err);
	if (!status)
		pawl_kv_session_share(
			pool, dst, prefix->blocks, n_blocks, n_blocks * pool->geometry.block_size);
	return status;
}

#include "tests/pool_model.h"

#include "runtime/kv_block_parts.h"

#include <check.h>
#include <string.h>

static bool
texts_equal(const char *a, const char *b)
{
	return (!a && !b) || (a && b && !strcmp(a, b));
}

enum pawl_status
pawl_pool_model_register_prefix(struct pawl_pool_model *m, uint64_t id,
	const struct pawl_kv_prefix_key *key, uint64_t new_id)
{
	const struct pawl_model_session *s = pawl_pool_model_session(m, id);
	struct pawl_model_prefix *p = &m->prefixes[m->n_prefixes];
	int64_t n = key->n_tokens / m->block_size;

	if (!s || n < 1 || n * m->block_size != key->n_tokens || key->n_tokens > s->n_tokens)
		return PAWL_INVALID_ARGUMENT;
	for (int64_t i = 0; i < n; i++)
		if (s->blocks[i] < 0)
			return PAWL_INVALID_ARGUMENT;
	*p = (struct pawl_model_prefix){
		.id = new_id, .n = n, .adapter = key->adapter, .salt = key->salt};
	memcpy(p->blocks, s->blocks, (size_t)n * sizeof(p->blocks[0]));
	memcpy(p->tokens, key->tokens, (size_t)key->n_tokens * sizeof(p->tokens[0]));
	m->n_prefixes++;
	return PAWL_OK;
}

enum pawl_status
pawl_pool_model_release_prefix(struct pawl_pool_model *m, uint64_t prefix)
{
	struct pawl_model_prefix *p = pawl_pool_model_prefix(m, prefix);

	if (!p)
		return PAWL_INVALID_ARGUMENT;
	while (p->n) {
		int32_t block = p->blocks[--p->n];

		if (!pawl_pool_model_owners(m, block)) {
			m->free_blocks[m->n_free++] = block;
			for (int i = 0; i < PAWL_MODEL_BLOCK_SIZE; i++)
				m->bytes[block][i] = PAWL_MODEL_FREED;
		}
	}
	memmove(p, p + 1, (size_t)(m->prefixes + --m->n_prefixes - p) * sizeof(*p));
	return PAWL_OK;
}

struct pawl_kv_prefix_match
pawl_pool_model_find_prefix(const struct pawl_pool_model *m, const struct pawl_kv_prefix_key *key)
{
	struct pawl_kv_prefix_match best = {.n_blocks = 0};

	for (int i = 0; i < m->n_prefixes; i++) {
		const struct pawl_model_prefix *p = &m->prefixes[i];
		int64_t n = 0;

		if (!texts_equal(p->adapter, key->adapter) || !texts_equal(p->salt, key->salt))
			continue;
		while (n < p->n * m->block_size && n < key->n_tokens &&
			p->tokens[n] == key->tokens[n])
			n++;
		if (n / m->block_size > best.n_blocks) {
			best.n_blocks = n / m->block_size;
			best.prefix.value = p->id;
		}
	}
	return best;
}

enum pawl_status
pawl_pool_model_splice_prefix_from(
	struct pawl_pool_model *m, uint64_t prefix, int64_t n_blocks, uint64_t dst)
{
	const struct pawl_model_prefix *p = pawl_pool_model_prefix(m, prefix);
	struct pawl_model_session *d = pawl_pool_model_session(m, dst);

	if (!p || !d || n_blocks < 1 || n_blocks > p->n || d->n_slots)
		return PAWL_INVALID_ARGUMENT;
	for (int i = 0; i < m->n_copies; i++)
		if (m->copies[i].session == dst)
			return PAWL_INVALID_ARGUMENT;
	d->n_slots = n_blocks;
	d->n_tokens = n_blocks * m->block_size;
	memcpy(d->blocks, p->blocks, (size_t)n_blocks * sizeof(d->blocks[0]));
	memcpy(d->content, p->tokens, (size_t)d->n_tokens * sizeof(d->content[0]));
	return PAWL_OK;
}

enum pawl_status
pawl_pool_model_blocks_to_append(struct pawl_pool_model *m, const struct pawl_kv_append *appends,
	int64_t n_appends, int64_t *need)
{
	int64_t owners[PAWL_MODEL_BLOCKS];

	*need = 0;
	for (int32_t b = 0; b < m->n_blocks; b++)
		owners[b] = pawl_pool_model_owners(m, b);
	for (int64_t i = 0; i < n_appends; i++) {
		const struct pawl_model_session *s =
			pawl_pool_model_session(m, appends[i].session.value);
		int64_t n = appends[i].n, room, more;

		if (!s || n < 0 || n > INT64_MAX - s->n_tokens)
			return PAWL_INVALID_ARGUMENT;
		for (int64_t j = 0; j < i; j++)
			if (appends[j].session.value == s->id)
				return PAWL_INVALID_ARGUMENT;
		room = s->n_slots * m->block_size - s->n_tokens;
		if (n && room) {
			int32_t tail = s->blocks[s->n_slots - 1];

			if (tail < 0)
				return PAWL_INVALID_ARGUMENT;
			if (owners[tail] > 1) {
				owners[tail]--;
				++*need;
			}
		}
		more = n > room ? (n - room - 1) / m->block_size + 1 : 0;
		if (more > INT64_MAX - *need)
			return PAWL_INVALID_ARGUMENT;
		*need += more;
	}
	return PAWL_OK;
}

enum pawl_status
pawl_pool_model_block_table(struct pawl_pool_model *m, uint64_t id, uint32_t *table, int64_t cap)
{
	const struct pawl_model_session *s = pawl_pool_model_session(m, id);

	if (!s)
		return PAWL_INVALID_ARGUMENT;
	for (int64_t i = 0; i < s->n_slots; i++)
		if (s->blocks[i] < 0)
			return PAWL_INVALID_ARGUMENT;
	if (cap < s->n_slots)
		return PAWL_CAPACITY;
	for (int64_t i = 0; i < cap; i++)
		table[i] = 0;
	for (int64_t i = 0; i < s->n_slots; i++)
		table[i] = (uint32_t)s->blocks[i];
	return PAWL_OK;
}

/* Check's own assertions leave a mark each time, which costs a system call. */
#define SAME(a, b)                                                                                 \
	do {                                                                                       \
		if ((a) != (b))                                                                    \
			ck_abort_msg("pool and model differ: %s and %s", #a, #b);                  \
	} while (0)

#define SAME_BYTES(a, b, n)                                                                        \
	do {                                                                                       \
		if (memcmp((a), (b), (n)))                                                         \
			ck_abort_msg("pool and model differ: %s and %s", #a, #b);                  \
	} while (0)

static void
compare_blocks(const struct pawl_pool_model *m, const struct pawl_kv_block_pool *pool)
{
	int64_t n_owned = 0;

	SAME(pawl_kv_block_pool_free_blocks(pool), m->n_free);
	SAME_BYTES(
		pool->free_blocks, m->free_blocks, (size_t)m->n_free * sizeof(m->free_blocks[0]));
	for (int32_t b = 0; b < m->n_blocks; b++) {
		int64_t n = pawl_pool_model_owners(m, b);

		SAME(pawl_kv_block_pool_owners(pool, b), n);
		n_owned += n > 0;
	}
	SAME(n_owned + m->n_free, m->n_blocks);
	SAME(pawl_kv_block_pool_bytes_resident(pool), n_owned * m->block_bytes);
	SAME(pawl_kv_block_pool_block_bytes(pool), m->block_bytes);
}

/* What is read through a slot is what was written to the session. */
static void
compare_content(const struct pawl_pool_model *m, const struct pawl_model_session *s, int64_t slot,
	int32_t block)
{
	for (int64_t i = slot * m->block_size; i < s->n_tokens && i < (slot + 1) * m->block_size;
		i++)
		SAME(m->bytes[block][i % m->block_size], s->content[i]);
}

static void
compare_session(const struct pawl_pool_model *m, const struct pawl_kv_block_pool *pool,
	const struct pawl_model_session *s)
{
	struct pawl_kv_session_id id = {s->id};
	int64_t n_tail = s->n_tokens % m->block_size;
	int32_t block = -1;

	SAME(pawl_kv_block_pool_session_len(pool, id), s->n_tokens);
	SAME(pawl_kv_block_pool_session_slots(pool, id), s->n_slots);
	for (int64_t i = 0; i < s->n_slots; i++) {
		SAME(pawl_kv_block_pool_slot(pool, id, i, &block, NULL), PAWL_OK);
		SAME(block, s->blocks[i]);
		if (block >= 0)
			compare_content(m, s, i, block);
	}
	SAME(pawl_kv_block_pool_tail_is_shared(pool, id),
		n_tail && block >= 0 && pawl_pool_model_owners(m, block) > 1);
}

static void
compare_handle(const struct pawl_kv_block_pool *pool, const struct pawl_model_handle *h)
{
	struct pawl_kv_handle_info info;

	SAME(pawl_kv_block_pool_handle(pool, (struct pawl_kv_handle_id){h->id}, &info, NULL),
		PAWL_OK);
	SAME(info.session.value, h->session);
	SAME(info.fidelity, h->fidelity);
	SAME(info.kind, PAWL_KV_STATE_BLOCKS);
	SAME(info.is_pending, h->is_pending);
	SAME(info.n_slots, h->n);
	for (int64_t i = 0; i < h->n; i++) {
		SAME(info.slots[i].slot, h->slots[i]);
		SAME(info.slots[i].block, h->blocks[i]);
	}
}

static void
compare_copy(const struct pawl_kv_block_pool *pool, const struct pawl_model_copy *c)
{
	struct pawl_kv_copy_info info;

	SAME(pawl_kv_block_pool_copy(pool, (struct pawl_kv_copy_id){c->id}, &info, NULL), PAWL_OK);
	SAME(info.session.value, c->session);
	SAME(info.slot, c->slot);
	SAME(info.shift, c->shift);
	SAME(info.n_blocks, c->n);
	for (int64_t i = 0; i < c->n; i++) {
		SAME(info.blocks[i].from, c->from[i]);
		SAME(info.blocks[i].to, c->to[i]);
	}
}

void
pawl_pool_model_compare(struct pawl_pool_model *m, const struct pawl_kv_block_pool *pool)
{
	compare_blocks(m, pool);
	SAME(pool->sessions.n, m->n_sessions);
	SAME(pool->handles.n, m->n_handles);
	SAME(pool->copies.n, m->n_copies);
	SAME(pool->prefixes.n, m->n_prefixes);
	for (int i = 0; i < m->n_sessions; i++)
		compare_session(m, pool, &m->sessions[i]);
	for (int i = 0; i < m->n_handles; i++)
		compare_handle(pool, &m->handles[i]);
	for (int i = 0; i < m->n_copies; i++)
		compare_copy(pool, &m->copies[i]);
	for (int i = 0; i < m->n_prefixes; i++) {
		const struct pawl_model_prefix *p = &m->prefixes[i];
		int64_t n;
		const int32_t *blocks = pawl_kv_block_pool_prefix_blocks(
			pool, (struct pawl_kv_prefix_id){p->id}, &n);

		SAME(n, p->n);
		SAME_BYTES(blocks, p->blocks, (size_t)n * sizeof(p->blocks[0]));
		for (int64_t j = 0; j < n * m->block_size; j++)
			SAME(m->bytes[p->blocks[j / m->block_size]][j % m->block_size],
				p->tokens[j]);
	}
}

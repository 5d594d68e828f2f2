#include "tests/pool_model.h"

#include <check.h>
#include <string.h>

enum { NONE = -1 };

void
pawl_pool_model_init(struct pawl_pool_model *m, const struct pawl_kv_block_pool *pool)
{
	const struct pawl_kv_pool_geometry *geometry = pawl_kv_block_pool_geometry(pool);

	memset(m, 0, sizeof(*m));
	ck_assert_int_le(geometry->n_blocks, PAWL_MODEL_BLOCKS);
	ck_assert_int_le(geometry->block_size, PAWL_MODEL_BLOCK_SIZE);
	m->n_blocks = geometry->n_blocks;
	m->block_size = geometry->block_size;
	m->block_bytes = 2 * geometry->n_layers * geometry->block_size * geometry->n_kv_heads *
			 geometry->row_bytes;
	for (int32_t b = (int32_t)m->n_blocks - 1; b >= 0; b--) {
		m->free_blocks[m->n_free++] = b;
		for (int i = 0; i < PAWL_MODEL_BLOCK_SIZE; i++)
			m->bytes[b][i] = PAWL_MODEL_FREED;
	}
}

#define FIND(m, list, count, key)                                                                  \
	for (int i = 0; i < (m)->count; i++)                                                       \
		if ((m)->list[i].id == (key))                                                      \
			return &(m)->list[i];                                                      \
	return NULL

struct pawl_model_session *
pawl_pool_model_session(struct pawl_pool_model *m, uint64_t id)
{
	FIND(m, sessions, n_sessions, id);
}

struct pawl_model_prefix *
pawl_pool_model_prefix(struct pawl_pool_model *m, uint64_t id)
{
	FIND(m, prefixes, n_prefixes, id);
}

static struct pawl_model_handle *
find_handle(struct pawl_pool_model *m, uint64_t id)
{
	FIND(m, handles, n_handles, id);
}

static struct pawl_model_copy *
find_copy(struct pawl_pool_model *m, uint64_t id)
{
	FIND(m, copies, n_copies, id);
}

#define REMOVE(m, list, count, item)                                                               \
	memmove((item), (item) + 1, (size_t)((m)->list + --(m)->count - (item)) * sizeof(*(item)))

int64_t
pawl_pool_model_owners(const struct pawl_pool_model *m, int32_t block)
{
	int64_t n = 0;

	for (int i = 0; i < m->n_sessions; i++)
		for (int64_t j = 0; j < m->sessions[i].n_slots; j++)
			n += m->sessions[i].blocks[j] == block;
	for (int i = 0; i < m->n_handles; i++)
		for (int64_t j = 0; j < m->handles[i].n; j++)
			n += m->handles[i].blocks[j] == block;
	for (int i = 0; i < m->n_copies; i++)
		for (int64_t j = 0; j < m->copies[i].n; j++)
			n += (m->copies[i].from[j] == block) + (m->copies[i].to[j] == block);
	for (int i = 0; i < m->n_prefixes; i++)
		for (int64_t j = 0; j < m->prefixes[i].n; j++)
			n += m->prefixes[i].blocks[j] == block;
	return n;
}

static int32_t
take(struct pawl_pool_model *m)
{
	return m->free_blocks[--m->n_free];
}

/* Forgets a reference. */
static void
let_go(struct pawl_pool_model *m, int32_t *reference)
{
	int32_t block = *reference;

	*reference = NONE;
	if (block == NONE || pawl_pool_model_owners(m, block))
		return;
	m->free_blocks[m->n_free++] = block;
	for (int i = 0; i < PAWL_MODEL_BLOCK_SIZE; i++)
		m->bytes[block][i] = PAWL_MODEL_FREED;
}

static void
cancel(struct pawl_pool_model *m, struct pawl_model_copy *copy)
{
	for (int64_t i = copy->n - 1; i >= 0; i--)
		let_go(m, &copy->from[i]);
	for (int64_t i = copy->n - 1; i >= 0; i--)
		let_go(m, &copy->to[i]);
	REMOVE(m, copies, n_copies, copy);
}

static void
cut(struct pawl_pool_model *m, struct pawl_model_session *s, int64_t n, bool ends)
{
	int64_t n_slots = (n + m->block_size - 1) / m->block_size;

	for (int i = m->n_copies - 1; i >= 0; i--) {
		struct pawl_model_copy *copy = &m->copies[i];

		if (copy->session == s->id &&
			(copy->appends ? ends || n < s->n_tokens : copy->slot >= n_slots))
			cancel(m, copy);
	}
	for (int i = m->n_handles - 1; i >= 0; i--) {
		struct pawl_model_handle *handle = &m->handles[i];

		if (handle->session != s->id)
			continue;
		while (handle->n && handle->slots[handle->n - 1] >= n_slots) {
			let_go(m, &handle->blocks[handle->n - 1]);
			handle->n--;
		}
		if (ends)
			REMOVE(m, handles, n_handles, handle);
	}
	for (; s->n_slots > n_slots; s->n_slots--)
		let_go(m, &s->blocks[s->n_slots - 1]);
	s->n_tokens = n;
}

enum pawl_status
pawl_pool_model_open(struct pawl_pool_model *m, int64_t max_tokens, uint64_t new_id)
{
	if (max_tokens < 0)
		return PAWL_INVALID_ARGUMENT;
	memset(&m->sessions[m->n_sessions], 0, sizeof(m->sessions[0]));
	m->sessions[m->n_sessions++].id = new_id;
	return PAWL_OK;
}

static bool
is_resident(const struct pawl_model_session *s, int64_t from, int64_t to)
{
	for (int64_t i = from; i < to; i++)
		if (s->blocks[i] == NONE)
			return false;
	return true;
}

enum pawl_status
pawl_pool_model_fork(struct pawl_pool_model *m, uint64_t id, uint64_t new_id)
{
	struct pawl_model_session *s = pawl_pool_model_session(m, id);

	if (!s || !is_resident(s, 0, s->n_slots))
		return PAWL_INVALID_ARGUMENT;
	m->sessions[m->n_sessions] = *s;
	m->sessions[m->n_sessions++].id = new_id;
	return PAWL_OK;
}

enum pawl_status
pawl_pool_model_close(struct pawl_pool_model *m, uint64_t id)
{
	struct pawl_model_session *s = pawl_pool_model_session(m, id);

	if (!s)
		return PAWL_INVALID_ARGUMENT;
	cut(m, s, 0, true);
	REMOVE(m, sessions, n_sessions, s);
	return PAWL_OK;
}

static bool
end_is_pending(const struct pawl_pool_model *m, const struct pawl_model_session *s)
{
	for (int i = 0; i < m->n_copies; i++)
		if (m->copies[i].session == s->id &&
			(m->copies[i].appends || m->copies[i].slot == s->n_slots - 1))
			return true;
	return false;
}

enum pawl_status
pawl_pool_model_append(struct pawl_pool_model *m, uint64_t id, int64_t n, const uint32_t *tokens)
{
	struct pawl_model_session *s = pawl_pool_model_session(m, id);
	int64_t room;

	if (!s || n < 0 || n > INT64_MAX - s->n_tokens)
		return PAWL_INVALID_ARGUMENT;
	if (!n)
		return PAWL_OK;
	room = s->n_slots * m->block_size - s->n_tokens;
	if (end_is_pending(m, s) ||
		(room && (s->blocks[s->n_slots - 1] == NONE ||
				 pawl_pool_model_owners(m, s->blocks[s->n_slots - 1]) > 1)))
		return PAWL_INVALID_ARGUMENT;
	if (n > room + m->n_free * m->block_size)
		return PAWL_CAPACITY;
	for (int64_t i = 0; i < n; i++, s->n_tokens++) {
		int64_t slot = s->n_tokens / m->block_size;

		if (slot == s->n_slots)
			s->blocks[s->n_slots++] = take(m);
		if (pawl_pool_model_owners(m, s->blocks[slot]) != 1)
			ck_abort_msg("a write into a shared block");
		m->bytes[s->blocks[slot]][s->n_tokens % m->block_size] = tokens[i];
		s->content[s->n_tokens] = tokens[i];
	}
	return PAWL_OK;
}

enum pawl_status
pawl_pool_model_truncate(struct pawl_pool_model *m, uint64_t id, int64_t n)
{
	struct pawl_model_session *s = pawl_pool_model_session(m, id);

	if (!s || n < 0 || n > s->n_tokens)
		return PAWL_INVALID_ARGUMENT;
	cut(m, s, n, false);
	return PAWL_OK;
}

enum pawl_status
pawl_pool_model_splice(
	struct pawl_pool_model *m, uint64_t src, int64_t from, int64_t to, uint64_t dst)
{
	struct pawl_model_session *s = pawl_pool_model_session(m, src);
	struct pawl_model_session *d = pawl_pool_model_session(m, dst);

	if (!s || !d || from < 0 || to <= from || to > s->n_slots || d->n_slots != from ||
		d->n_tokens != from * m->block_size || end_is_pending(m, d) ||
		!is_resident(s, from, to))
		return PAWL_INVALID_ARGUMENT;
	for (int64_t i = from; i < to; i++)
		d->blocks[d->n_slots++] = s->blocks[i];
	for (int64_t i = d->n_tokens; i < s->n_tokens && i < to * m->block_size; i++)
		d->content[d->n_tokens++] = s->content[i];
	return PAWL_OK;
}

enum pawl_status
pawl_pool_model_splice_prefix(
	struct pawl_pool_model *m, uint64_t src, int64_t n_blocks, uint64_t dst)
{
	struct pawl_model_session *s = pawl_pool_model_session(m, src);

	if (s && n_blocks > s->n_tokens / m->block_size)
		return PAWL_INVALID_ARGUMENT;
	return pawl_pool_model_splice(m, src, 0, n_blocks, dst);
}

/* Slots to be looked at are true in wanted. */
static void
evict(struct pawl_pool_model *m, struct pawl_model_session *s, const bool *wanted,
	enum pawl_kv_fidelity fidelity, struct pawl_kv_evict_report *report, uint64_t new_id)
{
	struct pawl_model_handle *h = &m->handles[m->n_handles];

	memset(h, 0, sizeof(*h));
	*report = (struct pawl_kv_evict_report){.handle = {new_id}};
	h->id = new_id;
	h->session = s->id;
	h->fidelity = fidelity;
	for (int64_t i = 0; i < s->n_slots; i++) {
		if (!wanted[i] || s->blocks[i] == NONE)
			continue;
		if (pawl_pool_model_owners(m, s->blocks[i]) > 1) {
			report->n_still_shared++;
			continue;
		}
		h->slots[h->n] = i;
		h->blocks[h->n] = NONE;
		memcpy(h->saved[h->n++], m->bytes[s->blocks[i]], sizeof(h->saved[0]));
	}
	for (int64_t i = h->n - 1; i >= 0; i--)
		let_go(m, &s->blocks[h->slots[i]]);
	report->n_freed = h->n;
	m->n_handles++;
}

enum pawl_status
pawl_pool_model_evict_blocks(struct pawl_pool_model *m, uint64_t id, const int64_t *slots,
	int64_t n, enum pawl_kv_fidelity fidelity, struct pawl_kv_evict_report *report,
	uint64_t new_id)
{
	struct pawl_model_session *s = pawl_pool_model_session(m, id);
	bool wanted[PAWL_MODEL_SLOTS] = {false};

	if (!s || n < 0)
		return PAWL_INVALID_ARGUMENT;
	for (int64_t i = 0; i < n; i++) {
		if (slots[i] < 0 || slots[i] >= s->n_slots || wanted[slots[i]] ||
			s->blocks[slots[i]] == NONE)
			return PAWL_INVALID_ARGUMENT;
		wanted[slots[i]] = true;
	}
	evict(m, s, wanted, fidelity, report, new_id);
	return PAWL_OK;
}

enum pawl_status
pawl_pool_model_evict_range(struct pawl_pool_model *m, uint64_t id, int64_t from, int64_t to,
	enum pawl_kv_fidelity fidelity, struct pawl_kv_evict_report *report, uint64_t new_id)
{
	struct pawl_model_session *s = pawl_pool_model_session(m, id);
	bool wanted[PAWL_MODEL_SLOTS] = {false};

	if (!s || from < 0 || to < from || to > s->n_slots)
		return PAWL_INVALID_ARGUMENT;
	for (int64_t i = from; i < to; i++)
		wanted[i] = true;
	evict(m, s, wanted, fidelity, report, new_id);
	return PAWL_OK;
}

enum pawl_status
pawl_pool_model_restore_reserve(struct pawl_pool_model *m, uint64_t handle)
{
	struct pawl_model_handle *h = find_handle(m, handle);

	if (!h || h->is_pending)
		return PAWL_INVALID_ARGUMENT;
	if (h->n > m->n_free)
		return PAWL_CAPACITY;
	for (int64_t i = 0; i < h->n; i++) {
		h->blocks[i] = take(m);
		memcpy(m->bytes[h->blocks[i]], h->saved[i], sizeof(h->saved[i]));
	}
	h->is_pending = true;
	return PAWL_OK;
}

enum pawl_status
pawl_pool_model_restore_commit(struct pawl_pool_model *m, uint64_t handle)
{
	struct pawl_model_handle *h = find_handle(m, handle);
	struct pawl_model_session *s = h ? pawl_pool_model_session(m, h->session) : NULL;

	if (!h || !h->is_pending)
		return PAWL_INVALID_ARGUMENT;
	for (int64_t i = 0; i < h->n; i++)
		s->blocks[h->slots[i]] = h->blocks[i];
	REMOVE(m, handles, n_handles, h);
	return PAWL_OK;
}

enum pawl_status
pawl_pool_model_restore_abort(struct pawl_pool_model *m, uint64_t handle)
{
	struct pawl_model_handle *h = find_handle(m, handle);

	if (!h || !h->is_pending)
		return PAWL_INVALID_ARGUMENT;
	for (int64_t i = h->n - 1; i >= 0; i--)
		let_go(m, &h->blocks[i]);
	h->is_pending = false;
	return PAWL_OK;
}

/* Takes a block for each of n and copies what the device would. */
static void
reserve(struct pawl_pool_model *m, struct pawl_model_copy *c, const int32_t *blocks, int64_t n)
{
	c->n = n;
	for (int64_t i = 0; i < n; i++) {
		c->from[i] = blocks[i];
		c->to[i] = take(m);
		for (int64_t j = 0; j < m->block_size; j++)
			m->bytes[c->to[i]][j] = m->bytes[c->from[i]][j] + (uint32_t)c->shift;
	}
	m->n_copies++;
}

enum pawl_status
pawl_pool_model_cow_reserve(struct pawl_pool_model *m, uint64_t id, int64_t slot, uint64_t new_id)
{
	struct pawl_model_session *s = pawl_pool_model_session(m, id);

	if (!s || slot < 0 || slot >= s->n_slots || s->blocks[slot] == NONE)
		return PAWL_INVALID_ARGUMENT;
	for (int i = 0; i < m->n_copies; i++)
		if (m->copies[i].session == id && !m->copies[i].appends &&
			m->copies[i].slot == slot)
			return PAWL_INVALID_ARGUMENT;
	if (pawl_pool_model_owners(m, s->blocks[slot]) == 1)
		return new_id ? PAWL_INTERNAL : PAWL_OK;
	if (!m->n_free)
		return PAWL_CAPACITY;
	if (!new_id)
		return PAWL_INTERNAL;
	m->copies[m->n_copies] =
		(struct pawl_model_copy){.id = new_id, .session = id, .slot = slot};
	reserve(m, &m->copies[m->n_copies], &s->blocks[slot], 1);
	return PAWL_OK;
}

enum pawl_status
pawl_pool_model_shift_reserve(struct pawl_pool_model *m, uint64_t prefix, int64_t n_blocks,
	uint64_t id, int64_t offset, uint64_t new_id)
{
	struct pawl_model_prefix *p = pawl_pool_model_prefix(m, prefix);
	struct pawl_model_session *s = pawl_pool_model_session(m, id);

	if (!p || !s || n_blocks < 1 || n_blocks > p->n || offset != s->n_tokens ||
		offset % m->block_size || end_is_pending(m, s))
		return PAWL_INVALID_ARGUMENT;
	if (n_blocks > m->n_free)
		return PAWL_CAPACITY;
	m->copies[m->n_copies] = (struct pawl_model_copy){
		.id = new_id, .session = id, .appends = true, .slot = s->n_slots, .shift = offset};
	reserve(m, &m->copies[m->n_copies], p->blocks, n_blocks);
	return PAWL_OK;
}

enum pawl_status
pawl_pool_model_copy_commit(struct pawl_pool_model *m, uint64_t copy)
{
	struct pawl_model_copy *c = find_copy(m, copy);
	struct pawl_model_session *s = c ? pawl_pool_model_session(m, c->session) : NULL;

	if (!c)
		return PAWL_INVALID_ARGUMENT;
	for (int64_t i = 0; i < c->n; i++) {
		int32_t old = c->appends ? NONE : s->blocks[c->slot];

		s->blocks[c->slot + i] = c->to[i];
		c->to[i] = NONE;
		if (!c->appends) {
			let_go(m, &old);
			continue;
		}
		s->n_slots++;
		for (int64_t j = 0; j < m->block_size; j++)
			s->content[s->n_tokens++] = m->bytes[s->blocks[c->slot + i]][j];
	}
	for (int64_t i = c->n - 1; i >= 0; i--)
		let_go(m, &c->from[i]);
	REMOVE(m, copies, n_copies, c);
	return PAWL_OK;
}

enum pawl_status
pawl_pool_model_copy_abort(struct pawl_pool_model *m, uint64_t copy)
{
	struct pawl_model_copy *c = find_copy(m, copy);

	if (!c)
		return PAWL_INVALID_ARGUMENT;
	cancel(m, c);
	return PAWL_OK;
}

#include "runtime/decode_session.h"

#include "ir/each_token.h"
#include "runtime/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum data {
	TOKEN_IDS,
	ROPE_COS,
	ROPE_SIN,
	WINDOW_COS,
	WINDOW_SIN,
	MASK,
	OFFSET,
	POSITIONS,
	WRITE_INDEX,
	BLOCK_TABLE,
	N_DATA
};

static const char *const data_names[N_DATA] = {
	[TOKEN_IDS] = "token_ids",
	[ROPE_COS] = "rope_cos",
	[ROPE_SIN] = "rope_sin",
	[WINDOW_COS] = "window_cos",
	[WINDOW_SIN] = "window_sin",
	[MASK] = "mask",
	[OFFSET] = "offset",
	[POSITIONS] = "positions",
	[WRITE_INDEX] = "write_index",
	[BLOCK_TABLE] = "block_table",
};

struct pawl_decode_session {
	struct pawl_bindings *bindings;
	struct pawl_plan *plan; /* of the bindings */
	int32_t data[N_DATA];   /* slots, -1: the plan has none */
	struct pawl_kv_binding kv;
	const char *letters; /* n_which names of a layer's slots */
};

/* cache.k.3 or cache.v.3; of a cache of latents cache.0.3, cache.1.3, ... */
static bool
parse_kv_name(
	const struct pawl_decode_session *s, const char *name, int32_t *layer, int *which)
{
	const char *letter;
	char canonical[48];

	if (strncmp(name, "cache.", 6) || !name[6] || name[7] != '.')
		return false;
	letter = memchr(s->letters, name[6], (size_t)s->kv.n_which);
	if (!letter)
		return false;
	*which = (int)(letter - s->letters);
	for (*layer = 0; *layer < s->kv.n_layers; ++*layer) {
		snprintf(canonical, sizeof(canonical), "cache.%c.%d", name[6], *layer);
		if (!strcmp(name, canonical))
			return true;
	}
	return false;
}

static enum pawl_status
find_data(struct pawl_decode_session *s, int32_t slot, struct pawl_error *err)
{
	const char *name = s->plan->program->slots[slot].name;

	for (int i = 0; i < N_DATA; i++)
		if (!strcmp(name, data_names[i])) {
			s->data[i] = slot;
			return PAWL_OK;
		}
	return pawl_fail(err, PAWL_INVALID_GRAPH,
		"data const %s is nothing that a decode session binds", name);
}

static enum pawl_status
find_kv(struct pawl_decode_session *s, int32_t slot, struct pawl_error *err)
{
	const char *name = s->plan->program->slots[slot].name;
	int32_t layer;
	int which;

	if (!parse_kv_name(s, name, &layer, &which))
		return pawl_fail(err, PAWL_INVALID_GRAPH,
			"kv const %s is not cache.%c.<layer> to cache.%c.<layer> of %d layers", name,
			s->letters[0], s->letters[s->kv.n_which - 1], s->kv.n_layers);
	s->kv.slots[layer * s->kv.n_which + which] = slot;
	return PAWL_OK;
}

static enum pawl_status
find_slots(struct pawl_decode_session *s, struct pawl_error *err)
{
	const struct pawl_program *program = s->plan->program;
	enum pawl_status status = PAWL_OK;

	for (int i = 0; i < N_DATA; i++)
		s->data[i] = -1;
	for (int32_t i = 0; i < s->kv.n_layers * s->kv.n_which; i++)
		s->kv.slots[i] = -1;
	for (int32_t i = 0; i < program->n_slots && !status; i++) {
		if (program->slots[i].role == PAWL_SLOT_DATA)
			status = find_data(s, i, err);
		else if (program->slots[i].role == PAWL_SLOT_KV)
			status = find_kv(s, i, err);
	}
	return status;
}

/*
 * A table of blocks is part of the key.  Where no output reads an attention (a prompt's chunk through
 * the only layer) neither table nor positions are left in the plan, but rows are written all the same.
 */
static enum pawl_status
check_pages(const struct pawl_decode_session *s, struct pawl_error *err)
{
	static const enum data lists[] = {POSITIONS, WRITE_INDEX};
	const struct pawl_plan_key *key = &s->plan->key;

	if (s->data[BLOCK_TABLE] >= 0) {
		const struct pawl_type *table = &s->plan->types[s->data[BLOCK_TABLE]];

		if (table->rank != 2 || table->dim[0].base != key->n_sequences ||
			table->dim[1].base != key->max_blocks || key->block_size < 1)
			return pawl_fail(err, PAWL_INVALID_GRAPH,
				"block_table is not of %" PRId64 " sequences of %" PRId64
				" blocks, as the key says",
				key->n_sequences, key->max_blocks);
	}
	for (int i = 0; i < 2; i++) {
		int32_t slot = s->data[lists[i]];
		bool is_wanted = lists[i] == WRITE_INDEX && key->n_sequences;

		if (slot < 0 ? is_wanted : pawl_type_elems(&s->plan->types[slot]) != key->seq)
			return pawl_fail(err, PAWL_INVALID_GRAPH,
				"the graph has no data const %s of %" PRId64 " rows",
				data_names[lists[i]], key->seq);
	}
	return PAWL_OK;
}

/* The key must describe the graph, or validity would compare what is not there. */
static enum pawl_status
check_key(const struct pawl_decode_session *s, struct pawl_error *err)
{
	const struct pawl_plan *plan = s->plan;
	const struct pawl_type *ids;
	enum pawl_status status;

	if (s->data[TOKEN_IDS] < 0)
		return pawl_fail(err, PAWL_INVALID_GRAPH, "the graph has no data const token_ids");
	ids = &plan->types[s->data[TOKEN_IDS]];
	if (pawl_type_elems(ids) != plan->key.seq || pawl_dtype_bytes(ids->dtype, 1) != 4)
		return pawl_fail(err, PAWL_INVALID_GRAPH,
			"token_ids holds %" PRId64 " of %s, the key says %" PRId64
			" tokens of 4 bytes",
			pawl_type_elems(ids), pawl_dtype_name(ids->dtype), plan->key.seq);
	status = check_pages(s, err);
	if (status)
		return status;
	for (int32_t i = 0; i < s->kv.n_layers * s->kv.n_which; i++)
		if (s->kv.slots[i] < 0)
			return pawl_fail(err, PAWL_INVALID_GRAPH,
				"the graph has no kv const cache.%c.%d",
				s->letters[i % s->kv.n_which], i / s->kv.n_which);
	for (int i = ROPE_COS; i < N_DATA; i++) {
		static const enum pawl_dtype wanted[N_DATA] = {
			[ROPE_COS] = PAWL_DTYPE_F32,
			[ROPE_SIN] = PAWL_DTYPE_F32,
			[OFFSET] = PAWL_DTYPE_I64,
			[POSITIONS] = PAWL_DTYPE_I64,
			[WRITE_INDEX] = PAWL_DTYPE_I64,
			[BLOCK_TABLE] = PAWL_DTYPE_U32,
		};
		const struct pawl_type *type;

		if (s->data[i] < 0)
			continue;
		type = &plan->types[s->data[i]];
		if (i == MASK ? !pawl_dtype_is_float(type->dtype) : type->dtype != wanted[i])
			return pawl_fail(err, PAWL_INVALID_GRAPH, "data const %s is %s",
				data_names[i], pawl_dtype_name(type->dtype));
	}
	return PAWL_OK;
}

static enum pawl_status
check_cache(
	const struct pawl_plan_key *key, const struct pawl_kv_cache *cache, struct pawl_error *err)
{
	const struct pawl_kv_shape *shape = pawl_kv_cache_shape(cache);

	if (!shape->max_seq_len)
		return pawl_fail(
			err, PAWL_INVALID_ARGUMENT, "a decode session needs a cache with capacity");
	if (pawl_kv_cache_is_shared(cache))
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"the cache has the storages of a fork and does not own them");
	if (shape->n_layers != key->n_layers || shape->n_kv_heads != key->n_kv_heads ||
		shape->head_dim != key->head_dim || shape->max_seq_len != key->max_seq_len)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"the plan is for a cache of %" PRId64 " layers, %" PRId64
			" kv heads of %" PRId64 ", %" PRId64 " positions, this one has %d, %" PRId64
			", %" PRId64 ", %" PRId64,
			key->n_layers, key->n_kv_heads, key->head_dim, key->max_seq_len,
			shape->n_layers, shape->n_kv_heads, shape->head_dim, shape->max_seq_len);
	if (shape->rings.positions != key->ring)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"the plan is for rings of %" PRId64 " positions, this cache has %" PRId64,
			key->ring, shape->rings.positions);
	if (shape->rings.positions && shape->rings.window != key->ring_window)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"the plan is for rings of a window of %" PRId64 ", this cache has %" PRId64,
			key->ring_window, shape->rings.window);
	return PAWL_OK;
}

static enum pawl_status
check_latent_cache(const struct pawl_plan_key *key, const struct pawl_latent_kv_cache *cache,
	struct pawl_error *err)
{
	const struct pawl_latent_shape *shape = pawl_latent_kv_cache_shape(cache);

	if (!shape->max_seq_len)
		return pawl_fail(
			err, PAWL_INVALID_ARGUMENT, "a decode session needs a cache with capacity");
	if (pawl_latent_kv_cache_is_shared(cache))
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"the cache has the storages of a fork and does not own them");
	if (shape->n_layers != key->n_layers || shape->max_seq_len != key->max_seq_len)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"the plan is for a cache of %" PRId64 " layers, %" PRId64
			" positions, this one has %d, %" PRId64,
			key->n_layers, key->max_seq_len, shape->n_layers, shape->max_seq_len);
	return PAWL_OK;
}

static enum pawl_status
bind_cache(struct pawl_decode_session *s, const struct pawl_kv_rebind_source *source,
	struct pawl_error *err)
{
	for (int32_t i = 0; i < s->kv.n_layers * s->kv.n_which; i++) {
		struct pawl_storage *storage =
			source->slot(source->ctx, i / s->kv.n_which, i % s->kv.n_which);
		enum pawl_status status;

		if (!storage)
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"the cache has no storage for %s",
				s->plan->program->slots[s->kv.slots[i]].name);
		status = pawl_bindings_bind(s->bindings, s->kv.slots[i], storage, err);
		if (status)
			return status;
		for (int32_t j = 0; j < i; j++)
			if (pawl_storage_overlaps(
				    storage, pawl_bindings_storage(s->bindings, s->kv.slots[j])))
				return pawl_fail(err, PAWL_INVALID_ARGUMENT,
					"%s shares memory with %s",
					s->plan->program->slots[s->kv.slots[i]].name,
					s->plan->program->slots[s->kv.slots[j]].name);
	}
	s->kv.alloc_id = source->alloc_id(source->ctx);
	s->kv.location = source->location(source->ctx);
	return PAWL_OK;
}

/* On a cache of n_which slots a layer, named by the first letters. */
static enum pawl_status
session_new(struct pawl_plan *plan, struct pawl_weights *weights,
	const struct pawl_kv_rebind_source *source, const char *letters, int32_t n_which,
	struct pawl_team *team,
	struct pawl_decode_session **out, struct pawl_error *err)
{
	struct pawl_decode_session *s = pawl_memory_zalloc(1, sizeof(*s));
	enum pawl_status status;

	if (s)
		s->kv.slots = pawl_memory_zalloc(
			(size_t)plan->key.n_layers, (size_t)n_which * sizeof(int32_t));
	if (!s || !s->kv.slots) {
		pawl_memory_free(s);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a decode session");
	}
	s->kv.n_layers = (int32_t)plan->key.n_layers;
	s->kv.n_which = n_which;
	s->letters = letters;
	s->plan = plan;
	status = find_slots(s, err);
	if (!status)
		status = check_key(s, err);
	if (!status)
		status = pawl_bindings_new(plan, team, &s->bindings, err);
	if (!status)
		status = pawl_bindings_bind_weights(s->bindings, weights, err);
	if (!status)
		status = bind_cache(s, source, err);
	if (status) {
		pawl_decode_session_free(s);
		return status;
	}
	*out = s;
	return PAWL_OK;
}

enum pawl_status
pawl_decode_session_new(struct pawl_plan *plan, struct pawl_weights *weights,
	struct pawl_kv_cache *cache, struct pawl_team *team, struct pawl_decode_session **out,
	struct pawl_error *err)
{
	const struct pawl_kv_rebind_source source = pawl_kv_cache_source(cache);
	enum pawl_status status = check_cache(&plan->key, cache, err);

	return status ? status : session_new(plan, weights, &source, "kv", PAWL_N_KV_SLOTS, team, out,
				  err);
}

enum pawl_status
pawl_decode_session_new_latent(struct pawl_plan *plan, struct pawl_weights *weights,
	struct pawl_latent_kv_cache *cache, struct pawl_team *team,
	struct pawl_decode_session **out, struct pawl_error *err)
{
	static const char digits[] = "0123";
	const struct pawl_kv_rebind_source source = pawl_latent_kv_cache_source(cache);
	enum pawl_status status = check_latent_cache(&plan->key, cache, err);

	_Static_assert(sizeof(digits) == PAWL_MAX_LATENT_SLOTS + 1, "a digit for each slot");
	return status ? status
		      : session_new(plan, weights, &source, digits,
				pawl_latent_kv_cache_shape(cache)->n_slots, team, out, err);
}

void
pawl_decode_session_free(struct pawl_decode_session *s)
{
	if (!s)
		return;
	pawl_bindings_free(s->bindings);
	pawl_memory_free(s->kv.slots);
	pawl_memory_free(s);
}

struct pawl_plan *
pawl_decode_session_plan(const struct pawl_decode_session *s)
{
	return s->plan;
}

struct pawl_bindings *
pawl_decode_session_bindings(const struct pawl_decode_session *s)
{
	return s->bindings;
}

struct pawl_kv_alloc_id
pawl_decode_session_alloc_id(const struct pawl_decode_session *s)
{
	return s->kv.alloc_id;
}

PAWL_EACH_TOKEN struct pawl_verdict
pawl_decode_session_validity(const struct pawl_decode_session *s, const struct pawl_plan_key *asked,
	struct pawl_kv_alloc_id alloc_id)
{
	return pawl_plan_validity(&s->plan->key, s->kv.alloc_id, asked, alloc_id);
}

bool
pawl_decode_session_rebind(struct pawl_decode_session *s,
	const struct pawl_kv_rebind_source *source, struct pawl_refusal *refusal)
{
	return pawl_kv_rebind(s->bindings, &s->kv, source, refusal);
}

PAWL_EACH_TOKEN enum pawl_status
pawl_decode_session_realize(struct pawl_decode_session *s, const struct pawl_token_data *data,
	const struct pawl_symenv *env, struct pawl_counters *counters, struct pawl_error *err)
{
	const void *bytes[N_DATA] = {
		[TOKEN_IDS] = data->token_ids,
		[ROPE_COS] = data->rope_cos,
		[ROPE_SIN] = data->rope_sin,
		[WINDOW_COS] = data->window_cos,
		[WINDOW_SIN] = data->window_sin,
		[MASK] = data->mask,
		[OFFSET] = data->offset,
		[POSITIONS] = data->positions,
		[WRITE_INDEX] = data->write_index,
		[BLOCK_TABLE] = data->block_table,
	};

	for (int i = 0; i < N_DATA; i++) {
		if (s->data[i] >= 0 && !bytes[i])
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"the plan wants %s, which is not given", data_names[i]);
	}
	for (int i = 0; i < N_DATA; i++)
		if (s->data[i] >= 0)
			pawl_bindings_offer(s->bindings, s->data[i], bytes[i]);
	return pawl_bindings_run(s->bindings, env, counters, err);
}

PAWL_EACH_TOKEN const void *
pawl_decode_session_output(const struct pawl_decode_session *s, int32_t i, struct pawl_type *type)
{
	return pawl_bindings_output(s->bindings, i, type);
}

static int64_t
row_length(const struct pawl_decode_session *s, enum data table)
{
	return s->data[table] < 0 ? 0 : pawl_type_row_length(&s->plan->types[s->data[table]]);
}

int64_t
pawl_decode_session_rope_width(const struct pawl_decode_session *s)
{
	return row_length(s, ROPE_COS);
}

int64_t
pawl_decode_session_window_rope_width(const struct pawl_decode_session *s)
{
	return row_length(s, WINDOW_COS);
}

static float *
table_of(const struct pawl_decode_session *s, enum data table)
{
	return s->data[table] < 0 ? NULL
				  : pawl_bindings_storage(s->bindings, s->data[table])->bytes;
}

struct pawl_rope_tables
pawl_decode_session_rope_tables(const struct pawl_decode_session *s)
{
	return (struct pawl_rope_tables){table_of(s, ROPE_COS), table_of(s, ROPE_SIN),
		table_of(s, WINDOW_COS), table_of(s, WINDOW_SIN)};
}

const struct pawl_type *
pawl_decode_session_mask_type(const struct pawl_decode_session *s)
{
	return s->data[MASK] < 0 ? NULL : &s->plan->types[s->data[MASK]];
}

PAWL_EACH_TOKEN void
pawl_decode_session_refresh(struct pawl_decode_session **session, const struct pawl_plan_key *asked,
	const struct pawl_kv_rebind_source *source, struct pawl_invalidate on_invalidate,
	struct pawl_counters *counters, struct pawl_disposition *out)
{
	*out = (struct pawl_disposition){PAWL_SESSION_ABSENT, .verdict.field = PAWL_KEY_NONE};
	if (!*session)
		return;
	counters->validity_checks++;
	out->verdict = pawl_decode_session_validity(*session, asked, source->alloc_id(source->ctx));
	counters->verdicts[out->verdict.validity]++;
	if (out->verdict.validity == PAWL_VALID) {
		out->kind = PAWL_SESSION_KEPT;
		return;
	}
	if (on_invalidate.fn)
		on_invalidate.fn(on_invalidate.arg);
	if (out->verdict.validity == PAWL_ALLOCATION_CHANGED &&
		pawl_decode_session_rebind(*session, source, &out->refusal)) {
		out->kind = PAWL_SESSION_REBOUND;
		counters->rebinds++;
		return;
	}
	out->kind = PAWL_SESSION_DROPPED;
	pawl_decode_session_free(*session);
	*session = NULL;
}

const char *
pawl_disposition_name(enum pawl_disposition_kind kind)
{
	switch (kind) {
	case PAWL_SESSION_ABSENT:
		return "absent";
	case PAWL_SESSION_KEPT:
		return "kept";
	case PAWL_SESSION_REBOUND:
		return "rebound";
	case PAWL_SESSION_DROPPED:
		return "dropped";
	}
	return "unknown";
}

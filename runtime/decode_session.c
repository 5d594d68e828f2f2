#include "runtime/decode_session.h"

#include "ir/each_token.h"
#include "runtime/decode_inputs.h"
#include "runtime/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct pawl_decode_session {
	struct pawl_bindings *bindings;
	struct pawl_plan *plan; /* of the bindings */
	int32_t data[PAWL_N_DECODE_INPUTS]; /* slots, -1: the plan has none */
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

/* The key must describe the graph, or validity would compare what is not there. */
static enum pawl_status
find_slots(struct pawl_decode_session *s, struct pawl_error *err)
{
	const struct pawl_program *program = s->plan->program;
	enum pawl_status status = pawl_decode_inputs_find(s->plan, s->data, err);

	for (int32_t i = 0; i < s->kv.n_layers * s->kv.n_which; i++)
		s->kv.slots[i] = -1;
	for (int32_t i = 0; i < program->n_slots && !status; i++)
		if (program->slots[i].role == PAWL_SLOT_KV)
			status = find_kv(s, i, err);
	for (int32_t i = 0; i < s->kv.n_layers * s->kv.n_which && !status; i++)
		if (s->kv.slots[i] < 0)
			status = pawl_fail(err, PAWL_INVALID_GRAPH,
				"the graph has no kv const cache.%c.%d",
				s->letters[i % s->kv.n_which], i / s->kv.n_which);
	return status;
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
	const void *bytes[PAWL_N_DECODE_INPUTS] = {
		[PAWL_INPUT_TOKEN_IDS] = data->token_ids,
		[PAWL_INPUT_ROPE_COS] = data->rope_cos,
		[PAWL_INPUT_ROPE_SIN] = data->rope_sin,
		[PAWL_INPUT_WINDOW_COS] = data->window_cos,
		[PAWL_INPUT_WINDOW_SIN] = data->window_sin,
		[PAWL_INPUT_MASK] = data->mask,
		[PAWL_INPUT_OFFSET] = data->offset,
		[PAWL_INPUT_POSITIONS] = data->positions,
		[PAWL_INPUT_WRITE_INDEX] = data->write_index,
		[PAWL_INPUT_BLOCK_TABLE] = data->block_table,
	};

	for (int i = 0; i < PAWL_N_DECODE_INPUTS; i++) {
		if (s->data[i] >= 0 && !bytes[i])
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"the plan wants %s, which is not given",
				pawl_decode_input_name((enum pawl_decode_input)i));
	}
	for (int i = 0; i < PAWL_N_DECODE_INPUTS; i++)
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
row_length(const struct pawl_decode_session *s, enum pawl_decode_input table)
{
	return s->data[table] < 0 ? 0 : pawl_type_row_length(&s->plan->types[s->data[table]]);
}

int64_t
pawl_decode_session_rope_width(const struct pawl_decode_session *s)
{
	return row_length(s, PAWL_INPUT_ROPE_COS);
}

int64_t
pawl_decode_session_window_rope_width(const struct pawl_decode_session *s)
{
	return row_length(s, PAWL_INPUT_WINDOW_COS);
}

static float *
table_of(const struct pawl_decode_session *s, enum pawl_decode_input table)
{
	return s->data[table] < 0 ? NULL
				  : pawl_bindings_storage(s->bindings, s->data[table])->bytes;
}

struct pawl_rope_tables
pawl_decode_session_rope_tables(const struct pawl_decode_session *s)
{
	return (struct pawl_rope_tables){.cos = table_of(s, PAWL_INPUT_ROPE_COS),
		.sin = table_of(s, PAWL_INPUT_ROPE_SIN),
		.window_cos = table_of(s, PAWL_INPUT_WINDOW_COS),
		.window_sin = table_of(s, PAWL_INPUT_WINDOW_SIN)};
}

const struct pawl_type *
pawl_decode_session_mask_type(const struct pawl_decode_session *s)
{
	return s->data[PAWL_INPUT_MASK] < 0 ? NULL : &s->plan->types[s->data[PAWL_INPUT_MASK]];
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

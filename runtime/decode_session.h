/*
 * A decode session: a held plan bound to one model's weights and one cache, run again and again
 * with new token data.
 *
 * The plan's graph takes token data through data consts of these names, of constant shape:
 *   token_ids  u32 or i32 [seq]           rope_cos, rope_sin  f32 [seq, width]
 *   window_cos, window_sin  f32 [seq, width]: of layers with a window, where those turn otherwise
 *   offset     i64 []                     mask  [seq, max_seq_len] or [1, 1, seq, max_seq_len]
 *   positions  i64 [seq]: offset, offset + 1, ...
 * each optional but token_ids; a plan over a cache in blocks has, in place of offset and mask,
 *   positions, write_index  i64 [seq]     block_table  u32 [n_sequences, max_blocks]
 * which say where each row stands in its sequence (negative: an idle row), where its key and value
 * go in the cache (negative: nowhere), and which blocks each sequence has.  Its state comes through
 * kv consts cache.k.<layer>, cache.v.<layer>, or for a cache of latents cache.0.<layer>,
 * cache.1.<layer>, ...
 *
 * A session never advances a cache: whoever runs it does so when the run succeeded.  Belongs to one
 * thread at a time.
 */
#ifndef PAWL_RUNTIME_DECODE_SESSION_H
#define PAWL_RUNTIME_DECODE_SESSION_H

#include "runtime/kv_cache.h"
#include "runtime/latent_kv_cache.h"
#include "runtime/rebind.h"

struct pawl_decode_session;

/* Host memory; read by one run.  A field without a const in the plan is ignored. */
struct pawl_token_data {
	const void *token_ids;
	const float *rope_cos, *rope_sin, *window_cos, *window_sin;
	const void *mask;
	const int64_t *offset;
	const int64_t *positions, *write_index;
	const uint32_t *block_table;
};

/*
 * What plan->key says is checked against the graph and the cache: PAWL_INVALID_GRAPH when the graph
 * has other consts than those above, or for another token count or number of layers;
 * PAWL_INVALID_ARGUMENT when the cache has no capacity, is shared with a fork, or is of
 * another geometry.
 * References the plan; the team must outlive the session.
 */
enum pawl_status pawl_decode_session_new(struct pawl_plan *plan, struct pawl_weights *weights,
	struct pawl_kv_cache *cache, struct pawl_team *team, struct pawl_decode_session **out,
	struct pawl_error *err);
/* The same on a cache of latents; of the key n_layers and max_seq_len are compared. */
enum pawl_status pawl_decode_session_new_latent(struct pawl_plan *plan,
	struct pawl_weights *weights, struct pawl_latent_kv_cache *cache, struct pawl_team *team,
	struct pawl_decode_session **out, struct pawl_error *err);
/* NULL is allowed. */
void pawl_decode_session_free(struct pawl_decode_session *session);

struct pawl_plan *pawl_decode_session_plan(const struct pawl_decode_session *session);
struct pawl_bindings *pawl_decode_session_bindings(const struct pawl_decode_session *session);
struct pawl_kv_alloc_id pawl_decode_session_alloc_id(const struct pawl_decode_session *session);

struct pawl_verdict pawl_decode_session_validity(const struct pawl_decode_session *session,
	const struct pawl_plan_key *asked, struct pawl_kv_alloc_id alloc_id);
/* Only after PAWL_ALLOCATION_CHANGED; see runtime/rebind.h. */
bool pawl_decode_session_rebind(struct pawl_decode_session *session,
	const struct pawl_kv_rebind_source *source, struct pawl_refusal *refusal);

/*
 * Runs the plan on data.  Nothing is written unless every symbol is bound and every index in
 * bounds; PAWL_CAPACITY when the write would go beyond the cache.  env: NULL for a plan without
 * symbols.  counters->runs and bytes_bound grow.
 */
enum pawl_status pawl_decode_session_realize(struct pawl_decode_session *session,
	const struct pawl_token_data *data, const struct pawl_symenv *env,
	struct pawl_counters *counters, struct pawl_error *err);

/* Output i of the last run; valid until the next.  type may be NULL. */
const void *pawl_decode_session_output(
	const struct pawl_decode_session *session, int32_t i, struct pawl_type *type);

/* Width of the rope tables, 0 without; of window_cos and window_sin. */
int64_t pawl_decode_session_rope_width(const struct pawl_decode_session *session);
int64_t pawl_decode_session_window_rope_width(const struct pawl_decode_session *session);

/*
 * Where a run reads its rope tables, NULL: not at all.  What is offered from there need not be copied;
 * it is the session's, until that is freed.
 */
struct pawl_rope_tables {
	float *cos, *sin, *window_cos, *window_sin;
};
struct pawl_rope_tables pawl_decode_session_rope_tables(const struct pawl_decode_session *session);
/* The type of the mask, NULL without one. */
const struct pawl_type *pawl_decode_session_mask_type(const struct pawl_decode_session *session);

/* What became of a session that was asked to serve a step. */
enum pawl_disposition_kind {
	PAWL_SESSION_ABSENT, /* there was none */
	PAWL_SESSION_KEPT,
	PAWL_SESSION_REBOUND, /* kept, on the storages of another cache */
	PAWL_SESSION_DROPPED  /* freed: the verdict, and the refusal if rebinding was tried, say why
			       */
};

struct pawl_disposition {
	enum pawl_disposition_kind kind;
	struct pawl_verdict verdict;
	struct pawl_refusal refusal;
};

/* Told before anything about the session changes, and not at all when it is kept. */
struct pawl_invalidate {
	void (*fn)(void *arg); /* may be NULL */
	void *arg;
};

/*
 * The policy of every step: judges *session against what is asked; keeps, rebinds or frees it
 * (*session becomes NULL).  The callback runs first, also before a rebind that then succeeds: it
 * drops whatever was captured over the old storages.
 */
void pawl_decode_session_refresh(struct pawl_decode_session **session,
	const struct pawl_plan_key *asked, const struct pawl_kv_rebind_source *source,
	struct pawl_invalidate on_invalidate, struct pawl_counters *counters,
	struct pawl_disposition *out);

const char *pawl_disposition_name(enum pawl_disposition_kind kind);

#endif

/* Objects behind the opaque handles of include/pawl/plugin.h; shared by plugins/host_*.c. */
#ifndef PAWL_PLUGINS_HOST_API_H
#define PAWL_PLUGINS_HOST_API_H

#include <pawl/plugin.h>
#include <stdatomic.h>

#include "ir/text_graph.h"
#include "plugins/host_geometry.h"
#include "plugins/host_struct.h"
#include "runtime/bindings.h"
#include "runtime/lent_team.h"
#include "runtime/pool.h"
#include "runtime/rebind.h"

/* What a handle is; odd numbers, so that a pointer to something else is hardly one by chance. */
enum pawl_host_kind {
	PAWL_HOST_CONTEXT = 0x70636e01,
	PAWL_HOST_GRAPH = 0x70636e03,
	PAWL_HOST_PLAN = 0x70636e05,
	PAWL_HOST_WEIGHTS = 0x70636e07,
	PAWL_HOST_CACHE = 0x70636e09,
	PAWL_HOST_SESSION = 0x70636e0b,
	PAWL_HOST_MODEL = 0x70636e0d,
	PAWL_HOST_DECODER = 0x70636e0f,
	PAWL_HOST_POOL = 0x70636e11,
	PAWL_HOST_SCHEDULER = 0x70636e13,
	PAWL_HOST_SPECULATION = 0x70636e15
};

/* First member of whatever a handle points to. */
struct pawl_host_object {
	uint64_t kind; /* 0 once it is released */
	atomic_llong n_refs;
	struct pawl_host_context *context; /* kept alive; of a context: itself */
};

/* Counted since the context was made. */
struct pawl_host_counts {
	atomic_ullong plans, regrown, runs, failed_runs, run_ns, bytes_bound, positions, handles;
	atomic_ullong verdicts[4]; /* by enum pawl_cache_verdict */
	atomic_ullong stale[PAWL_N_KEY_FIELDS];
	atomic_ullong refused[PAWL_N_REFUSALS];
};

struct pawl_host_context {
	struct pawl_host_object object;
	struct pawl_services services;
	struct pawl_block_source memory; /* of the services, where they have any */
	struct pawl_device *device;
	enum pawl_precision precision;
	int n_threads;
	struct pawl_host_counts counts;
};

struct pawl_host_graph {
	struct pawl_host_object object;
	struct pawl_text_graph *text; /* NULL: it came as a whole */
	struct pawl_graph *whole;
};

struct pawl_host_plan {
	struct pawl_host_object object;
	struct pawl_plan *plan;
	struct pawl_host_geometry geometry;
	int32_t *kv_slots; /* geometry.n_layers * n_which */
	struct pawl_binding *bindings;
	int32_t *slots; /* of each binding, -1: a symbol */
	int32_t n_bindings, n_symbols;
	char *texts; /* types of the bindings */
};

struct pawl_host_weights;
struct pawl_host_cache;

struct pawl_host_session {
	struct pawl_host_object object;
	struct pawl_host_plan *plan;
	struct pawl_host_weights *weights; /* NULL: none */
	struct pawl_host_cache *cache;     /* NULL: none */
	struct pawl_pool *pool;            /* or */
	struct pawl_lent_team *lent;
	struct pawl_bindings *bindings;
	struct pawl_symenv env;
	struct pawl_kv_binding kv; /* its slots are the plan's */
	bool has_run;              /* the last run succeeded */
};

/* A status object for a failure, NULL for PAWL_OK. */
struct pawl_host_status *pawl_host_status(enum pawl_status status, const struct pawl_error *err);
struct pawl_host_status *pawl_host_refuse(enum pawl_status status, const char *format, ...)
	PAWL_PRINTF(2, 3);
enum pawl_status_code pawl_host_status_code(const struct pawl_host_status *status);
const char *pawl_host_status_message(const struct pawl_host_status *status);
void pawl_host_status_free(struct pawl_host_status *status);

void pawl_host_log(const struct pawl_host_context *context, int level, const char *format, ...)
	PAWL_PRINTF(3, 4);

/* Whether a handle is there and of that kind. */
bool pawl_host_is(const void *handle, enum pawl_host_kind kind);
/* A zeroed object of n bytes with one reference; NULL without memory. */
void *pawl_host_object_new(
	enum pawl_host_kind kind, struct pawl_host_context *context, size_t n);
void pawl_host_retain(void *handle);
/*
 * True when it was the last reference: the caller frees what the object has, then
 * pawl_host_object_free.
 */
bool pawl_host_drop(void *handle, enum pawl_host_kind kind);
void pawl_host_object_free(void *handle);

/*
 * The calling thread takes memory from the services of the context until it leaves with what enter
 * gave.
 */
const struct pawl_block_source *pawl_host_enter(const struct pawl_host_context *context);
void pawl_host_leave(const struct pawl_block_source *before);
/* Whether the host asks to give up. */
bool pawl_host_is_aborted(void *context);

/* The weights of a session; source of its plan's. */
struct pawl_weights *pawl_host_weights_of(struct pawl_host_weights *weights);

/* Of a cache, for sessions; see plugins/host_cache.c. */
struct pawl_kv_rebind_source pawl_host_cache_source(struct pawl_host_cache *cache);
enum pawl_status pawl_host_cache_own(struct pawl_host_cache *cache, struct pawl_error *err);
enum pawl_status pawl_host_cache_before_run(
	struct pawl_host_cache *cache, int64_t n, struct pawl_error *err);
void pawl_host_cache_advance(struct pawl_host_cache *cache, int64_t n);

/* A host's sink of a call of that name as one of snapshots. */
struct pawl_host_to_sink {
	pawl_sink *sink;
	void *user;
	const char *call;
};
enum pawl_status pawl_host_write_to_sink(
	void *to, const void *bytes, size_t n, struct pawl_error *err);
struct pawl_kv_snapshot;
/* Up to max_tokens of a snapshot's; any pointer to put them may be NULL. */
void pawl_host_give_tokens(const struct pawl_kv_snapshot *snapshot, uint32_t *tokens,
	int64_t max_tokens, int64_t *n_tokens);

/* The entries of struct pawl_api, see there. */
struct pawl_host_status *pawl_host_context_create(const struct pawl_services *services,
	const struct pawl_context_options *options, struct pawl_host_context **out);
void pawl_host_context_release(struct pawl_host_context *context);
struct pawl_host_status *pawl_host_context_describe(
	struct pawl_host_context *context, pawl_sink *sink, void *user);
int pawl_host_context_counter(
	struct pawl_host_context *context, int64_t i, struct pawl_counter *out);

struct pawl_host_status *pawl_host_graph_from_text(struct pawl_host_context *context,
	const char *text, size_t n, struct pawl_host_graph **out);
struct pawl_host_status *pawl_host_graph_create(
	struct pawl_host_context *context, const char *name, struct pawl_host_graph **out);
struct pawl_host_status *pawl_host_graph_symbol(struct pawl_host_graph *graph, const char *name,
	int64_t min, int64_t max, int64_t multiple);
struct pawl_host_status *pawl_host_graph_add(struct pawl_host_graph *graph, const char *name,
	const char *op, const char *const *inputs, int64_t n_inputs, const char *attrs,
	const char *type);
struct pawl_host_status *pawl_host_graph_output(struct pawl_host_graph *graph, const char *name);
struct pawl_host_status *pawl_host_graph_add_all(struct pawl_host_graph *graph,
	int (*node)(void *user, int64_t i, struct pawl_host_node *out), void *user);
struct pawl_host_status *pawl_host_graph_to_text(
	const struct pawl_host_graph *graph, pawl_sink *sink, void *user);
void pawl_host_graph_release(struct pawl_host_graph *graph);
/* The graph there is. */
const struct pawl_graph *pawl_host_graph_graph(const struct pawl_host_graph *graph);

struct pawl_host_status *pawl_host_plan_compile(
	struct pawl_host_graph *graph, struct pawl_host_plan **out);
struct pawl_host_status *pawl_host_plan_regrow(
	struct pawl_host_plan *like, struct pawl_host_graph *graph, struct pawl_host_plan **out);
void pawl_host_plan_retain(struct pawl_host_plan *plan);
void pawl_host_plan_release(struct pawl_host_plan *plan);
int pawl_host_plan_binding(
	const struct pawl_host_plan *plan, int64_t i, struct pawl_binding *out);
int64_t pawl_host_plan_find(const struct pawl_host_plan *plan, int64_t role, const char *name);
struct pawl_host_status *pawl_host_plan_to_json(
	const struct pawl_host_plan *plan, pawl_sink *sink, void *user);
struct pawl_host_status *pawl_host_plans_forecast(
	struct pawl_host_plan *const *plans, int64_t n_plans, struct pawl_memory_needs *out);
/* Fills in bindings, slots and texts of a plan; PAWL_OUT_OF_MEMORY. */
enum pawl_status pawl_host_list_bindings(struct pawl_host_plan *plan, struct pawl_error *err);

struct pawl_host_status *pawl_host_weights_create(struct pawl_host_context *context,
	const struct pawl_weight_options *options, struct pawl_host_weights **out);
struct pawl_host_status *pawl_host_weights_add(struct pawl_host_weights *weights, const char *name,
	const char *type, const void *bytes, size_t n_bytes);
void pawl_host_weights_release(struct pawl_host_weights *weights);

struct pawl_host_status *pawl_host_cache_create(struct pawl_host_plan *plan,
	const struct pawl_cache_options *options, struct pawl_host_cache **out);
void pawl_host_cache_release(struct pawl_host_cache *cache);
int64_t pawl_host_cache_len(const struct pawl_host_cache *cache);
int64_t pawl_host_cache_capacity(const struct pawl_host_cache *cache);
struct pawl_host_status *pawl_host_cache_set_len(
	struct pawl_host_cache *cache, int64_t n, int64_t *len);
struct pawl_host_status *pawl_host_cache_memory(
	struct pawl_host_cache *cache, const char *name, void **bytes, size_t *n_bytes);
struct pawl_host_status *pawl_host_cache_reserve(struct pawl_host_cache *cache, int64_t n);
struct pawl_host_status *pawl_host_cache_fork(
	struct pawl_host_cache *cache, struct pawl_host_cache **out);
struct pawl_host_status *pawl_host_cache_save(const struct pawl_host_cache *cache, uint64_t model,
	const uint32_t *tokens, int64_t n_tokens, pawl_sink *sink, void *user);
struct pawl_host_status *pawl_host_cache_restore(struct pawl_host_cache *cache, uint64_t model,
	const void *bytes, size_t n_bytes, uint32_t *tokens, int64_t max_tokens,
	int64_t *n_tokens);

struct pawl_host_status *pawl_host_session_create(struct pawl_host_plan *plan,
	struct pawl_host_weights *weights, struct pawl_host_session **out);
void pawl_host_session_release(struct pawl_host_session *session);
struct pawl_host_status *pawl_host_session_bind(
	struct pawl_host_session *session, int64_t binding, void *bytes, size_t n_bytes);
struct pawl_host_status *pawl_host_session_use_cache(struct pawl_host_session *session,
	struct pawl_host_cache *cache, struct pawl_cache_report *report);
struct pawl_host_status *pawl_host_session_set(struct pawl_host_session *session, int64_t binding,
	const void *bytes, size_t n_bytes);
struct pawl_host_status *pawl_host_session_set_symbol(
	struct pawl_host_session *session, int64_t binding, int64_t value);
struct pawl_host_status *pawl_host_session_run(struct pawl_host_session *session, int64_t n_new);
struct pawl_host_status *pawl_host_session_output(const struct pawl_host_session *session,
	int64_t i, const void **bytes, size_t *n_bytes);
struct pawl_host_status *pawl_host_graph_add_text(struct pawl_host_graph *graph, const char *text,
	size_t n);
struct pawl_host_status *pawl_host_model_create(struct pawl_host_context *context,
	struct pawl_host_weights *weights, const struct pawl_model_options *options,
	struct pawl_host_model **out);
void pawl_host_model_release(struct pawl_host_model *model);
struct pawl_host_status *pawl_host_decoder_create(struct pawl_host_model *model,
	const struct pawl_decoder_settings *settings, struct pawl_host_decoder **out);
void pawl_host_decoder_release(struct pawl_host_decoder *decoder);
struct pawl_host_status *pawl_host_decoder_append(struct pawl_host_decoder *decoder,
	const uint32_t *tokens, int64_t n, const float **logits);
struct pawl_host_status *pawl_host_decoder_verify(struct pawl_host_decoder *decoder,
	const uint32_t *tokens, int64_t n, int64_t rows, const float **logits);
int64_t pawl_host_decoder_len(const struct pawl_host_decoder *decoder);
int64_t pawl_host_decoder_capacity(const struct pawl_host_decoder *decoder);
struct pawl_host_status *pawl_host_decoder_set_len(struct pawl_host_decoder *decoder, int64_t n,
	int64_t *len);
struct pawl_host_status *pawl_host_decoder_reserve(struct pawl_host_decoder *decoder, int64_t n);
struct pawl_host_status *pawl_host_decoder_save(const struct pawl_host_decoder *decoder,
	const uint32_t *tokens, int64_t n_tokens, pawl_sink *sink, void *user);
struct pawl_host_status *pawl_host_decoder_restore(struct pawl_host_decoder *decoder,
	const void *bytes, size_t n_bytes, uint32_t *tokens, int64_t max_tokens, int64_t *n_tokens);
struct pawl_host_status *pawl_host_pool_create(struct pawl_host_model *model,
	const struct pawl_pool_settings *settings, struct pawl_host_pool **out);
void pawl_host_pool_release(struct pawl_host_pool *pool);
struct pawl_host_status *pawl_host_pool_open(struct pawl_host_pool *pool, uint64_t *sequence);
struct pawl_host_status *pawl_host_pool_close(struct pawl_host_pool *pool, uint64_t sequence);
struct pawl_host_status *pawl_host_pool_fork(struct pawl_host_pool *pool, uint64_t sequence,
	uint64_t *fork);
int64_t pawl_host_pool_len(const struct pawl_host_pool *pool, uint64_t sequence);
struct pawl_host_status *pawl_host_pool_set_len(struct pawl_host_pool *pool, uint64_t sequence,
	int64_t n);
int64_t pawl_host_pool_free_blocks(const struct pawl_host_pool *pool);
struct pawl_host_status *pawl_host_pool_append(struct pawl_host_pool *pool, uint64_t sequence,
	const uint32_t *tokens, int64_t n, const float **logits);
struct pawl_host_status *pawl_host_pool_step(struct pawl_host_pool *pool, const uint64_t *sequences,
	const uint32_t *tokens, int64_t n, const float **logits);
struct pawl_host_status *pawl_host_pool_evict(struct pawl_host_pool *pool, uint64_t sequence,
	uint64_t *handle, int64_t *n_freed);
struct pawl_host_status *pawl_host_pool_restore(struct pawl_host_pool *pool, uint64_t handle);
struct pawl_host_status *pawl_host_pool_keep_prefix(struct pawl_host_pool *pool, uint64_t sequence,
	const uint32_t *tokens, int64_t n, uint64_t *prefix);
struct pawl_host_status *pawl_host_pool_use_prefix(struct pawl_host_pool *pool, uint64_t sequence,
	const uint32_t *tokens, int64_t n, int64_t *n_shared);
struct pawl_host_status *pawl_host_pool_drop_prefix(struct pawl_host_pool *pool, uint64_t prefix);

struct pawl_host_status *pawl_host_scheduler_create(struct pawl_host_pool *pool,
	const struct pawl_scheduler_settings *settings, struct pawl_host_scheduler **out);
void pawl_host_scheduler_release(struct pawl_host_scheduler *scheduler);
struct pawl_host_status *pawl_host_scheduler_submit(struct pawl_host_scheduler *scheduler,
	const struct pawl_request_settings *settings, uint64_t *request);
struct pawl_host_status *pawl_host_scheduler_cancel(struct pawl_host_scheduler *scheduler,
	uint64_t request);
struct pawl_host_status *pawl_host_scheduler_evict(struct pawl_host_scheduler *scheduler,
	uint64_t request);
struct pawl_host_status *pawl_host_scheduler_restore(struct pawl_host_scheduler *scheduler,
	uint64_t request);
struct pawl_host_status *pawl_host_scheduler_step(struct pawl_host_scheduler *scheduler);
int pawl_host_scheduler_has_work(const struct pawl_host_scheduler *scheduler);
struct pawl_host_status *pawl_host_scheduler_report(const struct pawl_host_scheduler *scheduler,
	uint64_t request, struct pawl_request_report *out);
uint64_t pawl_host_scheduler_finished(const struct pawl_host_scheduler *scheduler);
struct pawl_host_status *pawl_host_scheduler_forget(struct pawl_host_scheduler *scheduler,
	uint64_t request);
struct pawl_host_status *pawl_host_scheduler_drop_prefixes(struct pawl_host_scheduler *scheduler);
int pawl_host_scheduler_counter(const struct pawl_host_scheduler *scheduler, int64_t i,
	struct pawl_counter *out);

struct pawl_host_status *pawl_host_speculation_create(struct pawl_host_decoder *decoder,
	const struct pawl_speculation_settings *settings, struct pawl_host_speculation **out);
struct pawl_host_status *pawl_host_speculation_of_sequence(struct pawl_host_pool *pool,
	uint64_t sequence, const struct pawl_speculation_settings *settings,
	struct pawl_host_speculation **out);
void pawl_host_speculation_release(struct pawl_host_speculation *speculation);
struct pawl_host_status *pawl_host_speculation_begin(struct pawl_host_speculation *speculation,
	const uint32_t *tokens, int64_t n);
struct pawl_host_status *pawl_host_speculation_step(struct pawl_host_speculation *speculation,
	uint32_t token, const float **logits);
struct pawl_host_status *pawl_host_speculation_settle(struct pawl_host_speculation *speculation);
int pawl_host_speculation_counter(const struct pawl_host_speculation *speculation, int64_t i,
	struct pawl_counter *out);

#endif

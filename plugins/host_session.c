#include <string.h>

#include "plugins/host_api.h"
#include "plugins/host_cache.h"

enum { REPORT_1 = 56, KV_ALIGNMENT = 64 };

_Static_assert(sizeof(struct pawl_cache_report) >= REPORT_1, "structs only grow");

static enum pawl_status
make_team(struct pawl_host_session *session, struct pawl_team **team, struct pawl_error *err)
{
	const struct pawl_host_context *context = session->object.context;
	const struct pawl_parallel_for lent = {
		context->services.parallel_for, context->services.user};
	enum pawl_status status;

	if (lent.run) {
		status = pawl_lent_team_new(&lent, context->n_threads, &session->lent, err);
		*team = status ? NULL : pawl_lent_team_team(session->lent);
	} else {
		status = pawl_pool_new(context->n_threads, &session->pool, err);
		*team = status ? NULL : pawl_pool_team(session->pool);
	}
	return status;
}

static enum pawl_status
check_weights(const struct pawl_host_session *session, struct pawl_error *err)
{
	const struct pawl_program *program = session->plan->plan->program;

	for (int32_t i = 0; i < program->n_slots && !session->weights; i++)
		if (program->slots[i].role == PAWL_SLOT_WEIGHT)
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"session_create: the plan has weight '%.64s', and no weights are "
				"given",
				program->slots[i].name);
	return PAWL_OK;
}

static enum pawl_status
init(struct pawl_host_session *session, struct pawl_error *err)
{
	struct pawl_host_context *context = session->object.context;
	struct pawl_plan *plan = session->plan->plan;
	struct pawl_team *team;
	enum pawl_status status = check_weights(session, err);

	if (!status)
		status = make_team(session, &team, err);
	if (!status)
		status = pawl_bindings_new(plan, team, &session->bindings, err);
	if (!status)
		status = pawl_symenv_init(
			&session->env, plan->program->symbols, plan->program->n_symbols, err);
	if (!status && session->weights)
		status = pawl_bindings_bind_weights(
			session->bindings, pawl_host_weights_of(session->weights), err);
	if (status)
		return status;
	if (context->services.is_aborted)
		pawl_bindings_set_stop(session->bindings, pawl_host_is_aborted, context);
	session->kv = (struct pawl_kv_binding){
		.n_layers = session->plan->geometry.n_layers,
		.n_which = session->plan->geometry.n_which,
		.slots = session->plan->kv_slots,
		.location = plan->device->location,
	};
	return PAWL_OK;
}

struct pawl_host_status *
pawl_host_session_create(struct pawl_host_plan *plan, struct pawl_host_weights *weights,
	struct pawl_host_session **out)
{
	const struct pawl_block_source *before;
	struct pawl_host_session *session;
	enum pawl_status status;
	struct pawl_error err;

	if (!pawl_host_is(plan, PAWL_HOST_PLAN) || !out ||
		(weights && !pawl_host_is(weights, PAWL_HOST_WEIGHTS)))
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"session_create: no plan, no weights or a pointer is NULL");
	session = pawl_host_object_new(PAWL_HOST_SESSION, plan->object.context, sizeof(*session));
	if (!session)
		return pawl_host_refuse(PAWL_OUT_OF_MEMORY, "no memory for a session");
	pawl_host_retain(plan);
	session->plan = plan;
	if (weights)
		pawl_host_retain(weights);
	session->weights = weights;
	before = pawl_host_enter(session->object.context);
	status = init(session, &err);
	pawl_host_leave(before);
	if (status) {
		pawl_host_session_release(session);
		return pawl_host_status(status, &err);
	}
	*out = session;
	return NULL;
}

void
pawl_host_session_release(struct pawl_host_session *session)
{
	if (!pawl_host_drop(session, PAWL_HOST_SESSION))
		return;
	pawl_symenv_release(&session->env);
	pawl_bindings_free(session->bindings);
	pawl_pool_free(session->pool);
	pawl_lent_team_free(session->lent);
	pawl_host_cache_release(session->cache);
	pawl_host_weights_release(session->weights);
	pawl_host_plan_release(session->plan);
	pawl_host_object_free(session);
}

/* NULL, or why the binding is none of that role. */
static struct pawl_host_status *
check_binding(const struct pawl_host_session *session, int64_t binding, enum pawl_binding_role role,
	const char *call)
{
	if (!pawl_host_is(session, PAWL_HOST_SESSION))
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "%s: no session", call);
	if (binding < 0 || binding >= session->plan->n_bindings)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "%s: binding %lld of %d", call,
			(long long)binding, session->plan->n_bindings);
	if (session->plan->bindings[binding].role != (int64_t)role)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "%s: '%.64s' is of another role",
			call, session->plan->bindings[binding].name);
	return NULL;
}

static struct pawl_host_status *
check_bytes(const struct pawl_host_session *session, int64_t binding, int64_t wanted, size_t given,
	const char *call)
{
	if (wanted >= 0 && given == (size_t)wanted)
		return NULL;
	return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "%s: '%.64s' has %lld bytes, %zu are given",
		call, session->plan->bindings[binding].name, (long long)wanted, given);
}

static void
set_cache(struct pawl_host_session *session, struct pawl_host_cache *cache)
{
	if (cache)
		pawl_host_retain(cache);
	pawl_host_cache_release(session->cache);
	session->cache = cache;
}

struct pawl_host_status *
pawl_host_session_bind(
	struct pawl_host_session *session, int64_t binding, void *bytes, size_t n_bytes)
{
	struct pawl_host_status *failed =
		check_binding(session, binding, PAWL_BINDING_KV, "session_bind");
	struct pawl_storage *storage;
	enum pawl_status status;
	struct pawl_error err;
	int32_t slot;

	if (failed)
		return failed;
	failed = check_bytes(session, binding, session->plan->bindings[binding].n_bytes, n_bytes,
		"session_bind");
	if (failed)
		return failed;
	if (session->plan->plan->device->location.space != PAWL_MEMORY_HOST)
		return pawl_host_refuse(PAWL_UNSUPPORTED,
			"session_bind: target %s has memory of its own",
			session->plan->plan->device->api->name);
	if (!bytes || (uintptr_t)bytes % KV_ALIGNMENT)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"session_bind: the memory of '%.64s' is not aligned to %d bytes",
			session->plan->bindings[binding].name, KV_ALIGNMENT);
	slot = session->plan->slots[binding];
	status = pawl_storage_wrap(&session->plan->plan->types[slot], PAWL_LOCATION_HOST, bytes,
		(int64_t)n_bytes, NULL, NULL, &storage, &err);
	if (status)
		return pawl_host_status(status, &err);
	status = pawl_bindings_bind(session->bindings, slot, storage, &err);
	pawl_storage_unref(storage);
	if (status)
		return pawl_host_status(status, &err);
	session->has_run = false;
	session->kv.alloc_id = (struct pawl_kv_alloc_id){0};
	set_cache(session, NULL);
	return NULL;
}

static bool
is_baked(const struct pawl_host_session *session)
{
	for (int32_t i = 0; i < session->kv.n_layers * session->kv.n_which; i++)
		if (!pawl_bindings_storage(session->bindings, session->kv.slots[i]))
			return false;
	return true;
}

/*
 * The first cache of a session: what the plan was made for stands for the storages it has none of.
 */
static bool
bind_first(struct pawl_host_session *session, const struct pawl_kv_rebind_source *source,
	struct pawl_refusal *refusal)
{
	const struct pawl_kv_binding *kv = &session->kv;
	struct pawl_error err;

	*refusal = (struct pawl_refusal){.kind = PAWL_REFUSAL_NONE, .layer = -1};
	if (!pawl_location_equal(source->location(source->ctx), kv->location)) {
		refusal->kind = PAWL_REFUSAL_RESIDENCY_DIFFERS;
		refusal->baked = kv->location;
		refusal->incoming = source->location(source->ctx);
		return false;
	}
	for (int32_t i = 0; i < kv->n_layers * kv->n_which; i++) {
		struct pawl_storage *storage =
			source->slot(source->ctx, i / kv->n_which, i % kv->n_which);

		refusal->layer = i / kv->n_which;
		refusal->which = i % kv->n_which;
		if (!storage) {
			refusal->kind = PAWL_REFUSAL_MISSING_SLOT;
			return false;
		}
		refusal->baked_type = session->plan->plan->types[kv->slots[i]];
		refusal->incoming_type = storage->type;
		refusal->baked_bytes = pawl_storage_bytes(&refusal->baked_type);
		refusal->incoming_bytes = storage->n_bytes;
		if (!pawl_type_equal(&refusal->baked_type, &refusal->incoming_type)) {
			refusal->kind = PAWL_REFUSAL_SHAPE_DIFFERS;
			return false;
		}
	}
	for (int32_t i = 0; i < kv->n_layers * kv->n_which; i++)
		pawl_bindings_bind(session->bindings, kv->slots[i],
			source->slot(source->ctx, i / kv->n_which, i % kv->n_which), &err);
	session->kv.alloc_id = source->alloc_id(source->ctx);
	return true;
}

/* Judges a cache and moves the session to it; fills in the report in any case. */
static void
use(struct pawl_host_session *session, struct pawl_host_cache *cache,
	struct pawl_cache_report *report, char *why, size_t n_why)
{
	const struct pawl_kv_rebind_source source = pawl_host_cache_source(cache);
	struct pawl_plan_key asked = session->plan->plan->key;
	struct pawl_refusal refusal = {.kind = PAWL_REFUSAL_NONE, .layer = -1};
	struct pawl_host_counts *counts = &session->object.context->counts;
	struct pawl_verdict verdict;
	bool is_moved;

	pawl_host_geometry_key(&cache->geometry, &asked);
	verdict = pawl_plan_validity(&session->plan->plan->key, session->kv.alloc_id, &asked,
		source.alloc_id(source.ctx));
	*report = (struct pawl_cache_report){.verdict = PAWL_CACHE_KEPT,
		.field = pawl_key_field_name(PAWL_KEY_NONE),
		.reason = pawl_refusal_name(PAWL_REFUSAL_NONE)};
	if (verdict.validity == PAWL_VALID)
		return;
	if (verdict.validity == PAWL_PLAN_STALE) {
		report->verdict = PAWL_CACHE_STALE;
		report->field = pawl_key_field_name(verdict.field);
		report->held = verdict.held;
		report->asked = verdict.asked;
		atomic_fetch_add(&counts->stale[verdict.field], 1);
		pawl_verdict_text(&verdict, why, n_why);
		return;
	}
	is_moved = is_baked(session)
			   ? pawl_kv_rebind(session->bindings, &session->kv, &source, &refusal)
			   : bind_first(session, &source, &refusal);
	report->verdict = is_moved ? PAWL_CACHE_REBOUND : PAWL_CACHE_REFUSED;
	if (is_moved)
		return;
	report->reason = pawl_refusal_name(refusal.kind);
	if (refusal.layer >= 0)
		report->name =
			session->plan->plan->program
				->slots[session->kv.slots[refusal.layer * session->kv.n_which +
							  refusal.which]]
				.name;
	atomic_fetch_add(&counts->refused[refusal.kind], 1);
	pawl_refusal_text(&refusal, why, n_why);
}

struct pawl_host_status *
pawl_host_session_use_cache(struct pawl_host_session *session, struct pawl_host_cache *cache,
	struct pawl_cache_report *report)
{
	struct pawl_cache_report found;
	const struct pawl_block_source *before;
	enum pawl_status status;
	struct pawl_error err;
	char why[512] = "";

	if (!pawl_host_is(session, PAWL_HOST_SESSION) || !pawl_host_is(cache, PAWL_HOST_CACHE))
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "session_use_cache: no session or no cache");
	if (report && !pawl_host_has_size(report, REPORT_1))
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"session_use_cache: struct_size of the report is wrong");
	if (session->plan->geometry.kind != cache->geometry.kind ||
		session->kv.n_which != cache->geometry.n_which)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"session_use_cache: the plan has no kv consts of such a cache");
	if (session->object.context != cache->object.context)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"session_use_cache: session and cache are of two contexts");
	before = pawl_host_enter(session->object.context);
	status = pawl_host_cache_own(cache, &err);
	pawl_host_leave(before);
	if (status)
		return pawl_host_status(status, &err);
	use(session, cache, &found, why, sizeof(why));
	atomic_fetch_add(&session->object.context->counts.verdicts[found.verdict], 1);
	if (report)
		pawl_host_write(report, REPORT_1, &found, sizeof(found));
	if (found.verdict == PAWL_CACHE_STALE || found.verdict == PAWL_CACHE_REFUSED) {
		pawl_host_log(session->object.context, 2, "cache not used: %s", why);
		return pawl_host_refuse(PAWL_STALE, "session_use_cache: %s", why);
	}
	if (found.verdict == PAWL_CACHE_REBOUND)
		session->has_run = false;
	set_cache(session, cache);
	return NULL;
}

struct pawl_host_status *
pawl_host_session_set(
	struct pawl_host_session *session, int64_t binding, const void *bytes, size_t n_bytes)
{
	struct pawl_host_status *failed =
		check_binding(session, binding, PAWL_BINDING_DATA, "session_set");
	int32_t slot;

	if (failed)
		return failed;
	slot = session->plan->slots[binding];
	failed = check_bytes(session, binding, pawl_bindings_data_bytes(session->bindings, slot),
		n_bytes, "session_set");
	if (failed)
		return failed;
	if (!bytes)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "session_set: '%.64s' is NULL",
			session->plan->bindings[binding].name);
	pawl_bindings_offer(session->bindings, slot, bytes);
	return NULL;
}

struct pawl_host_status *
pawl_host_session_set_symbol(struct pawl_host_session *session, int64_t binding, int64_t value)
{
	struct pawl_host_status *failed =
		check_binding(session, binding, PAWL_BINDING_SYMBOL, "session_set_symbol");
	struct pawl_error err;
	int32_t symbol;

	if (failed)
		return failed;
	/* Symbols are the last bindings. */
	symbol = (int32_t)binding - (session->plan->n_bindings - session->plan->n_symbols);
	return pawl_host_status(pawl_symenv_bind(&session->env, symbol, value, &err), &err);
}

/* What was lent for a run that did not come about. */
static void
forget_data(struct pawl_host_session *session)
{
	for (int32_t i = 0; i < session->plan->n_bindings; i++)
		if (session->plan->bindings[i].role == PAWL_BINDING_DATA)
			pawl_bindings_offer(session->bindings, session->plan->slots[i], NULL);
}

static enum pawl_status
run(struct pawl_host_session *session, int64_t n_new, struct pawl_counters *counters,
	struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;
	struct pawl_kv_rebind_source source;

	if (n_new && !session->cache)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"session_run: %lld positions, and the session has no cache",
			(long long)n_new);
	if (session->cache) {
		source = pawl_host_cache_source(session->cache);
		if (source.alloc_id(source.ctx).value != session->kv.alloc_id.value)
			return pawl_fail(err, PAWL_STALE,
				"session_run: the cache has other memory than when the session "
				"moved to it");
		if (n_new)
			status = pawl_host_cache_before_run(session->cache, n_new, err);
	}
	if (!status && pawl_host_is_aborted(session->object.context))
		status = pawl_fail(err, PAWL_ENVIRONMENT, "the host asks to give up");
	if (!status)
		status = pawl_bindings_run(session->bindings, &session->env, counters, err);
	if (!status && n_new)
		pawl_host_cache_advance(session->cache, n_new);
	return status;
}

struct pawl_host_status *
pawl_host_session_run(struct pawl_host_session *session, int64_t n_new)
{
	struct pawl_counters counters = {0};
	struct pawl_host_counts *counts;
	enum pawl_status status;
	struct pawl_error err;

	if (!pawl_host_is(session, PAWL_HOST_SESSION) || n_new < 0)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"session_run: no session, or %lld positions", (long long)n_new);
	status = run(session, n_new, &counters, &err);
	pawl_symenv_clear(&session->env);
	forget_data(session);
	session->has_run = status == PAWL_OK;
	counts = &session->object.context->counts;
	atomic_fetch_add(status ? &counts->failed_runs : &counts->runs, 1);
	atomic_fetch_add(&counts->run_ns, counters.run_ns);
	atomic_fetch_add(&counts->bytes_bound, counters.bytes_bound);
	if (!status)
		atomic_fetch_add(&counts->positions, (uint64_t)n_new);
	return pawl_host_status(status, &err);
}

/* State that is an output stays where the target has it. */
static bool
is_in_host_memory(const struct pawl_host_session *session, int32_t output)
{
	const struct pawl_program *program = session->plan->plan->program;
	int32_t slot = program->outputs[output];

	return program->slots[slot].role != PAWL_SLOT_KV ||
	       session->plan->plan->device->location.space == PAWL_MEMORY_HOST;
}

struct pawl_host_status *
pawl_host_session_output(
	const struct pawl_host_session *session, int64_t i, const void **bytes, size_t *n_bytes)
{
	struct pawl_host_status *failed =
		check_binding(session, i, PAWL_BINDING_OUTPUT, "session_output");

	if (failed)
		return failed;
	if (!bytes || !n_bytes)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT, "session_output: a pointer is NULL");
	if (!session->has_run)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "session_output: the last run did not succeed");
	if (!is_in_host_memory(session, (int32_t)i))
		return pawl_host_refuse(PAWL_UNSUPPORTED,
			"session_output: '%.64s' lies in the memory of the target",
			session->plan->bindings[i].name);
	*bytes = pawl_bindings_output(session->bindings, (int32_t)i, NULL);
	*n_bytes = (size_t)session->plan->bindings[i].n_bytes;
	return NULL;
}

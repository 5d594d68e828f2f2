/*
 * An inference context: a device, the team of threads that runs on it, storages that graphs find by
 * the names of their consts, and a decode session kept for the next step.
 *
 * One context for each model and thread; belongs to one thread at a time.
 */
#ifndef PAWL_RUNTIME_INFERENCE_CONTEXT_H
#define PAWL_RUNTIME_INFERENCE_CONTEXT_H

#include "runtime/bindings.h"
#include "runtime/lent_team.h"
#include "runtime/pool.h"

struct pawl_decode_session;
struct pawl_inference_context;

/* References device; n_threads as in pawl_pool_new. */
enum pawl_status pawl_inference_context_new(struct pawl_device *device, int n_threads,
	struct pawl_inference_context **out, struct pawl_error *err);
/* What a host lends to runs. */
struct pawl_run_hooks {
	struct pawl_parallel_for threads; /* run NULL: the context has threads of its own */
	bool (*is_stopped)(void *arg);    /* of struct pawl_run, or NULL */
	void *stop_arg;
};
/* The same on what a host lends; hooks are copied.  PAWL_ENVIRONMENT as pawl_lent_team_new. */
enum pawl_status pawl_inference_context_new_with(struct pawl_device *device, int n_threads,
	const struct pawl_run_hooks *hooks, struct pawl_inference_context **out,
	struct pawl_error *err);
const struct pawl_run_hooks *pawl_inference_context_hooks(
	const struct pawl_inference_context *context);
/* Frees the decode session too.  NULL is allowed. */
void pawl_inference_context_free(struct pawl_inference_context *context);

struct pawl_device *pawl_inference_context_device(const struct pawl_inference_context *context);
struct pawl_team *pawl_inference_context_team(const struct pawl_inference_context *context);
/* How often runs went over to fewer threads (runtime/pool.h). */
uint64_t pawl_inference_context_step_backs(const struct pawl_inference_context *context);
/* Of everything that happens in the context. */
struct pawl_counters *pawl_inference_context_counters(struct pawl_inference_context *context);

/* Takes a reference and replaces what had that name. */
enum pawl_status pawl_inference_context_insert(struct pawl_inference_context *context,
	const char *name, struct pawl_storage *storage, struct pawl_error *err);
/* False when there was none of that name. */
bool pawl_inference_context_remove(struct pawl_inference_context *context, const char *name);
/* No reference is given; NULL when there is none. */
struct pawl_storage *pawl_inference_context_get(
	const struct pawl_inference_context *context, const char *name);
int32_t pawl_inference_context_len(const struct pawl_inference_context *context);
/* The map only; the session stays. */
void pawl_inference_context_clear_persistent(struct pawl_inference_context *context);

/*
 * Optimizes, compiles and runs a graph once; outs gets one reference for each output of the
 * graph.  Every const that is no literal is taken from the map (PAWL_INVALID_ARGUMENT names one
 * that is missing); weights are packed where the plan wants it.  Names that no graph has are
 * ignored.  symbols: values for the graph's symbols in their order, NULL when it has none.
 */
enum pawl_status pawl_realize_many(struct pawl_inference_context *context,
	const struct pawl_graph *graph, const int64_t *symbols, struct pawl_storage **outs,
	struct pawl_error *err);
/*
 * The same, but the first n_host outputs are in host memory and nobody else's: state that is an
 * output is copied.  The others lie where the device has them.  PAWL_INVALID_ARGUMENT when there are
 * fewer than n_host.
 */
enum pawl_status pawl_realize_split(struct pawl_inference_context *context,
	const struct pawl_graph *graph, int32_t n_host, const int64_t *symbols,
	struct pawl_storage **outs, struct pawl_error *err);
/* As pawl_realize_many for a graph of one output. */
enum pawl_status pawl_realize_one(struct pawl_inference_context *context,
	const struct pawl_graph *graph, const int64_t *symbols, struct pawl_storage **out,
	struct pawl_error *err);

/* Moves the session out; NULL when there is none. */
struct pawl_decode_session *pawl_inference_context_take_session(
	struct pawl_inference_context *context);
/* Replaces (and frees) the session there was; session may be NULL. */
void pawl_inference_context_put_session(
	struct pawl_inference_context *context, struct pawl_decode_session *session);
bool pawl_inference_context_has_session(const struct pawl_inference_context *context);

#endif

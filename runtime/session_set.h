/*
 * The held sessions of one model on one cache: one for each kind of step, the least recently used
 * makes room.  Whoever drives a model asks for the session of the step at hand and gets one that is
 * valid for the cache as it is now: kept, rebound, regrown or rebuilt, each counted.
 *
 * Belongs to one thread at a time.
 */
#ifndef PAWL_RUNTIME_SESSION_SET_H
#define PAWL_RUNTIME_SESSION_SET_H

#include "runtime/inference_context.h"
#include "runtime/plan_cache.h"
#include "runtime/token_data.h"

enum { PAWL_MAX_HELD_SESSIONS = 8 };

/* Tokens of a prompt that go through one run where nobody says otherwise. */
enum { PAWL_PREFILL_CHUNK = 32, PAWL_MAX_PREFILL_CHUNK = 4096 };

/* n_sequences 0: one, in order; see struct pawl_graph_request. */
struct pawl_step_kind {
	int64_t seq, n_sequences;
	enum pawl_logits logits;
};

struct pawl_held_session {
	struct pawl_step_kind kind; /* seq 0: free */
	uint64_t last_used;
	struct pawl_decode_session *session; /* NULL after it was dropped */
	struct pawl_plan *plan;              /* the last one, to regrow from */
	struct pawl_token_buffers buffers;
};

struct pawl_session_options {
	int n_threads; /* 0: pawl_default_threads */
	enum pawl_precision precision;
	bool replan;                   /* optimize anew for every run; for comparison */
	bool no_reuse;                 /* every temporary gets memory of its own */
	int64_t block_size, max_blocks; /* of steps with n_sequences > 0 */
	struct pawl_plan_cache *plans; /* shared with others, or NULL; must outlive the set */
	const struct pawl_run_hooks *hooks; /* copied; NULL: none */
	/* NULL, or called with each plan that was built. */
	void (*built)(void *arg, const struct pawl_plan *plan);
	void *arg;
};

struct pawl_session_set {
	struct pawl_model_source source;
	struct pawl_session_options options;
	struct pawl_inference_context *context; /* its own */
	char threads[160];                      /* how many, and why */
	struct pawl_held_session held[PAWL_MAX_HELD_SESSIONS];
	uint64_t clock;
	struct pawl_disposition last; /* what became of the session that was asked for last */
	double build_seconds;         /* spent on plans and on packing weights for them */
};

/*
 * Makes a context on the device; references the weights.  PAWL_INVALID_ARGUMENT for a model without
 * layers or tokens, or a precision that is none.  Release after a failure too.
 */
enum pawl_status pawl_session_set_init(struct pawl_session_set *set,
	const struct pawl_model_source *source, struct pawl_device *device,
	const struct pawl_session_options *options, struct pawl_error *err);
void pawl_session_set_release(struct pawl_session_set *set);

/*
 * A session for that kind of step that is valid for the cache, which must not be shared with a fork.
 * *out stays the set's, until the next call.  PAWL_INVALID_ARGUMENT when its rings are for another
 * window or other layers than the model's.
 */
enum pawl_status pawl_session_set_ready(struct pawl_session_set *set, struct pawl_kv_cache *cache,
	struct pawl_step_kind kind, struct pawl_held_session **out, struct pawl_error *err);

/* What whoever drives a model tells about it. */
struct pawl_decoder_stats {
	struct pawl_counters counters;
	uint64_t kernel_compiles, kernels_read; /* generated; taken from the cache on disk */
	uint64_t captures, graph_launches, capture_failures; /* of the device, as below */
	const char *capture_fault; /* why runs are not captured, NULL: they are; the device's */
	uint64_t thread_step_backs; /* runs went over to fewer threads, as a core was taken away */
	uint64_t allocations; /* of the runtime in this process */
	int32_t n_sessions;   /* plans held */
	int64_t kv_bytes, packed_bytes;
	double build_seconds;         /* spent on plans and on packing weights for them */
	struct pawl_disposition last; /* what became of the session at the last step */
	char threads[160];            /* the number of threads and its reason */
};

void pawl_session_set_stats(const struct pawl_session_set *set, const struct pawl_kv_cache *cache,
	struct pawl_decoder_stats *out);

#endif

/*
 * Many requests over one paged decoder: who gets blocks, who waits, who runs next.
 *
 * A request is a prompt to be continued.  It waits until it is admitted, then its prompt goes in
 * chunks (prefilling), then it takes part in batches (decoding), until a token ends it, it is long
 * enough, it is cancelled, or something of its own fails.  A step admits what fits, runs at most
 * one chunk's worth of prompts and one batch; so a long prompt delays the others by a chunk a step.
 *
 * Order: priority, then that of submission.  It decides who is admitted (strictly: nobody overtakes
 * one that does not fit, so nobody starves behind requests no more important than itself), whose
 * prompt goes first, and, backwards, who is evicted.  Those that decode take turns.
 *
 * When blocks run out, in this order: prefixes that nobody uses go, the oldest first; the last of
 * the order is evicted, its bytes kept; what evicted requests still hold (blocks they shared) goes,
 * to be computed anew.  The first of the order that runs is never evicted, hence no deadlock.  An
 * evicted request comes back by itself when it is the first that does not run and there is room.
 *
 * The tokens of a request and the logits they come from are bit for bit those of the request alone,
 * whatever the batches, evictions and shared prefixes.
 *
 * Steps allocate nothing except to build a plan, to evict and to register a prefix.  Belongs to one
 * thread at a time.  Callbacks must not call the scheduler.
 */
#ifndef PAWL_RUNTIME_SCHEDULER_H
#define PAWL_RUNTIME_SCHEDULER_H

#include "runtime/paged_decoder.h"

struct pawl_scheduler;

enum pawl_admission {
	/* When a request's last token has room too: without evictions by hand none ever happen. */
	PAWL_ADMIT_RESERVED,
	/* When its prompt has room; evicts when that was too bold, or for one of higher priority.
	 */
	PAWL_ADMIT_OPTIMISTIC
};

enum pawl_priority {
	PAWL_PRIORITY_LOW,
	PAWL_PRIORITY_NORMAL,
	PAWL_PRIORITY_HIGH,
	PAWL_PRIORITY_CRITICAL
};

enum pawl_request_phase {
	PAWL_REQUEST_WAITING, /* holds no blocks */
	PAWL_REQUEST_PREFILLING,
	PAWL_REQUEST_DECODING,
	PAWL_REQUEST_EVICTED,
	PAWL_REQUEST_FINISHED,
	PAWL_N_REQUEST_PHASES
};

enum pawl_finish {
	PAWL_FINISH_NONE, /* not finished */
	PAWL_FINISH_EOS,
	PAWL_FINISH_LENGTH,
	PAWL_FINISH_CANCELLED,
	PAWL_FINISH_ERROR,
	PAWL_N_FINISHES
};

/* "waiting"; "eos"; never NULL. */
const char *pawl_request_phase_name(enum pawl_request_phase phase);
const char *pawl_finish_name(enum pawl_finish finish);

enum pawl_request_event_kind {
	PAWL_REQUEST_ADMITTED, /* again after it was put back */
	PAWL_REQUEST_TOKEN,
	PAWL_REQUEST_SUSPENDED, /* evicted, or put back to where its prompt begins */
	PAWL_REQUEST_RESTORED,
	PAWL_REQUEST_ENDED
};

struct pawl_request_event {
	uint64_t id;
	enum pawl_request_event_kind kind;
	uint32_t token;      /* of TOKEN */
	const float *logits; /* of TOKEN: what it was chosen from; [n_vocab], during the callback */
};

struct pawl_scheduler_options {
	int64_t max_batch; /* 1: one by one in turn; 2, 4, 8 */
	enum pawl_admission admission;
	int64_t max_prefixes; /* that are kept for later prompts; 0: none is shared */
	/* NULL, or told what happens, in order. */
	void (*event)(void *arg, const struct pawl_request_event *event);
	void *arg;
};

struct pawl_request_options {
	const uint32_t *prompt; /* copied */
	int64_t n_prompt;
	int64_t max_new;     /* tokens, at least 1 */
	const uint32_t *eos; /* copied; the one that ends a request is not among its tokens */
	int64_t n_eos;
	enum pawl_priority priority;
	bool no_sharing; /* neither uses nor leaves a prefix */
	/*
	 * Chooses a token of [n_vocab] logits; NULL: the largest, the lowest id of equal ones.  Its
	 * failure, or a token that the model does not have, ends this request.
	 */
	enum pawl_status (*sample)(
		void *arg, const float *logits, uint32_t *token, struct pawl_error *err);
	void *arg;
};

/* The decoder must outlive the scheduler.  PAWL_INVALID_ARGUMENT names the option. */
enum pawl_status pawl_scheduler_new(struct pawl_paged_decoder *decoder,
	const struct pawl_scheduler_options *options, struct pawl_scheduler **out,
	struct pawl_error *err);
/* NULL is allowed.  Gives back all blocks, of requests in any phase and of prefixes. */
void pawl_scheduler_free(struct pawl_scheduler *scheduler);

/*
 * Ids are never 0 and never come back.  PAWL_CAPACITY, naming both sizes, when the request could
 * never fit: all tokens but the last that is generated need a position.
 */
enum pawl_status pawl_scheduler_submit(struct pawl_scheduler *scheduler,
	const struct pawl_request_options *options, uint64_t *id, struct pawl_error *err);

/*
 * Ends a request in any phase but finished, which is PAWL_INVALID_ARGUMENT, as is an unknown id;
 * so for the other calls.
 */
enum pawl_status pawl_scheduler_cancel(
	struct pawl_scheduler *scheduler, uint64_t id, struct pawl_error *err);
/*
 * Takes the request's blocks and keeps it out until pawl_scheduler_restore lets it come back, in
 * its turn.  PAWL_OUT_OF_MEMORY changes nothing.
 */
enum pawl_status pawl_scheduler_evict(
	struct pawl_scheduler *scheduler, uint64_t id, struct pawl_error *err);
enum pawl_status pawl_scheduler_restore(
	struct pawl_scheduler *scheduler, uint64_t id, struct pawl_error *err);

/*
 * A failure is none of a request's: building a plan or running it failed.  What the step did before
 * stays, nothing is lost, and the call may be made again.
 */
enum pawl_status pawl_scheduler_step(struct pawl_scheduler *scheduler, struct pawl_error *err);
/* Whether a step would do anything: some request is neither finished nor evicted by hand. */
bool pawl_scheduler_has_work(const struct pawl_scheduler *scheduler);
/* Steps while there is work. */
enum pawl_status pawl_scheduler_run_to_completion(
	struct pawl_scheduler *scheduler, struct pawl_error *err);

/* Steps are counted from 1; 0: before any or not yet. */
struct pawl_request_info {
	enum pawl_request_phase phase;
	enum pawl_finish finish;
	const struct pawl_error *error; /* of PAWL_FINISH_ERROR, else NULL */
	int64_t n_prompt, n_new;
	const uint32_t *tokens; /* [n_new], generated */
	int64_t n_shared;       /* prompt tokens that were taken from a prefix */
	int64_t submit_step, admit_step, first_token_step, finish_step;
	int64_t n_evictions, n_restores;
	int64_t n_recomputes; /* times its blocks were lost, not kept */
};
/* Pointers are valid until the request is reaped. */
enum pawl_status pawl_scheduler_info(const struct pawl_scheduler *scheduler, uint64_t id,
	struct pawl_request_info *out, struct pawl_error *err);

/* Of those not reaped the one that finished first; 0 when there is none. */
uint64_t pawl_scheduler_finished(const struct pawl_scheduler *scheduler);
/* Forgets a finished request. */
enum pawl_status pawl_scheduler_reap(
	struct pawl_scheduler *scheduler, uint64_t id, struct pawl_error *err);
/* Forgets all prefixes. */
void pawl_scheduler_release_prefixes(struct pawl_scheduler *scheduler);

struct pawl_scheduler_stats {
	int64_t step;
	int64_t n_requests[PAWL_N_REQUEST_PHASES]; /* not reaped */
	int64_t n_finished[PAWL_N_FINISHES];       /* ever */
	int64_t n_blocks, free_blocks;
	int64_t peak_blocks; /* most that a run found in use */
	int64_t bytes_resident, bytes_evicted, n_prefixes;
	int64_t evictions, restores, recomputes;
	int64_t prompt_runs, decode_runs;
	int64_t tokens_fed, tokens_shared; /* run, and taken from prefixes */
	int64_t prefixes_lost;             /* not registered for want of memory */
};
void pawl_scheduler_stats(const struct pawl_scheduler *scheduler, struct pawl_scheduler_stats *out);

#endif

/* What the files of the scheduler share. */
#ifndef PAWL_RUNTIME_SCHEDULER_PARTS_H
#define PAWL_RUNTIME_SCHEDULER_PARTS_H

#include "runtime/object_table.h"
#include "runtime/scheduler.h"

struct pawl_request {
	uint64_t id;
	/* PREFILLING stands for both phases of a request that runs; which one, its length says. */
	enum pawl_request_phase phase;
	enum pawl_priority priority;
	bool is_held;                      /* kept out by hand */
	bool is_sharing;                   /* of prefixes */
	bool is_offered;                   /* its prompt was registered as a prefix */
	struct pawl_kv_session_id session; /* open until it finishes */
	struct pawl_kv_handle_id handle;   /* while EVICTED */
	uint32_t *tokens;                  /* the prompt and what was generated */
	int64_t n_tokens, max_tokens;
	uint32_t *eos;
	int64_t n_eos;
	uint64_t last_run; /* of its batches */
	enum pawl_status (*sample)(
		void *arg, const float *logits, uint32_t *token, struct pawl_error *err);
	void *arg;
	struct pawl_request_info info; /* phase, tokens and n_new are filled in when asked for */
	struct pawl_error error;
	struct pawl_request *next, *previous;
};

/* A list that is added to at its end and left from anywhere. */
struct pawl_request_list {
	struct pawl_request *first, *last;
};

struct pawl_shared_prefix {
	struct pawl_kv_prefix_id id;
	uint64_t last_used;
};

struct pawl_scheduler {
	struct pawl_scheduler_options options;
	struct pawl_paged_decoder *decoder;
	struct pawl_kv_block_pool *pool;
	int64_t block_size;
	struct pawl_object_table requests;   /* all of them */
	struct pawl_request_list live;       /* in the order */
	struct pawl_request *last_of[PAWL_PRIORITY_CRITICAL + 1]; /* live, of each priority */
	int64_t n_running;                   /* of the live ones */
	struct pawl_request_list finished;   /* the first one first */
	struct pawl_shared_prefix *prefixes; /* [options.max_prefixes] */
	uint64_t clock;                      /* of batches and of uses of prefixes */
	struct pawl_scheduler_stats stats;   /* what is counted */
};

/* --- scheduler.c --- */

void pawl_scheduler_tell(
	struct pawl_scheduler *s, const struct pawl_request *r, enum pawl_request_event_kind kind);
/* Closes its session and moves it to the finished ones. */
void pawl_scheduler_finish(
	struct pawl_scheduler *s, struct pawl_request *r, enum pawl_finish finish);
bool pawl_request_is_running(const struct pawl_request *r);
/* The one place that changes it: counts those that run. */
void pawl_scheduler_set_phase(
	struct pawl_scheduler *s, struct pawl_request *r, enum pawl_request_phase phase);
/* Tokens that must be in the cache before the next one can be chosen, apart from the last. */
int64_t pawl_request_unfed(const struct pawl_scheduler *s, const struct pawl_request *r);

/* --- scheduler_room.c --- */

/* Evicts until every running request has the blocks it was promised. */
void pawl_scheduler_keep_promises(struct pawl_scheduler *s);
/* Admits and restores in order, as long as there is room. */
void pawl_scheduler_admit(struct pawl_scheduler *s);
/* PAWL_OUT_OF_MEMORY changes nothing. */
enum pawl_status pawl_scheduler_suspend(
	struct pawl_scheduler *s, struct pawl_request *r, struct pawl_error *err);

/* --- scheduler_prefix.c --- */

/*
 * Gives a request without tokens in the cache what whole blocks of its beginning are there, all but
 * its last token at most; their tokens.
 */
int64_t pawl_scheduler_share_prefix(struct pawl_scheduler *s, struct pawl_request *r);
/* Registers the whole blocks of the prompt, once they are there. */
void pawl_scheduler_offer_prefix(struct pawl_scheduler *s, struct pawl_request *r);
/* Of those whose release frees a block, what was used longest ago; false when there is none. */
bool pawl_scheduler_release_idle_prefix(struct pawl_scheduler *s);

#endif

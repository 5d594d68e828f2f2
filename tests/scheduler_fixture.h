/*
 * A scheduler over a tiny model, and requests whose tokens and logits are known: each was run alone
 * in a contiguous cache.  Every token event is compared with them, bit for bit.  The helpers fail
 * the test when they cannot do what they are for.
 */
#ifndef PAWL_TESTS_SCHEDULER_FIXTURE_H
#define PAWL_TESTS_SCHEDULER_FIXTURE_H

#include "runtime/scheduler.h"
#include "tests/tiny_model.h"

#include <check.h>

enum { PAWL_SCHED_VOCAB = 40, PAWL_SCHED_WANTED = 10, PAWL_SCHED_TRACKED = 256 };

/* A request and what it gives alone; at most 64 positions, 4 blocks of 16. */
struct pawl_sched_wanted {
	unsigned seed; /* equal seeds begin with equal tokens */
	int64_t n_prompt, n_new;
	uint32_t tokens[80]; /* the prompt, then what follows */
	float *logits[64];
};

/* A request that was submitted. */
struct pawl_sched_tracked {
	uint64_t id;
	const struct pawl_sched_wanted *wanted;
	int64_t n_seen; /* tokens */
};

struct pawl_sched_test {
	struct pawl_tiny_model *model;
	/* May be changed until pawl_sched_make: 12 blocks; optimistic, batches of 8, no prefixes.
	 */
	struct pawl_paged_options paged;
	struct pawl_scheduler_options options;
	struct pawl_paged_decoder *decoder;
	struct pawl_scheduler *scheduler;
	struct pawl_sched_wanted wanted[PAWL_SCHED_WANTED];
	struct pawl_sched_tracked tracked[PAWL_SCHED_TRACKED];
	int n_tracked;
	int64_t n_events[PAWL_REQUEST_ENDED + 1];
	struct pawl_error err;
};

extern struct pawl_sched_test pawl_sched_test;

/* Once for all tests of a case, which then run in processes of their own. */
void pawl_sched_begin_all(void);
void pawl_sched_end_all(void);
/* For each test; at its end every block must be free again. */
void pawl_sched_begin(void);
void pawl_sched_end(void);

void pawl_sched_must(enum pawl_status status);
void pawl_sched_make(void);
uint32_t pawl_sched_largest(const float *logits);

/* Of wanted request i; the id. */
struct pawl_request_options pawl_sched_request(const struct pawl_sched_wanted *wanted);
uint64_t pawl_sched_submit(int i);
uint64_t pawl_sched_submit_with(int i, enum pawl_priority priority);
uint64_t pawl_sched_submit_as(int i, const struct pawl_request_options *request);

void pawl_sched_step(void);
int64_t pawl_sched_free_blocks(void);
struct pawl_request_info pawl_sched_info(uint64_t id);
struct pawl_scheduler_stats pawl_sched_stats(void);

/* It finished with all the tokens that were wanted. */
void pawl_sched_check_complete(uint64_t id);
/* Runs to completion; all that were submitted are complete. */
void pawl_sched_complete_all(void);
/* Reaps all and sees that the pool is as at the start. */
void pawl_sched_check_all_returns(void);

#endif

/* Who has blocks: admission, eviction, restoring. */
#include "runtime/scheduler_parts.h"

#include <inttypes.h>

/* Blocks that are in the pool now. */
static int64_t
resident(const struct pawl_scheduler *s, const struct pawl_request *r)
{
	int64_t n = pawl_kv_block_pool_session_slots(s->pool, r->session);
	struct pawl_kv_handle_info info;

	if (r->phase == PAWL_REQUEST_EVICTED &&
		!pawl_kv_block_pool_handle(s->pool, r->handle, &info, NULL))
		n -= info.n_slots;
	return n;
}

/*
 * Blocks that a request takes from the pool, or would take if it ran now: until its next token, or,
 * where they are reserved, until its last one.
 */
static int64_t
promise(const struct pawl_scheduler *s, const struct pawl_request *r)
{
	int64_t n = s->options.admission == PAWL_ADMIT_RESERVED ? r->max_tokens - 1 : r->n_tokens;

	return pawl_kv_block_pool_blocks_required(s->pool, 0, n) - resident(s, r);
}

/* Free blocks that no running request was promised; negative when it was promised too much. */
static int64_t
spare(const struct pawl_scheduler *s)
{
	int64_t n = pawl_kv_block_pool_free_blocks(s->pool), left = s->n_running;

	for (const struct pawl_request *r = s->live.first; left; r = r->next)
		if (pawl_request_is_running(r)) {
			n -= promise(s, r);
			left--;
		}
	return n;
}

static struct pawl_request *
first_running(const struct pawl_scheduler *s)
{
	struct pawl_request *r = s->n_running ? s->live.first : NULL;

	while (r && !pawl_request_is_running(r))
		r = r->next;
	return r;
}

static struct pawl_request *
last_running(const struct pawl_scheduler *s)
{
	struct pawl_request *last = NULL;
	int64_t left = s->n_running;

	for (struct pawl_request *r = s->live.first; left; r = r->next)
		if (pawl_request_is_running(r)) {
			last = r;
			left--;
		}
	return last;
}

enum pawl_status
pawl_scheduler_suspend(struct pawl_scheduler *s, struct pawl_request *r, struct pawl_error *err)
{
	struct pawl_kv_evict_report report;
	enum pawl_status status = pawl_paged_decoder_evict(s->decoder, r->session, &report, err);

	if (status)
		return status;
	r->handle = report.handle;
	pawl_scheduler_set_phase(s, r, PAWL_REQUEST_EVICTED);
	r->info.n_evictions++;
	s->stats.evictions++;
	pawl_scheduler_tell(s, r, PAWL_REQUEST_SUSPENDED);
	return PAWL_OK;
}

/* Puts it back to where its prompt begins.  Needs no memory. */
static void
forget(struct pawl_scheduler *s, struct pawl_request *r)
{
	pawl_kv_block_pool_truncate(s->pool, r->session, 0, NULL);
	if (r->phase ==
		PAWL_REQUEST_EVICTED) /* nothing, which ends the handle and frees its bytes */
		pawl_paged_decoder_restore(s->decoder, r->handle, NULL);
	pawl_scheduler_set_phase(s, r, PAWL_REQUEST_WAITING);
	r->info.n_recomputes++;
	s->stats.recomputes++;
	pawl_scheduler_tell(s, r, PAWL_REQUEST_SUSPENDED);
}

/* Takes blocks from somebody for r, which is not evicted; false when nobody may give any. */
static bool
take_from_others(struct pawl_scheduler *s, const struct pawl_request *r)
{
	struct pawl_request *last = last_running(s), *holder = NULL;

	if (pawl_scheduler_release_idle_prefix(s))
		return true;
	if (last && last != r) {
		if (!pawl_request_is_running(r) && (s->options.admission == PAWL_ADMIT_RESERVED ||
							   last->priority >= r->priority))
			return false;
		if (pawl_scheduler_suspend(s, last, NULL))
			forget(s, last);
		return true;
	}
	for (struct pawl_request *q = s->live.first; q; q = q->next)
		if (q != r && q->phase == PAWL_REQUEST_EVICTED && resident(s, q))
			holder = q;
	if (holder)
		forget(s, holder);
	return holder != NULL;
}

/* For one that could not run even if it were alone: others than this scheduler hold blocks. */
static void
fail_for_room(struct pawl_scheduler *s, struct pawl_request *r)
{
	pawl_fail(&r->error, PAWL_CAPACITY,
		"%" PRId64 " more blocks are needed, %" PRId64 " of %" PRId64
		" are free and no other request has any",
		promise(s, r), pawl_kv_block_pool_free_blocks(s->pool),
		pawl_kv_block_pool_geometry(s->pool)->n_blocks);
	pawl_scheduler_finish(s, r, PAWL_FINISH_ERROR);
}

void
pawl_scheduler_keep_promises(struct pawl_scheduler *s)
{
	while (spare(s) < 0) {
		struct pawl_request *first = first_running(s);

		if (!take_from_others(s, first))
			fail_for_room(s, first);
	}
}

/* Whether r, which does not run, has room now; takes what it may from others. */
static bool
make_room(struct pawl_scheduler *s, const struct pawl_request *r)
{
	while (promise(s, r) > spare(s))
		if (!take_from_others(s, r))
			return false;
	return true;
}

static void
start(struct pawl_scheduler *s, struct pawl_request *r)
{
	pawl_scheduler_set_phase(s, r, PAWL_REQUEST_PREFILLING);
	if (!r->info.admit_step)
		r->info.admit_step = s->stats.step;
	pawl_scheduler_tell(s, r, PAWL_REQUEST_ADMITTED);
}

/* False when there is no room: r is then as before. */
static bool
bring_in(struct pawl_scheduler *s, struct pawl_request *r)
{
	int64_t n_shared;

	if (r->phase == PAWL_REQUEST_EVICTED) {
		if (!make_room(s, r))
			return false;
		if (pawl_paged_decoder_restore(s->decoder, r->handle, &r->error)) {
			pawl_scheduler_finish(s, r, PAWL_FINISH_ERROR);
			return true;
		}
		pawl_scheduler_set_phase(s, r, PAWL_REQUEST_PREFILLING);
		r->info.n_restores++;
		s->stats.restores++;
		pawl_scheduler_tell(s, r, PAWL_REQUEST_RESTORED);
		return true;
	}
	n_shared = pawl_scheduler_share_prefix(s, r);
	if (!make_room(s, r)) {
		pawl_kv_block_pool_truncate(s->pool, r->session, 0, NULL);
		return false;
	}
	r->info.n_shared += n_shared;
	s->stats.tokens_shared += n_shared;
	start(s, r);
	return true;
}

static struct pawl_request *
first_that_waits(const struct pawl_scheduler *s)
{
	struct pawl_request *r = s->live.first;

	while (r && (pawl_request_is_running(r) || r->is_held))
		r = r->next;
	return r;
}

void
pawl_scheduler_admit(struct pawl_scheduler *s)
{
	struct pawl_request *r;

	while ((r = first_that_waits(s))) {
		if (bring_in(s, r))
			continue;
		if (first_running(s))
			return;
		fail_for_room(s, r);
	}
}

#include "runtime/scheduler.h"

#include "runtime/identity.h"
#include "runtime/memory.h"
#include "runtime/option_check.h"
#include "runtime/scheduler_parts.h"

#include <inttypes.h>
#include <string.h>

const char *
pawl_request_phase_name(enum pawl_request_phase phase)
{
	static const char *const names[] = {
		"waiting", "prefilling", "decoding", "evicted", "finished"};

	return (unsigned int)phase < PAWL_N_REQUEST_PHASES ? names[phase] : "unknown";
}

const char *
pawl_finish_name(enum pawl_finish finish)
{
	static const char *const names[] = {"none", "eos", "length", "cancelled", "error"};

	return (unsigned int)finish < PAWL_N_FINISHES ? names[finish] : "unknown";
}

enum pawl_status
pawl_scheduler_new(struct pawl_paged_decoder *decoder, const struct pawl_scheduler_options *options,
	struct pawl_scheduler **out, struct pawl_error *err)
{
	const struct pawl_paged_options *paged = pawl_paged_decoder_options(decoder);
	int64_t max_batch = options->max_batch, max_prefixes = options->max_prefixes;
	struct pawl_scheduler *s;
	enum pawl_status status;

	if (max_batch != 1 && max_batch != 2 && max_batch != 4 && max_batch != PAWL_MAX_BATCH)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"max_batch is %" PRId64 ", not 1, 2, 4 or %d", max_batch, PAWL_MAX_BATCH);
	status = pawl_check_option("max_prefixes", max_prefixes, 0, paged->n_blocks, err);
	if (!status)
		status = pawl_check_option(
			"admission", options->admission, 0, PAWL_ADMIT_OPTIMISTIC, err);
	if (status)
		return status;
	s = pawl_memory_zalloc(1, sizeof(*s));
	if (s)
		s->prefixes = pawl_memory_zalloc((size_t)max_prefixes, sizeof(*s->prefixes));
	if (!s || !s->prefixes) {
		pawl_memory_free(s);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a scheduler");
	}
	s->options = *options;
	s->decoder = decoder;
	s->pool = pawl_paged_decoder_pool(decoder);
	s->block_size = paged->block_size;
	*out = s;
	return PAWL_OK;
}

static void
free_request(struct pawl_request *r)
{
	pawl_memory_free(r->tokens);
	pawl_memory_free(r->eos);
	pawl_memory_free(r);
}

void
pawl_scheduler_free(struct pawl_scheduler *s)
{
	if (!s)
		return;
	for (int64_t i = 0; i < s->requests.n; i++) {
		struct pawl_request *r = s->requests.items[i];

		if (r->session.value)
			pawl_paged_decoder_close(s->decoder, r->session, NULL);
		free_request(r);
	}
	pawl_object_table_release(&s->requests);
	pawl_scheduler_release_prefixes(s);
	pawl_memory_free(s->prefixes);
	pawl_memory_free(s);
}

static enum pawl_status
check_ids(const struct pawl_scheduler *s, const char *what, const uint32_t *ids, int64_t n,
	struct pawl_error *err)
{
	int64_t n_vocab = pawl_paged_decoder_n_vocab(s->decoder);

	for (int64_t i = 0; i < n; i++)
		if (ids[i] >= n_vocab)
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"token %" PRId64 " of %s is %u, the model has %" PRId64, i, what,
				ids[i], n_vocab);
	return PAWL_OK;
}

static enum pawl_status
check_request(const struct pawl_scheduler *s, const struct pawl_request_options *o,
	struct pawl_error *err)
{
	const struct pawl_paged_options *paged = pawl_paged_decoder_options(s->decoder);
	int64_t most = paged->max_blocks * paged->block_size;
	enum pawl_status status;

	if (o->n_prompt < 1)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "the prompt is empty");
	if (o->max_new < 1)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"max_new is %" PRId64 ", not 1 or more", o->max_new);
	status = pawl_check_option(
		"n_eos", o->n_eos, 0, pawl_paged_decoder_n_vocab(s->decoder), err);
	if (!status)
		status = pawl_check_option(
			"priority", o->priority, PAWL_PRIORITY_LOW, PAWL_PRIORITY_CRITICAL, err);
	if (status)
		return status;
	if (o->n_prompt > most || o->max_new - 1 > most - o->n_prompt)
		return pawl_fail(err, PAWL_CAPACITY,
			"a prompt of %" PRId64 " and %" PRId64
			" new tokens do not fit in the %" PRId64 " positions of a sequence",
			o->n_prompt, o->max_new, most);
	status = check_ids(s, "the prompt", o->prompt, o->n_prompt, err);
	return status ? status : check_ids(s, "eos", o->eos, o->n_eos, err);
}

static enum pawl_status
make_request(struct pawl_scheduler *s, const struct pawl_request_options *o,
	struct pawl_request **out, struct pawl_error *err)
{
	struct pawl_request *r = pawl_memory_zalloc(1, sizeof(*r));
	enum pawl_status status;

	if (!r)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a request");
	r->max_tokens = o->n_prompt + o->max_new;
	r->tokens = pawl_memory_zalloc((size_t)r->max_tokens, sizeof(*r->tokens));
	r->eos = pawl_memory_zalloc((size_t)o->n_eos, sizeof(*r->eos));
	if (!r->tokens || !r->eos) {
		free_request(r);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY,
			"no memory for %" PRId64 " tokens of a request", o->n_prompt + o->max_new);
	}
	status = pawl_paged_decoder_open(s->decoder, &r->session, err);
	if (status) {
		free_request(r);
		return status;
	}
	memcpy(r->tokens, o->prompt, (size_t)o->n_prompt * sizeof(*r->tokens));
	if (o->n_eos)
		memcpy(r->eos, o->eos, (size_t)o->n_eos * sizeof(*r->eos));
	r->n_tokens = r->info.n_prompt = o->n_prompt;
	r->n_eos = o->n_eos;
	r->priority = o->priority;
	r->is_sharing = !o->no_sharing && s->options.max_prefixes;
	r->sample = o->sample;
	r->arg = o->arg;
	*out = r;
	return PAWL_OK;
}

/* before NULL: as the first. */
static void
insert(struct pawl_request_list *list, struct pawl_request *before, struct pawl_request *r)
{
	r->previous = before;
	r->next = before ? before->next : list->first;
	*(before ? &before->next : &list->first) = r;
	*(r->next ? &r->next->previous : &list->last) = r;
}

static void
take_out(struct pawl_request_list *list, struct pawl_request *r)
{
	*(r->previous ? &r->previous->next : &list->first) = r->next;
	*(r->next ? &r->next->previous : &list->last) = r->previous;
}

/* Behind all that are no less important. */
static void
add_live(struct pawl_scheduler *s, struct pawl_request *r)
{
	struct pawl_request *before = NULL;

	for (int i = r->priority; i <= PAWL_PRIORITY_CRITICAL && !before; i++)
		before = s->last_of[i];
	insert(&s->live, before, r);
	s->last_of[r->priority] = r;
}

static void
remove_live(struct pawl_scheduler *s, struct pawl_request *r)
{
	bool is_alone = !r->previous || r->previous->priority != r->priority;

	if (s->last_of[r->priority] == r)
		s->last_of[r->priority] = is_alone ? NULL : r->previous;
	take_out(&s->live, r);
}

enum pawl_status
pawl_scheduler_submit(struct pawl_scheduler *s, const struct pawl_request_options *options,
	uint64_t *id, struct pawl_error *err)
{
	enum pawl_status status = check_request(s, options, err);
	struct pawl_request *r = NULL;

	if (!status)
		status = pawl_object_table_reserve(&s->requests, err);
	if (!status)
		status = make_request(s, options, &r, err);
	if (status)
		return status;
	*id = pawl_object_table_add(&s->requests, r, pawl_request_id_new());
	r->info.submit_step = s->stats.step;
	add_live(s, r);
	return PAWL_OK;
}

static struct pawl_request *
find_live(const struct pawl_scheduler *s, uint64_t id, struct pawl_error *err)
{
	struct pawl_request *r = pawl_object_table_find(&s->requests, id);

	if (r && r->phase != PAWL_REQUEST_FINISHED)
		return r;
	pawl_fail(err, PAWL_INVALID_ARGUMENT, "request %" PRIu64 " %s", id,
		r ? "is finished" : "is not known");
	return NULL;
}

void
pawl_scheduler_tell(
	struct pawl_scheduler *s, const struct pawl_request *r, enum pawl_request_event_kind kind)
{
	const struct pawl_request_event event = {.id = r->id, .kind = kind};

	if (s->options.event)
		s->options.event(s->options.arg, &event);
}

void
pawl_scheduler_finish(struct pawl_scheduler *s, struct pawl_request *r, enum pawl_finish finish)
{
	remove_live(s, r);
	insert(&s->finished, s->finished.last, r);
	pawl_paged_decoder_close(s->decoder, r->session, NULL);
	r->session.value = 0;
	pawl_scheduler_set_phase(s, r, PAWL_REQUEST_FINISHED);
	r->info.finish = finish;
	r->info.finish_step = s->stats.step;
	s->stats.n_finished[finish]++;
	pawl_scheduler_tell(s, r, PAWL_REQUEST_ENDED);
}

bool
pawl_request_is_running(const struct pawl_request *r)
{
	return r->phase == PAWL_REQUEST_PREFILLING;
}

void
pawl_scheduler_set_phase(
	struct pawl_scheduler *s, struct pawl_request *r, enum pawl_request_phase phase)
{
	s->n_running -= pawl_request_is_running(r);
	r->phase = phase;
	s->n_running += pawl_request_is_running(r);
}

int64_t
pawl_request_unfed(const struct pawl_scheduler *s, const struct pawl_request *r)
{
	return r->n_tokens - 1 - pawl_kv_block_pool_session_len(s->pool, r->session);
}

enum pawl_status
pawl_scheduler_cancel(struct pawl_scheduler *s, uint64_t id, struct pawl_error *err)
{
	struct pawl_request *r = find_live(s, id, err);

	if (!r)
		return PAWL_INVALID_ARGUMENT;
	pawl_scheduler_finish(s, r, PAWL_FINISH_CANCELLED);
	return PAWL_OK;
}

enum pawl_status
pawl_scheduler_evict(struct pawl_scheduler *s, uint64_t id, struct pawl_error *err)
{
	struct pawl_request *r = find_live(s, id, err);
	enum pawl_status status = PAWL_OK;

	if (!r)
		return PAWL_INVALID_ARGUMENT;
	if (pawl_request_is_running(r))
		status = pawl_scheduler_suspend(s, r, err);
	if (!status)
		r->is_held = true;
	return status;
}

enum pawl_status
pawl_scheduler_restore(struct pawl_scheduler *s, uint64_t id, struct pawl_error *err)
{
	struct pawl_request *r = find_live(s, id, err);

	if (!r)
		return PAWL_INVALID_ARGUMENT;
	r->is_held = false;
	return PAWL_OK;
}

static enum pawl_request_phase
phase_of(const struct pawl_scheduler *s, const struct pawl_request *r)
{
	if (pawl_request_is_running(r) && !pawl_request_unfed(s, r))
		return PAWL_REQUEST_DECODING;
	return r->phase;
}

enum pawl_status
pawl_scheduler_info(const struct pawl_scheduler *s, uint64_t id, struct pawl_request_info *out,
	struct pawl_error *err)
{
	const struct pawl_request *r = pawl_object_table_find(&s->requests, id);

	if (!r)
		return pawl_fail(
			err, PAWL_INVALID_ARGUMENT, "request %" PRIu64 " is not known", id);
	*out = r->info;
	out->phase = phase_of(s, r);
	out->error = r->info.finish == PAWL_FINISH_ERROR ? &r->error : NULL;
	out->tokens = r->tokens + r->info.n_prompt;
	out->n_new = r->n_tokens - r->info.n_prompt;
	return PAWL_OK;
}

uint64_t
pawl_scheduler_finished(const struct pawl_scheduler *s)
{
	return s->finished.first ? s->finished.first->id : 0;
}

enum pawl_status
pawl_scheduler_reap(struct pawl_scheduler *s, uint64_t id, struct pawl_error *err)
{
	struct pawl_request *r = pawl_object_table_find(&s->requests, id);

	if (!r || r->phase != PAWL_REQUEST_FINISHED)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "request %" PRIu64 " is not %s", id,
			r ? "finished" : "known");
	take_out(&s->finished, r);
	pawl_object_table_remove(&s->requests, r);
	free_request(r);
	return PAWL_OK;
}

void
pawl_scheduler_stats(const struct pawl_scheduler *s, struct pawl_scheduler_stats *out)
{
	*out = s->stats;
	for (int64_t i = 0; i < s->requests.n; i++)
		out->n_requests[phase_of(s, s->requests.items[i])]++;
	out->n_blocks = pawl_kv_block_pool_geometry(s->pool)->n_blocks;
	out->free_blocks = pawl_kv_block_pool_free_blocks(s->pool);
	out->bytes_resident = pawl_kv_block_pool_bytes_resident(s->pool);
	out->bytes_evicted = pawl_paged_decoder_evicted_bytes(s->decoder);
}

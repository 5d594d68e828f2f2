#include "runtime/scheduler.h"

#include "runtime/identity.h"
#include "runtime/memory.h"
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

	if (max_batch != 1 && max_batch != 2 && max_batch != 4 && max_batch != PAWL_MAX_BATCH)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"max_batch is %" PRId64 ", not 1, 2, 4 or %d", max_batch, PAWL_MAX_BATCH);
	if (max_prefixes < 0 || max_prefixes > paged->n_blocks)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"max_prefixes is %" PRId64 ", not in 0 .. %" PRId64, max_prefixes,
			paged->n_blocks);
	if (options->admission != PAWL_ADMIT_RESERVED &&
		options->admission != PAWL_ADMIT_OPTIMISTIC)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "admission is %d, not 0 or 1",
			(int)options->admission);
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

static void
free_requests(struct pawl_scheduler *s, struct pawl_request *r)
{
	while (r) {
		struct pawl_request *next = r->next;

		if (r->session.value)
			pawl_paged_decoder_close(s->decoder, r->session, NULL);
		free_request(r);
		r = next;
	}
}

void
pawl_scheduler_free(struct pawl_scheduler *s)
{
	if (!s)
		return;
	free_requests(s, s->live);
	free_requests(s, s->finished);
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
	if (o->n_eos < 0 || o->n_eos > pawl_paged_decoder_n_vocab(s->decoder))
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"n_eos is %" PRId64 ", not in 0 .. %" PRId64, o->n_eos,
			pawl_paged_decoder_n_vocab(s->decoder));
	if (o->priority < PAWL_PRIORITY_LOW || o->priority > PAWL_PRIORITY_CRITICAL)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "priority is %d, not in 0 .. %d",
			(int)o->priority, PAWL_PRIORITY_CRITICAL);
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

enum pawl_status
pawl_scheduler_submit(struct pawl_scheduler *s, const struct pawl_request_options *options,
	uint64_t *id, struct pawl_error *err)
{
	enum pawl_status status = check_request(s, options, err);
	struct pawl_request **link = &s->live, *r = NULL;

	if (!status)
		status = make_request(s, options, &r, err);
	if (status)
		return status;
	r->id = pawl_request_id_new();
	r->info.submit_step = s->stats.step;
	while (*link && (*link)->priority >= r->priority)
		link = &(*link)->next;
	r->next = *link;
	*link = r;
	*id = r->id;
	return PAWL_OK;
}

static struct pawl_request *
find(struct pawl_request *r, uint64_t id)
{
	while (r && r->id != id)
		r = r->next;
	return r;
}

static struct pawl_request *
find_live(const struct pawl_scheduler *s, uint64_t id, struct pawl_error *err)
{
	struct pawl_request *r = find(s->live, id);

	if (!r)
		pawl_fail(err, PAWL_INVALID_ARGUMENT, "request %" PRIu64 " %s", id,
			find(s->finished, id) ? "is finished" : "is not known");
	return r;
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
	struct pawl_request **link = &s->live;

	while (*link != r)
		link = &(*link)->next;
	*link = r->next;
	for (link = &s->finished; *link;)
		link = &(*link)->next;
	*link = r;
	r->next = NULL;
	pawl_paged_decoder_close(s->decoder, r->session, NULL);
	r->session.value = 0;
	r->phase = PAWL_REQUEST_FINISHED;
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
	const struct pawl_request *r = find(s->live, id);

	if (!r)
		r = find(s->finished, id);
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
	return s->finished ? s->finished->id : 0;
}

enum pawl_status
pawl_scheduler_reap(struct pawl_scheduler *s, uint64_t id, struct pawl_error *err)
{
	struct pawl_request *r = find(s->finished, id), **link = &s->finished;

	if (!r)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "request %" PRIu64 " is not %s", id,
			find(s->live, id) ? "finished" : "known");
	while (*link != r)
		link = &(*link)->next;
	*link = r->next;
	free_request(r);
	return PAWL_OK;
}

void
pawl_scheduler_stats(const struct pawl_scheduler *s, struct pawl_scheduler_stats *out)
{
	const struct pawl_request *r;

	*out = s->stats;
	for (r = s->live; r; r = r->next)
		out->n_requests[phase_of(s, r)]++;
	for (r = s->finished; r; r = r->next)
		out->n_requests[PAWL_REQUEST_FINISHED]++;
	out->n_blocks = pawl_kv_block_pool_geometry(s->pool)->n_blocks;
	out->free_blocks = pawl_kv_block_pool_free_blocks(s->pool);
	out->bytes_resident = pawl_kv_block_pool_bytes_resident(s->pool);
	out->bytes_evicted = pawl_paged_decoder_evicted_bytes(s->decoder);
}

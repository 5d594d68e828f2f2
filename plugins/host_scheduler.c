#include <stdlib.h>

#include "plugins/host_model.h"
#include "runtime/scheduler.h"

enum {
	SCHEDULER_SETTINGS_1 = 48,
	REQUEST_SETTINGS_1 = 80,
	REQUEST_REPORT_1 = 120,
	COUNTER_1 = 24
};

_Static_assert(sizeof(struct pawl_scheduler_settings) >= SCHEDULER_SETTINGS_1, "structs only grow");
_Static_assert(sizeof(struct pawl_request_settings) >= REQUEST_SETTINGS_1, "structs only grow");
_Static_assert(sizeof(struct pawl_request_report) >= REQUEST_REPORT_1, "structs only grow");

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME(PAWL_REQUEST_ADMITTED, PAWL_SCHEDULED_ADMITTED);
SAME(PAWL_REQUEST_TOKEN, PAWL_SCHEDULED_TOKEN);
SAME(PAWL_REQUEST_SUSPENDED, PAWL_SCHEDULED_SUSPENDED);
SAME(PAWL_REQUEST_RESTORED, PAWL_SCHEDULED_RESTORED);
SAME(PAWL_REQUEST_ENDED, PAWL_SCHEDULED_ENDED);
SAME(PAWL_REQUEST_WAITING, PAWL_SCHEDULED_WAITING);
SAME(PAWL_REQUEST_PREFILLING, PAWL_SCHEDULED_PREFILLING);
SAME(PAWL_REQUEST_DECODING, PAWL_SCHEDULED_DECODING);
SAME(PAWL_REQUEST_EVICTED, PAWL_SCHEDULED_EVICTED);
SAME(PAWL_REQUEST_FINISHED, PAWL_SCHEDULED_FINISHED);
SAME(PAWL_FINISH_NONE, PAWL_SCHEDULED_NOT_YET);
SAME(PAWL_FINISH_EOS, PAWL_SCHEDULED_EOS);
SAME(PAWL_FINISH_LENGTH, PAWL_SCHEDULED_LENGTH);
SAME(PAWL_FINISH_CANCELLED, PAWL_SCHEDULED_CANCELLED);
SAME(PAWL_FINISH_ERROR, PAWL_SCHEDULED_ERROR);

/* How the host chooses the tokens of a request. */
struct sampler {
	struct sampler *next;
	uint64_t request;
	int (*sample)(void *user, const float *logits, uint32_t *token);
	void *user;
};

struct pawl_host_scheduler {
	struct pawl_host_object object;
	struct pawl_host_pool *pool;
	struct pawl_scheduler *scheduler;
	struct sampler *samplers; /* of requests that are not forgotten */
	struct pawl_scheduler_settings settings;
};

static void
tell(void *arg, const struct pawl_request_event *event)
{
	const struct pawl_host_scheduler *s = arg;
	const struct pawl_scheduled_event told = {.struct_size = sizeof(told),
		.request = event->id,
		.kind = (int64_t)event->kind,
		.token = event->token,
		.logits = event->logits};

	s->settings.event(s->settings.user, &told);
}

static enum pawl_status
make(struct pawl_host_scheduler *s, struct pawl_error *err)
{
	const struct pawl_scheduler_options options = {.max_batch = s->settings.max_batch,
		.admission = s->settings.optimistic ? PAWL_ADMIT_OPTIMISTIC : PAWL_ADMIT_RESERVED,
		.max_prefixes = s->settings.max_prefixes,
		.event = s->settings.event ? tell : NULL,
		.arg = s};
	int64_t n_blocks = pawl_paged_decoder_options(s->pool->decoder)->n_blocks;
	int64_t n_used = n_blocks - pawl_host_pool_free_blocks(s->pool);

	if (n_used)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"scheduler_create: %lld of %lld blocks of the pool are in use",
			(long long)n_used, (long long)n_blocks);
	return pawl_scheduler_new(s->pool->decoder, &options, &s->scheduler, err);
}

struct pawl_host_status *
pawl_host_scheduler_create(struct pawl_host_pool *pool,
	const struct pawl_scheduler_settings *settings, struct pawl_host_scheduler **out)
{
	struct pawl_host_status *failed =
		pawl_host_pool_check(pool, settings && out, "scheduler_create");
	struct pawl_scheduler_settings known;
	const struct pawl_block_source *before;
	struct pawl_host_scheduler *s;
	enum pawl_status status;
	struct pawl_error err;

	if (failed)
		return failed;
	if (!pawl_host_read(&known, sizeof(known), SCHEDULER_SETTINGS_1, settings))
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"scheduler_create: struct_size of the settings is wrong");
	s = pawl_host_object_new(PAWL_HOST_SCHEDULER, pool->object.context, sizeof(*s));
	if (!s)
		return pawl_host_refuse(PAWL_OUT_OF_MEMORY, "no memory for a scheduler");
	pawl_host_retain(pool);
	s->pool = pool;
	s->settings = known;
	before = pawl_host_enter(s->object.context);
	status = make(s, &err);
	pawl_host_leave(before);
	if (status) {
		pawl_host_scheduler_release(s);
		return pawl_host_status(status, &err);
	}
	pool->is_scheduled = true;
	*out = s;
	return NULL;
}

void
pawl_host_scheduler_release(struct pawl_host_scheduler *s)
{
	if (!pawl_host_drop(s, PAWL_HOST_SCHEDULER))
		return;
	if (s->scheduler)
		s->pool->is_scheduled = false;
	pawl_scheduler_free(s->scheduler);
	while (s->samplers) {
		struct sampler *next = s->samplers->next;

		free(s->samplers);
		s->samplers = next;
	}
	pawl_host_pool_release(s->pool);
	pawl_host_object_free(s);
}

/* NULL, or why a call of that name cannot be made. */
static struct pawl_host_status *
check(const struct pawl_host_scheduler *s, bool has_pointers, const char *name)
{
	if (pawl_host_is(s, PAWL_HOST_SCHEDULER) && has_pointers)
		return NULL;
	return pawl_host_refuse(
		PAWL_INVALID_ARGUMENT, "%s: no scheduler or a pointer is NULL", name);
}

static enum pawl_status
sample(void *arg, const float *logits, uint32_t *token, struct pawl_error *err)
{
	const struct sampler *sampler = arg;

	return sampler->sample(sampler->user, logits, token)
		       ? pawl_fail(err, PAWL_ENVIRONMENT, "the host chose no token")
		       : PAWL_OK;
}

static enum pawl_status
submit(struct pawl_host_scheduler *s, const struct pawl_request_settings *settings, uint64_t *id,
	struct pawl_error *err)
{
	struct pawl_request_options options = {.prompt = settings->prompt,
		.n_prompt = settings->n_prompt,
		.max_new = settings->max_new,
		.eos = settings->eos,
		.n_eos = settings->n_eos,
		.no_sharing = settings->no_sharing != 0};
	struct sampler *sampler = NULL;
	enum pawl_status status;

	if (settings->priority < PAWL_PRIORITY_LOW || settings->priority > PAWL_PRIORITY_CRITICAL)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "priority is %lld, not 0 to 3",
			(long long)settings->priority);
	options.priority = (enum pawl_priority)settings->priority;
	if (settings->sample) {
		sampler = malloc(sizeof(*sampler));
		if (!sampler)
			return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a request");
		*sampler = (struct sampler){
			s->samplers, 0, settings->sample, settings->user};
		options.sample = sample;
		options.arg = sampler;
	}
	status = pawl_scheduler_submit(s->scheduler, &options, id, err);
	if (status) {
		free(sampler);
	} else if (sampler) {
		sampler->request = *id;
		s->samplers = sampler;
	}
	return status;
}

struct pawl_host_status *
pawl_host_scheduler_submit(struct pawl_host_scheduler *s,
	const struct pawl_request_settings *settings, uint64_t *request)
{
	struct pawl_host_status *failed = check(s, settings && request, "scheduler_submit");
	struct pawl_request_settings known;
	const struct pawl_block_source *before;
	enum pawl_status status;
	struct pawl_error err;

	if (failed)
		return failed;
	if (!pawl_host_read(&known, sizeof(known), REQUEST_SETTINGS_1, settings))
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"scheduler_submit: struct_size of the settings is wrong");
	if (!known.prompt || (known.n_eos && !known.eos))
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "scheduler_submit: prompt or eos is NULL");
	before = pawl_host_enter(s->object.context);
	status = submit(s, &known, request, &err);
	pawl_host_leave(before);
	return pawl_host_status(status, &err);
}

struct pawl_host_status *
pawl_host_scheduler_cancel(struct pawl_host_scheduler *s, uint64_t request)
{
	struct pawl_host_status *failed = check(s, true, "scheduler_cancel");
	struct pawl_error err;

	return failed ? failed
		      : pawl_host_status(pawl_scheduler_cancel(s->scheduler, request, &err), &err);
}

struct pawl_host_status *
pawl_host_scheduler_evict(struct pawl_host_scheduler *s, uint64_t request)
{
	struct pawl_host_status *failed = check(s, true, "scheduler_evict");
	const struct pawl_block_source *before;
	enum pawl_status status;
	struct pawl_error err;

	if (failed)
		return failed;
	before = pawl_host_enter(s->object.context);
	status = pawl_scheduler_evict(s->scheduler, request, &err);
	pawl_host_leave(before);
	return pawl_host_status(status, &err);
}

struct pawl_host_status *
pawl_host_scheduler_restore(struct pawl_host_scheduler *s, uint64_t request)
{
	struct pawl_host_status *failed = check(s, true, "scheduler_restore");
	struct pawl_error err;

	return failed ? failed
		      : pawl_host_status(pawl_scheduler_restore(s->scheduler, request, &err), &err);
}

struct pawl_host_status *
pawl_host_scheduler_step(struct pawl_host_scheduler *s)
{
	struct pawl_host_status *failed = check(s, true, "scheduler_step");
	struct pawl_host_call call;
	struct pawl_error err;

	if (failed)
		return failed;
	pawl_host_call_begin(
		&call, s->object.context, pawl_paged_decoder_context(s->pool->decoder));
	return pawl_host_call_end(&call, pawl_scheduler_step(s->scheduler, &err), &err);
}

int
pawl_host_scheduler_has_work(const struct pawl_host_scheduler *s)
{
	return pawl_host_is(s, PAWL_HOST_SCHEDULER) && pawl_scheduler_has_work(s->scheduler);
}

struct pawl_host_status *
pawl_host_scheduler_report(const struct pawl_host_scheduler *s, uint64_t request,
	struct pawl_request_report *out)
{
	struct pawl_host_status *failed = check(s, out != NULL, "scheduler_report");
	struct pawl_request_report report;
	struct pawl_request_info info;
	enum pawl_status status;
	struct pawl_error err;

	if (failed)
		return failed;
	status = pawl_scheduler_info(s->scheduler, request, &info, &err);
	if (status)
		return pawl_host_status(status, &err);
	report = (struct pawl_request_report){.phase = (int64_t)info.phase,
		.finish = (int64_t)info.finish,
		.error = info.error ? info.error->text : NULL,
		.n_prompt = info.n_prompt,
		.n_new = info.n_new,
		.tokens = info.tokens,
		.n_shared = info.n_shared,
		.submit_step = info.submit_step,
		.admit_step = info.admit_step,
		.first_token_step = info.first_token_step,
		.finish_step = info.finish_step,
		.n_evictions = info.n_evictions,
		.n_restores = info.n_restores,
		.n_recomputes = info.n_recomputes};
	if (!pawl_host_write(out, REQUEST_REPORT_1, &report, sizeof(report)))
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"scheduler_report: struct_size of the report is wrong");
	return NULL;
}

uint64_t
pawl_host_scheduler_finished(const struct pawl_host_scheduler *s)
{
	return pawl_host_is(s, PAWL_HOST_SCHEDULER) ? pawl_scheduler_finished(s->scheduler) : 0;
}

struct pawl_host_status *
pawl_host_scheduler_forget(struct pawl_host_scheduler *s, uint64_t request)
{
	struct pawl_host_status *failed = check(s, true, "scheduler_forget");
	enum pawl_status status;
	struct pawl_error err;

	if (failed)
		return failed;
	status = pawl_scheduler_reap(s->scheduler, request, &err);
	if (status)
		return pawl_host_status(status, &err);
	for (struct sampler **at = &s->samplers; *at; at = &(*at)->next)
		if ((*at)->request == request) {
			struct sampler *unused = *at;

			*at = unused->next;
			free(unused);
			break;
		}
	return NULL;
}

struct pawl_host_status *
pawl_host_scheduler_drop_prefixes(struct pawl_host_scheduler *s)
{
	struct pawl_host_status *failed = check(s, true, "scheduler_drop_prefixes");

	if (!failed)
		pawl_scheduler_release_prefixes(s->scheduler);
	return failed;
}

int
pawl_host_scheduler_counter(
	const struct pawl_host_scheduler *s, int64_t i, struct pawl_counter *out)
{
	struct pawl_scheduler_stats t;
	struct pawl_counter counter = {0};

	if (!pawl_host_is(s, PAWL_HOST_SCHEDULER) || !out)
		return 0;
	pawl_scheduler_stats(s->scheduler, &t);
	const struct {
		const char *name;
		int64_t value;
	} all[] = {{"steps", t.step},
		{"requests.waiting", t.n_requests[PAWL_REQUEST_WAITING]},
		{"requests.prefilling", t.n_requests[PAWL_REQUEST_PREFILLING]},
		{"requests.decoding", t.n_requests[PAWL_REQUEST_DECODING]},
		{"requests.evicted", t.n_requests[PAWL_REQUEST_EVICTED]},
		{"requests.finished", t.n_requests[PAWL_REQUEST_FINISHED]},
		{"finished.eos", t.n_finished[PAWL_FINISH_EOS]},
		{"finished.length", t.n_finished[PAWL_FINISH_LENGTH]},
		{"finished.cancelled", t.n_finished[PAWL_FINISH_CANCELLED]},
		{"finished.error", t.n_finished[PAWL_FINISH_ERROR]},
		{"blocks", t.n_blocks},
		{"blocks.free", t.free_blocks},
		{"blocks.peak", t.peak_blocks},
		{"bytes.resident", t.bytes_resident},
		{"bytes.evicted", t.bytes_evicted},
		{"prefixes", t.n_prefixes},
		{"prefixes.lost", t.prefixes_lost},
		{"evictions", t.evictions},
		{"restores", t.restores},
		{"recomputes", t.recomputes},
		{"runs.prompt", t.prompt_runs},
		{"runs.decode", t.decode_runs},
		{"tokens.fed", t.tokens_fed},
		{"tokens.shared", t.tokens_shared}};

	if (i < 0 || i >= (int64_t)(sizeof(all) / sizeof(all[0])))
		return 0;
	counter.name = all[i].name;
	counter.value = (uint64_t)all[i].value;
	return pawl_host_write(out, COUNTER_1, &counter, sizeof(counter));
}

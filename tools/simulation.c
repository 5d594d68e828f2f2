#include "tools/simulation.h"

#include "runtime/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static enum pawl_status
tokenize(struct pawl_simulated *one, const char *file, const struct pawl_tokenizer *tokenizer,
	struct pawl_error *err)
{
	unsigned int bos = pawl_tokenizer_wants_bos(tokenizer) ? PAWL_ENCODE_BOS : 0;
	const char *prompt = one->request->prompt;
	enum pawl_status status = pawl_tokenizer_encode(
		tokenizer, prompt, strlen(prompt), PAWL_ENCODE_SPECIAL | bos, &one->prompt, err);

	if (!status && !one->prompt.n)
		status = pawl_fail(err, PAWL_INVALID_FILE, "no tokens");
	if (!status)
		return PAWL_OK;
	return pawl_error_prefix(err, "%.300s:%d: prompt", file, one->request->line);
}

static enum pawl_status
tokenize_all(
	struct pawl_simulation *s, const struct pawl_request_file *file, struct pawl_error *err)
{
	s->requests = calloc(file->n, sizeof(*s->requests));
	if (!s->requests)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for %zu requests", file->n);
	for (size_t i = 0; i < file->n; i++) {
		struct pawl_simulated *one = &s->requests[s->n_requests++];
		enum pawl_status status;

		one->request = &file->requests[i];
		one->simulation = s;
		pawl_token_list_init(&one->prompt);
		status = tokenize(one, file->name, pawl_model_tokenizer(s->engine->model), err);
		if (status)
			return status;
	}
	return PAWL_OK;
}

/* Blocks that a request needs by itself. */
static int64_t
blocks_of(const struct pawl_simulation *s, const struct pawl_simulated *one)
{
	int64_t n = (int64_t)one->prompt.n + one->request->n - 1, size = s->options.block_size;

	return (n + size - 1) / size;
}

/*
 * The scheduler knows only the limit of the tables, which are as wide as the longest of the others.
 */
static enum pawl_status
check_fits(
	const struct pawl_simulation *s, const struct pawl_simulated *one, struct pawl_error *err)
{
	int64_t size = s->options.block_size, needed = blocks_of(s, one);
	int64_t made_for = pawl_model_info(s->engine->model)->n_ctx / size;

	if (needed > made_for)
		return pawl_fail(err, PAWL_CAPACITY,
			"a prompt of %zu and %" PRId64 " new tokens do not fit in the %" PRId64
			" positions the model was made for",
			one->prompt.n, one->request->n, made_for * size);
	if (needed > s->n_blocks)
		return pawl_fail(err, PAWL_CAPACITY,
			"a prompt of %zu and %" PRId64 " new tokens do not fit in the %" PRId64
			" blocks of %" PRId64 " (--blocks)",
			one->prompt.n, one->request->n, s->n_blocks, size);
	return PAWL_OK;
}

static enum pawl_status
choose_blocks(struct pawl_simulation *s, struct pawl_paged_options *paged, struct pawl_error *err)
{
	int64_t made_for = pawl_model_info(s->engine->model)->n_ctx, all = 0, most = 0;

	paged->max_blocks = made_for / s->options.block_size;
	if (!paged->max_blocks)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"a block of %" PRId64 " is more than the %" PRId64
			" positions the model was made for",
			s->options.block_size, made_for);
	for (size_t i = 0; i < s->n_requests; i++) {
		int64_t n = blocks_of(s, &s->requests[i]);

		if (n > paged->max_blocks)
			continue; /* refused later */
		all += n;
		most = n > most ? n : most;
	}
	paged->n_blocks = s->options.n_blocks;
	if (!paged->n_blocks)
		paged->n_blocks = all < most * s->options.n_at_once ? all
								    : most * s->options.n_at_once;
	if (!paged->n_blocks)
		paged->n_blocks = 1;
	s->n_blocks = paged->n_blocks;
	/* No table is wider than the longest request that is not refused. */
	if (most && most < paged->max_blocks)
		paged->max_blocks = most;
	if (paged->max_blocks > paged->n_blocks)
		paged->max_blocks = paged->n_blocks;
	return PAWL_OK;
}

static enum pawl_status
make_scheduler(struct pawl_simulation *s, struct pawl_error *err)
{
	struct pawl_scheduler_options options = s->options.scheduler;
	struct pawl_paged_options paged = {
		.block_size = s->options.block_size,
		.kv_dtype = pawl_engine_kv_dtype(&s->engine->options),
		.precision = (enum pawl_precision)s->engine->options.precision,
		.n_threads = (int)s->engine->options.threads,
		.prefill_chunk = s->options.chunk,
	};
	enum pawl_status status = choose_blocks(s, &paged, err);

	if (!status)
		status = pawl_engine_open_device(s->engine, err);
	if (!status)
		pawl_engine_note_threads(s->engine);
	if (!status)
		status = pawl_paged_decoder_new(pawl_model_source(s->engine->model),
			s->engine->device, &paged, &s->decoder, err);
	if (options.max_prefixes > paged.n_blocks)
		options.max_prefixes = paged.n_blocks;
	return status ? status : pawl_scheduler_new(s->decoder, &options, &s->scheduler, err);
}

enum pawl_status
pawl_simulation_init(struct pawl_simulation *s, struct pawl_engine *engine,
	const struct pawl_request_file *file, const struct pawl_simulation_options *options,
	struct pawl_error *err)
{
	enum pawl_status status;

	*s = (struct pawl_simulation){.options = *options, .engine = engine};
	status = tokenize_all(s, file, err);
	return status ? status : make_scheduler(s, err);
}

void
pawl_simulation_release(struct pawl_simulation *s)
{
	pawl_scheduler_free(s->scheduler);
	pawl_paged_decoder_free(s->decoder);
	for (size_t i = 0; i < s->n_requests; i++) {
		pawl_sampler_free(s->requests[i].sampler);
		pawl_token_list_release(&s->requests[i].prompt);
	}
	free(s->requests);
	free(s->seconds);
	*s = (struct pawl_simulation){0};
}

static enum pawl_status
make_sampler(struct pawl_simulated *one, struct pawl_error *err)
{
	const struct pawl_sampler_options options = {
		.temp = one->request->temp, .top_p = 1, .seed = one->request->seed};

	return pawl_sampler_new(&options, pawl_model_info(one->simulation->engine->model)->n_vocab,
		&one->sampler, err);
}

static bool
is_last(const struct pawl_simulated *one, uint32_t id)
{
	const struct pawl_simulation *s = one->simulation;

	return one->n_drawn == one->request->n ||
	       (!s->options.ignore_end &&
		       pawl_tokenizer_is_eog(pawl_model_tokenizer(s->engine->model), id));
}

/* For requests with a temperature: each has a sampler, which is as large as a row of logits. */
static enum pawl_status
draw(void *arg, const float *logits, uint32_t *token, struct pawl_error *err)
{
	struct pawl_simulated *one = arg;
	enum pawl_status status = one->sampler ? PAWL_OK : make_sampler(one, err);

	if (!status)
		status = pawl_sampler_pick(one->sampler, logits, token, err);
	if (status)
		return status;
	one->n_drawn++;
	if (is_last(one, *token)) {
		pawl_sampler_free(one->sampler);
		one->sampler = NULL;
	}
	return PAWL_OK;
}

static enum pawl_status
submit(struct pawl_simulation *s, struct pawl_simulated *one, struct pawl_error *err)
{
	size_t n_eos;
	const uint32_t *eos = pawl_tokenizer_eog(pawl_model_tokenizer(s->engine->model), &n_eos);
	const struct pawl_request_options options = {
		.prompt = one->prompt.ids,
		.n_prompt = (int64_t)one->prompt.n,
		.max_new = one->request->n,
		.eos = eos,
		.n_eos = s->options.ignore_end ? 0 : (int64_t)n_eos,
		.priority = one->request->priority,
		.sample = one->request->temp > 0 ? draw : NULL,
		.arg = one,
	};
	enum pawl_status status = check_fits(s, one, &one->refusal);

	if (!status)
		status = pawl_scheduler_submit(s->scheduler, &options, &one->id, &one->refusal);
	if (status == PAWL_CAPACITY) /* the others go on */
		return PAWL_OK;
	return status ? pawl_fail(err, status, "%.64s: %s", one->request->name, one->refusal.text)
		      : PAWL_OK;
}

static enum pawl_status
note_time(struct pawl_simulation *s, double since, struct pawl_error *err)
{
	if (s->n_seconds == s->room_seconds) {
		int64_t room = s->room_seconds ? 2 * s->room_seconds : 1024;
		double *seconds = realloc(s->seconds, (size_t)room * sizeof(*seconds));

		if (!seconds)
			return pawl_fail(err, PAWL_OUT_OF_MEMORY,
				"no memory for the times of %" PRId64 " steps", room);
		s->seconds = seconds;
		s->room_seconds = room;
	}
	s->seconds[s->n_seconds++] = pawl_seconds() - since;
	return PAWL_OK;
}

static void
look(const struct pawl_simulation *s)
{
	struct pawl_scheduler_stats stats;

	pawl_scheduler_stats(s->scheduler, &stats);
	s->options.look(s->options.arg, &stats);
}

enum pawl_status
pawl_simulation_run(struct pawl_simulation *s, struct pawl_error *err)
{
	double start = pawl_seconds();
	size_t n_submitted = 0;
	enum pawl_status status = note_time(s, start, err);

	for (int64_t step = 0; !status; step++) {
		while (n_submitted < s->n_requests && !status &&
			s->requests[n_submitted].request->arrival <= step)
			status = submit(s, &s->requests[n_submitted++], err);
		if (status ||
			(n_submitted == s->n_requests && !pawl_scheduler_has_work(s->scheduler)))
			break;
		status = pawl_scheduler_step(s->scheduler, err);
		if (!status)
			status = note_time(s, start, err);
		if (!status && s->options.every && (step + 1) % s->options.every == 0)
			look(s);
	}
	return status;
}

int64_t
pawl_simulation_failures(const struct pawl_simulation *s)
{
	struct pawl_scheduler_stats stats;
	int64_t n = 0;

	for (size_t i = 0; i < s->n_requests; i++)
		n += !s->requests[i].id;
	pawl_scheduler_stats(s->scheduler, &stats);
	return n + stats.n_finished[PAWL_FINISH_ERROR];
}

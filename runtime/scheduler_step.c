#include "runtime/scheduler_parts.h"

#include <inttypes.h>
#include <math.h>

static void
count_run(struct pawl_scheduler *s, int64_t n_tokens)
{
	int64_t used = pawl_kv_block_pool_geometry(s->pool)->n_blocks -
		       pawl_kv_block_pool_free_blocks(s->pool);

	s->stats.tokens_fed += n_tokens;
	if (used > s->stats.peak_blocks)
		s->stats.peak_blocks = used;
}

/* As many tokens as a chunk holds, of the first prompts in the order. */
static enum pawl_status
feed_prompts(struct pawl_scheduler *s, struct pawl_error *err)
{
	int64_t chunk = pawl_paged_decoder_options(s->decoder)->prefill_chunk, room = chunk;
	int64_t n = s->n_running;

	for (struct pawl_request *r = s->live.first; n && room; r = r->next) {
		n -= pawl_request_is_running(r);
		while (room && pawl_request_is_running(r)) {
			int64_t left = pawl_request_unfed(s, r), taken;
			enum pawl_status status;

			/* The rest of a chunk would go token by token. */
			if (!left || (left > room && room < chunk))
				break;
			status = pawl_paged_decoder_feed(s->decoder, r->session,
				r->tokens + r->n_tokens - 1 - left, left < room ? left : room,
				&taken, err);
			if (status)
				return status;
			room -= taken;
			s->stats.prompt_runs++;
			count_run(s, taken);
			pawl_scheduler_offer_prefix(s, r);
		}
	}
	return PAWL_OK;
}

/* Those that had no turn for longest, in the order. */
static int64_t
choose_batch(const struct pawl_scheduler *s, struct pawl_request **batch)
{
	int64_t n = 0, left = s->n_running;

	for (struct pawl_request *r = s->live.first; left; r = r->next) {
		int64_t at = n;

		left -= pawl_request_is_running(r);
		if (!pawl_request_is_running(r) || pawl_request_unfed(s, r))
			continue;
		while (at && batch[at - 1]->last_run > r->last_run)
			at--;
		if (at == s->options.max_batch)
			continue;
		n += n < s->options.max_batch;
		for (int64_t i = n - 1; i > at; i--)
			batch[i] = batch[i - 1];
		batch[at] = r;
	}
	return n;
}

static enum pawl_status
pick_largest(const float *logits, int64_t n, uint32_t *token, struct pawl_error *err)
{
	int64_t best = 0;

	for (int64_t i = 0; i < n; i++) {
		if (!isfinite(logits[i]))
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"the logit of token %" PRId64 " is not finite", i);
		if (logits[i] > logits[best])
			best = i;
	}
	*token = (uint32_t)best;
	return PAWL_OK;
}

static enum pawl_status
pick(const struct pawl_scheduler *s, struct pawl_request *r, const float *logits, uint32_t *token)
{
	int64_t n_vocab = pawl_paged_decoder_n_vocab(s->decoder);
	enum pawl_status status;

	if (!r->sample)
		return pick_largest(logits, n_vocab, token, &r->error);
	status = r->sample(r->arg, logits, token, &r->error);
	if (!status && *token >= n_vocab)
		status = pawl_fail(&r->error, PAWL_INVALID_ARGUMENT,
			"the sampler chose token %u, the model has %" PRId64, *token, n_vocab);
	return status;
}

static bool
ends(const struct pawl_request *r, uint32_t token)
{
	for (int64_t i = 0; i < r->n_eos; i++)
		if (r->eos[i] == token)
			return true;
	return false;
}

/* Chooses the token after the logits and ends the request if it is time. */
static void
take_token(struct pawl_scheduler *s, struct pawl_request *r, const float *logits)
{
	struct pawl_request_event event = {
		.id = r->id, .kind = PAWL_REQUEST_TOKEN, .logits = logits};

	if (pick(s, r, logits, &event.token)) {
		pawl_scheduler_finish(s, r, PAWL_FINISH_ERROR);
		return;
	}
	if (ends(r, event.token)) {
		pawl_scheduler_finish(s, r, PAWL_FINISH_EOS);
		return;
	}
	r->tokens[r->n_tokens++] = event.token;
	if (!r->info.first_token_step)
		r->info.first_token_step = s->stats.step;
	if (s->options.event)
		s->options.event(s->options.arg, &event);
	if (r->n_tokens == r->max_tokens)
		pawl_scheduler_finish(s, r, PAWL_FINISH_LENGTH);
}

static enum pawl_status
decode_batch(struct pawl_scheduler *s, struct pawl_error *err)
{
	struct pawl_request *batch[PAWL_MAX_BATCH];
	struct pawl_paged_row rows[PAWL_MAX_BATCH];
	int64_t n = choose_batch(s, batch);
	const float *logits;
	enum pawl_status status;

	if (!n)
		return PAWL_OK;
	for (int64_t i = 0; i < n; i++)
		rows[i] = (struct pawl_paged_row){
			batch[i]->session, batch[i]->tokens[batch[i]->n_tokens - 1]};
	status = pawl_paged_decoder_step(s->decoder, rows, n, &logits, err);
	if (status)
		return status;
	s->clock++;
	s->stats.decode_runs++;
	count_run(s, n);
	for (int64_t i = 0; i < n; i++) {
		batch[i]->last_run = s->clock;
		pawl_scheduler_offer_prefix(s, batch[i]);
		take_token(s, batch[i], logits + i * pawl_paged_decoder_n_vocab(s->decoder));
	}
	return PAWL_OK;
}

enum pawl_status
pawl_scheduler_step(struct pawl_scheduler *s, struct pawl_error *err)
{
	enum pawl_status status;

	s->stats.step++;
	pawl_scheduler_keep_promises(s);
	pawl_scheduler_admit(s);
	status = feed_prompts(s, err);
	return status ? status : decode_batch(s, err);
}

bool
pawl_scheduler_has_work(const struct pawl_scheduler *s)
{
	const struct pawl_request *r = s->live.first;

	while (r && r->is_held)
		r = r->next;
	return r != NULL;
}

enum pawl_status
pawl_scheduler_run_to_completion(struct pawl_scheduler *s, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;

	while (pawl_scheduler_has_work(s) && !status)
		status = pawl_scheduler_step(s, err);
	return status;
}

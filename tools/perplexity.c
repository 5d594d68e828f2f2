#include "tools/perplexity.h"

#include "tools/exact_eval.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct measure {
	struct pawl_perplexity *result;
	struct pawl_engine *engine;
	const uint32_t *tokens; /* of the window, as the text has them */
	uint32_t *window;       /* as they are evaluated */
	int64_t n_vocab;
	struct pawl_progress *progress;
	int64_t n_windows;
};

/* -log p of a token by the logits in front of it. */
static double
surprise(const float *logits, int64_t n, uint32_t token)
{
	double most = logits[0], sum = 0;

	for (int64_t i = 1; i < n; i++)
		most = logits[i] > most ? logits[i] : most;
	for (int64_t i = 0; i < n; i++)
		sum += exp(logits[i] - most);
	return most + log(sum) - logits[token];
}

static enum pawl_status
score_row(void *arg, int64_t position, const float *logits, struct pawl_error *err)
{
	struct measure *m = arg;
	struct pawl_perplexity *result = m->result;

	pawl_progress_stage(m->progress, "evaluating",
		result->n_windows * result->window + position + 1, m->n_windows * result->window);
	if (position < result->window / 2)
		return PAWL_OK;
	result->nll += surprise(logits, m->n_vocab, m->tokens[position + 1]);
	result->n_scored++;
	return isfinite(result->nll) ? PAWL_OK
				     : pawl_fail(err, PAWL_INVALID_ARGUMENT,
					       "window %" PRId64 ": a logit at position %" PRId64
					       " is not finite",
					       result->n_windows, position);
}

/* The last token of a window is scored and not evaluated. */
static enum pawl_status
measure_window(struct measure *m, struct pawl_error *err)
{
	struct pawl_perplexity *result = m->result;
	int64_t n = result->window - 1, first = result->window / 2;
	enum pawl_status status;

	if (result->exact)
		return pawl_exact_eval(m->engine->model, m->window, n, result->chunk, score_row, m,
			err);
	pawl_decoder_truncate(m->engine->decoder, 0);
	status = pawl_decoder_prefill(m->engine->decoder, m->window, first, NULL, err);
	return status ? status
		      : pawl_decoder_eval(m->engine->decoder, m->window + first, n - first,
				score_row, m, err);
}

static enum pawl_status
start(const struct pawl_perplexity *p, struct pawl_engine *engine, struct pawl_error *err)
{
	int64_t capacity;
	enum pawl_status status = pawl_engine_capacity(engine, p->window, &capacity, err);

	if (!status && !p->exact)
		status = pawl_engine_start(engine, capacity, p->chunk, err);
	if (!status && !p->exact)
		pawl_engine_note_threads(engine);
	return status;
}

enum pawl_status
pawl_perplexity_measure(struct pawl_perplexity *p, struct pawl_engine *engine,
	const uint32_t *tokens, int64_t n, struct pawl_progress *progress, struct pawl_error *err)
{
	const struct pawl_tokenizer *tokenizer = pawl_model_tokenizer(engine->model);
	struct measure m = {.result = p, .engine = engine, .progress = progress,
		.n_vocab = pawl_model_info(engine->model)->n_vocab, .n_windows = n / p->window};
	enum pawl_status status;

	if (n < p->window)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"--tokens: %" PRId64 " tokens, a window has %" PRId64, n, p->window);
	m.window = malloc((size_t)p->window * sizeof(*m.window));
	if (!m.window)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for %" PRId64 " tokens",
			p->window);
	status = start(p, engine, err);
	while (!status && p->n_windows < m.n_windows) {
		m.tokens = tokens + p->n_windows * p->window;
		memcpy(m.window, m.tokens, (size_t)p->window * sizeof(*m.window));
		if (pawl_tokenizer_wants_bos(tokenizer))
			m.window[0] = (uint32_t)pawl_tokenizer_bos(tokenizer);
		status = measure_window(&m, err);
		p->n_windows += !status;
	}
	free(m.window);
	return status;
}

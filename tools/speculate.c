#include "tools/speculate.h"

#include <string.h>

/* Shorter repeats say little, longer ones are rarely needed to tell places apart. */
enum { LEAST_REPEAT = 2, MOST_REPEAT = 4 };

static bool
is_same_token(const struct pawl_tokenizer *a, const struct pawl_tokenizer *b, size_t id)
{
	struct pawl_text x, y;

	return pawl_tokenizer_piece(a, (uint32_t)id, &x) &&
	       pawl_tokenizer_piece(b, (uint32_t)id, &y) && x.n == y.n &&
	       !memcmp(x.bytes, y.bytes, x.n);
}

static enum pawl_status
compare_vocabularies(
	const struct pawl_speculate *s, const struct pawl_engine *engine, struct pawl_error *err)
{
	const struct pawl_tokenizer *ours = pawl_model_tokenizer(engine->model);
	const struct pawl_tokenizer *drafts = pawl_model_tokenizer(s->engine.model);
	size_t n = pawl_tokenizer_n_vocab(ours), n_draft = pawl_tokenizer_n_vocab(drafts);

	if (n != n_draft)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"--draft: %.300s: %zu tokens, the model has %zu: the vocabulary is another "
			"one",
			s->draft, n_draft, n);
	for (size_t id = 0; id < n; id++)
		if (!is_same_token(ours, drafts, id))
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"--draft: %.300s: token %zu differs from the model's: the "
				"vocabulary is "
				"another one",
				s->draft, id);
	return PAWL_OK;
}

enum pawl_status
pawl_speculate_open(
	struct pawl_speculate *s, const struct pawl_engine *engine, struct pawl_error *err)
{
	if (!s->draft)
		return PAWL_OK;
	pawl_engine_init(&s->engine, engine->command, &engine->options);
	if (pawl_model_open(s->draft, &s->engine.model, err))
		return pawl_error_prefix(err, "--draft");
	return compare_vocabularies(s, engine, err);
}

int64_t
pawl_speculate_rollback(const struct pawl_speculate *s)
{
	return s->draft || s->lookup ? s->n_guess : 0;
}

/* A decoder of the draft's, as large as the other or as its model allows. */
static enum pawl_status
start_draft(struct pawl_speculate *s, struct pawl_engine *engine, struct pawl_error *err)
{
	int64_t capacity = pawl_decoder_capacity(engine->decoder);
	int64_t made_for = pawl_model_info(s->engine.model)->n_ctx;
	enum pawl_status status;

	s->engine.device = pawl_device_ref(engine->device);
	s->engine.rollback = engine->rollback;
	status = pawl_engine_start(&s->engine, capacity < made_for ? capacity : made_for, 0, err);
	return status ? status : pawl_draft_new(s->engine.decoder, &s->guesser, err);
}

enum pawl_status
pawl_speculate_start(struct pawl_speculate *s, struct pawl_engine *engine, struct pawl_error *err)
{
	const struct pawl_speculative_target target = pawl_speculative_decoder(engine->decoder);
	struct pawl_proposer proposer;
	enum pawl_status status = PAWL_OK;

	if (s->draft) {
		status = start_draft(s, engine, err);
		if (status)
			return pawl_error_prefix(err, "--draft");
		proposer = pawl_draft_proposer(s->guesser);
	} else if (s->lookup) {
		s->repeat = (struct pawl_lookup){LEAST_REPEAT, MOST_REPEAT};
		proposer = pawl_lookup_proposer(&s->repeat);
	} else {
		return PAWL_OK;
	}
	return pawl_speculative_new(&target, &proposer, s->n_guess,
		pawl_decoder_capacity(engine->decoder), &s->speculative, err);
}

void
pawl_speculate_release(struct pawl_speculate *s)
{
	pawl_speculative_free(s->speculative);
	pawl_draft_free(s->guesser);
	pawl_engine_release(&s->engine);
}

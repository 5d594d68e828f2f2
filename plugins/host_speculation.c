#include "plugins/host_model.h"
#include "runtime/speculative.h"

enum { SPECULATION_SETTINGS_1 = 64, COUNTER_1 = 24, LEAST_REPEAT = 2, MOST_REPEAT = 4 };

_Static_assert(
	sizeof(struct pawl_speculation_settings) >= SPECULATION_SETTINGS_1, "structs only grow");

struct pawl_host_speculation {
	struct pawl_host_object object;
	struct pawl_host_decoder *decoder; /* or */
	struct pawl_host_pool *pool;
	struct pawl_paged_sequence sequence; /* of the pool */
	struct pawl_speculation_settings settings;
	struct pawl_lookup lookup;
	struct pawl_draft *draft;
	struct pawl_speculative *speculative;
};

static enum pawl_status
propose(void *ctx, const uint32_t *tokens, int64_t n, int64_t most, uint32_t *guess,
	int64_t *n_guess, struct pawl_error *err)
{
	const struct pawl_host_speculation *s = ctx;

	*n_guess = 0;
	if (s->settings.propose(s->settings.user, tokens, n, most, guess, n_guess))
		return pawl_fail(err, PAWL_ENVIRONMENT, "the host failed to guess");
	if (*n_guess < 0 || *n_guess > most)
		return pawl_fail(err, PAWL_ENVIRONMENT,
			"the host guessed %lld tokens, asked for %lld at most",
			(long long)*n_guess, (long long)most);
	return PAWL_OK;
}

/* Of a decoder that the host lends for guessing. */
static enum pawl_status
make_draft(struct pawl_host_speculation *s, const struct pawl_speculative_target *target,
	struct pawl_error *err)
{
	const struct pawl_host_decoder *draft = s->settings.draft;

	if (draft == s->decoder || draft->object.context != s->object.context)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"the draft is %s", draft == s->decoder ? "the decoder itself"
							       : "of another context");
	if (pawl_decoder_n_vocab(draft->decoder) != target->n_vocab)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"the draft has %lld tokens, the model %lld",
			(long long)pawl_decoder_n_vocab(draft->decoder),
			(long long)target->n_vocab);
	return pawl_draft_new(draft->decoder, &s->draft, err);
}

static enum pawl_status
make_lookup(struct pawl_host_speculation *s, struct pawl_error *err)
{
	int64_t least = s->settings.least_repeat, most = s->settings.most_repeat;

	s->lookup.least = least ? least : LEAST_REPEAT;
	s->lookup.most = most ? most : MOST_REPEAT;
	if (s->lookup.least < 1 || s->lookup.most < s->lookup.least)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "repeats of %lld to %lld tokens",
			(long long)s->lookup.least, (long long)s->lookup.most);
	return PAWL_OK;
}

static enum pawl_status
make(struct pawl_host_speculation *s, struct pawl_error *err)
{
	const struct pawl_speculative_target target =
		s->pool ? pawl_speculative_paged(&s->sequence)
			: pawl_speculative_decoder(s->decoder->decoder);
	struct pawl_proposer proposer = {s, propose};
	int64_t capacity = s->settings.capacity;
	enum pawl_status status = PAWL_OK;

	if (!s->settings.propose && s->settings.draft) {
		status = make_draft(s, &target, err);
		proposer = pawl_draft_proposer(s->draft);
	} else if (!s->settings.propose) {
		status = make_lookup(s, err);
		proposer = pawl_lookup_proposer(&s->lookup);
	}
	if (!capacity && s->pool) {
		const struct pawl_paged_options *options =
			pawl_paged_decoder_options(s->pool->decoder);

		capacity = options->max_blocks * options->block_size;
	} else if (!capacity) {
		capacity = pawl_decoder_capacity(s->decoder->decoder);
	}
	return status ? status
		      : pawl_speculative_new(&target, &proposer, s->settings.n_guess, capacity,
				&s->speculative, err);
}

/* Over a decoder or a sequence of a pool, whichever is given. */
static struct pawl_host_status *
create(struct pawl_host_decoder *decoder, struct pawl_host_pool *pool, uint64_t sequence,
	const struct pawl_speculation_settings *settings, struct pawl_host_speculation **out)
{
	struct pawl_speculation_settings known;
	const struct pawl_block_source *before;
	struct pawl_host_speculation *s;
	enum pawl_status status;
	struct pawl_error err;

	if (!pawl_host_read(&known, sizeof(known), SPECULATION_SETTINGS_1, settings))
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"speculation_create: struct_size of the settings is wrong");
	if (known.draft && !pawl_host_is(known.draft, PAWL_HOST_DECODER))
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "speculation_create: the draft is no decoder");
	s = pawl_host_object_new(PAWL_HOST_SPECULATION,
		pool ? pool->object.context : decoder->object.context, sizeof(*s));
	if (!s)
		return pawl_host_refuse(PAWL_OUT_OF_MEMORY, "no memory for a speculation");
	s->decoder = decoder;
	s->pool = pool;
	s->settings = known;
	pawl_host_retain(pool ? (void *)pool : decoder);
	if (known.draft)
		pawl_host_retain(known.draft);
	if (pool)
		s->sequence = (struct pawl_paged_sequence){
			pool->decoder, (struct pawl_kv_session_id){sequence}};
	before = pawl_host_enter(s->object.context);
	status = make(s, &err);
	pawl_host_leave(before);
	if (status)
		pawl_host_speculation_release(s);
	else
		*out = s;
	return pawl_host_status(status, &err);
}

struct pawl_host_status *
pawl_host_speculation_create(struct pawl_host_decoder *decoder,
	const struct pawl_speculation_settings *settings, struct pawl_host_speculation **out)
{
	if (!pawl_host_is(decoder, PAWL_HOST_DECODER) || !settings || !out)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"speculation_create: no decoder or a pointer is NULL");
	return create(decoder, NULL, 0, settings, out);
}

struct pawl_host_status *
pawl_host_speculation_of_sequence(struct pawl_host_pool *pool, uint64_t sequence,
	const struct pawl_speculation_settings *settings, struct pawl_host_speculation **out)
{
	struct pawl_host_status *failed =
		pawl_host_pool_check(pool, settings && out, "speculation_of_sequence");

	if (failed)
		return failed;
	if (pawl_host_pool_len(pool, sequence) < 0)
		return pawl_host_refuse(PAWL_INVALID_ARGUMENT,
			"speculation_of_sequence: sequence %llu is not open",
			(unsigned long long)sequence);
	return create(NULL, pool, sequence, settings, out);
}

void
pawl_host_speculation_release(struct pawl_host_speculation *s)
{
	if (!pawl_host_drop(s, PAWL_HOST_SPECULATION))
		return;
	pawl_speculative_free(s->speculative);
	pawl_draft_free(s->draft);
	pawl_host_decoder_release(s->settings.draft);
	pawl_host_decoder_release(s->decoder);
	pawl_host_pool_release(s->pool);
	pawl_host_object_free(s);
}

/* NULL, or why a call of that name cannot be made. */
static struct pawl_host_status *
check(const struct pawl_host_speculation *s, bool has_pointers, const char *name)
{
	if (!pawl_host_is(s, PAWL_HOST_SPECULATION) || !has_pointers)
		return pawl_host_refuse(
			PAWL_INVALID_ARGUMENT, "%s: no speculation or a pointer is NULL", name);
	return s->pool ? pawl_host_pool_check(s->pool, true, name) : NULL;
}

struct pawl_host_status *
pawl_host_speculation_begin(struct pawl_host_speculation *s, const uint32_t *tokens, int64_t n)
{
	struct pawl_host_status *failed = check(s, tokens != NULL, "speculation_begin");
	struct pawl_error err;

	return failed ? failed
		      : pawl_host_status(
				pawl_speculative_begin(s->speculative, tokens, n, &err), &err);
}

struct pawl_host_status *
pawl_host_speculation_step(
	struct pawl_host_speculation *s, uint32_t token, const float **logits)
{
	struct pawl_host_status *failed = check(s, logits != NULL, "speculation_step");
	struct pawl_host_call call;
	struct pawl_error err;

	if (failed)
		return failed;
	pawl_host_call_begin(&call, s->object.context,
		s->pool ? pawl_paged_decoder_context(s->pool->decoder)
			: pawl_decoder_context(s->decoder->decoder));
	return pawl_host_call_end(
		&call, pawl_speculative_step(s->speculative, token, logits, &err), &err);
}

struct pawl_host_status *
pawl_host_speculation_settle(struct pawl_host_speculation *s)
{
	struct pawl_host_status *failed = check(s, true, "speculation_settle");

	if (!failed)
		pawl_speculative_settle(s->speculative);
	return failed;
}

int
pawl_host_speculation_counter(
	const struct pawl_host_speculation *s, int64_t i, struct pawl_counter *out)
{
	static const char *const names[] = {"proposed", "accepted", "runs"};
	struct pawl_speculative_stats stats;
	struct pawl_counter counter = {0};

	if (!pawl_host_is(s, PAWL_HOST_SPECULATION) || !out || i < 0 || i > 2)
		return 0;
	stats = pawl_speculative_stats(s->speculative);
	counter.name = names[i];
	counter.value = (const uint64_t[]){stats.proposed, stats.accepted, stats.runs}[i];
	return pawl_host_write(out, COUNTER_1, &counter, sizeof(counter));
}

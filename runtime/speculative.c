#include "runtime/speculative.h"

#include "runtime/memory.h"

#include <inttypes.h>
#include <string.h>

struct pawl_speculative {
	struct pawl_speculative_target target;
	struct pawl_proposer proposer;
	int64_t n_guess, capacity;
	uint32_t *tokens; /* n of at most capacity */
	int64_t n;
	uint32_t guess[PAWL_MAX_GUESS]; /* what the target has beyond them; the first is judged next
					 */
	int64_t first, end;
	const float *logits; /* after each token of the run that has the guess */
	struct pawl_speculative_stats stats;
};

enum pawl_status
pawl_speculative_new(const struct pawl_speculative_target *target,
	const struct pawl_proposer *proposer, int64_t n_guess, int64_t capacity,
	struct pawl_speculative **out, struct pawl_error *err)
{
	int64_t most = target->max_rows <= PAWL_MAX_GUESS ? target->max_rows - 1 : PAWL_MAX_GUESS;
	struct pawl_speculative *s;

	if (n_guess < 1 || n_guess > most)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"guesses of %" PRId64 " tokens; 1 to %" PRId64 " are possible", n_guess,
			most);
	if (capacity < 1)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"speculation on sequences of %" PRId64 " tokens", capacity);
	s = pawl_memory_zalloc(1, sizeof(*s));
	if (s)
		s->tokens = pawl_memory_zalloc((size_t)capacity, sizeof(*s->tokens));
	if (!s || !s->tokens) {
		pawl_memory_free(s);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY,
			"no memory for a sequence of %" PRId64 " tokens", capacity);
	}
	s->target = *target;
	s->proposer = *proposer;
	s->n_guess = n_guess;
	s->capacity = capacity;
	*out = s;
	return PAWL_OK;
}

void
pawl_speculative_free(struct pawl_speculative *s)
{
	if (!s)
		return;
	pawl_memory_free(s->tokens);
	pawl_memory_free(s);
}

enum pawl_status
pawl_speculative_begin(
	struct pawl_speculative *s, const uint32_t *tokens, int64_t n, struct pawl_error *err)
{
	int64_t len = s->target.len(s->target.ctx);

	if (n < 0 || n != len)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"%" PRId64 " tokens are said to be in the target, %" PRId64 " are", n, len);
	if (n > s->capacity)
		return pawl_fail(err, PAWL_CAPACITY,
			"a sequence of %" PRId64 " tokens; there is room for %" PRId64, n,
			s->capacity);
	memcpy(s->tokens, tokens, (size_t)n * sizeof(*tokens));
	s->n = n;
	s->first = s->end = 0;
	return PAWL_OK;
}

void
pawl_speculative_settle(struct pawl_speculative *s)
{
	if (s->first < s->end && s->target.len(s->target.ctx) == s->n + s->end - s->first)
		s->target.truncate(s->target.ctx, s->n);
	s->first = s->end = 0;
}

/* How many tokens of the guess the target would take. */
static int64_t
known(const struct pawl_speculative *s, const uint32_t *guess, int64_t n)
{
	int64_t i = 0;

	while (i < n && guess[i] < s->target.n_vocab)
		i++;
	return i;
}

static enum pawl_status
run(struct pawl_speculative *s, uint32_t token, struct pawl_error *err)
{
	void *ctx = s->target.ctx;
	uint32_t run[1 + PAWL_MAX_GUESS];
	int64_t n_guess = 0;
	enum pawl_status status = PAWL_OK;

	s->tokens[s->n] = run[0] = token;
	if (token < s->target.n_vocab && s->target.has_room(ctx, 1 + s->n_guess))
		status = s->proposer.propose(
			s->proposer.ctx, s->tokens, s->n + 1, s->n_guess, run + 1, &n_guess, err);
	if (status)
		return status;
	n_guess = known(s, run + 1, n_guess);
	status = s->target.extend(
		ctx, run, 1 + n_guess, n_guess ? 1 + s->n_guess : 1, &s->logits, err);
	if (status)
		return status;
	memcpy(s->guess, run + 1, (size_t)n_guess * sizeof(*run));
	s->end = n_guess;
	s->n++;
	s->stats.proposed += (uint64_t)n_guess;
	s->stats.runs++;
	return PAWL_OK;
}

enum pawl_status
pawl_speculative_step(
	struct pawl_speculative *s, uint32_t token, const float **logits, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;

	if (s->target.len(s->target.ctx) != s->n + s->end - s->first)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"the target has %" PRId64 " positions, speculation left it with %" PRId64,
			s->target.len(s->target.ctx), s->n + s->end - s->first);
	if (s->n == s->capacity)
		return pawl_fail(err, PAWL_CAPACITY,
			"a sequence has its %" PRId64 " tokens; one more does not fit", s->n);
	if (s->first < s->end && s->guess[s->first] == token) {
		s->tokens[s->n++] = token;
		s->first++;
		s->stats.accepted++;
	} else {
		pawl_speculative_settle(s);
		status = run(s, token, err);
	}
	if (!status)
		*logits = s->logits + s->first * s->target.n_vocab;
	return status;
}

struct pawl_speculative_stats
pawl_speculative_stats(const struct pawl_speculative *s)
{
	return s->stats;
}

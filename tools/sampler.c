#include "tools/sampler.h"

#include "ir/eval.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

struct candidate {
	float logit;
	uint32_t id;
};

struct pawl_sampler {
	struct pawl_sampler_options options;
	uint64_t state;
	int64_t n_vocab;
	struct candidate *heap; /* n_vocab: a heap in front, the best in order behind it */
};

static bool
is_probability(double x)
{
	return x >= 0 && x <= 1;
}

enum pawl_status
pawl_sampler_new(const struct pawl_sampler_options *options, int64_t n_vocab,
	struct pawl_sampler **out, struct pawl_error *err)
{
	struct pawl_sampler *sampler;

	if (isnan(options->temp))
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "the temperature is not a number");
	if (!is_probability(options->top_p) || !is_probability(options->min_p))
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "%s is not in 0 .. 1",
			is_probability(options->top_p) ? "min-p" : "top-p");
	sampler = calloc(1, sizeof(*sampler));
	if (sampler)
		sampler->heap = calloc((size_t)n_vocab + 1, sizeof(*sampler->heap));
	if (!sampler || !sampler->heap) {
		pawl_sampler_free(sampler);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY,
			"no memory to sample from %" PRId64 " tokens", n_vocab);
	}
	sampler->options = *options;
	sampler->state = options->seed;
	sampler->n_vocab = n_vocab;
	*out = sampler;
	return PAWL_OK;
}

void
pawl_sampler_free(struct pawl_sampler *sampler)
{
	if (!sampler)
		return;
	free(sampler->heap);
	free(sampler);
}

/* splitmix64, as a fraction of 1. */
static double
draw(struct pawl_sampler *sampler)
{
	uint64_t z = sampler->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static bool
is_better(struct candidate a, struct candidate b)
{
	return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

static void
sift_down(struct candidate *heap, int64_t n, int64_t i)
{
	for (;;) {
		int64_t child = 2 * i + 1;
		struct candidate moved = heap[i];

		if (child + 1 < n && is_better(heap[child + 1], heap[child]))
			child++;
		if (child >= n || !is_better(heap[child], moved))
			return;
		heap[i] = heap[child];
		heap[child] = moved;
		i = child;
	}
}

static double
weight(float logit, float max, double temp)
{
	return (double)pawl_eval_exp((float)(((double)logit - (double)max) / temp));
}

/* The best of the heap's n candidates goes to its end. */
static void
pop_best(struct candidate *heap, int64_t n)
{
	struct candidate best = heap[0];

	heap[0] = heap[n - 1];
	heap[n - 1] = best;
	sift_down(heap, n - 1, 0);
}

/* Moves the candidates that the options keep behind the others, the best last; how many there are.
 */
static int64_t
keep_best(struct pawl_sampler *sampler, float max)
{
	const struct pawl_sampler_options *o = &sampler->options;
	struct candidate *heap = sampler->heap;
	int64_t n = sampler->n_vocab, kept = 0;
	bool all = !o->top_k || o->top_k >= n;
	int64_t most = all ? n : o->top_k;
	double total = 0, sum = 0, p;

	if (all && o->top_p >= 1 && o->min_p <= 0)
		return n;
	for (int64_t i = n / 2 - 1; i >= 0; i--)
		sift_down(heap, n, i);
	for (int64_t i = 0; i < most && !all; i++)
		pop_best(heap, n - i);
	for (int64_t i = n - most; i < n; i++)
		total += weight(heap[i].logit, max, 1);
	for (; kept < most; kept++) {
		if (all)
			pop_best(heap, n - kept);
		p = weight(heap[n - 1 - kept].logit, max, 1);
		if (kept && (p < o->min_p || sum >= o->top_p * total))
			break;
		sum += p;
	}
	return kept;
}

enum pawl_status
pawl_sampler_pick(
	struct pawl_sampler *sampler, const float *logits, uint32_t *token, struct pawl_error *err)
{
	struct candidate *heap = sampler->heap;
	int64_t n = sampler->n_vocab, kept, best = 0;
	double sum = 0, left;

	for (int64_t i = 0; i < n; i++) {
		if (!isfinite(logits[i]))
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"the logit of token %" PRId64 " is %s", i,
				isnan(logits[i]) ? "not a number" : "infinite");
		if (logits[i] > logits[best])
			best = i;
		heap[i] = (struct candidate){logits[i], (uint32_t)i};
	}
	*token = (uint32_t)best;
	if (!(sampler->options.temp > 0))
		return PAWL_OK;
	kept = keep_best(sampler, logits[best]);
	for (int64_t i = n - kept; i < n; i++)
		sum += weight(heap[i].logit, logits[best], sampler->options.temp);
	left = draw(sampler) * sum;
	for (int64_t i = n; i-- > n - kept;) {
		left -= weight(heap[i].logit, logits[best], sampler->options.temp);
		*token = heap[i].id;
		if (left < 0)
			break;
	}
	return PAWL_OK;
}

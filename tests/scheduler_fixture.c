#include "tests/scheduler_fixture.h"

#include "tests/decoding.h"

#include <stdlib.h>
#include <string.h>

enum { ROW_BYTES = PAWL_SCHED_VOCAB * sizeof(float) };

struct pawl_sched_test pawl_sched_test;

static struct pawl_sched_test *const t = &pawl_sched_test;

static const struct {
	unsigned seed;
	int64_t n_prompt, n_new;
} requests[] = {
	{0, 5, 12},
	{1, 17, 7},
	{2, 16, 20},
	{3, 1, 30},
	{4, 40, 15},
	{5, 15, 3},
	{6, 2, 40},
	{0, 63, 2},
	{1, 64, 1},
	{4, 34, 20},
};

void
pawl_sched_must(enum pawl_status status)
{
	ck_assert_msg(status == PAWL_OK, "%s", t->err.text);
}

uint32_t
pawl_sched_largest(const float *logits)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < PAWL_SCHED_VOCAB; i++)
		if (logits[i] > logits[best])
			best = i;
	return best;
}

/* Computes a request alone in a contiguous cache. */
static void
compute_alone(struct pawl_sched_wanted *w)
{
	struct pawl_decoder_options contiguous = pawl_test_decoder_options();
	struct pawl_decoder *alone;
	const float *logits;

	contiguous.capacity = 64;
	alone = pawl_test_decoder(t->model, &contiguous);
	for (int64_t i = 0; i < w->n_prompt; i++)
		w->tokens[i] = pawl_test_token(w->seed, i);
	pawl_sched_must(pawl_decoder_prefill(alone, w->tokens, w->n_prompt, &logits, &t->err));
	for (int64_t i = 0; i < w->n_new; i++) {
		uint32_t token = pawl_sched_largest(logits);

		w->logits[i] = pawl_test_keep(alone, logits);
		w->tokens[w->n_prompt + i] = token;
		if (i + 1 < w->n_new)
			pawl_sched_must(pawl_decoder_step(alone, token, &logits, &t->err));
	}
	pawl_decoder_free(alone);
}

static struct pawl_sched_tracked *
find(uint64_t id)
{
	for (int i = 0; i < t->n_tracked; i++)
		if (t->tracked[i].id == id)
			return &t->tracked[i];
	return NULL;
}

static void
check_event(void *arg, const struct pawl_request_event *event)
{
	struct pawl_sched_tracked *one = find(event->id);
	const struct pawl_sched_wanted *w;

	(void)arg;
	t->n_events[event->kind]++;
	if (event->kind != PAWL_REQUEST_TOKEN)
		return;
	ck_assert_ptr_nonnull(one);
	w = one->wanted;
	ck_assert_int_lt(one->n_seen, w->n_new);
	ck_assert_msg(!memcmp(event->logits, w->logits[one->n_seen], ROW_BYTES),
		"logits of token %d of sequence %u are not those of it alone", (int)one->n_seen,
		w->seed);
	ck_assert_uint_eq(event->token, w->tokens[w->n_prompt + one->n_seen]);
	one->n_seen++;
}

void
pawl_sched_make(void)
{
	pawl_sched_must(pawl_paged_decoder_new(pawl_tiny_model_source(t->model), pawl_test_device(),
		&t->paged, &t->decoder, &t->err));
	pawl_sched_must(pawl_scheduler_new(t->decoder, &t->options, &t->scheduler, &t->err));
}

void
pawl_sched_begin_all(void)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();

	t->model = pawl_tiny_model_new(&tiny);
	for (int i = 0; i < PAWL_SCHED_WANTED; i++) {
		t->wanted[i] = (struct pawl_sched_wanted){.seed = requests[i].seed,
			.n_prompt = requests[i].n_prompt,
			.n_new = requests[i].n_new};
		compute_alone(&t->wanted[i]);
	}
}

void
pawl_sched_end_all(void)
{
	pawl_tiny_model_free(t->model);
	for (int i = 0; i < PAWL_SCHED_WANTED; i++)
		for (int64_t j = 0; j < t->wanted[i].n_new; j++)
			free(t->wanted[i].logits[j]);
}

void
pawl_sched_begin(void)
{
	t->paged = (struct pawl_paged_options){.n_blocks = 12,
		.block_size = 16,
		.max_blocks = 4,
		.kv_dtype = PAWL_DTYPE_F16,
		.n_threads = 1,
		.prefill_chunk = 8};
	t->options = (struct pawl_scheduler_options){
		.max_batch = 8, .admission = PAWL_ADMIT_OPTIMISTIC, .event = check_event};
	t->scheduler = NULL;
	t->decoder = NULL;
	t->n_tracked = 0;
	memset(t->n_events, 0, sizeof(t->n_events));
}

void
pawl_sched_end(void)
{
	pawl_scheduler_free(t->scheduler);
	if (t->decoder) {
		ck_assert_int_eq(
			pawl_kv_block_pool_free_blocks(pawl_paged_decoder_pool(t->decoder)),
			t->paged.n_blocks);
		ck_assert_int_eq(pawl_paged_decoder_evicted_bytes(t->decoder), 0);
	}
	pawl_paged_decoder_free(t->decoder);
}

int64_t
pawl_sched_free_blocks(void)
{
	return pawl_kv_block_pool_free_blocks(pawl_paged_decoder_pool(t->decoder));
}

struct pawl_request_options
pawl_sched_request(const struct pawl_sched_wanted *w)
{
	return (struct pawl_request_options){.prompt = w->tokens,
		.n_prompt = w->n_prompt,
		.max_new = w->n_new,
		.priority = PAWL_PRIORITY_NORMAL};
}

uint64_t
pawl_sched_submit_as(int i, const struct pawl_request_options *request)
{
	uint64_t id;

	pawl_sched_must(pawl_scheduler_submit(t->scheduler, request, &id, &t->err));
	ck_assert_int_lt(t->n_tracked, PAWL_SCHED_TRACKED);
	t->tracked[t->n_tracked++] = (struct pawl_sched_tracked){id, &t->wanted[i], 0};
	return id;
}

uint64_t
pawl_sched_submit_with(int i, enum pawl_priority priority)
{
	struct pawl_request_options request = pawl_sched_request(&t->wanted[i]);

	request.priority = priority;
	return pawl_sched_submit_as(i, &request);
}

uint64_t
pawl_sched_submit(int i)
{
	return pawl_sched_submit_with(i, PAWL_PRIORITY_NORMAL);
}

void
pawl_sched_step(void)
{
	pawl_sched_must(pawl_scheduler_step(t->scheduler, &t->err));
}

struct pawl_request_info
pawl_sched_info(uint64_t id)
{
	struct pawl_request_info info;

	pawl_sched_must(pawl_scheduler_info(t->scheduler, id, &info, &t->err));
	return info;
}

void
pawl_sched_check_complete(uint64_t id)
{
	struct pawl_request_info info = pawl_sched_info(id);
	const struct pawl_sched_tracked *one = find(id);
	const struct pawl_sched_wanted *w = one->wanted;

	ck_assert_msg(info.finish == PAWL_FINISH_LENGTH, "ended by %s: %s",
		pawl_finish_name(info.finish), info.error ? info.error->text : "");
	ck_assert_int_eq(info.n_new, w->n_new);
	ck_assert(!memcmp(
		info.tokens, w->tokens + w->n_prompt, (size_t)w->n_new * sizeof(*info.tokens)));
	ck_assert_int_eq(one->n_seen, w->n_new);
}

void
pawl_sched_complete_all(void)
{
	pawl_sched_must(pawl_scheduler_run_to_completion(t->scheduler, &t->err));
	for (int i = 0; i < t->n_tracked; i++)
		pawl_sched_check_complete(t->tracked[i].id);
}

struct pawl_scheduler_stats
pawl_sched_stats(void)
{
	struct pawl_scheduler_stats stats;

	pawl_scheduler_stats(t->scheduler, &stats);
	return stats;
}

void
pawl_sched_check_all_returns(void)
{
	uint64_t id;

	while ((id = pawl_scheduler_finished(t->scheduler)))
		pawl_sched_must(pawl_scheduler_reap(t->scheduler, id, &t->err));
	pawl_scheduler_release_prefixes(t->scheduler);
	ck_assert_int_eq(pawl_sched_free_blocks(), t->paged.n_blocks);
	ck_assert_int_eq(pawl_paged_decoder_evicted_bytes(t->decoder), 0);
	ck_assert_int_eq(pawl_sched_stats().n_prefixes, 0);
}

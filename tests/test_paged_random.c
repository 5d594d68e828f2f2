/*
 * Random operations on sequences over a pool, bytes and all, while allocations fail: what fails
 * changes nothing, logits are those of the sequence alone, and all blocks come back.
 * PAWL_TEST_OPERATIONS of them for each seed, or some for make check.
 */
#include "runtime/paged_decoder.h"

#include "ir/random_parts.h"
#include "runtime/memory.h"
#include "tests/decoding.h"
#include "tests/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_SEEDS = 3, N_OPERATIONS = 1500, MOST = 10, LONGEST = 64, N_VOCAB = 40 };

/* A sequence and what a plain model of it knows. */
struct sequence {
	bool is_open, is_evicted;
	struct pawl_kv_session_id session;
	struct pawl_kv_handle_id handle;
	uint32_t tokens[LONGEST];
	int64_t n;
};

static struct pawl_tiny_model *model;
static struct pawl_paged_decoder *decoder;
static struct pawl_kv_block_pool *pool;
static struct pawl_decoder *alone;
static struct sequence sequences[MOST];
static struct pawl_error err;
static uint64_t state;
static int n_done, n_starved, n_full, n_checked;

static int
below(int n)
{
	return (int)(pawl_random_next(&state) % (uint64_t)n);
}

static void
starve_at_times(void)
{
	if (!below(4))
		pawl_memory_fail_after(below(6));
}

/* What was called with the pool at `digest`; copies: a shared tail may have been copied. */
static bool
succeeded(enum pawl_status status, uint64_t digest, bool copies)
{
	pawl_memory_fail_after(-1);
	if (!status) {
		n_done++;
		return true;
	}
	ck_assert_msg(status == PAWL_OUT_OF_MEMORY || status == PAWL_CAPACITY, "%s", err.text);
	n_starved += status == PAWL_OUT_OF_MEMORY;
	n_full += status == PAWL_CAPACITY;
	if (!copies)
		ck_assert_uint_eq(pawl_kv_block_pool_digest(pool), digest);
	return false;
}

static void
check_logits(const struct sequence *s, const float *logits)
{
	const float *want;

	if (below(40))
		return;
	pawl_decoder_truncate(alone, 0);
	ck_assert_int_eq(pawl_decoder_prefill(alone, s->tokens, s->n, &want, &err), PAWL_OK);
	ck_assert_msg(!memcmp(logits, want, N_VOCAB * sizeof(float)),
		"%d tokens give %.9g, alone %.9g", (int)s->n, logits[0], want[0]);
	n_checked++;
}

static void
open_one(struct sequence *s)
{
	uint64_t digest = pawl_kv_block_pool_digest(pool);

	starve_at_times();
	if (succeeded(pawl_paged_decoder_open(decoder, &s->session, &err), digest, false)) {
		s->is_open = true;
		s->is_evicted = false;
		s->n = 0;
	}
}

static void
fork_one(const struct sequence *s)
{
	uint64_t digest = pawl_kv_block_pool_digest(pool);
	struct pawl_kv_session_id session;

	for (int i = 0; i < MOST; i++) {
		struct sequence *fork = &sequences[i];

		if (fork->is_open)
			continue;
		starve_at_times();
		if (succeeded(pawl_kv_block_pool_fork(pool, s->session, &session, &err), digest,
			    false)) {
			*fork = *s;
			fork->session = session;
		}
		return;
	}
}

static void
append_some(struct sequence *s)
{
	bool copies = pawl_kv_block_pool_tail_is_shared(pool, s->session), is_guess = below(2);
	uint64_t digest = pawl_kv_block_pool_digest(pool);
	int64_t n = 1 + below(is_guess ? PAWL_MAX_BATCH : 20);
	enum pawl_status status;
	const float *logits;

	if (n > LONGEST - s->n)
		return;
	for (int64_t i = 0; i < n; i++)
		s->tokens[s->n + i] = (uint32_t)below(N_VOCAB);
	starve_at_times();
	status = is_guess ? pawl_paged_decoder_extend(
				    decoder, s->session, s->tokens + s->n, n, &logits, &err)
			  : pawl_paged_decoder_prefill(
				    decoder, s->session, s->tokens + s->n, n, &logits, &err);
	if (!succeeded(status, digest, copies))
		return;
	s->n += n;
	check_logits(s, is_guess ? logits + (n - 1) * N_VOCAB : logits);
}

static void
step_some(void)
{
	struct sequence *chosen[PAWL_MAX_BATCH];
	struct pawl_paged_row rows[PAWL_MAX_BATCH];
	uint64_t digest = pawl_kv_block_pool_digest(pool);
	bool copies = false;
	const float *logits;
	int n = 0;

	for (int i = 0; i < MOST && n < PAWL_MAX_BATCH; i++) {
		struct sequence *s = &sequences[i];

		if (!s->is_open || s->is_evicted || s->n == LONGEST || below(2))
			continue;
		s->tokens[s->n] = (uint32_t)below(N_VOCAB);
		rows[n] = (struct pawl_paged_row){s->session, s->tokens[s->n]};
		copies |= pawl_kv_block_pool_tail_is_shared(pool, s->session);
		chosen[n++] = s;
	}
	if (!n)
		return;
	starve_at_times();
	if (!succeeded(pawl_paged_decoder_step(decoder, rows, n, &logits, &err), digest, copies))
		return;
	for (int i = 0; i < n; i++) {
		chosen[i]->n++;
		check_logits(chosen[i], logits + i * N_VOCAB);
	}
}

static void
evict_or_restore(struct sequence *s)
{
	uint64_t digest = pawl_kv_block_pool_digest(pool);
	struct pawl_kv_evict_report report;

	starve_at_times();
	if (s->is_evicted) {
		if (succeeded(pawl_paged_decoder_restore(decoder, s->handle, &err), digest, false))
			s->is_evicted = false;
	} else if (succeeded(pawl_paged_decoder_evict(decoder, s->session, &report, &err), digest,
			   false)) {
		s->handle = report.handle;
		s->is_evicted = true;
	}
}

static void
cut(struct sequence *s)
{
	int64_t n = below((int)s->n + 1);

	ck_assert_int_eq(pawl_kv_block_pool_truncate(pool, s->session, n, &err), PAWL_OK);
	s->n = n;
	n_done++;
}

static void
close_one(struct sequence *s)
{
	ck_assert_int_eq(pawl_paged_decoder_close(decoder, s->session, &err), PAWL_OK);
	s->is_open = false;
	n_done++;
}

static void
operate(void)
{
	struct sequence *s = &sequences[below(MOST)];
	int what = below(20);

	if (!s->is_open)
		open_one(s);
	else if (what == 0)
		close_one(s);
	else if (what <= 3)
		evict_or_restore(s);
	else if (s->is_evicted)
		step_some();
	else if (what <= 5)
		fork_one(s);
	else if (what <= 7)
		cut(s);
	else if (what <= 12)
		append_some(s);
	else
		step_some();
}

START_TEST(operations_in_any_order)
{
	const struct pawl_paged_options options = {.n_blocks = 14,
		.block_size = 16,
		.max_blocks = LONGEST / 16,
		.kv_dtype = PAWL_DTYPE_F16,
		.n_threads = 1,
		.prefill_chunk = 8};
	struct pawl_decoder_options contiguous = pawl_test_decoder_options();
	const char *asked = getenv("PAWL_TEST_OPERATIONS");
	int64_t n = asked ? strtoll(asked, NULL, 10) : N_OPERATIONS;
	struct pawl_tiny_options tiny = pawl_tiny_defaults();

	tiny.n_layers = 1;
	model = pawl_tiny_model_new(&tiny);
	state = (uint64_t)_i;
	alone = pawl_test_decoder(model, &contiguous);
	ck_assert_int_eq(pawl_paged_decoder_new(pawl_tiny_model_source(model), pawl_test_device(),
				 &options, &decoder, &err),
		PAWL_OK);
	pool = pawl_paged_decoder_pool(decoder);
	while (n--)
		operate();
	for (int i = 0; i < MOST; i++)
		if (sequences[i].is_open)
			close_one(&sequences[i]);
	ck_assert_int_eq(pawl_kv_block_pool_free_blocks(pool), options.n_blocks);
	ck_assert_int_eq(pawl_paged_decoder_evicted_bytes(decoder), 0);
	if (asked)
		printf("%d done, %d without memory, %d without blocks, %d logits checked\n", n_done,
			n_starved, n_full, n_checked);
	/* Everything was met. */
	ck_assert_int_gt(n_starved, 20);
	ck_assert_int_gt(n_full, 20);
	ck_assert_int_gt(n_checked, 20);
	pawl_paged_decoder_free(decoder);
	pawl_decoder_free(alone);
	pawl_tiny_model_free(model);
}
END_TEST

Suite *
pawl_paged_random_suite(void)
{
	Suite *suite = suite_create("paged_random");
	TCase *tcase = tcase_create("paged_random");

	tcase_set_timeout(tcase, getenv("PAWL_TEST_OPERATIONS") ? 3600 : 120);
	tcase_add_loop_test(tcase, operations_in_any_order, 0, N_SEEDS);
	suite_add_tcase(suite, tcase);
	return suite;
}

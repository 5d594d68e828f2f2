/*
 * Random operations on sequences over a pool, bytes and all, while allocations and runs fail: what
 * fails changes nothing (tests/paged_state.h), logits are those of the sequence alone, and all
 * blocks come back.  The cache is NaN at first.  PAWL_TEST_OPERATIONS of them for each seed, or some
 * for make check.
 */
#include "runtime/paged_decoder.h"

#include "ir/random_parts.h"
#include "runtime/memory.h"
#include "tests/decoding.h"
#include "tests/failing_device.h"
#include "tests/paged_state.h"
#include "tests/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_SEEDS = 3, N_OPERATIONS = 2000, MOST = 10, LONGEST = 64, N_VOCAB = 40, BLOCK = 16 };

/* A sequence and what a plain model of it knows. */
struct sequence {
	bool is_open, is_evicted;
	struct pawl_kv_session_id session;
	struct pawl_kv_handle_id handle;
	uint32_t tokens[LONGEST];
	int64_t n;
};

/* What was met, for the test to have met everything. */
enum met { DONE, STARVED, BROKEN, FULL, REFUSED, CHECKED, SPLICED, CANCELLED, N_MET };

static const struct pawl_paged_options options = {.n_blocks = 14,
	.block_size = BLOCK,
	.max_blocks = LONGEST / BLOCK,
	.kv_dtype = PAWL_DTYPE_F16,
	.n_threads = 1,
	.prefill_chunk = 8};
static struct pawl_tiny_model *model;
static struct pawl_device *device;
static struct pawl_paged_decoder *decoder;
static struct pawl_kv_block_pool *pool;
static struct pawl_decoder *alone;
static struct sequence sequences[MOST];
static struct pawl_error err;
static uint64_t state, before;
static int n_met[N_MET];

static int
below(int n)
{
	return (int)(pawl_random_next(&state) % (uint64_t)n);
}

/* A call follows. */
static void
prepare(void)
{
	before = pawl_test_paged_state(decoder);
	if (!below(4))
		pawl_memory_fail_after(below(3));
	else if (!below(8))
		pawl_test_runs_left = below(3);
}

static void
stop_failing(void)
{
	pawl_memory_fail_after(-1);
	pawl_test_runs_left = -1;
}

static bool
succeeded(enum pawl_status status)
{
	stop_failing();
	if (!status) {
		n_met[DONE]++;
		return true;
	}
	ck_assert_msg(pawl_test_paged_state(decoder) == before, "failed and changed something: %s",
		err.text);
	n_met[STARVED] += status == PAWL_OUT_OF_MEMORY;
	n_met[BROKEN] += status == PAWL_ENVIRONMENT;
	n_met[FULL] += status == PAWL_CAPACITY;
	n_met[REFUSED] += status == PAWL_INVALID_ARGUMENT;
	return false;
}

/* Of a call that can only fail for want of memory or blocks, or in a run. */
static bool
went_well(enum pawl_status status)
{
	ck_assert_msg(status != PAWL_INVALID_ARGUMENT, "%s", err.text);
	return succeeded(status);
}

static void
refused(enum pawl_status status)
{
	ck_assert_int_ne(status, PAWL_OK);
	succeeded(status);
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
	n_met[CHECKED]++;
}

/* At times with a list that grows as it must. */
static bool
open_one(struct sequence *s)
{
	prepare();
	if (!went_well(below(3) ? pawl_paged_decoder_open(decoder, &s->session, &err)
			       : pawl_kv_block_pool_open(pool, 0, &s->session, &err)))
		return false;
	s->is_open = true;
	s->is_evicted = false;
	s->n = 0;
	return true;
}

static void
close_one(struct sequence *s)
{
	ck_assert_int_eq(pawl_paged_decoder_close(decoder, s->session, &err), PAWL_OK);
	s->is_open = false;
	n_met[DONE]++;
}

static struct sequence *
closed_one(void)
{
	for (int i = 0; i < MOST; i++)
		if (!sequences[i].is_open)
			return &sequences[i];
	return NULL;
}

static void
fork_one(const struct sequence *s)
{
	struct sequence *fork = closed_one();
	struct pawl_kv_session_id session;

	if (!fork)
		return;
	prepare();
	if (!went_well(pawl_kv_block_pool_fork(pool, s->session, &session, &err)))
		return;
	*fork = *s;
	fork->session = session;
}

/*
 * A new sequence goes on from the blocks of another: its first ones, all of them full, then those
 * behind them up to a tail that may not be.
 */
static void
splice_one(struct sequence *dst, const struct sequence *src)
{
	int64_t n_slots = (src->n + BLOCK - 1) / BLOCK, n = below((int)n_slots + 1);
	int64_t to = n + 1 + below((int)(n_slots - n) + 1);

	if (!src->is_open || !open_one(dst))
		return;
	memcpy(dst->tokens, src->tokens, sizeof(dst->tokens));
	prepare();
	if (n && succeeded(pawl_kv_block_pool_splice_prefix(
			 pool, src->session, n, dst->session, &err)))
		dst->n = n * BLOCK;
	stop_failing();
	ck_assert(!dst->n || n * BLOCK <= src->n);
	prepare();
	if (succeeded(pawl_kv_block_pool_splice(pool, src->session, n, to, dst->session, &err))) {
		ck_assert(dst->n == n * BLOCK && to <= n_slots);
		dst->n = to == n_slots ? src->n : to * BLOCK;
	}
	n_met[SPLICED] += dst->n > 0;
}

static int64_t
draw_tokens(struct sequence *s, int most)
{
	int64_t n = 1 + below(most);

	if (n > LONGEST - s->n)
		return 0;
	for (int64_t i = 0; i < n; i++)
		s->tokens[s->n + i] = (uint32_t)below(N_VOCAB);
	return n;
}

static void
append_some(struct sequence *s)
{
	bool is_guess = below(2);
	int64_t n = draw_tokens(s, is_guess ? PAWL_MAX_BATCH : 20);
	const uint32_t *tokens = s->tokens + s->n;
	const float *logits;

	if (!n)
		return;
	prepare();
	if (!went_well(is_guess ? pawl_paged_decoder_extend(
					 decoder, s->session, tokens, n, &logits, &err)
			       : pawl_paged_decoder_prefill(
					 decoder, s->session, tokens, n, &logits, &err)))
		return;
	s->n += n;
	check_logits(s, is_guess ? logits + (n - 1) * N_VOCAB : logits);
}

/* A piece of a prompt. */
static void
feed_some(struct sequence *s)
{
	int64_t n = draw_tokens(s, 20), taken;

	if (!n)
		return;
	prepare();
	if (went_well(pawl_paged_decoder_feed(
		    decoder, s->session, s->tokens + s->n, n, &taken, &err)))
		s->n += taken;
}

static void
step_some(void)
{
	struct sequence *chosen[PAWL_MAX_BATCH];
	struct pawl_paged_row rows[PAWL_MAX_BATCH];
	const float *logits;
	int n = 0;

	for (int i = 0; i < MOST && n < PAWL_MAX_BATCH; i++) {
		struct sequence *s = &sequences[i];

		if (!s->is_open || s->is_evicted || s->n == LONGEST || below(2))
			continue;
		s->tokens[s->n] = (uint32_t)below(N_VOCAB);
		rows[n] = (struct pawl_paged_row){s->session, s->tokens[s->n]};
		chosen[n++] = s;
	}
	if (!n)
		return;
	prepare();
	if (!went_well(pawl_paged_decoder_step(decoder, rows, n, &logits, &err)))
		return;
	for (int i = 0; i < n; i++) {
		chosen[i]->n++;
		check_logits(chosen[i], logits + i * N_VOCAB);
	}
}

static void
evict_or_restore(struct sequence *s)
{
	struct pawl_kv_evict_report report;

	prepare();
	if (s->is_evicted) {
		if (went_well(pawl_paged_decoder_restore(decoder, s->handle, &err)))
			s->is_evicted = false;
	} else if (went_well(pawl_paged_decoder_evict(decoder, s->session, &report, &err))) {
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
	n_met[DONE]++;
}

/* Between the phases of what takes two; what is aborted instead was never begun. */
static void
begin_phase(struct sequence *s, bool is_aborted)
{
	struct pawl_kv_copy_id copy = {0};

	prepare();
	if (s->is_evicted) {
		if (went_well(pawl_kv_block_pool_restore_reserve(pool, s->handle, &err)) &&
			is_aborted)
			ck_assert(!pawl_kv_block_pool_restore_abort(pool, s->handle, &err));
	} else if (s->n) {
		if (went_well(pawl_kv_block_pool_cow_reserve(
			    pool, s->session, (s->n - 1) / BLOCK, &copy, &err)) &&
			copy.value && is_aborted)
			ck_assert(!pawl_kv_block_pool_copy_abort(pool, copy, &err));
	}
	stop_failing();
	if (is_aborted)
		ck_assert_uint_eq(pawl_test_paged_state(decoder), before);
}

/* In the midst of a prompt, of restoring or of a copy, or after a prompt that failed. */
static void
cancel(struct sequence *s)
{
	if (below(2))
		begin_phase(s, false);
	else if (!s->is_evicted && below(2))
		feed_some(s);
	else if (!s->is_evicted)
		append_some(s);
	close_one(s);
	n_met[CANCELLED]++;
}

static bool
is_away(const struct sequence *s)
{
	int32_t block = 0;

	for (int64_t i = 0; i * BLOCK < s->n && block >= 0; i++)
		ck_assert(!pawl_kv_block_pool_slot(pool, s->session, i, &block, &err));
	return block < 0;
}

/* What no host should ask for. */
static void
ask_wrongly(struct sequence *s)
{
	const struct pawl_kv_session_id session = s->session, none = {UINT64_MAX};
	const struct pawl_paged_row rows[] = {{session, 1}, {session, 2}};
	const uint32_t tokens[PAWL_MAX_BATCH + 1] = {1, 2, N_VOCAB};
	int64_t n_slots = (s->n + BLOCK - 1) / BLOCK, taken;
	struct pawl_kv_session_id fork;
	const float *logits;

	prepare();
	switch (below(is_away(s) ? 11 : 9)) {
	case 0:
		refused(pawl_paged_decoder_step(decoder, rows, 2, &logits, &err));
		break;
	case 1:
		refused(pawl_paged_decoder_step(decoder, rows, 0, &logits, &err));
		break;
	case 2:
		refused(pawl_paged_decoder_extend(
			decoder, session, tokens, PAWL_MAX_BATCH + 1, &logits, &err));
		break;
	case 3:
		refused(pawl_paged_decoder_prefill(decoder, session, tokens, 3, &logits, &err));
		break;
	case 4:
		refused(pawl_paged_decoder_feed(decoder, none, tokens, 2, &taken, &err));
		break;
	case 5:
		refused(pawl_kv_block_pool_truncate(pool, session, s->n + 1, &err));
		break;
	case 6:
		refused(pawl_kv_block_pool_splice(
			pool, session, n_slots, n_slots + 1, session, &err));
		break;
	case 7:
		refused(pawl_paged_decoder_restore(decoder,
			s->is_evicted ? (struct pawl_kv_handle_id){0} : s->handle, &err));
		break;
	case 8:
		refused(pawl_paged_decoder_close(decoder, none, &err));
		break;
	case 9:
		refused(pawl_kv_block_pool_fork(pool, session, &fork, &err));
		break;
	case 10:
		refused(pawl_paged_decoder_extend(decoder, session, tokens, 1, &logits, &err));
		break;
	}
}

static void
operate(void)
{
	struct sequence *s = &sequences[below(MOST)];
	int what = below(24);

	if (!s->is_open && below(2))
		open_one(s);
	else if (!s->is_open)
		splice_one(s, &sequences[below(MOST)]);
	else if (what <= 1)
		close_one(s);
	else if (what == 2)
		cancel(s);
	else if (what <= 5)
		evict_or_restore(s);
	else if (what == 6)
		ask_wrongly(s);
	else if (what == 7)
		begin_phase(s, true);
	else if (s->is_evicted)
		step_some();
	else if (what == 8)
		fork_one(s);
	else if (what <= 10)
		cut(s);
	else if (what == 11)
		feed_some(s);
	else if (what <= 16)
		append_some(s);
	else
		step_some();
}

static void
check_lengths(void)
{
	int64_t n_owned = 0;

	for (const struct sequence *s = sequences; s < sequences + MOST; s++)
		if (s->is_open)
			ck_assert_int_eq(pawl_kv_block_pool_session_len(pool, s->session), s->n);
	for (int64_t i = 0; i < options.n_blocks; i++)
		n_owned += pawl_kv_block_pool_owners(pool, i) > 0;
	ck_assert_int_eq(pawl_kv_block_pool_free_blocks(pool), options.n_blocks - n_owned);
}

static void
make_decoders(void)
{
	struct pawl_decoder_options contiguous = pawl_test_decoder_options();
	struct pawl_tiny_options tiny = pawl_tiny_defaults();

	tiny.n_layers = 1;
	model = pawl_tiny_model_new(&tiny);
	alone = pawl_test_decoder(model, &contiguous);
	device = pawl_test_failing_device();
	ck_assert_int_eq(pawl_paged_decoder_new(pawl_tiny_model_source(model), device, &options,
				 &decoder, &err),
		PAWL_OK);
	pool = pawl_paged_decoder_pool(decoder);
	for (int slot = 0; slot < PAWL_N_KV_SLOTS; slot++) {
		const struct pawl_kv_layer_id id = {0, (enum pawl_kv_slot)slot};
		struct pawl_storage *storage =
			pawl_kv_cache_storage(pawl_paged_decoder_cache(decoder), id);

		memset(storage->bytes, 0xff, (size_t)storage->n_bytes);
	}
}

START_TEST(operations_in_any_order)
{
	const char *asked = getenv("PAWL_TEST_OPERATIONS");
	int64_t n = asked ? strtoll(asked, NULL, 10) : N_OPERATIONS;

	make_decoders();
	state = (uint64_t)_i;
	while (n--) {
		operate();
		check_lengths();
	}
	for (int i = 0; i < MOST; i++)
		if (sequences[i].is_open)
			close_one(&sequences[i]);
	ck_assert_int_eq(pawl_kv_block_pool_free_blocks(pool), options.n_blocks);
	ck_assert_int_eq(pawl_paged_decoder_evicted_bytes(decoder), 0);
	if (asked)
		printf("%d done, %d without memory, %d runs failed, %d without blocks, %d refused, "
		       "%d logits checked, %d spliced, %d cancelled\n",
			n_met[DONE], n_met[STARVED], n_met[BROKEN], n_met[FULL], n_met[REFUSED],
			n_met[CHECKED], n_met[SPLICED], n_met[CANCELLED]);
	for (int i = 0; i < N_MET; i++)
		ck_assert_int_ge(n_met[i], 10);
	pawl_paged_decoder_free(decoder);
	pawl_device_unref(device);
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

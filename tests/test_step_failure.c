/*
 * Steps that fail in the middle, on a device or for want of memory, and steps that must not add to
 * what the process has.
 */
#include "runtime/paged_decoder.h"

#include "runtime/memory.h"
#include "tests/failing_device.h"
#include "tests/model_fixture.h"
#include "tests/paged_state.h"
#include "tests/suites.h"

#include <stdlib.h>
#include <string.h>

enum { N_VOCAB = 40, ROW_BYTES = N_VOCAB * sizeof(float), PROMPT = 21 };

static struct pawl_paged_options paged;
static uint32_t prompt[64];
static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static void
begin(void)
{
	begin_model();
	paged = (struct pawl_paged_options){.n_blocks = 12,
		.block_size = 16,
		.max_blocks = 4,
		.kv_dtype = PAWL_DTYPE_F16,
		.n_threads = 1,
		.prefill_chunk = 8};
	for (int i = 0; i < 64; i++)
		prompt[i] = pawl_test_token(1, i);
}

static void
check_logits(const float *logits, int64_t n)
{
	float *want = pawl_test_fresh(model, &options, 1, n);

	ck_assert_mem_eq(logits, want, ROW_BYTES);
	free(want);
}

static struct pawl_paged_decoder *
paged_on(struct pawl_device *device)
{
	struct pawl_paged_decoder *made;

	OK(pawl_paged_decoder_new(pawl_tiny_model_source(model), device, &paged, &made, &err));
	return made;
}

START_TEST(a_failed_run_leaves_the_pool_as_it_was)
{
	struct pawl_paged_decoder *d;
	struct pawl_kv_block_pool *pool;
	struct pawl_kv_session_id a, b;
	struct pawl_paged_row rows[2];
	struct pawl_device *device = pawl_test_failing_device();
	const float *logits = NULL;
	uint64_t digest;

	d = paged_on(device);
	pool = pawl_paged_decoder_pool(d);
	OK(pawl_paged_decoder_open(d, &a, &err));
	OK(pawl_paged_decoder_open(d, &b, &err));
	/* Each chunk of a prompt in turn, the step that opens a block, a batch, an extension. */
	for (int chunk = 0; chunk < 3; chunk++) {
		digest = pawl_kv_block_pool_digest(pool);
		pawl_test_runs_left = chunk;
		ck_assert_int_eq(pawl_paged_decoder_prefill(d, a, prompt, 16, &logits, &err),
			PAWL_ENVIRONMENT);
		ck_assert_uint_eq(pawl_kv_block_pool_digest(pool), digest);
		ck_assert_ptr_null(logits);
	}
	OK(pawl_paged_decoder_prefill(d, a, prompt, 16, &logits, &err));
	OK(pawl_paged_decoder_prefill(d, b, prompt, 3, &logits, &err));
	digest = pawl_kv_block_pool_digest(pool);
	rows[0] = (struct pawl_paged_row){a, prompt[16]};
	rows[1] = (struct pawl_paged_row){b, prompt[3]};
	for (int64_t n = 1; n <= 2; n++) {
		pawl_test_runs_left = 0;
		ck_assert_int_eq(
			pawl_paged_decoder_step(d, rows, n, &logits, &err), PAWL_ENVIRONMENT);
		ck_assert_uint_eq(pawl_kv_block_pool_digest(pool), digest);
	}
	pawl_test_runs_left = 0;
	ck_assert_int_eq(pawl_paged_decoder_extend(d, a, prompt + 16, 4, &logits, &err),
		PAWL_ENVIRONMENT);
	ck_assert_uint_eq(pawl_kv_block_pool_digest(pool), digest);
	OK(pawl_paged_decoder_step(d, rows, 2, &logits, &err));
	check_logits(logits, 17);
	check_logits(logits + N_VOCAB, 4);
	pawl_paged_decoder_free(d);
	pawl_device_unref(device);
}
END_TEST

/* Of sequences that share a tail the one that writes to it must not write what another sees. */
START_TEST(a_failed_batch_gives_shared_tails_back)
{
	static const int64_t lengths[] = {9, 5, 7};
	struct pawl_device *device = pawl_test_failing_device();
	struct pawl_paged_decoder *d = paged_on(device);
	struct pawl_kv_block_pool *pool = pawl_paged_decoder_pool(d);
	struct pawl_kv_session_id all[3];
	struct pawl_paged_row rows[3];
	const float *logits = NULL;
	uint64_t before;

	OK(pawl_paged_decoder_open(d, &all[0], &err));
	OK(pawl_paged_decoder_prefill(d, all[0], prompt, 9, &logits, &err));
	for (int i = 1; i < 3; i++) {
		OK(pawl_kv_block_pool_fork(pool, all[0], &all[i], &err));
		OK(pawl_kv_block_pool_truncate(pool, all[i], lengths[i], &err));
	}
	before = pawl_test_paged_state(d);
	for (int n = 1; n <= 3; n++)
		for (int turn = 0; turn < 3; turn++) {
			for (int i = 0; i < n; i++) {
				int which = (turn + i) % 3;

				rows[i] = (struct pawl_paged_row){
					all[which], (prompt[lengths[which]] + 1) % N_VOCAB};
			}
			pawl_test_runs_left = 0;
			ck_assert_int_eq(pawl_paged_decoder_step(d, rows, n, &logits, &err),
				PAWL_ENVIRONMENT);
			ck_assert_uint_eq(pawl_test_paged_state(d), before);
		}
	for (int i = 0; i < 3; i++)
		rows[i] = (struct pawl_paged_row){all[i], prompt[lengths[i]]};
	OK(pawl_paged_decoder_step(d, rows, 3, &logits, &err));
	for (int i = 0; i < 3; i++)
		check_logits(logits + i * N_VOCAB, lengths[i] + 1);
	pawl_paged_decoder_free(d);
	pawl_device_unref(device);
}
END_TEST

/* Plans, packed weights, sessions: wherever memory ends, nothing was appended. */
START_TEST(a_prompt_without_memory_changes_nothing)
{
	struct pawl_decoder *d = pawl_test_decoder(model, &options);
	uint64_t id = pawl_kv_cache_alloc_id(pawl_decoder_cache(d)).value;
	enum pawl_status status = PAWL_OUT_OF_MEMORY;
	const float *logits = NULL;
	int n;

	for (n = 0; status == PAWL_OUT_OF_MEMORY; n++) {
		ck_assert_int_eq(pawl_decoder_len(d), 0);
		ck_assert_uint_eq(pawl_kv_cache_alloc_id(pawl_decoder_cache(d)).value, id);
		ck_assert_ptr_null(logits);
		pawl_memory_fail_after(n);
		status = pawl_decoder_prefill(d, prompt, PROMPT, &logits, &err);
		pawl_memory_fail_after(-1);
	}
	OK(status);
	ck_assert_int_gt(n, 20);
	check_logits(logits, PROMPT);
	pawl_decoder_free(d);
}
END_TEST

START_TEST(a_prompt_in_pages_without_memory_changes_nothing)
{
	struct pawl_paged_decoder *d = paged_on(pawl_test_device());
	struct pawl_kv_block_pool *pool = pawl_paged_decoder_pool(d);
	enum pawl_status status = PAWL_OUT_OF_MEMORY;
	struct pawl_kv_session_id session;
	const float *logits = NULL;
	uint64_t digest;
	int n;

	OK(pawl_paged_decoder_open(d, &session, &err));
	digest = pawl_kv_block_pool_digest(pool);
	for (n = 0; status == PAWL_OUT_OF_MEMORY; n++) {
		ck_assert_uint_eq(pawl_kv_block_pool_digest(pool), digest);
		ck_assert_ptr_null(logits);
		pawl_memory_fail_after(n);
		status = pawl_paged_decoder_prefill(d, session, prompt, PROMPT, &logits, &err);
		pawl_memory_fail_after(-1);
	}
	OK(status);
	ck_assert_int_gt(n, 20);
	check_logits(logits, PROMPT);
	pawl_paged_decoder_free(d);
}
END_TEST

/* A prompt behind a tail that is shared, with neither of its plans: its run or its memory fails. */
START_TEST(a_prompt_behind_a_shared_tail_changes_nothing)
{
	struct pawl_device *device = pawl_test_failing_device();
	enum pawl_status status = PAWL_INTERNAL;
	int n_late = 0;

	for (int n = 0; status; n++) {
		struct pawl_paged_decoder *d = paged_on(device);
		struct pawl_kv_block_pool *pool = pawl_paged_decoder_pool(d);
		struct pawl_kv_session_id parent, session;
		const float *logits = NULL;
		struct pawl_decoder_stats stats;
		uint64_t before;

		OK(pawl_paged_decoder_open(d, &parent, &err));
		OK(pawl_paged_decoder_extend(d, parent, prompt, 5, &logits, &err));
		OK(pawl_kv_block_pool_fork(pool, parent, &session, &err));
		before = pawl_test_paged_state(d);
		if (_i)
			pawl_test_runs_left = n;
		else
			pawl_memory_fail_after(n);
		status = pawl_paged_decoder_prefill(
			d, session, prompt + 5, PROMPT - 5, &logits, &err);
		pawl_test_runs_left = -1;
		pawl_memory_fail_after(-1);
		pawl_paged_decoder_stats(d, &stats);
		if (status) {
			ck_assert_uint_eq(pawl_test_paged_state(d), before);
			n_late += stats.counters.tokens > 5;
			OK(pawl_paged_decoder_prefill(
				d, session, prompt + 5, PROMPT - 5, &logits, &err));
		} else {
			ck_assert_int_ge(n, _i ? 3 : 20);
		}
		check_logits(logits, PROMPT);
		OK(pawl_paged_decoder_extend(d, parent, prompt + 5, 1, &logits, &err));
		check_logits(logits, 6);
		pawl_paged_decoder_free(d);
	}
	ck_assert_int_ge(n_late, 2);
	pawl_device_unref(device);
}
END_TEST

START_TEST(memory_is_flat_over_48_tokens)
{
	struct pawl_decoder *plain = pawl_test_decoder(model, &options);
	struct pawl_paged_decoder *d = paged_on(pawl_test_device());
	struct pawl_kv_session_id session;
	const float *logits;
	uint64_t n_allocations = 0;
	int64_t n_bytes = 0;

	OK(pawl_paged_decoder_open(d, &session, &err));
	for (int i = 0; i < 50; i++) {
		const struct pawl_paged_row row = {session, prompt[i]};

		if (i == 2) {
			n_allocations = pawl_memory_allocations();
			n_bytes = pawl_memory_block_bytes();
		}
		OK(pawl_decoder_step(plain, prompt[i], &logits, &err));
		OK(pawl_paged_decoder_step(d, &row, 1, &logits, &err));
	}
	ck_assert_int_gt(n_bytes, 0);
	ck_assert_int_eq(pawl_memory_block_bytes(), n_bytes);
	ck_assert_uint_eq(pawl_memory_allocations(), n_allocations);
	check_logits(logits, 50);
	pawl_paged_decoder_free(d);
	pawl_decoder_free(plain);
}
END_TEST

Suite *
pawl_step_failure_suite(void)
{
	Suite *suite = suite_create("step_failure");
	TCase *tcase = tcase_create("step_failure");

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, begin, end_model);
	tcase_add_test(tcase, a_failed_run_leaves_the_pool_as_it_was);
	tcase_add_test(tcase, a_failed_batch_gives_shared_tails_back);
	tcase_add_test(tcase, a_prompt_without_memory_changes_nothing);
	tcase_add_test(tcase, a_prompt_in_pages_without_memory_changes_nothing);
	tcase_add_loop_test(tcase, a_prompt_behind_a_shared_tail_changes_nothing, 0, 2);
	tcase_add_test(tcase, memory_is_flat_over_48_tokens);
	suite_add_tcase(suite, tcase);
	return suite;
}

/*
 * A session over blocks by itself: what makes it stale, what it may be moved to, and that weights
 * belong to the plan, in pages and in order.
 */
#include "runtime/paged_decoder.h"

#include "tests/decoding.h"
#include "tests/suites.h"

#include <stdlib.h>
#include <string.h>

enum { N_VOCAB = 40, ROW_BYTES = N_VOCAB * sizeof(float), LENGTH = 13 };

/* A pool and one sequence of LENGTH tokens in it. */
struct place {
	struct pawl_paged_decoder *decoder;
	struct pawl_kv_session_id sequence;
};

static struct pawl_tiny_model *model;
static struct pawl_paged_options options;
static struct pawl_plan *plan; /* of one row of one sequence */
static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

static void
keep_plan(void *arg, const struct pawl_plan *built)
{
	(void)arg;
	if (!plan && built->key.seq == 1)
		plan = pawl_plan_ref((struct pawl_plan *)(uintptr_t)built);
}

static struct pawl_paged_decoder *
new_decoder(const struct pawl_tiny_model *m)
{
	struct pawl_paged_decoder *made;

	OK(pawl_paged_decoder_new(
		pawl_tiny_model_source(m), pawl_test_device(), &options, &made, &err));
	return made;
}

/* The sequence of that seed, its first block being block `at` of the pool. */
static struct place
new_place(unsigned seed, int at)
{
	struct place place = {new_decoder(model), {0}};
	struct pawl_kv_session_id before;
	uint32_t tokens[LENGTH];

	for (int i = 0; i < LENGTH; i++)
		tokens[i] = pawl_test_token(seed, i);
	for (int i = 0; i < at; i++) {
		OK(pawl_paged_decoder_open(place.decoder, &before, &err));
		OK(pawl_paged_decoder_prefill(place.decoder, before, tokens, 1, NULL, &err));
	}
	OK(pawl_paged_decoder_open(place.decoder, &place.sequence, &err));
	OK(pawl_paged_decoder_prefill(
		place.decoder, place.sequence, tokens, LENGTH, NULL, &err));
	return place;
}

static struct pawl_kv_rebind_source
source_of(const struct place *place)
{
	return pawl_kv_cache_source(pawl_paged_decoder_cache(place->decoder));
}

static struct place first, second;
static struct pawl_decode_session *session;

static void
begin(void)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();

	model = pawl_tiny_model_new(&tiny);
	plan = NULL;
	options = (struct pawl_paged_options){.n_blocks = 6,
		.block_size = 16,
		.max_blocks = 4,
		.kv_dtype = PAWL_DTYPE_F16,
		.n_threads = 1,
		.prefill_chunk = 8,
		.built = keep_plan};
	first = new_place(1, 0);
	second = new_place(2, 2);
	ck_assert_ptr_nonnull(plan);
	OK(pawl_decode_session_new(plan, pawl_tiny_model_source(model)->weights,
		pawl_paged_decoder_cache(first.decoder),
		pawl_inference_context_team(pawl_paged_decoder_context(first.decoder)), &session,
		&err));
}

static void
end(void)
{
	pawl_decode_session_free(session);
	pawl_paged_decoder_free(first.decoder);
	pawl_paged_decoder_free(second.decoder);
	pawl_plan_unref(plan);
	pawl_tiny_model_free(model);
}

static void
count_call(void *arg)
{
	++*(int *)arg;
}

static struct pawl_disposition
refresh(const struct pawl_plan_key *key, const struct place *place, int *n_calls)
{
	const struct pawl_kv_rebind_source source = source_of(place);
	struct pawl_counters counters = {0};
	struct pawl_disposition what;

	pawl_decode_session_refresh(&session, key, &source,
		(struct pawl_invalidate){count_call, n_calls}, &counters, &what);
	ck_assert_uint_eq(counters.validity_checks, 1);
	return what;
}

/* The ancestor's five structural keys of a paged session; the sixth is the pool. */
static struct pawl_plan_key
changed(enum pawl_key_field field)
{
	struct pawl_plan_key key = plan->key;

	if (field == PAWL_KEY_MAX_BLOCKS)
		key.max_blocks--;
	if (field == PAWL_KEY_N_LAYERS)
		key.n_layers++;
	if (field == PAWL_KEY_BLOCK_SIZE)
		key.block_size = 32;
	if (field == PAWL_KEY_CACHE_DTYPE)
		key.cache_dtype = PAWL_DTYPE_F32;
	if (field == PAWL_KEY_SHAPE_KEY)
		key.shape_key++;
	return key;
}

START_TEST(each_of_the_six_keys_flips_it)
{
	static const enum pawl_key_field fields[] = {PAWL_KEY_MAX_BLOCKS, PAWL_KEY_N_LAYERS,
		PAWL_KEY_BLOCK_SIZE, PAWL_KEY_CACHE_DTYPE, PAWL_KEY_SHAPE_KEY, PAWL_KEY_ALLOC_ID};
	enum pawl_key_field field = fields[_i];
	const struct pawl_plan_key asked = changed(field);
	struct pawl_disposition what;
	int n_calls = 0;

	ck_assert_int_eq(plan->key.n_sequences, 1);
	ck_assert_int_eq(plan->key.block_size, 16);
	ck_assert_int_eq(plan->key.max_blocks, 4);
	what = refresh(&plan->key, &first, &n_calls);
	ck_assert_int_eq(what.kind, PAWL_SESSION_KEPT);
	ck_assert_int_eq(n_calls, 0);
	what = refresh(&asked, field == PAWL_KEY_ALLOC_ID ? &second : &first, &n_calls);
	ck_assert_int_eq(what.verdict.field, field);
	ck_assert_int_eq(n_calls, 1);
	if (field == PAWL_KEY_ALLOC_ID) {
		ck_assert_int_eq(what.verdict.validity, PAWL_ALLOCATION_CHANGED);
		ck_assert_int_eq(what.kind, PAWL_SESSION_REBOUND);
	} else {
		ck_assert_int_eq(what.verdict.validity, PAWL_PLAN_STALE);
		ck_assert_int_eq(what.kind, PAWL_SESSION_DROPPED);
		ck_assert_ptr_null(session);
	}
}
END_TEST

/* Token LENGTH of a sequence through the session, as if it were bound to that place's blocks. */
static const float *
step(const struct place *place, unsigned seed)
{
	struct pawl_token_row row = {pawl_test_token(seed, LENGTH), LENGTH, 0};
	struct pawl_token_buffers buffers;
	struct pawl_counters counters = {0};
	struct pawl_token_data data;

	OK(pawl_token_buffers_init(&buffers, session, &err));
	OK(pawl_kv_block_pool_block_table(pawl_paged_decoder_pool(place->decoder),
		place->sequence, buffers.block_table, 4, &err));
	row.write_index = buffers.block_table[0] * 16 + LENGTH;
	OK(pawl_token_buffers_fill_rows(
		&buffers, pawl_tiny_model_source(model), &row, &data, &err));
	OK(pawl_decode_session_realize(session, &data, &buffers.env, &counters, &err));
	pawl_token_buffers_release(&buffers);
	return pawl_decode_session_output(session, 0, NULL);
}

static bool
is_as_alone(const struct pawl_tiny_model *m, const float *logits, unsigned seed, int64_t n)
{
	struct pawl_decoder_options contiguous = pawl_test_decoder_options();
	float *want = pawl_test_fresh(m, &contiguous, seed, n);
	bool same = !memcmp(logits, want, ROW_BYTES);

	free(want);
	return same;
}

START_TEST(a_swapped_pool_serves_its_own_content)
{
	int n_calls = 0;

	ck_assert(is_as_alone(model, step(&first, 1), 1, LENGTH + 1));
	/* What the second pool's table says of the first pool's blocks is something else. */
	ck_assert(!is_as_alone(model, step(&second, 2), 2, LENGTH + 1));
	ck_assert_int_eq(refresh(&plan->key, &second, &n_calls).kind, PAWL_SESSION_REBOUND);
	ck_assert(is_as_alone(model, step(&second, 2), 2, LENGTH + 1));
	ck_assert_int_eq(refresh(&plan->key, &first, &n_calls).kind, PAWL_SESSION_REBOUND);
	ck_assert(is_as_alone(model, step(&first, 1), 1, LENGTH + 1));
}
END_TEST

START_TEST(a_freed_pool_that_comes_back_at_its_address)
{
	int n_calls = 0;

	for (unsigned i = 0; i < 4; i++) {
		pawl_paged_decoder_free(second.decoder);
		second = new_place(3 + i, (int)i % 3);
		ck_assert_int_eq(
			refresh(&plan->key, &second, &n_calls).kind, PAWL_SESSION_REBOUND);
		ck_assert(is_as_alone(model, step(&second, 3 + i), 3 + i, LENGTH + 1));
	}
}
END_TEST

START_TEST(a_pool_of_another_size_is_stale)
{
	struct pawl_plan_key asked = plan->key;
	int n_calls = 0;

	pawl_paged_decoder_free(second.decoder);
	options.n_blocks = 8;
	second = new_place(2, 0);
	asked.max_seq_len = 8 * 16;
	ck_assert_int_eq(refresh(&asked, &second, &n_calls).verdict.field, PAWL_KEY_MAX_SEQ_LEN);
	ck_assert_ptr_null(session);
}
END_TEST

/* Two models of one geometry, one cache of plans: each is served by its own weights. */

static void
check_weights(const float *one, const float *other, const struct pawl_tiny_model *second_model)
{
	ck_assert(is_as_alone(model, one, 1, 6));
	ck_assert(is_as_alone(second_model, other, 1, 6));
	ck_assert(memcmp(one, other, ROW_BYTES));
}

START_TEST(other_weights_are_another_plan)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_tiny_model *other = pawl_tiny_model_new(&tiny);
	struct pawl_decoder_options contiguous = pawl_test_decoder_options();
	const struct pawl_tiny_model *models[2] = {model, other};
	struct pawl_paged_decoder *paged[2];
	struct pawl_decoder *plain[2];
	struct pawl_kv_session_id sequences[2];
	const float *logits[2];
	struct pawl_plan_cache *plans;

	OK(pawl_plan_cache_new(8, &plans, &err));
	options.plans = contiguous.plans = plans;
	for (int i = 0; i < 2; i++) {
		paged[i] = new_decoder(models[i]);
		plain[i] = pawl_test_decoder(models[i], &contiguous);
		OK(pawl_paged_decoder_open(paged[i], &sequences[i], &err));
	}
	for (int n = 0; n < 6; n++)
		for (int i = 0; i < 2; i++) {
			const struct pawl_paged_row row = {sequences[i], pawl_test_token(1, n)};

			OK(pawl_paged_decoder_step(paged[i], &row, 1, &logits[i], &err));
		}
	check_weights(logits[0], logits[1], other);
	for (int n = 0; n < 6; n++)
		for (int i = 0; i < 2; i++)
			logits[i] = pawl_test_step(plain[i], 1, n);
	check_weights(logits[0], logits[1], other);
	for (int i = 0; i < 2; i++) {
		pawl_paged_decoder_free(paged[i]);
		pawl_decoder_free(plain[i]);
	}
	pawl_plan_cache_free(plans);
	pawl_tiny_model_free(other);
}
END_TEST

START_TEST(a_session_of_other_weights_is_stale)
{
	struct pawl_tiny_options tiny = pawl_tiny_defaults();
	struct pawl_tiny_model *other = pawl_tiny_model_new(&tiny);
	struct pawl_plan *held = plan;
	struct pawl_paged_decoder *decoder;
	struct pawl_kv_session_id sequence;
	const float *logits;
	struct pawl_paged_row row;
	int n_calls = 0;

	/* The key that a decoder of the other model asks with. */
	plan = NULL;
	decoder = new_decoder(other);
	OK(pawl_paged_decoder_open(decoder, &sequence, &err));
	row = (struct pawl_paged_row){sequence, 1};
	OK(pawl_paged_decoder_step(decoder, &row, 1, &logits, &err));
	ck_assert_ptr_nonnull(plan);
	ck_assert_int_eq(
		refresh(&plan->key, &first, &n_calls).verdict.field, PAWL_KEY_SHAPE_KEY);
	ck_assert_ptr_null(session);
	pawl_plan_unref(held);
	pawl_paged_decoder_free(decoder);
	pawl_tiny_model_free(other);
}
END_TEST

Suite *
pawl_paged_session_suite(void)
{
	Suite *suite = suite_create("paged_session");
	TCase *tcase = tcase_create("paged_session");

	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_loop_test(tcase, each_of_the_six_keys_flips_it, 0, 6);
	tcase_add_test(tcase, a_swapped_pool_serves_its_own_content);
	tcase_add_test(tcase, a_freed_pool_that_comes_back_at_its_address);
	tcase_add_test(tcase, a_pool_of_another_size_is_stale);
	tcase_add_test(tcase, other_weights_are_another_plan);
	tcase_add_test(tcase, a_session_of_other_weights_is_stale);
	suite_add_tcase(suite, tcase);
	return suite;
}

/* The comparisons of same_bits.h on a tiny model of each family; model_state.c has a real one. */
#include "tests/same_bits.h"

#include "models/model.h"
#include "runtime/decode_session.h"
#include "runtime/inference_context.h"
#include "runtime/token_data.h"
#include "tests/decoding.h"
#include "tests/suites.h"
#include "tests/tiny_gemma.h"
#include "tests/tiny_mla.h"
#include "tests/tiny_model.h"

#include <stdlib.h>

static struct pawl_device *device;
static struct pawl_tiny_model *llama;
static struct pawl_model *gemma;
static struct pawl_tiny_mla *mla;

static void
begin(const char *target, const struct pawl_model_source *source)
{
	struct pawl_error err;

	ck_assert_msg(!pawl_device_open(target, NULL, &device, &err), "%s", err.text);
	pawl_same_begin(source, device);
}

static void
end(void)
{
	pawl_same_end();
	pawl_device_unref(device);
}

static void
begin_llama(void)
{
	const struct pawl_tiny_options options = pawl_tiny_defaults();

	llama = pawl_tiny_model_new(&options);
	begin("ref", pawl_tiny_model_source(llama));
}

static void
end_llama(void)
{
	end();
	pawl_tiny_model_free(llama);
}

/* Sequences are longer than its window. */
static void
begin_gemma(void)
{
	const struct pawl_tiny_gemma_options options = {
		.dtype = PAWL_DTYPE_F32, .window = 20, .seed = 5};

	gemma = pawl_tiny_gemma_open(&options);
	begin("ref", pawl_model_source(gemma));
}

static void
end_gemma(void)
{
	end();
	pawl_model_free(gemma);
}

static void
begin_mla_by(const char *target)
{
	const struct pawl_tiny_mla_options options = pawl_tiny_mla_defaults();

	mla = pawl_tiny_mla_new(&options);
	begin(target, pawl_tiny_mla_pairs(mla));
}

static void
begin_mla(void)
{
	begin_mla_by("ref");
}

#ifdef PAWL_HAVE_LLVM
static void
begin_mla_on_cpu(void)
{
	begin_mla_by("cpu");
}
#endif

static void
end_mla(void)
{
	end();
	pawl_tiny_mla_free(mla);
}

static void
expect_equal(void (*part)(void))
{
	part();
	ck_assert_int_eq(pawl_same_bits.n_failed, 0);
	ck_assert_int_gt(pawl_same_bits.n_passed, 1);
}

START_TEST(replanned_is_planned_once)
{
	expect_equal(pawl_same_replanned);
}
END_TEST

START_TEST(forked_is_fresh)
{
	expect_equal(pawl_same_forked);
}
END_TEST

START_TEST(restored_is_never_saved)
{
	expect_equal(pawl_same_restored);
}
END_TEST

START_TEST(guessed_is_plain)
{
	expect_equal(pawl_same_guessed);
}
END_TEST

START_TEST(a_ring_is_contiguous)
{
	expect_equal(pawl_same_ring);
}
END_TEST

START_TEST(paged_is_contiguous)
{
	expect_equal(pawl_same_paged);
}
END_TEST

START_TEST(paged_and_replanned_is_planned_once)
{
	expect_equal(pawl_same_paged_replanned);
}
END_TEST

START_TEST(a_batched_row_is_alone)
{
	expect_equal(pawl_same_batched);
}
END_TEST

START_TEST(a_ragged_batch_is_alone)
{
	expect_equal(pawl_same_ragged);
}
END_TEST

START_TEST(forked_in_pages_is_fresh)
{
	expect_equal(pawl_same_paged_forked);
}
END_TEST

START_TEST(evicted_and_restored_is_never_evicted)
{
	expect_equal(pawl_same_evicted);
}
END_TEST

START_TEST(guessed_in_pages_is_plain)
{
	expect_equal(pawl_same_paged_guessed);
}
END_TEST

START_TEST(a_thousand_tokens_in_one_plan_a_bucket)
{
	expect_equal(pawl_same_thousand_tokens);
}
END_TEST

START_TEST(taking_turns_rebuilds_nothing)
{
	expect_equal(pawl_same_turns);
}
END_TEST

/* The model as it is, not in pairs: a batch over a cache of latents, in blocks in no order. */

enum { N_SEQUENCES = PAWL_KNOWN_SEQUENCES, BLOCK = 16, MAX_BLOCKS = 4, N_BLOCKS = 16 };

struct latents {
	struct pawl_inference_context *context;
	struct pawl_latent_kv_cache *cache;
	struct pawl_plan *plan;
	struct pawl_decode_session *session;
	struct pawl_token_buffers buffers;
};

static void
open_latents(struct latents *l)
{
	const struct pawl_model_source *source = pawl_tiny_mla_source(mla);
	const struct pawl_latent_shape shape =
		pawl_tiny_mla_cache(mla, N_BLOCKS * BLOCK, PAWL_DTYPE_F16);
	const struct pawl_graph_request request = {.n_tokens = N_SEQUENCES,
		.capacity = N_BLOCKS * BLOCK,
		.kv_dtype = PAWL_DTYPE_F16,
		.logits = PAWL_LOGITS_ALL,
		.n_sequences = N_SEQUENCES,
		.block_size = BLOCK,
		.max_blocks = MAX_BLOCKS};
	const struct pawl_plan_options options = {.key = {.seq = N_SEQUENCES,
		.max_seq_len = N_BLOCKS * BLOCK,
		.n_layers = source->n_layers,
		.cache_dtype = PAWL_DTYPE_F16,
		.precision = PAWL_PRECISION_A16,
		.device = device->id,
		.n_sequences = N_SEQUENCES,
		.block_size = BLOCK,
		.max_blocks = MAX_BLOCKS}};
	struct pawl_error *err = &pawl_same_bits.err;
	struct pawl_graph *graph;

	pawl_same_must(pawl_inference_context_new(device, 2, &l->context, err));
	pawl_same_must(pawl_latent_kv_cache_with_capacity(l->context, &shape, &l->cache, err));
	pawl_same_must(source->build(source->ctx, &request, &graph, err));
	pawl_same_must(pawl_plan_build(graph, device, &options, &l->plan, err));
	pawl_graph_free(graph);
	pawl_same_must(pawl_decode_session_new_latent(l->plan, source->weights, l->cache,
		pawl_inference_context_team(l->context), &l->session, err));
	pawl_same_must(pawl_token_buffers_init(&l->buffers, l->session, err));
	for (int i = 0; i < N_SEQUENCES * MAX_BLOCKS; i++)
		l->buffers.block_table[i] = (uint32_t)((i * 7 + 3) % N_BLOCKS);
}

static void
close_latents(struct latents *l)
{
	pawl_token_buffers_release(&l->buffers);
	pawl_decode_session_free(l->session);
	pawl_plan_unref(l->plan);
	pawl_latent_kv_cache_free(l->cache);
	pawl_inference_context_free(l->context);
}

/* The token at a position of each sequence that is as long. */
static void
run_latents(struct latents *l, int64_t position)
{
	const struct pawl_model_source *source = pawl_tiny_mla_source(mla);
	struct pawl_token_row rows[N_SEQUENCES];
	struct pawl_token_data data;
	const float *logits;

	for (int i = 0; i < N_SEQUENCES; i++) {
		const struct pawl_known_sequence *known = &pawl_same_bits.known[i];
		const uint32_t *blocks = l->buffers.block_table + i * MAX_BLOCKS;

		rows[i] = (struct pawl_token_row){.position = -1};
		if (position < known->n_prompt + PAWL_KNOWN_STEPS)
			rows[i] = (struct pawl_token_row){known->tokens[position], position,
				(int64_t)blocks[position / BLOCK] * BLOCK + position % BLOCK};
	}
	pawl_same_must(pawl_token_buffers_fill_rows(
		&l->buffers, source, rows, &data, &pawl_same_bits.err));
	pawl_same_must(pawl_decode_session_realize(l->session, &data, &l->buffers.env,
		pawl_inference_context_counters(l->context), &pawl_same_bits.err));
	logits = pawl_decode_session_output(l->session, 0, NULL);
	for (int i = 0; i < N_SEQUENCES; i++) {
		int64_t step = position - pawl_same_bits.known[i].n_prompt + 1;

		if (step >= 0 && step <= PAWL_KNOWN_STEPS)
			pawl_same_logits("a batch of latents", i, (int)step,
				logits + i * source->n_vocab);
	}
}

static void
batch_latents(void)
{
	struct latents l;

	open_latents(&l);
	for (int64_t i = 0; i < PAWL_KNOWN_MAX_PROMPT + PAWL_KNOWN_STEPS; i++)
		run_latents(&l, i);
	close_latents(&l);
}

START_TEST(a_ragged_batch_of_latents_is_alone)
{
	pawl_same_bits.n_passed = 0;
	expect_equal(batch_latents);
	ck_assert_int_eq(pawl_same_bits.n_passed, N_SEQUENCES * (PAWL_KNOWN_STEPS + 1));
}
END_TEST

static TCase *
add_case(Suite *suite, const char *name, SFun setup, SFun teardown)
{
	TCase *tcase = tcase_create(name);

	/* Tests are processes of their own, which have the plans of the setup. */
	tcase_add_unchecked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, replanned_is_planned_once);
	tcase_add_test(tcase, forked_is_fresh);
	tcase_add_test(tcase, restored_is_never_saved);
	tcase_add_test(tcase, guessed_is_plain);
	tcase_add_test(tcase, a_ring_is_contiguous);
	tcase_add_test(tcase, paged_is_contiguous);
	tcase_add_test(tcase, paged_and_replanned_is_planned_once);
	tcase_add_test(tcase, a_batched_row_is_alone);
	tcase_add_test(tcase, a_ragged_batch_is_alone);
	tcase_add_test(tcase, forked_in_pages_is_fresh);
	tcase_add_test(tcase, evicted_and_restored_is_never_evicted);
	tcase_add_test(tcase, guessed_in_pages_is_plain);
	tcase_add_test(tcase, a_thousand_tokens_in_one_plan_a_bucket);
	tcase_add_test(tcase, taking_turns_rebuilds_nothing);
	suite_add_tcase(suite, tcase);
	return tcase;
}

Suite *
pawl_same_bits_suite(void)
{
	Suite *suite = suite_create("same_bits");
	TCase *tcase;

	add_case(suite, "llama", begin_llama, end_llama);
	add_case(suite, "gemma", begin_gemma, end_gemma);
	tcase = add_case(suite, "mla", begin_mla, end_mla);
	tcase_add_test(tcase, a_ragged_batch_of_latents_is_alone);
#ifdef PAWL_HAVE_LLVM
	tcase = add_case(suite, "mla on cpu", begin_mla_on_cpu, end_mla);
	tcase_add_test(tcase, a_ragged_batch_of_latents_is_alone);
#endif
	return suite;
}

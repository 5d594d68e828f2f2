/*
 * Sessions on the mock beside those on the CPU: 32 greedy tokens of each family and each way to
 * keep state.  The tokens are the same; logits differ by TOLERANCE of the largest at most.  Once a
 * session is warm a token is one upload, one launch of its graph, no allocation and no kernel
 * compiled.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/model.h"
#include "runtime/decoder.h"
#include "runtime/latent_kv_cache.h"
#include "runtime/paged_decoder.h"
#include "tests/cuda/mock_use.h"
#include "tests/tiny_gemma.h"
#include "tests/tiny_mla.h"
#include "tests/tiny_model.h"

#define OK PAWL_CUDA_OK
#define ERR (&pawl_cuda_err)

#ifdef PAWL_HAVE_LLVM
#define PAWL_CUDA_BESIDE "cpu"
#else
#define PAWL_CUDA_BESIDE "ref"
#endif

/* Some sums have another order, so that what is stored as f16 may be rounded to the other side. */
static const double TOLERANCE = 2e-4;

enum { N_TOKENS = 32, N_SEQUENCES = 3, CAPACITY = 64, BLOCK = 16, MOST_VOCAB = 512 };

enum family { LLAMA, GEMMA, MLA };
enum keeping { CONTIGUOUS, RING, PAGED, BATCHED, LATENT };

static const struct subject {
	enum family family;
	enum keeping keeping;
	enum pawl_dtype dtype, kv_dtype;
	int n_short; /* tokens in make check */
} subjects[] = {
	{LLAMA, CONTIGUOUS, PAWL_DTYPE_Q4_0, PAWL_DTYPE_F16, 32},
	{LLAMA, PAGED, PAWL_DTYPE_Q8_0, PAWL_DTYPE_BF16, 32},
	{MLA, LATENT, PAWL_DTYPE_Q8_0, PAWL_DTYPE_F16, 32},
	{GEMMA, RING, PAWL_DTYPE_F16, PAWL_DTYPE_F16, 6},
	/* Those that follow are for make check-cuda. */
	{GEMMA, CONTIGUOUS, PAWL_DTYPE_Q5_0, PAWL_DTYPE_Q8_0, 0},
	{GEMMA, PAGED, PAWL_DTYPE_Q4_1, PAWL_DTYPE_F16, 0},
	{LLAMA, BATCHED, PAWL_DTYPE_F16, PAWL_DTYPE_F32, 0},
	{MLA, BATCHED, PAWL_DTYPE_F32, PAWL_DTYPE_F16, 0},
};
enum { N_SUBJECTS = sizeof(subjects) / sizeof(*subjects), N_SHORT = 4 };

/* A family's model, and what frees it. */
struct model {
	const struct pawl_model_source *source;
	struct pawl_tiny_model *llama;
	struct pawl_model *gemma;
	struct pawl_tiny_mla *mla;
};

static void
model_open(struct model *m, const struct subject *s)
{
	struct pawl_tiny_options llama = pawl_tiny_defaults();
	struct pawl_tiny_mla_options mla = pawl_tiny_mla_defaults();
	const struct pawl_tiny_gemma_options gemma = {.dtype = s->dtype, .window = 20, .seed = 5};

	memset(m, 0, sizeof(*m));
	switch (s->family) {
	case LLAMA:
		llama.dtype = s->dtype;
		m->llama = pawl_tiny_model_new(&llama);
		m->source = pawl_tiny_model_source(m->llama);
		break;
	case GEMMA:
		m->gemma = pawl_tiny_gemma_open(&gemma);
		m->source = pawl_model_source(m->gemma);
		break;
	case MLA:
		mla.dtype = s->dtype;
		m->mla = pawl_tiny_mla_new(&mla);
		m->source = s->keeping == LATENT ? pawl_tiny_mla_source(m->mla)
						 : pawl_tiny_mla_pairs(m->mla);
		break;
	}
}

static void
model_close(struct model *m)
{
	if (m->llama)
		pawl_tiny_model_free(m->llama);
	pawl_model_free(m->gemma);
	if (m->mla)
		pawl_tiny_mla_free(m->mla);
}

/* Whatever drives the model: rows of logits after a token for each of n sequences. */
struct driver {
	enum keeping keeping;
	int64_t n;
	struct pawl_decoder *decoder;
	struct pawl_paged_decoder *paged;
	struct pawl_kv_session_id sessions[N_SEQUENCES];
	const struct pawl_model_source *source;
	struct pawl_inference_context *context; /* LATENT, as what follows */
	struct pawl_latent_kv_cache *cache;
	struct pawl_plan *plan;
	struct pawl_decode_session *session;
	struct pawl_token_buffers buffers;
	struct pawl_counters counters;
};

static void
open_latent(struct driver *d, const struct model *m, const struct subject *s,
	struct pawl_device *device)
{
	const struct pawl_latent_shape shape = pawl_tiny_mla_cache(m->mla, CAPACITY, s->kv_dtype);
	const struct pawl_graph_request request = {.n_tokens = 1,
		.capacity = CAPACITY,
		.kv_dtype = s->kv_dtype,
		.logits = PAWL_LOGITS_ALL};
	const struct pawl_plan_options options = {.key = {.seq = 1,
		.max_seq_len = CAPACITY,
		.n_layers = d->source->n_layers,
		.cache_dtype = s->kv_dtype,
		.precision = PAWL_PRECISION_A16,
		.device = device->id}};
	struct pawl_graph *graph;

	OK(pawl_inference_context_new(device, 1, &d->context, ERR));
	OK(pawl_latent_kv_cache_with_capacity(d->context, &shape, &d->cache, ERR));
	OK(d->source->build(d->source->ctx, &request, &graph, ERR));
	OK(pawl_plan_build(graph, device, &options, &d->plan, ERR));
	pawl_graph_free(graph);
	OK(pawl_decode_session_new_latent(d->plan, d->source->weights, d->cache,
		pawl_inference_context_team(d->context), &d->session, ERR));
	OK(pawl_token_buffers_init(&d->buffers, d->session, ERR));
}

static void
driver_open(struct driver *d, const struct model *m, const struct subject *s,
	struct pawl_device *device)
{
	const struct pawl_decoder_options options = {.capacity = CAPACITY,
		.kv_dtype = s->kv_dtype,
		.n_threads = 1,
		.prefill_chunk = 4,
		.rings = s->keeping == RING};
	const struct pawl_paged_options pages = {.n_blocks = 12,
		.block_size = s->keeping == BATCHED ? CAPACITY : BLOCK,
		.max_blocks = s->keeping == BATCHED ? 1 : CAPACITY / BLOCK,
		.kv_dtype = s->kv_dtype,
		.n_threads = 1,
		.prefill_chunk = 4};

	memset(d, 0, sizeof(*d));
	d->keeping = s->keeping;
	d->source = m->source;
	d->n = s->keeping == PAGED || s->keeping == BATCHED ? N_SEQUENCES : 1;
	if (s->keeping == LATENT)
		open_latent(d, m, s, device);
	else if (d->n == 1)
		OK(pawl_decoder_new(m->source, device, &options, &d->decoder, ERR));
	else
		OK(pawl_paged_decoder_new(m->source, device, &pages, &d->paged, ERR));
	for (int64_t i = 0; i < d->n && d->paged; i++)
		OK(pawl_paged_decoder_open(d->paged, &d->sessions[i], ERR));
}

static void
driver_close(struct driver *d)
{
	pawl_decoder_free(d->decoder);
	pawl_paged_decoder_free(d->paged);
	if (d->keeping != LATENT)
		return;
	pawl_token_buffers_release(&d->buffers);
	pawl_decode_session_free(d->session);
	pawl_plan_unref(d->plan);
	pawl_latent_kv_cache_free(d->cache);
	pawl_inference_context_free(d->context);
}

static const float *
step_latent(struct driver *d, uint32_t token)
{
	int64_t position = pawl_latent_kv_cache_len(d->cache);
	struct pawl_token_data data;

	OK(pawl_token_buffers_fill(&d->buffers, d->source, &token, 1, position, &data, ERR));
	OK(pawl_decode_session_realize(d->session, &data, &d->buffers.env, &d->counters, ERR));
	pawl_latent_kv_cache_advance(d->cache, 1);
	return pawl_decode_session_output(d->session, 0, NULL);
}

/* [n][n_vocab] after a token of each sequence. */
static const float *
step(struct driver *d, const uint32_t *tokens)
{
	struct pawl_paged_row rows[N_SEQUENCES];
	const float *logits;

	if (d->keeping == LATENT)
		return step_latent(d, tokens[0]);
	for (int64_t i = 0; i < d->n; i++)
		rows[i] = (struct pawl_paged_row){d->sessions[i], tokens[i]};
	if (d->paged)
		OK(pawl_paged_decoder_step(d->paged, rows, d->n, &logits, ERR));
	else
		OK(pawl_decoder_step(d->decoder, tokens[0], &logits, ERR));
	return logits;
}

/* A prompt of 6 + 2 i tokens for sequence i: with a full chunk and one that is not. */
static void
prefill(struct driver *d)
{
	for (int64_t i = 0; i < d->n; i++) {
		int64_t n = 6 + 2 * i;

		for (int64_t j = 0; j < n && d->keeping == LATENT; j++)
			step_latent(d, (uint32_t)(7 * j + 3) % 40);
		if (d->keeping != LATENT) {
			uint32_t tokens[16];
			const float *logits;

			for (int64_t j = 0; j < n; j++)
				tokens[j] = (uint32_t)(7 * j + 3 * i + 3) % 40;
			if (d->paged)
				OK(pawl_paged_decoder_prefill(
					d->paged, d->sessions[i], tokens, n, &logits, ERR));
			else
				OK(pawl_decoder_prefill(d->decoder, tokens, n, &logits, ERR));
		}
	}
}

static uint32_t
greedy(const float *logits, int64_t n)
{
	uint32_t best = 0;

	for (int64_t i = 1; i < n; i++)
		if (logits[i] > logits[best])
			best = (uint32_t)i;
	return best;
}

static void
compare(const float *got, const float *want, int64_t n)
{
	double largest = 0;

	for (int64_t i = 0; i < n; i++)
		if (fabsf(want[i]) > largest)
			largest = fabsf(want[i]);
	for (int64_t i = 0; i < n; i++)
		ck_assert_msg(fabs((double)got[i] - want[i]) <= TOLERANCE * largest,
			"logit %d is %g, not %g", (int)i, got[i], want[i]);
}

struct counts {
	uint64_t uploads, graphs, launches, allocations, driver_allocations, compiles;
};

static struct counts
count(const struct pawl_mock *mock, const struct pawl_device *device)
{
	struct pawl_target_counters counters;

	pawl_device_counters(device, &counters);
	ck_assert_uint_eq(counters.graph_launches, mock->calls[PAWL_MOCK_graph_launch]);
	return (struct counts){
		.uploads = mock->calls[PAWL_MOCK_copy_up],
		.graphs = mock->calls[PAWL_MOCK_graph_launch],
		.launches = mock->calls[PAWL_MOCK_launch],
		.allocations = pawl_memory_allocations(),
		.driver_allocations = mock->calls[PAWL_MOCK_memory_alloc] +
				      mock->calls[PAWL_MOCK_pinned_alloc],
		.compiles = counters.kernel_compiles,
	};
}

static void
check_counts(struct counts before, struct counts after)
{
	ck_assert_uint_eq(after.uploads, before.uploads + 1);
	ck_assert_uint_eq(after.graphs, before.graphs + 1);
	ck_assert_uint_eq(after.launches, before.launches);
	ck_assert_uint_eq(after.allocations, before.allocations);
	ck_assert_uint_eq(after.driver_allocations, before.driver_allocations);
	ck_assert_uint_eq(after.compiles, before.compiles);
}

START_TEST(tokens_are_those_of_the_cpu)
{
	const struct subject *s = &subjects[_i];
	struct pawl_mock *mock = pawl_mock_use();
	struct pawl_device *cuda = pawl_mock_device(), *cpu;
	struct pawl_target_counters counters;
	const int n_tokens = pawl_mock_is_long() ? N_TOKENS : s->n_short;
	struct driver here, there;
	uint32_t tokens[N_SEQUENCES];
	struct model m;

	OK(pawl_device_open(PAWL_CUDA_BESIDE, NULL, &cpu, ERR));
	model_open(&m, s);
	ck_assert_int_le(m.source->n_vocab, MOST_VOCAB);
	driver_open(&here, &m, s, cpu);
	driver_open(&there, &m, s, cuda);
	prefill(&here);
	prefill(&there);
	for (int64_t i = 0; i < here.n; i++)
		tokens[i] = 5 + (uint32_t)i;
	for (int t = 0; t < n_tokens; t++) {
		struct counts before = count(mock, cuda);
		const float *got = step(&there, tokens), *want;

		/* The first is what the session of one token becomes warm by. */
		if (t > 1)
			check_counts(before, count(mock, cuda));
		want = step(&here, tokens);
		compare(got, want, here.n * m.source->n_vocab);
		for (int64_t i = 0; i < here.n; i++) {
			const int64_t row = i * m.source->n_vocab;

			tokens[i] = greedy(want + row, m.source->n_vocab);
			ck_assert_uint_eq(greedy(got + row, m.source->n_vocab), tokens[i]);
		}
	}
	pawl_device_counters(cuda, &counters);
	ck_assert_uint_ge(counters.captures, 1);
	ck_assert_uint_eq(counters.capture_failures, 0);
	driver_close(&there);
	driver_close(&here);
	model_close(&m);
	pawl_device_unref(cpu);
	pawl_device_unref(cuda);
	pawl_mock_check_end(mock);
}
END_TEST

START_TEST(a_choice_is_all_that_comes_down)
{
	const struct subject *s = &subjects[0];
	struct pawl_mock *mock = pawl_mock_use();
	struct pawl_device *cuda = pawl_mock_device(), *cpu;
	const uint32_t prompt[] = {7, 3, 11};
	struct driver here, there;
	uint32_t chosen, token;
	struct model m;

	OK(pawl_device_open(PAWL_CUDA_BESIDE, NULL, &cpu, ERR));
	model_open(&m, s);
	driver_open(&here, &m, s, cpu);
	driver_open(&there, &m, s, cuda);
	OK(pawl_decoder_prefill_greedy(here.decoder, prompt, 3, &token, ERR));
	OK(pawl_decoder_prefill_greedy(there.decoder, prompt, 3, &chosen, ERR));
	for (int t = 0; t < s->n_short; t++) {
		struct counts before = count(mock, cuda);
		uint64_t bytes = mock->bytes_down;

		ck_assert_uint_eq(chosen, token);
		OK(pawl_decoder_step_greedy(there.decoder, token, &chosen, ERR));
		check_counts(before, count(mock, cuda));
		ck_assert_uint_eq(mock->bytes_down - bytes, 4);
		OK(pawl_decoder_step_greedy(here.decoder, token, &token, ERR));
	}
	driver_close(&there);
	driver_close(&here);
	model_close(&m);
	pawl_device_unref(cpu);
	pawl_device_unref(cuda);
	pawl_mock_check_end(mock);
}
END_TEST

TCase *
pawl_cuda_session_tcase(void)
{
	TCase *tcase = tcase_create("sessions");

	tcase_add_loop_test(tcase, tokens_are_those_of_the_cpu, 0,
		pawl_mock_is_long() ? N_SUBJECTS : N_SHORT);
	tcase_add_test(tcase, a_choice_is_all_that_comes_down);
	tcase_set_timeout(tcase, 0);
	return tcase;
}

/*
 * Kinds of caches through the ABI: rings, latents, a pool of blocks and a batch whose tables are
 * the host's, and graphs of which no cache can be made.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/eval.h"
#include "tests/context_fixture.h"
#include "tests/decoding.h"
#include "tests/latent_runner.h"
#include "tests/suites.h"

enum { N_VOCAB = 40 };

static void
expect_row(const float *wanted, const float *logits, const char *what, int64_t n)
{
	for (int64_t i = 0; i < N_VOCAB; i++)
		ck_assert_msg(pawl_eval_same(wanted[i], logits[i]),
			"%s: logit %d of %d tokens: %a, %a", what, (int)i, (int)n,
			(double)wanted[i], (double)logits[i]);
}

static struct pawl_host_cache *
make_cache(const struct pawl_test_host *host)
{
	struct pawl_host_cache *cache;

	PAWL_HOST_OK(api->cache_create(host->plan, NULL, &cache));
	PAWL_HOST_OK(api->session_use_cache(host->session, cache, NULL));
	return cache;
}

enum { WINDOW = 20, RING = 128, RING_CAPACITY = 512 };

/* Layers 0 and 2 see a window, layer 1 everything. */
static struct pawl_tiny_model *
window_model(void)
{
	struct pawl_tiny_options options = pawl_tiny_defaults();

	options.n_layers = 3;
	options.window = WINDOW;
	options.window_layers = 5;
	return pawl_tiny_model_new(&options);
}

/*
 * As a decoder that keeps everything, also after the rings went round; what they lost is not gone
 * back to.
 */
START_TEST(rings_keep_what_a_window_sees)
{
	enum { N = 300 };
	const struct pawl_graph_request request = {.n_tokens = 1,
		.capacity = RING_CAPACITY,
		.kv_dtype = PAWL_DTYPE_F16,
		.logits = PAWL_LOGITS_LAST,
		.ring = RING};
	struct pawl_decoder_options plain = pawl_test_decoder_options();
	struct pawl_tiny_model *model = window_model();
	struct pawl_host_cache *cache;
	struct pawl_test_host host;
	struct pawl_decoder *decoder;
	int64_t len = -1;
	uint32_t token;

	plain.capacity = RING_CAPACITY;
	decoder = pawl_test_decoder(model, &plain);
	pawl_test_host_init(&host, context, pawl_tiny_model_source(model), &request);
	cache = make_cache(&host);
	ck_assert_int_eq(api->cache_capacity(cache), RING_CAPACITY);
	for (int64_t i = 0; i < N; i++) {
		token = pawl_test_token(1, i);
		expect_row(pawl_test_step(decoder, 1, i), pawl_test_host_step(&host, cache, &token),
			"ring", i + 1);
	}
	/* Some way back the window is whole; further it is not. */
	PAWL_HOST_OK(api->cache_set_len(cache, N - 50, &len));
	ck_assert_int_eq(len, N - 50);
	pawl_decoder_truncate(decoder, N - 50);
	token = pawl_test_token(2, N - 50);
	expect_row(pawl_test_step(decoder, 2, N - 50), pawl_test_host_step(&host, cache, &token),
		"ring, cut", N - 49);
	PAWL_HOST_OK(api->cache_set_len(cache, 40, &len));
	ck_assert_int_eq(len, 0);
	pawl_decoder_free(decoder);
	api->cache_release(cache);
	pawl_test_host_release(&host);
	pawl_tiny_model_free(model);
}
END_TEST

START_TEST(latents_are_a_cache_too)
{
	enum { N = 24, CAPACITY = 160 };
	const struct pawl_graph_request request = {.n_tokens = 1,
		.capacity = CAPACITY,
		.kv_dtype = PAWL_DTYPE_F16,
		.logits = PAWL_LOGITS_LAST};
	const struct pawl_tiny_mla_options options = pawl_tiny_mla_defaults();
	struct pawl_tiny_mla *model = pawl_tiny_mla_new(&options);
	float wanted[N * PAWL_LATENT_N_VOCAB];
	struct pawl_latent_runner runner;
	struct pawl_host_cache *cache, *fork;
	struct pawl_test_host host;
	const float *logits = NULL;

	pawl_latent_runner_init(&runner, model, &pawl_latent_plain);
	pawl_latent_runner_feed(&runner, 1, 0, N, wanted);
	pawl_test_host_init(&host, context, pawl_tiny_mla_source(model), &request);
	cache = make_cache(&host);
	for (int64_t i = 0; i < N; i++) {
		uint32_t token = pawl_test_token(1, i);

		logits = pawl_test_host_step(&host, cache, &token);
		expect_row(wanted + i * N_VOCAB, logits, "latents", i + 1);
	}
	PAWL_HOST_OK(api->cache_set_len(cache, N - 1, NULL));
	PAWL_HOST_OK(api->cache_fork(cache, &fork));
	PAWL_HOST_OK(api->session_use_cache(host.session, fork, NULL));
	{
		uint32_t token = pawl_test_token(1, N - 1);

		expect_row(wanted + (N - 1) * N_VOCAB, pawl_test_host_step(&host, fork, &token),
			"fork", N);
	}
	PAWL_HOST_OK(api->cache_reserve(fork, 2 * CAPACITY));
	pawl_test_host_refused(
		api->session_use_cache(host.session, fork, NULL), PAWL_CODE_STALE, "max_seq_len");
	api->cache_release(cache);
	api->cache_release(fork);
	pawl_test_host_release(&host);
	pawl_latent_runner_release(&runner);
	pawl_tiny_mla_free(model);
}
END_TEST

/* Sequences of a batch, each with blocks of a pool in an order of its own. */
struct batch {
	struct pawl_test_host host;
	int64_t n, block_size, max_blocks;
	uint32_t table[12];
	int64_t len[4];
};

/* One token for each sequence at its own length. */
static const float *
step_batch(struct batch *b, const uint32_t *tokens)
{
	const struct pawl_api *a = api;
	const struct pawl_model_source *source = b->host.source;
	int64_t width = source->rope_width, positions[4], write_index[4], most = 0;
	float cos_rows[4 * 64], sin_rows[4 * 64];
	struct pawl_host_plan *plan = b->host.plan;
	const void *out;
	size_t n_bytes;

	for (int64_t i = 0; i < b->n; i++) {
		int64_t at = b->len[i]++;

		positions[i] = at;
		write_index[i] = b->table[i * b->max_blocks + at / b->block_size] * b->block_size +
				 at % b->block_size;
		source->rope(source->ctx, at, width, cos_rows + i * width, sin_rows + i * width);
		most = at + 1 > most ? at + 1 : most;
	}
#define SET(name, bytes, n)                                                                        \
	PAWL_HOST_OK(a->session_set(                                                               \
		b->host.session, a->plan_find(plan, PAWL_BINDING_DATA, name), bytes, (size_t)(n)))
	SET("token_ids", tokens, b->n * 4);
	SET("positions", positions, b->n * 8);
	SET("write_index", write_index, b->n * 8);
	SET("block_table", b->table, b->n * b->max_blocks * 4);
	SET("rope_cos", cos_rows, b->n * width * 4);
	SET("rope_sin", sin_rows, b->n * width * 4);
#undef SET
	PAWL_HOST_OK(a->session_set_symbol(
		b->host.session, a->plan_find(plan, PAWL_BINDING_SYMBOL, "attended_len"), most));
	PAWL_HOST_OK(a->session_run(b->host.session, 0));
	PAWL_HOST_OK(a->session_output(b->host.session, 0, &out, &n_bytes));
	ck_assert_uint_eq(n_bytes, (size_t)b->n * N_VOCAB * sizeof(float));
	return out;
}

/* Each row is that of its sequence alone, whatever the blocks and whoever is beside it. */
static void
check_batch(struct batch *b, int64_t n_blocks, int64_t n_steps)
{
	const struct pawl_graph_request request = {.n_tokens = b->n,
		.capacity = n_blocks * b->block_size,
		.kv_dtype = PAWL_DTYPE_F16,
		.logits = PAWL_LOGITS_ALL,
		.n_sequences = b->n,
		.block_size = b->block_size,
		.max_blocks = b->max_blocks};
	const struct pawl_decoder_options options = pawl_test_decoder_options();
	const struct pawl_tiny_options defaults = pawl_tiny_defaults();
	struct pawl_tiny_model *model = pawl_tiny_model_new(&defaults);
	struct pawl_decoder *alone[4];
	struct pawl_host_cache *pool;

	pawl_test_host_init(&b->host, context, pawl_tiny_model_source(model), &request);
	pool = make_cache(&b->host);
	for (int64_t s = 0; s < b->n; s++)
		alone[s] = pawl_test_decoder(model, &options);
	for (int64_t i = 0; i < n_steps; i++) {
		uint32_t tokens[4];
		const float *logits;

		for (int64_t s = 0; s < b->n; s++)
			tokens[s] = pawl_test_token((unsigned)s, i);
		logits = step_batch(b, tokens);
		for (int64_t s = 0; s < b->n; s++)
			expect_row(pawl_test_step(alone[s], (unsigned)s, i), logits + s * N_VOCAB,
				"batch", i + 1);
	}
	for (int64_t s = 0; s < b->n; s++)
		pawl_decoder_free(alone[s]);
	api->cache_release(pool);
	pawl_test_host_release(&b->host);
	pawl_tiny_model_free(model);
}

START_TEST(pools_of_blocks_are_the_hosts_to_share_out)
{
	struct batch b = {.n = 2, .block_size = 16, .max_blocks = 3, .table = {4, 0, 2, 1, 5, 3}};

	check_batch(&b, 6, 40);
}
END_TEST

/* One block a sequence: a contiguous cache for each row of a batch. */
START_TEST(batches_run_over_a_cache_each)
{
	struct batch b = {.n = 3, .block_size = 32, .max_blocks = 1, .table = {2, 0, 1}};

	check_batch(&b, 3, 20);
}
END_TEST

#define KV(name, type) "%" name " = const {role = kv} : " type "\n"
#define WRITE(n, name, type, dims)                                                                 \
	"%w" n " = write_slice %" name ", %x" n " {start = " dims "} : " type "\noutput %w" n "\n"

/* Graphs that run, and whose state the host must bind by name. */
START_TEST(other_state_makes_no_cache)
{
	static const struct {
		const char *body, *text;
	} cases[] = {
		{"%x = const {role = data} : f32[4]\n%y = neg %x : f32[4]\noutput %y\n",
			"no kv const"},
		{KV("state", "f32[16]") "%x1 = const {role = data} : f32[4]\n" WRITE(
			 "1", "state", "f32[16]", "[0]"),
			"none is cache.k.0"},
		{KV("cache.k.0", "f32[2, 1, 16, 4]") KV("cache.v.0",
			 "f32[2, 1, 16, 4]") "%x1 = const {role = data} : f32[2, 1, 1, 4]\n"
					     "%x2 = const {role = data} : f32[2, 1, 1, 4]\n" WRITE(
						     "1", "cache.k.0", "f32[2, 1, 16, 4]",
						     "[0, 0, 0, 0]") WRITE("2", "cache.v.0",
						     "f32[2, 1, 16, 4]", "[0, 0, 0, 0]"),
			"[1, heads, positions, width]"},
		{KV("cache.k.0", "f32[1, 1, 16, 4]") "%x1 = const {role = data} : f32[1, 1, 1, "
						     "4]\n" WRITE("1", "cache.k.0",
							     "f32[1, 1, 16, 4]", "[0, 0, 0, 0]"),
			"no layers of 2"},
		{KV("cache.k.0", "f32[1, 1, 16, 4]") KV("cache.v.0",
			 "f32[1, 1, 16, 8]") "%x1 = const {role = data} : f32[1, 1, 1, 4]\n"
					     "%x2 = const {role = data} : f32[1, 1, 1, 8]\n" WRITE(
						     "1", "cache.k.0", "f32[1, 1, 16, 4]",
						     "[0, 0, 0, 0]") WRITE("2", "cache.v.0",
						     "f32[1, 1, 16, 8]", "[0, 0, 0, 0]"),
			"cache.v.0 is not of the type of the others"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pawl_host_cache *cache = NULL;
		struct pawl_host_graph *graph;
		struct pawl_host_plan *plan;
		char text[1024];

		snprintf(text, sizeof(text), "pawl 1\ngraph @g stage values {\n%s}\n",
			cases[i].body);
		PAWL_HOST_OK(api->graph_from_text(context, text, strlen(text), &graph));
		PAWL_HOST_OK(api->plan_compile(graph, &plan));
		pawl_test_host_refused(api->cache_create(plan, NULL, &cache), PAWL_CODE_UNSUPPORTED,
			cases[i].text);
		ck_assert_ptr_null(cache);
		api->plan_release(plan);
		api->graph_release(graph);
	}
}
END_TEST

Suite *
pawl_host_caches_suite(void)
{
	Suite *suite = suite_create("host_caches");
	TCase *tcase = tcase_create("host_caches");

	tcase_add_checked_fixture(tcase, begin_context, end_context);
	tcase_add_test(tcase, rings_keep_what_a_window_sees);
	tcase_add_test(tcase, latents_are_a_cache_too);
	tcase_add_test(tcase, pools_of_blocks_are_the_hosts_to_share_out);
	tcase_add_test(tcase, batches_run_over_a_cache_each);
	tcase_add_test(tcase, other_state_makes_no_cache);
	suite_add_tcase(suite, tcase);
	return suite;
}

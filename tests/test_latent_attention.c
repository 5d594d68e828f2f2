/*
 * Multi-head latent attention over a cache of latents, in absorbed form: against the form that makes
 * every key and value, across targets, threads, chunks and kinds of cache; and a session's life over it.
 */
#include "models/latent_graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/interp.h"
#include "runtime/memory.h"
#include "tests/decoding.h"
#include "tests/latent_runner.h"
#include "tests/suites.h"

enum { N_TOKENS = 41, CAPACITY = 160, N_VOCAB = PAWL_LATENT_N_VOCAB };

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

/* Rows of a cache are 32 long, and 26 in a quantized model: whole vectors, and not. */
static struct pawl_tiny_mla *
make_model(enum pawl_dtype dtype)
{
	struct pawl_tiny_mla_options options = pawl_tiny_mla_defaults();

	options.dtype = dtype;
	if (dtype == PAWL_DTYPE_Q8_0) {
		options.dims.rank = 20;
		options.dims.rope = 6;
		options.n_heads = 16;
	}
	return pawl_tiny_mla_new(&options);
}

/* The logits of the first N_TOKENS of sequence 1. */
static void
run(struct pawl_tiny_mla *model, const struct pawl_latent_way *way, float *logits)
{
	struct pawl_latent_runner r;

	pawl_latent_runner_init(&r, model, way);
	pawl_latent_runner_feed(&r, 1, 0, N_TOKENS, logits);
	pawl_latent_runner_release(&r);
}

/* Ways that must agree with pawl_latent_plain to the bit. */

static const struct {
	const char *what;
	int64_t chunk;
	bool is_paged;
	int n_threads; /* 0: the reference, else kernels of the CPU */
} ways[] = {
	{"the same, but NaN at first", 8, false, 0},
	{"one by one", 1, false, 0},
	{"chunks of 5", 5, false, 0},
	{"all at once", N_TOKENS, false, 0},
	{"paged", 8, true, 0},
	{"paged, one by one", 1, true, 0},
#ifdef PAWL_HAVE_LLVM
	{"cpu", 8, false, 1},
	{"cpu, 2 threads", 8, false, 2},
	{"cpu, 3 threads, chunks of 5", 5, false, 3},
	{"cpu, one by one", 1, false, 2},
	{"cpu, paged", 8, true, 2},
#endif
};

START_TEST(every_way_gives_the_same_bits)
{
	static const enum pawl_dtype dtypes[] = {PAWL_DTYPE_F32, PAWL_DTYPE_F16, PAWL_DTYPE_Q8_0};
	static const enum pawl_dtype kv[] = {PAWL_DTYPE_F32, PAWL_DTYPE_F16, PAWL_DTYPE_BF16};
	static float wanted[N_TOKENS * N_VOCAB], got[N_TOKENS * N_VOCAB];
	struct pawl_tiny_mla *model = make_model(dtypes[_i]);
	struct pawl_latent_way way = pawl_latent_plain;

	way.kv = kv[_i];
	way.is_clean = true;
	run(model, &way, wanted);
	way.is_clean = false;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		way.target = ways[i].n_threads ? "cpu" : "ref";
		way.n_threads = ways[i].n_threads ? ways[i].n_threads : 1;
		way.chunk = ways[i].chunk;
		way.is_paged = ways[i].is_paged;
		run(model, &way, got);
		pawl_latent_expect_same(wanted, got, N_TOKENS, ways[i].what);
	}
	pawl_tiny_mla_free(model);
}
END_TEST

/* Against the materialized form. */

/* Logits of a graph over all N_TOKENS of sequence 1 from position 0; frees the graph. */
static void
interpret(struct pawl_tiny_mla *model, struct pawl_graph *graph, enum pawl_interp_mode mode,
	double *logits)
{
	const struct pawl_model_source *source = pawl_tiny_mla_source(model);
	static uint32_t ids[N_TOKENS];
	static float cos[N_TOKENS * 64], sin[N_TOKENS * 64];
	int64_t width = source->rope_width, offset = 0, n_bytes;
	struct pawl_interp *interp;
	struct pawl_node *node;
	void *caches[8];
	int n_caches = 0;

	for (int64_t i = 0; i < N_TOKENS; i++) {
		ids[i] = pawl_test_token(1, i);
		source->rope(source->ctx, i, width, cos + i * width, sin + i * width);
	}
	OK(pawl_interp_new(graph, mode, &interp, &err));
	OK(pawl_interp_bind(interp, "token_ids", ids, sizeof(ids), &err));
	OK(pawl_interp_bind(interp, "rope_cos", cos, sizeof(cos), &err));
	OK(pawl_interp_bind(interp, "rope_sin", sin, sizeof(sin), &err));
	OK(pawl_interp_bind(interp, "offset", &offset, sizeof(offset), &err));
	OK(pawl_interp_set_symbol(interp, "attended_len", N_TOKENS, &err));
	pawl_foreach_node(node, graph) {
		struct pawl_storage *storage;

		if (node->op != PAWL_OP_CONST)
			continue;
		if (node->attrs.role == PAWL_ROLE_KV) {
			n_bytes = pawl_storage_bytes(&node->type);
			ck_assert_int_lt(n_caches, 8);
			caches[n_caches] = calloc(1, (size_t)n_bytes);
			OK(pawl_interp_bind_node(
				interp, node, caches[n_caches++], n_bytes, &err));
		} else if (node->attrs.role == PAWL_ROLE_WEIGHT) {
			OK(pawl_weights_bind(source->weights, node->name, &node->type, NULL,
				&storage, &err));
			OK(pawl_interp_bind_node(
				interp, node, storage->bytes, storage->n_bytes, &err));
			pawl_storage_unref(storage);
		}
	}
	OK(pawl_interp_run(interp, &err));
	OK(pawl_interp_read(interp, 0, logits, N_TOKENS * N_VOCAB, &err));
	pawl_interp_free(interp);
	pawl_graph_free(graph);
	while (n_caches)
		free(caches[--n_caches]);
}

static struct pawl_graph *
absorbed(struct pawl_tiny_mla *model, enum pawl_dtype kv)
{
	const struct pawl_graph_request request = {
		.n_tokens = N_TOKENS, .capacity = CAPACITY, .kv_dtype = kv, .logits = PAWL_LOGITS_ALL};
	const struct pawl_model_source *source = pawl_tiny_mla_source(model);
	struct pawl_graph *graph;

	OK(source->build(source->ctx, &request, &graph, &err));
	return graph;
}

/* The largest difference, as part of the largest logit. */
static double
distance(const double *a, const double *b)
{
	double most = 0, largest = 0;

	for (int64_t i = 0; i < N_TOKENS * N_VOCAB; i++) {
		ck_assert(isfinite(a[i]) && isfinite(b[i]));
		most = fmax(most, fabs(a[i] - b[i]));
		largest = fmax(largest, fabs(a[i]));
	}
	ck_assert_double_gt(largest, 0.5);
	return most / largest;
}

START_TEST(absorbed_is_materialized)
{
	static const enum pawl_dtype kv[] = {PAWL_DTYPE_F32, PAWL_DTYPE_F16};
	static double wanted[N_TOKENS * N_VOCAB], got[N_TOKENS * N_VOCAB];
	struct pawl_tiny_mla *model = make_model(_i ? PAWL_DTYPE_F16 : PAWL_DTYPE_F32);

	/* What the ops mean: equal but for the rounding of f64. */
	interpret(model, pawl_tiny_mla_materialized(model, N_TOKENS, PAWL_DTYPE_F32),
		PAWL_INTERP_EXACT, wanted);
	interpret(model, absorbed(model, PAWL_DTYPE_F32), PAWL_INTERP_EXACT, got);
	ck_assert_double_lt(distance(wanted, got), 1e-10);

	/*
	 * What is computed: f32 sums in another order; a latent that falls on the other side of a tie
	 * is off by half a step of f16.
	 */
	interpret(model, pawl_tiny_mla_materialized(model, N_TOKENS, kv[_i]), PAWL_INTERP_PLANNED,
		wanted);
	interpret(model, absorbed(model, kv[_i]), PAWL_INTERP_PLANNED, got);
	ck_assert_double_lt(distance(wanted, got), _i ? 2e-4 : 5e-6);
	pawl_tiny_mla_free(model);
}
END_TEST

/* A session's life. */

static struct pawl_tiny_mla *model;
static struct pawl_latent_runner life;

static void
begin_life(void)
{
	model = make_model(PAWL_DTYPE_F32);
	pawl_latent_runner_init(&life, model, &pawl_latent_plain);
}

static void
end_life(void)
{
	pawl_latent_runner_release(&life);
	pawl_tiny_mla_free(model);
}

/* The logits of token n - 1 of a sequence, all of it run afresh. */
static void
fresh(unsigned seed, int64_t n, float *last)
{
	static float logits[N_TOKENS * N_VOCAB];
	struct pawl_latent_runner r;

	pawl_latent_runner_init(&r, model, &pawl_latent_plain);
	pawl_latent_runner_feed(&r, seed, 0, n, logits);
	memcpy(last, logits + (n - 1) * N_VOCAB, N_VOCAB * sizeof(float));
	pawl_latent_runner_release(&r);
}

static void
refresh(enum pawl_disposition_kind wanted)
{
	for (int i = 0; i < 2; i++)
		ck_assert_str_eq(
			pawl_disposition_name(pawl_latent_runner_refresh(&life, i)),
			pawl_disposition_name(wanted));
}

START_TEST(another_cache_serves_its_own_content)
{
	struct pawl_latent_kv_cache *other = pawl_latent_runner_cache(&life, model);
	float logits[N_TOKENS * N_VOCAB], ours[N_VOCAB], theirs[N_VOCAB], stale[N_VOCAB];

	fresh(1, 21, ours);
	fresh(2, 14, theirs);
	pawl_latent_runner_feed(&life, 1, 0, 20, logits);
	refresh(PAWL_SESSION_KEPT);
	pawl_latent_runner_swap(&life, &other);
	refresh(PAWL_SESSION_REBOUND);
	pawl_latent_runner_feed(&life, 2, 0, 13, logits);
	/* Without a rebind a session goes on with the storages it has. */
	pawl_latent_runner_swap(&life, &other);
	pawl_latent_runner_feed(&life, 1, 20, 1, stale);
	ck_assert(memcmp(stale, ours, sizeof(ours)));
	pawl_latent_kv_cache_truncate_to(life.cache, 20);
	refresh(PAWL_SESSION_REBOUND);
	pawl_latent_runner_feed(&life, 1, 20, 1, logits);
	pawl_latent_expect_same(ours, logits, 1, "back on the first");
	pawl_latent_runner_swap(&life, &other);
	refresh(PAWL_SESSION_REBOUND);
	pawl_latent_runner_feed(&life, 2, 13, 1, logits);
	pawl_latent_expect_same(theirs, logits, 1, "the second");
	pawl_latent_kv_cache_free(other);
}
END_TEST

START_TEST(what_was_taken_back_is_forgotten)
{
	float logits[N_TOKENS * N_VOCAB], wanted[N_VOCAB];

	fresh(1, 30, wanted);
	pawl_latent_runner_feed(&life, 1, 0, 20, logits);
	pawl_latent_runner_feed(&life, 3, 20, 9, logits);
	pawl_latent_kv_cache_truncate_to(life.cache, 20);
	pawl_latent_runner_feed(&life, 2, 20, 3, logits);
	pawl_latent_kv_cache_truncate_to(life.cache, 17);
	pawl_latent_runner_feed(&life, 1, 17, 13, logits);
	pawl_latent_expect_same(wanted, logits + 12 * N_VOCAB, 1, "after two rollbacks");
	pawl_latent_kv_cache_truncate_to(life.cache, 20);
	pawl_latent_runner_feed(&life, 3, 20, 10, logits);
	ck_assert(memcmp(wanted, logits + 9 * N_VOCAB, sizeof(wanted)));
}
END_TEST

START_TEST(the_last_position_is_the_last)
{
	float logits[N_TOKENS * N_VOCAB];
	const uint32_t tokens[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	const struct pawl_storage *storage = pawl_latent_kv_cache_storage(life.cache, 1, 0);
	void *before = malloc((size_t)storage->n_bytes);
	const float *rows;

	for (int64_t n = 0; n < CAPACITY - 4; n += 4)
		pawl_latent_runner_feed(&life, 1, n, 4, logits);
	memcpy(before, storage->bytes, (size_t)storage->n_bytes);
	/* Eight rows do not fit, whatever of them is meant; four single ones do. */
	ck_assert_int_eq(
		pawl_latent_runner_forward(&life, &life.held[0], tokens, 4, &rows, &err),
		PAWL_SYMBOL);
	ck_assert(!memcmp(before, storage->bytes, (size_t)storage->n_bytes));
	for (int i = 0; i < 4; i++)
		OK(pawl_latent_runner_forward(&life, &life.held[1], tokens + i, 1, &rows, &err));
	for (int i = 0; i < N_VOCAB; i++)
		ck_assert(isfinite(rows[i]));
	ck_assert_int_eq(pawl_latent_kv_cache_check_room(life.cache, 1, &err), PAWL_CAPACITY);
	memcpy(before, storage->bytes, (size_t)storage->n_bytes);
	ck_assert_int_ne(
		pawl_latent_runner_forward(&life, &life.held[1], tokens, 1, &rows, &err), PAWL_OK);
	ck_assert(!memcmp(before, storage->bytes, (size_t)storage->n_bytes));
	ck_assert_int_eq(pawl_latent_kv_cache_len(life.cache), CAPACITY);
	free(before);
}
END_TEST

/* In the midst of a prompt, when the session of single tokens is yet to be made. */
START_TEST(without_memory_nothing_changes)
{
	const struct pawl_storage *storage = pawl_latent_kv_cache_storage(life.cache, 1, 0);
	float logits[N_TOKENS * N_VOCAB], wanted[N_VOCAB];
	const uint32_t token = pawl_test_token(1, 16);
	void *before = malloc((size_t)storage->n_bytes);
	enum pawl_status status = PAWL_OUT_OF_MEMORY;
	const float *rows = NULL;
	int n;

	fresh(1, 17, wanted);
	pawl_latent_runner_feed(&life, 1, 0, 16, logits);
	memcpy(before, storage->bytes, (size_t)storage->n_bytes);
	for (n = 0; status == PAWL_OUT_OF_MEMORY; n++) {
		pawl_latent_runner_let_go(&life, 1);
		pawl_memory_fail_after(n);
		status = pawl_latent_runner_hold(&life, 1, &err);
		if (!status)
			status = pawl_latent_runner_forward(
				&life, &life.held[1], &token, 1, &rows, &err);
		pawl_memory_fail_after(-1);
		if (status) {
			ck_assert(!memcmp(before, storage->bytes, (size_t)storage->n_bytes));
			ck_assert_int_eq(pawl_latent_kv_cache_len(life.cache), 16);
		}
	}
	OK(status);
	ck_assert_int_gt(n, 20);
	pawl_latent_expect_same(wanted, rows, 1, "after all failures");
	free(before);
}
END_TEST

Suite *
pawl_latent_attention_suite(void)
{
	Suite *suite = suite_create("latent_attention");
	TCase *tcase = tcase_create("latent_attention");

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, every_way_gives_the_same_bits, 0, 3);
	tcase_add_loop_test(tcase, absorbed_is_materialized, 0, 2);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("session");
	tcase_add_checked_fixture(tcase, begin_life, end_life);
	tcase_add_test(tcase, another_cache_serves_its_own_content);
	tcase_add_test(tcase, what_was_taken_back_is_forgotten);
	tcase_add_test(tcase, the_last_position_is_the_last);
	tcase_add_test(tcase, without_memory_nothing_changes);
	suite_add_tcase(suite, tcase);
	return suite;
}

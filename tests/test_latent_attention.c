/*
 * Multi-head latent attention over a cache of latents, in absorbed form: against the form that makes
 * every key and value, across targets, threads, chunks and kinds of cache; and a session's life over it.
 */
#include "models/latent_graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/interp.h"
#include "ir/eval.h"
#include "runtime/decode_session.h"
#include "runtime/inference_context.h"
#include "runtime/memory.h"
#include "runtime/token_data.h"
#include "tests/decoding.h"
#include "tests/suites.h"
#include "tests/tiny_mla.h"

enum { N_TOKENS = 41, CAPACITY = 160, N_VOCAB = 40, BLOCK = 16, N_BLOCKS = CAPACITY / BLOCK };

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

/* One way to run a model, and the sessions it takes: of a whole chunk and of one token. */
struct way {
	const char *target;
	int n_threads;
	int64_t chunk;
	enum pawl_dtype kv;
	enum pawl_precision precision;
	bool is_paged;
	bool is_clean; /* the cache is zero at first, not NaN */
};

static const struct way plain = {"ref", 1, 8, PAWL_DTYPE_F16, PAWL_PRECISION_A16, false, false};

struct runner {
	struct way way;
	const struct pawl_model_source *source;
	struct pawl_device *device;
	struct pawl_inference_context *context;
	struct pawl_latent_kv_cache *cache;
	struct held {
		struct pawl_plan *plan;
		struct pawl_decode_session *session;
		struct pawl_token_buffers buffers;
	} held[2];
};

static struct pawl_plan_key
key_of(const struct runner *r, int64_t seq)
{
	return (struct pawl_plan_key){.seq = seq,
		.max_seq_len = CAPACITY,
		.n_layers = r->source->n_layers,
		.cache_dtype = r->way.kv,
		.precision = r->way.precision,
		.device = r->device->id,
		.n_sequences = r->way.is_paged,
		.block_size = r->way.is_paged ? BLOCK : 0,
		.max_blocks = r->way.is_paged ? N_BLOCKS : 0};
}

static enum pawl_status
try_to_hold(struct runner *r, struct held *held, int64_t seq)
{
	const struct pawl_graph_request request = {.n_tokens = seq,
		.capacity = CAPACITY,
		.kv_dtype = r->way.kv,
		.logits = PAWL_LOGITS_ALL,
		.n_sequences = r->way.is_paged,
		.block_size = BLOCK,
		.max_blocks = N_BLOCKS};
	const struct pawl_plan_options options = {.key = key_of(r, seq)};
	struct pawl_graph *graph;
	enum pawl_status status;

	OK(r->source->build(r->source->ctx, &request, &graph, &err));
	status = pawl_plan_build(graph, r->device, &options, &held->plan, &err);
	pawl_graph_free(graph);
	if (!status)
		status = pawl_decode_session_new_latent(held->plan, r->source->weights, r->cache,
			pawl_inference_context_team(r->context), &held->session, &err);
	if (!status)
		status = pawl_token_buffers_init(&held->buffers, held->session, &err);
	return status;
}

static void
let_go(struct held *held)
{
	pawl_token_buffers_release(&held->buffers);
	pawl_decode_session_free(held->session);
	pawl_plan_unref(held->plan);
	*held = (struct held){0};
}

/* What nobody has written is NaN. */
static void
poison(struct pawl_latent_kv_cache *cache)
{
	const struct pawl_latent_shape *shape = pawl_latent_kv_cache_shape(cache);

	for (int32_t i = 0; i < shape->n_layers; i++) {
		struct pawl_storage *storage = pawl_latent_kv_cache_storage(cache, i, 0);

		memset(storage->bytes, 0xff, (size_t)storage->n_bytes);
	}
}

static struct pawl_latent_kv_cache *
new_cache(const struct runner *r, struct pawl_tiny_mla *model)
{
	const struct pawl_latent_shape shape = pawl_tiny_mla_cache(model, CAPACITY, r->way.kv);
	struct pawl_latent_kv_cache *cache;

	OK(pawl_latent_kv_cache_with_capacity(r->context, &shape, &cache, &err));
	if (!r->way.is_clean)
		poison(cache);
	return cache;
}

static void
begin(struct runner *r, struct pawl_tiny_mla *model, const struct way *way)
{
	*r = (struct runner){.way = *way, .source = pawl_tiny_mla_source(model)};
	OK(pawl_device_open(way->target, NULL, &r->device, &err));
	OK(pawl_inference_context_new(r->device, way->n_threads, &r->context, &err));
	r->cache = new_cache(r, model);
	OK(try_to_hold(r, &r->held[0], way->chunk));
	OK(try_to_hold(r, &r->held[1], 1));
}

static void
end(struct runner *r)
{
	for (int i = 0; i < 2; i++)
		let_go(&r->held[i]);
	pawl_latent_kv_cache_free(r->cache);
	pawl_inference_context_free(r->context);
	pawl_device_unref(r->device);
}

/* Blocks in no order. */
static int64_t
block_of(int64_t i)
{
	return (i * 7 + 3) % N_BLOCKS;
}

static enum pawl_status
fill_pages(struct runner *r, struct held *held, const uint32_t *tokens, int64_t n,
	struct pawl_token_data *data)
{
	struct pawl_token_buffers *b = &held->buffers;
	int64_t len = pawl_latent_kv_cache_len(r->cache);
	struct pawl_token_row rows[N_TOKENS];

	for (int64_t i = 0; i < N_BLOCKS; i++)
		b->block_table[i] = (uint32_t)block_of(i);
	for (int64_t i = 0; i < b->seq; i++) {
		int64_t p = len + i;

		rows[i] = (struct pawl_token_row){.position = -1};
		if (i < n)
			rows[i] = (struct pawl_token_row){
				tokens[i], p, block_of(p / BLOCK) * BLOCK + p % BLOCK};
	}
	return pawl_token_buffers_fill_rows(b, r->source, rows, data, &err);
}

/* Runs n tokens of a session and advances; *logits [n][N_VOCAB]. */
static enum pawl_status
forward(struct runner *r, struct held *held, const uint32_t *tokens, int64_t n,
	const float **logits)
{
	struct pawl_token_data data;
	enum pawl_status status;

	if (r->way.is_paged)
		status = fill_pages(r, held, tokens, n, &data);
	else
		status = pawl_token_buffers_fill(&held->buffers, r->source, tokens, n,
			pawl_latent_kv_cache_len(r->cache), &data, &err);
	if (!status)
		status = pawl_decode_session_realize(held->session, &data, &held->buffers.env,
			pawl_inference_context_counters(r->context), &err);
	if (status)
		return status;
	pawl_latent_kv_cache_advance(r->cache, n);
	*logits = pawl_decode_session_output(held->session, 0, NULL);
	return PAWL_OK;
}

/* Tokens first .. first + n - 1 of a sequence in chunks, then one by one; the logits of each. */
static void
feed(struct runner *r, unsigned seed, int64_t first, int64_t n, float *logits)
{
	uint32_t tokens[N_TOKENS];
	const float *rows;

	ck_assert_int_le(n, N_TOKENS);
	for (int64_t i = 0; i < n; i++)
		tokens[i] = pawl_test_token(seed, first + i);
	for (int64_t done = 0, take; done < n; done += take) {
		bool is_chunk = n - done > r->way.chunk / 2;

		take = !is_chunk ? 1 : n - done < r->way.chunk ? n - done : r->way.chunk;
		OK(forward(r, &r->held[!is_chunk], tokens + done, take, &rows));
		memcpy(logits + done * N_VOCAB, rows, (size_t)(take * N_VOCAB) * sizeof(float));
	}
}

static void
expect_same(const float *wanted, const float *got, int64_t n, const char *what)
{
	for (int64_t i = 0; i < n * N_VOCAB; i++) {
		ck_assert(isfinite(got[i]));
		ck_assert_msg(pawl_eval_same(wanted[i], got[i]), "%s: logit %d of position %d: %a, %a",
			what, (int)(i % N_VOCAB), (int)(i / N_VOCAB), (double)wanted[i],
			(double)got[i]);
	}
}

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
run(struct pawl_tiny_mla *model, const struct way *way, float *logits)
{
	struct runner r;

	begin(&r, model, way);
	feed(&r, 1, 0, N_TOKENS, logits);
	end(&r);
}

/* Ways that must agree with `plain` to the bit. */

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
	struct way way = plain;

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
		expect_same(wanted, got, N_TOKENS, ways[i].what);
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
static struct runner life;

static void
begin_life(void)
{
	model = make_model(PAWL_DTYPE_F32);
	begin(&life, model, &plain);
}

static void
end_life(void)
{
	end(&life);
	pawl_tiny_mla_free(model);
}

/* The logits of token n - 1 of a sequence, all of it run afresh. */
static void
fresh(unsigned seed, int64_t n, float *last)
{
	static float logits[N_TOKENS * N_VOCAB];
	struct runner r;

	begin(&r, model, &plain);
	feed(&r, seed, 0, n, logits);
	memcpy(last, logits + (n - 1) * N_VOCAB, N_VOCAB * sizeof(float));
	end(&r);
}

static void
refresh(enum pawl_disposition_kind wanted)
{
	const struct pawl_kv_rebind_source source = pawl_latent_kv_cache_source(life.cache);

	for (int i = 0; i < 2; i++) {
		const struct pawl_plan_key key = key_of(&life, i ? 1 : life.way.chunk);
		struct pawl_disposition what;

		pawl_decode_session_refresh(&life.held[i].session, &key, &source,
			(struct pawl_invalidate){NULL, NULL},
			pawl_inference_context_counters(life.context), &what);
		ck_assert_str_eq(
			pawl_disposition_name(what.kind), pawl_disposition_name(wanted));
	}
}

static void
swap(struct pawl_latent_kv_cache **cache)
{
	struct pawl_latent_kv_cache *other = *cache;

	*cache = life.cache;
	life.cache = other;
}

START_TEST(another_cache_serves_its_own_content)
{
	struct pawl_latent_kv_cache *other = new_cache(&life, model);
	float logits[N_TOKENS * N_VOCAB], ours[N_VOCAB], theirs[N_VOCAB], stale[N_VOCAB];

	fresh(1, 21, ours);
	fresh(2, 14, theirs);
	feed(&life, 1, 0, 20, logits);
	refresh(PAWL_SESSION_KEPT);
	swap(&other);
	refresh(PAWL_SESSION_REBOUND);
	feed(&life, 2, 0, 13, logits);
	/* Without a rebind a session goes on with the storages it has. */
	swap(&other);
	feed(&life, 1, 20, 1, stale);
	ck_assert(memcmp(stale, ours, sizeof(ours)));
	pawl_latent_kv_cache_truncate_to(life.cache, 20);
	refresh(PAWL_SESSION_REBOUND);
	feed(&life, 1, 20, 1, logits);
	expect_same(ours, logits, 1, "back on the first");
	swap(&other);
	refresh(PAWL_SESSION_REBOUND);
	feed(&life, 2, 13, 1, logits);
	expect_same(theirs, logits, 1, "the second");
	pawl_latent_kv_cache_free(other);
}
END_TEST

START_TEST(what_was_taken_back_is_forgotten)
{
	float logits[N_TOKENS * N_VOCAB], wanted[N_VOCAB];

	fresh(1, 30, wanted);
	feed(&life, 1, 0, 20, logits);
	feed(&life, 3, 20, 9, logits);
	pawl_latent_kv_cache_truncate_to(life.cache, 20);
	feed(&life, 2, 20, 3, logits);
	pawl_latent_kv_cache_truncate_to(life.cache, 17);
	feed(&life, 1, 17, 13, logits);
	expect_same(wanted, logits + 12 * N_VOCAB, 1, "after two rollbacks");
	pawl_latent_kv_cache_truncate_to(life.cache, 20);
	feed(&life, 3, 20, 10, logits);
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
		feed(&life, 1, n, 4, logits);
	memcpy(before, storage->bytes, (size_t)storage->n_bytes);
	/* Eight rows do not fit, whatever of them is meant; four single ones do. */
	ck_assert_int_eq(forward(&life, &life.held[0], tokens, 4, &rows), PAWL_SYMBOL);
	ck_assert(!memcmp(before, storage->bytes, (size_t)storage->n_bytes));
	for (int i = 0; i < 4; i++)
		OK(forward(&life, &life.held[1], tokens + i, 1, &rows));
	for (int i = 0; i < N_VOCAB; i++)
		ck_assert(isfinite(rows[i]));
	ck_assert_int_eq(pawl_latent_kv_cache_check_room(life.cache, 1, &err), PAWL_CAPACITY);
	memcpy(before, storage->bytes, (size_t)storage->n_bytes);
	ck_assert_int_ne(forward(&life, &life.held[1], tokens, 1, &rows), PAWL_OK);
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
	feed(&life, 1, 0, 16, logits);
	memcpy(before, storage->bytes, (size_t)storage->n_bytes);
	for (n = 0; status == PAWL_OUT_OF_MEMORY; n++) {
		let_go(&life.held[1]);
		pawl_memory_fail_after(n);
		status = try_to_hold(&life, &life.held[1], 1);
		if (!status)
			status = forward(&life, &life.held[1], &token, 1, &rows);
		pawl_memory_fail_after(-1);
		if (status) {
			ck_assert(!memcmp(before, storage->bytes, (size_t)storage->n_bytes));
			ck_assert_int_eq(pawl_latent_kv_cache_len(life.cache), 16);
		}
	}
	OK(status);
	ck_assert_int_gt(n, 20);
	expect_same(wanted, rows, 1, "after all failures");
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

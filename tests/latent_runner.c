#include "tests/latent_runner.h"

#include <check.h>
#include <math.h>
#include <string.h>

#include "ir/eval.h"
#include "tests/decoding.h"

enum { N_VOCAB = PAWL_LATENT_N_VOCAB, BLOCK = PAWL_LATENT_BLOCK, MAX_TOKENS = 64 };

static struct pawl_error err;

#define OK(call) ck_assert_msg((call) == PAWL_OK, "%s", err.text)

const struct pawl_latent_way pawl_latent_plain = {
	"ref", 1, 8, PAWL_DTYPE_F16, PAWL_PRECISION_A16, false, 160, false};

static int64_t
capacity_of(const struct pawl_latent_runner *r)
{
	return pawl_latent_kv_cache_shape(r->cache)->max_seq_len;
}

static struct pawl_plan_key
key_of(const struct pawl_latent_runner *r, int64_t seq)
{
	return (struct pawl_plan_key){.seq = seq,
		.max_seq_len = capacity_of(r),
		.n_layers = r->source->n_layers,
		.cache_dtype = r->way.kv,
		.precision = r->way.precision,
		.device = r->device->id,
		.n_sequences = r->way.is_paged,
		.block_size = r->way.is_paged ? BLOCK : 0,
		.max_blocks = r->way.is_paged ? capacity_of(r) / BLOCK : 0};
}

static struct pawl_graph *
graph_of(const struct pawl_latent_runner *r, int64_t seq)
{
	const struct pawl_graph_request request = {.n_tokens = seq,
		.capacity = capacity_of(r),
		.kv_dtype = r->way.kv,
		.logits = PAWL_LOGITS_ALL,
		.n_sequences = r->way.is_paged,
		.block_size = BLOCK,
		.max_blocks = capacity_of(r) / BLOCK};
	struct pawl_graph *graph;

	OK(r->source->build(r->source->ctx, &request, &graph, &err));
	return graph;
}

static int64_t
seq_of(const struct pawl_latent_runner *r, int i)
{
	return i ? 1 : r->way.chunk;
}

/* The plan of session i for the cache as it is, regrown from the one it has if that can be. */
static enum pawl_status
make_plan(struct pawl_latent_runner *r, int i, struct pawl_error *e)
{
	struct pawl_counters *counters = pawl_inference_context_counters(r->context);
	const struct pawl_plan_options options = {
		.key = key_of(r, seq_of(r, i)), .counters = counters};
	struct pawl_graph *graph = graph_of(r, seq_of(r, i));
	struct pawl_plan *before = r->held[i].plan, *plan;
	enum pawl_status status = PAWL_UNSUPPORTED;

	if (before)
		status = pawl_plan_regrow(before, graph, &options, &plan, e);
	counters->regrows += !status;
	if (status == PAWL_UNSUPPORTED)
		status = pawl_plan_build(graph, r->device, &options, &plan, e);
	pawl_graph_free(graph);
	if (status)
		return status;
	pawl_plan_unref(before);
	r->held[i].plan = plan;
	return PAWL_OK;
}

enum pawl_status
pawl_latent_runner_hold(struct pawl_latent_runner *r, int i, struct pawl_error *e)
{
	struct pawl_latent_held *held = &r->held[i];
	enum pawl_status status = make_plan(r, i, e);

	if (!status)
		status = pawl_decode_session_new_latent(held->plan, r->source->weights, r->cache,
			pawl_inference_context_team(r->context), &held->session, e);
	if (!status)
		status = pawl_token_buffers_init(&held->buffers, held->session, e);
	return status;
}

void
pawl_latent_runner_let_go(struct pawl_latent_runner *r, int i)
{
	pawl_token_buffers_release(&r->held[i].buffers);
	pawl_decode_session_free(r->held[i].session);
	pawl_plan_unref(r->held[i].plan);
	r->held[i] = (struct pawl_latent_held){0};
}

static void
poison(struct pawl_latent_kv_cache *cache)
{
	const struct pawl_latent_shape *shape = pawl_latent_kv_cache_shape(cache);

	for (int32_t i = 0; i < shape->n_layers; i++) {
		struct pawl_storage *storage = pawl_latent_kv_cache_storage(cache, i, 0);

		memset(storage->bytes, 0xff, (size_t)storage->n_bytes);
	}
}

struct pawl_latent_kv_cache *
pawl_latent_runner_cache(const struct pawl_latent_runner *r, const struct pawl_tiny_mla *model)
{
	const struct pawl_latent_shape shape =
		pawl_tiny_mla_cache(model, r->way.capacity, r->way.kv);
	struct pawl_latent_kv_cache *cache;

	OK(pawl_latent_kv_cache_with_capacity(r->context, &shape, &cache, &err));
	if (!r->way.is_clean)
		poison(cache);
	return cache;
}

void
pawl_latent_runner_init(struct pawl_latent_runner *r, const struct pawl_tiny_mla *model,
	const struct pawl_latent_way *way)
{
	*r = (struct pawl_latent_runner){.way = *way, .source = pawl_tiny_mla_source(model)};
	OK(pawl_device_open(way->target, NULL, &r->device, &err));
	OK(pawl_inference_context_new(r->device, way->n_threads, &r->context, &err));
	r->cache = pawl_latent_runner_cache(r, model);
	for (int i = 0; i < 2; i++)
		OK(pawl_latent_runner_hold(r, i, &err));
}

void
pawl_latent_runner_release(struct pawl_latent_runner *r)
{
	for (int i = 0; i < 2; i++)
		pawl_latent_runner_let_go(r, i);
	pawl_latent_kv_cache_free(r->cache);
	pawl_inference_context_free(r->context);
	pawl_device_unref(r->device);
}

void
pawl_latent_runner_swap(struct pawl_latent_runner *r, struct pawl_latent_kv_cache **cache)
{
	struct pawl_latent_kv_cache *other = *cache;

	*cache = r->cache;
	r->cache = other;
}

enum pawl_disposition_kind
pawl_latent_runner_refresh(struct pawl_latent_runner *r, int i)
{
	const struct pawl_kv_rebind_source source = pawl_latent_kv_cache_source(r->cache);
	const struct pawl_plan_key key = key_of(r, seq_of(r, i));
	struct pawl_disposition what;

	pawl_decode_session_refresh(&r->held[i].session, &key, &source,
		(struct pawl_invalidate){NULL, NULL}, pawl_inference_context_counters(r->context),
		&what);
	return what.kind;
}

void
pawl_latent_runner_ready(struct pawl_latent_runner *r)
{
	OK(pawl_latent_kv_cache_own(r->cache, &err));
	for (int i = 0; i < 2; i++) {
		if (pawl_latent_runner_refresh(r, i) != PAWL_SESSION_DROPPED)
			continue;
		pawl_token_buffers_release(&r->held[i].buffers);
		OK(pawl_latent_runner_hold(r, i, &err));
	}
}

/* Blocks in no order. */
static int64_t
block_of(int64_t i, int64_t n_blocks)
{
	return (i * 7 + 3) % n_blocks;
}

static enum pawl_status
fill_pages(struct pawl_latent_runner *r, struct pawl_latent_held *held, const uint32_t *tokens,
	int64_t n, struct pawl_token_data *data, struct pawl_error *e)
{
	struct pawl_token_buffers *b = &held->buffers;
	int64_t len = pawl_latent_kv_cache_len(r->cache), n_blocks = capacity_of(r) / BLOCK;
	struct pawl_token_row rows[MAX_TOKENS];

	ck_assert(n_blocks % 7 && b->seq <= MAX_TOKENS);
	for (int64_t i = 0; i < n_blocks; i++)
		b->block_table[i] = (uint32_t)block_of(i, n_blocks);
	for (int64_t i = 0; i < b->seq; i++) {
		int64_t p = len + i;

		rows[i] = (struct pawl_token_row){.position = -1};
		if (i < n)
			rows[i] = (struct pawl_token_row){tokens[i], p,
				block_of(p / BLOCK, n_blocks) * BLOCK + p % BLOCK};
	}
	return pawl_token_buffers_fill_rows(b, r->source, rows, data, e);
}

enum pawl_status
pawl_latent_runner_forward(struct pawl_latent_runner *r, struct pawl_latent_held *held,
	const uint32_t *tokens, int64_t n, const float **logits, struct pawl_error *e)
{
	struct pawl_token_data data;
	enum pawl_status status;

	if (r->way.is_paged)
		status = fill_pages(r, held, tokens, n, &data, e);
	else
		status = pawl_token_buffers_fill(&held->buffers, r->source, tokens, n,
			pawl_latent_kv_cache_len(r->cache), &data, e);
	if (!status)
		status = pawl_decode_session_realize(held->session, &data, &held->buffers.env,
			pawl_inference_context_counters(r->context), e);
	if (status)
		return status;
	pawl_latent_kv_cache_advance(r->cache, n);
	*logits = pawl_decode_session_output(held->session, 0, NULL);
	return PAWL_OK;
}

void
pawl_latent_runner_feed(
	struct pawl_latent_runner *r, unsigned seed, int64_t first, int64_t n, float *logits)
{
	uint32_t tokens[MAX_TOKENS];
	const float *rows;

	ck_assert_int_le(n, MAX_TOKENS);
	for (int64_t i = 0; i < n; i++)
		tokens[i] = pawl_test_token(seed, first + i);
	for (int64_t done = 0, take; done < n; done += take) {
		bool is_chunk = n - done > r->way.chunk / 2;

		take = !is_chunk ? 1 : n - done < r->way.chunk ? n - done : r->way.chunk;
		OK(pawl_latent_runner_forward(
			r, &r->held[!is_chunk], tokens + done, take, &rows, &err));
		memcpy(logits + done * N_VOCAB, rows, (size_t)(take * N_VOCAB) * sizeof(float));
	}
}

void
pawl_latent_expect_same(const float *wanted, const float *got, int64_t n, const char *what)
{
	for (int64_t i = 0; i < n * N_VOCAB; i++) {
		ck_assert(isfinite(got[i]));
		ck_assert_msg(pawl_eval_same(wanted[i], got[i]), "%s: logit %d of position %d: %a, %a",
			what, (int)(i % N_VOCAB), (int)(i / N_VOCAB), (double)wanted[i],
			(double)got[i]);
	}
}

uint64_t
pawl_latent_digest(const struct pawl_latent_kv_cache *cache)
{
	const struct pawl_latent_shape *shape = pawl_latent_kv_cache_shape(cache);
	struct pawl_shape_key key = PAWL_SHAPE_KEY_INIT;

	pawl_shape_key_u64(&key, (uint64_t)pawl_latent_kv_cache_len(cache));
	pawl_shape_key_u64(&key, pawl_latent_kv_cache_alloc_id(cache).value);
	pawl_shape_key_u64(&key, (uint64_t)shape->max_seq_len);
	for (int32_t i = 0; i < shape->n_layers * shape->n_slots; i++) {
		const struct pawl_kv_tensor *tensor = pawl_latent_kv_cache_slot(
			cache, i / shape->n_slots, i % shape->n_slots);

		pawl_shape_key_u64(&key, tensor->version);
		pawl_shape_key_u64(&key, (uintptr_t)tensor->storage);
		if (tensor->storage)
			pawl_shape_key_bytes(&key, tensor->storage->bytes,
				(size_t)tensor->storage->n_bytes);
	}
	return key.value;
}

const struct pawl_latent_shape pawl_latent_many_slots = {3, 4, 20, PAWL_DTYPE_F16,
	{{1, {5}}, {2, {3, 7}}, {4, {2, 1, 3, 2}}, {1, {1}}}};

struct pawl_latent_kv_cache *
pawl_latent_cache_of(struct pawl_inference_context *context, const struct pawl_latent_shape *shape)
{
	struct pawl_latent_kv_cache *cache;

	OK(pawl_latent_kv_cache_with_capacity(context, shape, &cache, &err));
	return cache;
}

const struct pawl_counters *
pawl_latent_runner_counters(const struct pawl_latent_runner *r)
{
	return pawl_inference_context_counters(r->context);
}

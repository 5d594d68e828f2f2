/*
 * The fixture of a suite on sessions over latents: a model of which each layer writes x and half of
 * it and adds what it sees of both, two caches and a session on the first.  Included by the one
 * source of a suite, whose own the statics are.
 */
#ifndef PAWL_TESTS_LATENT_SESSION_FIXTURE_H
#define PAWL_TESTS_LATENT_SESSION_FIXTURE_H

#include "runtime/latent_kv_cache.h"

#include <stdio.h>
#include <string.h>

#include "ir/build.h"
#include "runtime/decode_session.h"
#include "runtime/inference_context.h"
#include "tests/latent_cache_fixture.h"

enum { N_VOCAB = 40 };

static float embedding[N_VOCAB][WIDTH];
static struct pawl_weights *weights;
static struct pawl_plan *plan;
static struct pawl_symenv env;
static struct pawl_latent_kv_cache *first, *second;
static struct pawl_decode_session *session;

static inline enum pawl_status
find_weight(void *ctx, const char *name, struct pawl_weight *out, struct pawl_error *e)
{
	(void)ctx;
	(void)name;
	(void)e;
	*out = (struct pawl_weight){
		embedding, sizeof(embedding), PAWL_DTYPE_F32, 2, {N_VOCAB, WIDTH}};
	return PAWL_OK;
}

static inline struct pawl_node *
attend(struct pawl_graph *g, struct pawl_node *cache, struct pawl_node *x, int64_t width,
	struct pawl_node *offset)
{
	const int64_t as_cache[] = {1, 1, CAPACITY, width}, as_heads[] = {1, 1, width},
		      as_row[] = {1, width};
	struct pawl_attrs attrs = pawl_attrs_default();
	struct pawl_node *k, *in[4];

	cache = pawl_build_write_slice(
		g, cache, pawl_build_cast(g, x, PAWL_DTYPE_F16), NULL, 0, offset);
	pawl_graph_add_output(g, cache);
	k = pawl_build_reshape(g, cache, 4, as_cache);
	in[0] = pawl_build_reshape(g, x, 3, as_heads);
	in[1] = in[2] = k;
	in[3] = offset;
	attrs.scale = 0.25;
	attrs.sym = 0;
	return pawl_build_reshape(
		g, pawl_build(g, PAWL_OP_ATTENTION, NULL, in, 4, &attrs, NULL), 2, as_row);
}

static inline struct pawl_graph *
latent_graph(void)
{
	struct pawl_graph *g = pawl_graph_new("latent");
	const struct pawl_type scalar = pawl_type_make(PAWL_DTYPE_I64, 0, NULL);
	const struct pawl_type ids = pawl_type_make(PAWL_DTYPE_U32, 1, (const int64_t[]){1});
	const struct pawl_type table =
		pawl_type_make(PAWL_DTYPE_F32, 2, (const int64_t[]){N_VOCAB, WIDTH});
	static const int64_t start[] = {0, 0}, stop[] = {1, ROPE};
	struct pawl_attrs join = pawl_attrs_default();
	struct pawl_node *token, *offset, *x, *outs[N_LAYERS];

	join.axis = 1;
	pawl_graph_add_symbol(g, "attended_len", 1, CAPACITY, 1);
	token = pawl_build_const(g, PAWL_ROLE_DATA, "token_ids", &ids);
	offset = pawl_build_const(g, PAWL_ROLE_DATA, "offset", &scalar);
	x = pawl_build_gather(g, pawl_build_const(g, PAWL_ROLE_WEIGHT, "embedding", &table), token);
	for (int i = 0; i < N_LAYERS; i++) {
		struct pawl_node *slots[2], *halves[2];

		for (int slot = 0; slot < 2; slot++) {
			const struct pawl_type type = pawl_latent_shape_type(&shape, slot);
			char name[32];

			snprintf(name, sizeof(name), "cache.%d.%d", slot, i);
			slots[slot] = pawl_build_const(g, PAWL_ROLE_KV, name, &type);
		}
		halves[0] = halves[1] = attend(
			g, slots[1], pawl_build_slice(g, x, start, stop), ROPE, offset);
		x = pawl_build_binary(g, PAWL_OP_ADD, x, attend(g, slots[0], x, WIDTH, offset));
		x = pawl_build_binary(g, PAWL_OP_ADD, x,
			pawl_build(g, PAWL_OP_CONCAT, NULL, halves, 2, &join, NULL));
		outs[i] = x;
	}
	pawl_graph_add_output(g, outs[N_LAYERS - 1]);
	ck_assert_msg(!g->error.status, "%s", g->error.text);
	return g;
}

static inline struct pawl_plan_key
latent_key(void)
{
	return (struct pawl_plan_key){.seq = 1,
		.max_seq_len = CAPACITY,
		.n_layers = N_LAYERS,
		.cache_dtype = PAWL_DTYPE_F16,
		.device = pawl_test_device()->id};
}

static inline struct pawl_decode_session *
session_on(struct pawl_latent_kv_cache *cache)
{
	struct pawl_decode_session *made;

	OK(pawl_decode_session_new_latent(
		plan, weights, cache, pawl_inference_context_team(context), &made, &err));
	return made;
}

static inline void
begin_model(void)
{
	static const struct pawl_weight_source source = {NULL, find_weight, NULL};
	const struct pawl_plan_options plan_options = {.key = latent_key()};
	struct pawl_graph *graph;

	begin_shape();
	for (int i = 0; i < N_VOCAB * WIDTH; i++)
		embedding[i / WIDTH][i % WIDTH] = (float)((i * 37 + 11) % 101 - 50) / 64.0f;
	graph = latent_graph();
	OK(pawl_weights_new(&source, &weights, &err));
	OK(pawl_plan_build(graph, pawl_test_device(), &plan_options, &plan, &err));
	pawl_graph_free(graph);
	OK(pawl_symenv_init(&env, plan->program->symbols, plan->program->n_symbols, &err));
	first = new_cache();
	second = new_cache();
	session = session_on(first);
}

static inline void
end_model(void)
{
	pawl_decode_session_free(session);
	pawl_latent_kv_cache_free(first);
	pawl_latent_kv_cache_free(second);
	pawl_symenv_release(&env);
	pawl_plan_unref(plan);
	pawl_weights_unref(weights);
	end_shape();
}

/* One token of a sequence through a session; its output. */
static inline const float *
step(struct pawl_decode_session *s, struct pawl_latent_kv_cache *cache, unsigned seed)
{
	const int64_t offset = pawl_latent_kv_cache_len(cache);
	const uint32_t token = pawl_test_token(seed, offset);
	const struct pawl_token_data data = {.token_ids = &token, .offset = &offset};

	pawl_symenv_clear(&env);
	OK(pawl_symenv_bind(&env, 0, offset + 1, &err));
	OK(pawl_decode_session_realize(
		s, &data, &env, pawl_inference_context_counters(context), &err));
	pawl_latent_kv_cache_advance(cache, 1);
	return pawl_decode_session_output(s, 2 * N_LAYERS, NULL);
}

/* The output of a fresh session on a fresh cache after n tokens. */
static inline void
fresh(unsigned seed, int n, float *out)
{
	struct pawl_latent_kv_cache *cache = new_cache();
	struct pawl_decode_session *s = session_on(cache);
	const float *row = NULL;

	for (int i = 0; i < n; i++)
		row = step(s, cache, seed);
	memcpy(out, row, WIDTH * sizeof(float));
	pawl_decode_session_free(s);
	pawl_latent_kv_cache_free(cache);
}

#endif

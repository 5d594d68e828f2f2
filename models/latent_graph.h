/*
 * Multi-head latent attention (DeepSeek-V2, section 2.1) over a cache of latents.
 *
 * A position keeps one row for all heads: a latent c of `rank` values, after its norm, and the rotary
 * part r of its key.  Head h has the key [U_K[h] c, r] and the value U_V[h] c, neither of which is
 * ever made: since q . U_K[h] c = (U_K[h]^T q) . c and the weights of attention sum outside U_V[h],
 *
 *	score = (U_K[h]^T q_nope) . c + q_rope . r,	y = U_V[h] (sum of weight * c)
 *
 * is attention of one key head of rank + rope values, whose value is the first `rank` of its key.
 */
#ifndef PAWL_MODELS_LATENT_GRAPH_H
#define PAWL_MODELS_LATENT_GRAPH_H

#include "models/decode_graph.h"

struct pawl_latent_dims {
	int64_t rank, nope, rope; /* a query head has nope + rope values */
	int64_t value;            /* a head's result */
};

/* The kv const cache.0.<layer> [capacity, rank + rope]: slot 0 of runtime/latent_kv_cache.h. */
struct pawl_node *pawl_latent_cache(struct pawl_graph *graph, const struct pawl_decode_inputs *in,
	const struct pawl_latent_dims *dims, int64_t layer);

/* The cache with c f32[T, rank] and r f32[T, 1, rope] written to the positions of their rows. */
struct pawl_node *pawl_latent_append(struct pawl_graph *graph, const struct pawl_decode_inputs *in,
	struct pawl_node *cache, struct pawl_node *c, struct pawl_node *r);

struct pawl_latent_query {
	struct pawl_node *nope, *rope; /* f32[T, heads, ..] */
	struct pawl_node *up_k;        /* U_K[h]^T: f32 or f16 [heads, rank, nope] */
	struct pawl_node *up_v;        /* U_V[h]: f32 or f16 [heads, value, rank] */
};

/* f32[T, heads, value]; attrs as pawl_decode_attend, scale 1 / sqrt(nope + rope) as a rule. */
struct pawl_node *pawl_latent_attend(struct pawl_graph *graph, const struct pawl_decode_inputs *in,
	const struct pawl_latent_dims *dims, const struct pawl_latent_query *q,
	struct pawl_node *cache, const struct pawl_attrs *attrs);

#endif

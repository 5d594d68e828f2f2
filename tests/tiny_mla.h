/*
 * A random model with multi-head latent attention (DeepSeek-V2 family, queries not compressed), in
 * two forms of the same weights:
 *
 *	absorbed	over a cache of latents, as models/latent_graph.h builds it
 *	materialized	keys and values of every head made from the latents, then ordinary attention;
 *			no cache: the whole sequence at once
 */
#ifndef PAWL_TESTS_TINY_MLA_H
#define PAWL_TESTS_TINY_MLA_H

#include "models/latent_graph.h"
#include "runtime/latent_kv_cache.h"

struct pawl_tiny_mla_options {
	int32_t n_layers;
	int64_t n_heads, n_embd, n_ff, n_vocab;
	struct pawl_latent_dims dims;
	enum pawl_dtype dtype; /* of the matrices; U_K and U_V are f32 beside f32, else f16 */
};

/* 2 layers, 4 heads of 16 + 8 over latents of 24 + 8, 64 wide, 40 tokens, f32. */
struct pawl_tiny_mla_options pawl_tiny_mla_defaults(void);

struct pawl_tiny_mla;

/* Asserts that it works. */
struct pawl_tiny_mla *pawl_tiny_mla_new(const struct pawl_tiny_mla_options *options);
void pawl_tiny_mla_free(struct pawl_tiny_mla *model);

/* build is the absorbed form; n_kv_heads, head_dim and k_layout say nothing. */
const struct pawl_model_source *pawl_tiny_mla_source(const struct pawl_tiny_mla *model);
/*
 * The same with rows of latents as the keys of one head in a cache of keys and values, whose
 * drivers can so run the model; that of values is written too and never read.
 */
const struct pawl_model_source *pawl_tiny_mla_pairs(const struct pawl_tiny_mla *model);
/* Of a cache for it. */
struct pawl_latent_shape pawl_tiny_mla_cache(
	const struct pawl_tiny_mla *model, int64_t capacity, enum pawl_dtype kv_dtype);

/*
 * The materialized form of n_tokens tokens from position 0 on; offset is data as in the other form.
 * Latents are rounded to kv_dtype and back.  Output 0: logits f32[n_tokens, n_vocab].
 */
struct pawl_graph *pawl_tiny_mla_materialized(
	struct pawl_tiny_mla *model, int64_t n_tokens, enum pawl_dtype kv_dtype);

#endif

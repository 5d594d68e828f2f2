/*
 * A random model of family llama, small enough for the reference target, with everything a real one
 * has: grouped heads, rope, gated feed-forward, caches written by write_slice.
 */
#ifndef PAWL_TESTS_TINY_MODEL_H
#define PAWL_TESTS_TINY_MODEL_H

#include "runtime/model_source.h"

struct pawl_tiny_options {
	int32_t n_layers;
	int64_t n_heads, n_kv_heads, head_dim, n_embd, n_ff, n_vocab;
	enum pawl_dtype dtype; /* of the matrices: float or quantized */
	enum pawl_layout k_layout;
	int64_t window;        /* of the attention of window_layers */
	uint32_t window_layers; /* bit i: layer i */
	bool has_mask; /* a mask const instead of causal attention bounded by length */
};

/* 2 layers, 4 heads over 2, 64 wide, 40 tokens, f32, k16. */
struct pawl_tiny_options pawl_tiny_defaults(void);

struct pawl_tiny_model;

/* Asserts that it works. */
struct pawl_tiny_model *pawl_tiny_model_new(const struct pawl_tiny_options *options);
/*
 * A model with copies of another's weights and options of its own, which may differ in layout and
 * mask only.
 */
struct pawl_tiny_model *pawl_tiny_model_twin(
	const struct pawl_tiny_model *model, const struct pawl_tiny_options *options);
void pawl_tiny_model_free(struct pawl_tiny_model *model);
const struct pawl_model_source *pawl_tiny_model_source(const struct pawl_tiny_model *model);
/* How often weight pages were told to go; how often a graph was built. */
int pawl_tiny_model_drops(const struct pawl_tiny_model *model);
int pawl_tiny_model_graphs(const struct pawl_tiny_model *model);

#endif

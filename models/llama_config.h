/*
 * Hyperparameters of a model of family `llama`, read from GGUF metadata and checked against the
 * tensors, so that a graph can be built without further checks.
 */
#ifndef PAWL_MODELS_LLAMA_CONFIG_H
#define PAWL_MODELS_LLAMA_CONFIG_H

#include "models/gguf.h"

enum { PAWL_LLAMA_MAX_LAYERS = 1024 };

struct pawl_llama_config {
	int64_t n_layers, n_embd, n_heads, n_kv_heads, head_dim, n_ff, n_vocab, n_rot, n_ctx;
	double eps;
	double rope_base;
	double rope_scale;         /* positions are divided by it; 1: as they are */
	const float *rope_factors; /* frequencies are divided by factor[i], n_rot / 2; NULL: none */
	bool has_head;             /* output.weight; without it the embedding is the head too */
};

/*
 * PAWL_INVALID_FILE for metadata or tensors that contradict each other, naming the field;
 * PAWL_UNSUPPORTED for another family, experts, or a rope scaling other than none and linear.
 * The config points into the file.  Marks the tensors that the family reads as used.
 */
enum pawl_status pawl_llama_config_read(
	const struct pawl_gguf *gguf, struct pawl_llama_config *out, struct pawl_error *err);

/* Whether layer i has a bias named blk.<i>.<what>.bias. */
bool pawl_llama_has_bias(const struct pawl_gguf *gguf, int64_t layer, const char *what);

#endif

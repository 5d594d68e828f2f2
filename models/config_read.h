/*
 * What reading the hyperparameters of every decoder family shares; private to models/.  Keys begin
 * with the name of the family.
 */
#ifndef PAWL_MODELS_CONFIG_READ_H
#define PAWL_MODELS_CONFIG_READ_H

#include "models/model_config.h"

enum { PAWL_CONFIG_KEY_BYTES = 64 };

/* "<family>.<what>" in room; returns room. */
const char *pawl_config_key(char room[PAWL_CONFIG_KEY_BYTES], const char *family, const char *what);

/*
 * Sizes, heads, epsilon and rope; attention_scale of a head's width, no window, unscaled
 * embeddings. PAWL_UNSUPPORTED for a rope scaling other than none and linear.
 */
enum pawl_status pawl_config_read_shape(const struct pawl_gguf *gguf, const char *family,
	struct pawl_model_config *out, struct pawl_error *err);

/* The base of rope at a key, 10000 where it is missing. */
enum pawl_status pawl_config_read_base(const struct pawl_gguf *gguf, const char *family,
	const char *what, double *base, struct pawl_error *err);

/* A vector blk.<layer>.<what>.weight. */
struct pawl_config_vector {
	const char *what;
	int64_t n;
};

/*
 * Embedding, head, frequency factors; of each layer the projections of attention and a gated
 * feed-forward with the biases there are, their two norms, and n_more vectors.
 */
enum pawl_status pawl_config_check_tensors(const struct pawl_gguf *gguf,
	struct pawl_model_config *config, const struct pawl_config_vector *more, size_t n_more,
	struct pawl_error *err);

#endif

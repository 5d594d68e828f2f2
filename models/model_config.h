/*
 * Hyperparameters of a model, read from GGUF metadata and checked against the tensors, so that a
 * graph can be built without further checks; and the families that know how.
 */
#ifndef PAWL_MODELS_MODEL_CONFIG_H
#define PAWL_MODELS_MODEL_CONFIG_H

#include "models/gguf.h"
#include "runtime/model_source.h"

enum { PAWL_MAX_MODEL_LAYERS = PAWL_MAX_WINDOW_LAYERS };

struct pawl_model_config {
	int64_t n_layers, n_embd, n_heads, n_kv_heads, head_dim, n_ff, n_vocab, n_rot, n_ctx;
	double eps;
	double attention_scale; /* of the products of queries and keys */
	double embedding_scale; /* 1: as they are */
	enum pawl_pairs rope_pairs;
	double rope_base;
	double rope_scale;         /* positions are divided by it; 1: as they are */
	const float *rope_factors; /* frequencies are divided by factor[i], n_rot / 2; NULL: none */
	int64_t window;            /* of the attention of window_layers, 0: none has one */
	struct pawl_layer_set window_layers;
	double window_rope_base; /* of window_layers, positions as they are; 0: they turn as all */
	bool has_head;           /* output.weight; without it the embedding is the head too */
};

struct pawl_model_family {
	const char *name; /* general.architecture, which keys begin with */
	/*
	 * PAWL_INVALID_FILE for metadata or tensors that contradict each other, naming the field;
	 * PAWL_UNSUPPORTED for what the family has and Pawl does not.  The config points into the
	 * file.  Marks the tensors that the family reads as used.
	 */
	enum pawl_status (*read)(const struct pawl_gguf *gguf, struct pawl_model_config *out,
		struct pawl_error *err);
	/* gguf gives the weights' types. */
	enum pawl_status (*graph)(const struct pawl_gguf *gguf,
		const struct pawl_model_config *config, const struct pawl_graph_request *request,
		struct pawl_graph **out, struct pawl_error *err);
};

/* Of the file; PAWL_UNSUPPORTED, naming it, for one that nothing here knows. */
enum pawl_status pawl_model_family_find(
	const struct pawl_gguf *gguf, const struct pawl_model_family **out, struct pawl_error *err);

/* Both in one. */
enum pawl_status pawl_model_config_read(const struct pawl_gguf *gguf,
	const struct pawl_model_family **family, struct pawl_model_config *out,
	struct pawl_error *err);

#endif

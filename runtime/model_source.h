/*
 * What a model family gives the runtime: graphs, weights, rope tables.  The runtime knows no family
 * and no file format.
 */
#ifndef PAWL_RUNTIME_MODEL_SOURCE_H
#define PAWL_RUNTIME_MODEL_SOURCE_H

#include "ir/graph.h"
#include "runtime/kv_ring.h"
#include "runtime/logits.h"
#include "runtime/shape_key.h"
#include "runtime/weights.h"

/* A graph as runtime/decode_session.h describes it. */
struct pawl_graph_request {
	int64_t n_tokens;
	int64_t capacity; /* positions of the cache, a multiple of 16 */
	enum pawl_dtype kv_dtype;
	enum pawl_logits logits;
	/*
	 * 0: one sequence in order.  Otherwise a paged graph: n_tokens is a multiple of
	 * n_sequences, a sequence has up to max_blocks blocks of block_size positions (a multiple
	 * of 16 that divides capacity) of the cache, which all of them share.
	 */
	int64_t n_sequences, block_size, max_blocks;
	/*
	 * Of one sequence, positions that the caches of window_layers have, below capacity: position p
	 * at p modulo this.  0: they have capacity positions, as all.
	 */
	int64_t ring;
};

/* Must outlive everything made from it. */
struct pawl_model_source {
	void *ctx;
	struct pawl_weights *weights;
	/* Over everything that build bakes into a graph apart from the request, weights included.
	 */
	struct pawl_shape_key shape_key;
	int32_t n_layers;
	int64_t n_kv_heads, head_dim, n_vocab;
	enum pawl_layout k_layout;
	/* Layers whose attention sees only the last `window` positions; 0: none. */
	int64_t window;
	struct pawl_layer_set window_layers;
	/* The rope tables, where there are any: their width and which elements they turn together. */
	int64_t rope_width;
	enum pawl_pairs rope_pairs;
	/*
	 * Output 0 is f32 logits [n_tokens, n_vocab], or [1, n_vocab] where only the last are asked
	 * for of one sequence, unless none are; i32 [1] where a greedy choice is (only by
	 * pawl_decoder_step_greedy and its like).  The other outputs do not matter.
	 */
	enum pawl_status (*build)(void *ctx, const struct pawl_graph_request *request,
		struct pawl_graph **out, struct pawl_error *err);
	/* Row of the rope tables for one position, `width` values each; NULL when the model has
	 * none. */
	void (*rope)(void *ctx, int64_t position, int64_t width, float *cos, float *sin);
	/* The same for window_layers, NULL: they turn as all. */
	void (*window_rope)(void *ctx, int64_t position, int64_t width, float *cos, float *sin);
	/*
	 * Over everything that the content of a cache depends on, the same in every process; NULL
	 * when the source cannot tell.
	 */
	uint64_t (*fingerprint)(void *ctx);
};

#endif

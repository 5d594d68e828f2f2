/*
 * What the step graphs of all decoder families share: token data, writing keys and values to a
 * cache, attention over it.  For T = request->n_tokens tokens, by name:
 *
 *	token_ids		data	u32[T]
 *	rope_cos, rope_sin	data	f32[T, width]	each pair's value twice
 *	window_cos, window_sin	data	f32[T, width]	of window layers, if they turn otherwise
 *	$attended_len		symbol	how many positions attention reads: the largest of a row, plus 1
 *
 * of one sequence (request->n_sequences = 0), at positions offset, offset + 1, ...:
 *	offset			data	i64[]
 *	positions		data	i64[T]	where there are rings
 *
 * of S = request->n_sequences sequences that share a cache in blocks, T / S rows of each:
 *	positions		data	i64[T]		within its sequence; negative: an idle row
 *	write_index		data	i64[T]		where a row's key and value go in the cache
 *						(negative: nowhere)
 *	block_table		data	u32[S, max_blocks]	the sequence's blocks in order
 *
 * Rings: where request->ring is not 0, the caches of layers whose attention has a window keep that
 * many positions, position p at p modulo request->ring, and all others request->capacity.  A ring is
 * written by write_slice_rotating and read as a cache of one block that a table of zeros repeats, so
 * that a row sees its positions by their numbers.  It must hold what a run of T rows sees and writes
 * (runtime/kv_ring.h).
 */
#ifndef PAWL_MODELS_DECODE_GRAPH_H
#define PAWL_MODELS_DECODE_GRAPH_H

#include "ir/build.h"
#include "runtime/model_source.h"

struct pawl_decode_inputs {
	const struct pawl_graph_request *request;
	struct pawl_node *ids, *cos, *sin;
	struct pawl_node *window_cos, *window_sin; /* NULL: as all */
	int32_t attended_len;
	struct pawl_node *offset;                    /* NULL: several sequences */
	struct pawl_node *write_index, *block_table; /* NULL: one */
	struct pawl_node *positions, *ring_table;    /* NULL: one and no rings; no rings */
};

/* rope_width: of the tables, 0: none.  Errors stay in graph->error, as with all builders. */
void pawl_decode_add_inputs(struct pawl_graph *graph, const struct pawl_graph_request *request,
	int64_t rope_width, struct pawl_decode_inputs *out);
/* Adds window_cos and window_sin of that width. */
void pawl_decode_add_window_rope(
	struct pawl_graph *graph, int64_t rope_width, struct pawl_decode_inputs *in);

struct pawl_decode_cache_spec {
	const char *which; /* "k", "v" */
	int64_t layer, n_heads, width;
	enum pawl_layout layout;
	int64_t window; /* of the layer's attention, 0: none */
};

/* The kv const cache.<which>.<layer> [1, n_heads, capacity or ring, width]. */
struct pawl_node *pawl_decode_cache(struct pawl_graph *graph, const struct pawl_decode_inputs *in,
	const struct pawl_decode_cache_spec *spec);

/* The cache with x f32[T, n_heads, width] written to the positions of its rows. */
struct pawl_node *pawl_decode_append(struct pawl_graph *graph, const struct pawl_decode_inputs *in,
	struct pawl_node *cache, struct pawl_node *x);

/* Causal attention of q f32[T, heads, width]; attrs: scale, softcap, window. */
struct pawl_node *pawl_decode_attend(struct pawl_graph *graph, const struct pawl_decode_inputs *in,
	struct pawl_node *q, struct pawl_node *k, struct pawl_node *v,
	const struct pawl_attrs *attrs);

/* Rows of x f32[T, n] that logits are asked for. */
struct pawl_node *pawl_decode_wanted_rows(
	struct pawl_graph *graph, const struct pawl_decode_inputs *in, struct pawl_node *x);

#endif

/*
 * What the step graphs of all decoder families share: token data, writing keys and values to a
 * cache, attention over it.  For T = request->n_tokens tokens, by name:
 *
 *	token_ids		data	u32[T]
 *	rope_cos, rope_sin	data	f32[T, width]	each pair's value twice
 *	$attended_len		symbol	how many positions attention reads: the largest of a row, plus 1
 *
 * of one sequence (request->n_sequences = 0), at positions offset, offset + 1, ...:
 *	offset			data	i64[]
 *
 * of S = request->n_sequences sequences that share a cache in blocks, T / S rows of each:
 *	positions		data	i64[T]		within its sequence; negative: an idle row
 *	write_index		data	i64[T]		where a row's key and value go in the cache
 *						(negative: nowhere)
 *	block_table		data	u32[S, max_blocks]	the sequence's blocks in order
 */
#ifndef PAWL_MODELS_DECODE_GRAPH_H
#define PAWL_MODELS_DECODE_GRAPH_H

#include "ir/build.h"
#include "runtime/model_source.h"

struct pawl_decode_inputs {
	const struct pawl_graph_request *request;
	struct pawl_node *ids, *cos, *sin;
	int32_t attended_len;
	struct pawl_node *offset;                            /* NULL: several sequences */
	struct pawl_node *positions, *write_index, *block_table; /* NULL: one */
};

/* rope_width: of the tables, 0: none.  Errors stay in graph->error, as with all builders. */
void pawl_decode_add_inputs(struct pawl_graph *graph, const struct pawl_graph_request *request,
	int64_t rope_width, struct pawl_decode_inputs *out);

/* The kv const cache.<which>.<layer> [1, n_heads, capacity, width]. */
struct pawl_node *pawl_decode_cache(struct pawl_graph *graph, const struct pawl_decode_inputs *in,
	const char *which, int64_t layer, int64_t n_heads, int64_t width, enum pawl_layout layout);

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

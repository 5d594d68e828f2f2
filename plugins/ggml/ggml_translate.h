/*
 * A graph of ggml as a graph of Pawl, with a list of what to bind for each run.
 *
 * Numbers that change from run to run become symbols: the tokens of a batch, the rows that are asked
 * for, the positions that attention looks at.  The caches of keys and values are state that the host
 * keeps; which cells of it a row sees is said by the mask alone, and where a row goes by the index
 * lists, as the host hands them over for every run.
 *
 * Nothing of the host's graph is remembered by address: a binding names its tensor by its place in
 * the graph, so that a graph of the same shape may be bound as well.
 */
#ifndef PAWL_PLUGINS_GGML_TRANSLATE_H
#define PAWL_PLUGINS_GGML_TRANSLATE_H

#include "ir/graph.h"
#include "plugins/ggml/ggml_host.h"

/* Node `node` of a graph, or its source `src` (>= 0); what it is a view of, if is_root says so. */
struct pawl_ggml_place {
	int32_t node, src, is_root;
};

enum pawl_ggml_bind_kind {
	PAWL_GGML_BIND_WEIGHT, /* const w<i> */
	PAWL_GGML_BIND_STATE,  /* const s<i>: cells of a cache, where they lie */
	PAWL_GGML_BIND_DATA,   /* const d<i>: the tensor's bytes */
	PAWL_GGML_BIND_INDEX,  /* const d<i>: i64, from the host's list of cells */
	/*
	 * const d<i>: f32 [rows, cells]; symbol: the cells that are seen; const d<i + 1>: i64, such that
	 * row r sees no cell beyond that plus r
	 */
	PAWL_GGML_BIND_MASK,
	PAWL_GGML_BIND_ROPE,   /* consts d<i> and d<i + 1>: cosines and sines of positions */
	/* consts d<i>: i32, d<i + 1>: i64: the rows of a stream, of which the tensor has ne[1] */
	PAWL_GGML_BIND_TURN
};

struct pawl_ggml_bind {
	enum pawl_ggml_bind_kind kind;
	int32_t number; /* of the const's name */
	struct pawl_ggml_place tensor;
	/*
	 * STATE and INDEX: a view whose offset tells where the part of the cache begins that the graph
	 * looks at (node < 0: at the start); that of stream `stream` lies stream * stream_bytes beyond.
	 */
	struct pawl_ggml_place window;
	int64_t stream, stream_bytes;
	/* INDEX and MASK: the rows of a stream of `streams` together; the tensor has all of them. */
	int64_t streams;
	bool is_whole; /* INDEX: all rows, those of other streams going nowhere */
	/*
	 * INDEX: list[row * step] counts units of unit_bytes from the start of the cache, and must lie
	 * among the `cells` of the stream; with step > 1, entry j of a row is j * pitch further.
	 */
	int64_t step, pitch, unit_bytes, cells;
	int32_t symbol; /* MASK */
	/* ROPE */
	struct pawl_ggml_place factors; /* node < 0: none */
	int64_t width;
	double base, scale, magnitude;
	int64_t adjacent; /* pairs, else halves */
};

struct pawl_ggml_symbols {
	int32_t tokens, rows; /* indices of symbols, -1: none; tokens are those of one stream */
	int64_t n_tokens, n_rows; /* in all */
	int64_t streams;
};

struct pawl_ggml_translation {
	struct pawl_graph *graph;
	struct pawl_ggml_bind *binds; /* n_binds, malloc'ed */
	int32_t n_binds, cap_binds;
	struct pawl_ggml_place *results; /* where outputs go, in order; n_results, malloc'ed */
	int32_t n_results, cap_results;
	struct pawl_ggml_symbols symbols;
	int32_t n_numbers;
};

/*
 * PAWL_UNSUPPORTED names the op and the tensor that is not known here.  symbolic false: every
 * length is a constant.  Release a translation that was made.
 */
enum pawl_status pawl_ggml_translate(const struct pawl_ggml_host *host,
	const struct pawl_ggml_graph *graph, bool symbolic, struct pawl_ggml_translation *out,
	struct pawl_error *err);
void pawl_ggml_translation_release(struct pawl_ggml_translation *translation);

/* Identity of graph and bindings, without the values of symbols. */
uint64_t pawl_ggml_translation_hash(const struct pawl_ggml_translation *translation);

/* The tensor at a place; what it is a view of where the place says so. */
struct pawl_ggml_tensor *pawl_ggml_at(
	const struct pawl_ggml_graph *graph, const struct pawl_ggml_place *place);

/* The tensor that keeps the bytes of a view, or t itself. */
static inline const struct pawl_ggml_tensor *
pawl_ggml_root(const struct pawl_ggml_tensor *t)
{
	return t->view_src ? t->view_src : t;
}

#endif

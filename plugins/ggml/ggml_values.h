/*
 * What the tensors of a ggml graph are while it is translated.  Private to the translation.
 *
 * Every tensor that is no view has a value; views are windows on it, resolved when they are read.
 */
#ifndef PAWL_PLUGINS_GGML_VALUES_H
#define PAWL_PLUGINS_GGML_VALUES_H

#include "ir/build.h"
#include "plugins/ggml/ggml_translate.h"

/* Values that wait for the op that they may become part of. */
enum pawl_ggml_pending {
	PAWL_GGML_READY,
	PAWL_GGML_EMPTY,  /* no elements: nobody computes or reads it */
	PAWL_GGML_NORM,   /* a norm without weight */
	PAWL_GGML_SCORES, /* keys times queries */
	PAWL_GGML_WEIGHED /* softmax of scores */
};

struct pawl_ggml_value {
	const struct pawl_ggml_tensor *tensor; /* no view */
	struct pawl_node *node;                /* in the order of the tensor's elements */
	struct pawl_node *turned;              /* instead of node: [tokens, heads, d] of [d, tokens, heads] */
	enum pawl_ggml_pending pending;
	struct pawl_ggml_place place;
	int32_t n_uses; /* within the graph */
};

/* How the cells of a cache are used. */
enum pawl_ggml_form {
	PAWL_GGML_WHOLE,  /* as the tensor is */
	PAWL_GGML_ROWS,   /* a cell is a row [heads, d] */
	PAWL_GGML_COLUMNS /* a cell is a column: values without flash attention */
};

enum { PAWL_GGML_MAX_STREAMS = 16 };

struct pawl_ggml_state {
	const struct pawl_ggml_tensor *root;
	enum pawl_ggml_form form;
	struct pawl_ggml_place place, window; /* window.node < 0: none is read */
	int64_t streams, stream_bytes, cells, heads, d;
	struct pawl_node *nodes[PAWL_GGML_MAX_STREAMS]; /* as written so far, NULL: not made yet */
};

struct pawl_ggml_translator {
	const struct pawl_ggml_host *host;
	const struct pawl_ggml_graph *source;
	struct pawl_graph *graph;
	struct pawl_ggml_translation *out;
	bool symbolic;
	struct pawl_ggml_value *values; /* hash table of n_places */
	size_t n_places;
	struct pawl_ggml_state *states;
	int32_t n_states, cap_states;
	int32_t at; /* node being translated */
	struct pawl_error *err;
};

/* "op SET_ROWS of cache_k_l0: <text>". */
enum pawl_status pawl_ggml_decline(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op,
	const char *format, ...) PAWL_PRINTF(3, 4);

/* The value of a tensor that is no view; NULL: none yet. */
struct pawl_ggml_value *pawl_ggml_value_find(
	struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *tensor);
/* A new one; the table has room for all tensors of the graph. */
struct pawl_ggml_value *pawl_ggml_value_add(struct pawl_ggml_translator *t,
	const struct pawl_ggml_tensor *tensor, struct pawl_ggml_place place);

/* The value of op (no view) is node from now on. */
void pawl_ggml_set(
	struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op, struct pawl_node *node);

/*
 * Source i of op with `rank` axes, slowest first, as f32 unless it is an integer; dims above must be
 * 1.  Waiting values are computed.  NULL: err says why.
 */
struct pawl_node *pawl_ggml_read(
	struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op, int i, int rank);
/* The same with axis a being dim order[a]. */
struct pawl_node *pawl_ggml_read_in_order(struct pawl_ggml_translator *t,
	const struct pawl_ggml_tensor *op, int i, int rank, const int *order);
/* The same in the stored type, of x in place of source i, which is a window on the same tensor. */
struct pawl_node *pawl_ggml_read_as(struct pawl_ggml_translator *t,
	const struct pawl_ggml_tensor *op, int i, const struct pawl_ggml_tensor *x, int rank,
	const int *order);
/* As many axes as the tensor has dims that are not 1, at least one. */
int pawl_ggml_rank(const struct pawl_ggml_tensor *tensor);
/* Those of a value: rows, even if there is but one, so that one token is no other case than many. */
int pawl_ggml_value_rank(const struct pawl_ggml_tensor *tensor);

/* The const of a leaf, made when it is first met. */
struct pawl_ggml_value *pawl_ggml_leaf(
	struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op, int i);
bool pawl_ggml_is_weight(const struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *tensor);
/* Whether the value of op, if it is there already, has as many elements as the tensor. */
bool pawl_ggml_fills(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op);
/* Whether elements follow each other without gaps; false for a type that is not known. */
bool pawl_ggml_is_contiguous(const struct pawl_ggml_tensor *tensor);
bool pawl_ggml_is_leaf(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *root);

/* The number n as a dim of tokens when it is that, else a constant. */
struct pawl_dim pawl_ggml_token_dim(const struct pawl_ggml_translator *t, int64_t n);
/* The same of the tokens of one stream. */
struct pawl_dim pawl_ggml_stream_dim(const struct pawl_ggml_translator *t, int64_t n);
/*
 * Whether there are several streams with a symbol for the tokens of each, so that no view tells where one
 * begins: rows are taken and put by lists.
 */
bool pawl_ggml_takes_turns(const struct pawl_ggml_translator *t);

/* A binding with a const name's number; NULL when memory is exhausted. */
struct pawl_ggml_bind *pawl_ggml_bind_add(struct pawl_ggml_translator *t,
	enum pawl_ggml_bind_kind kind, struct pawl_ggml_place place);
/* The const that a binding is for. */
struct pawl_node *pawl_ggml_const(struct pawl_ggml_translator *t, const struct pawl_ggml_bind *bind,
	enum pawl_role role, const struct pawl_type *type);

/* Where source i of the node being translated is; its root. */
struct pawl_ggml_place pawl_ggml_source_place(const struct pawl_ggml_translator *t, int i, bool is_root);

/* The state on a root; NULL: none. */
struct pawl_ggml_state *pawl_ggml_state_find(
	struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *root);
/* Whether x is the window on the cache that the state is about. */
bool pawl_ggml_state_shows(struct pawl_ggml_translator *t, const struct pawl_ggml_state *state,
	const struct pawl_ggml_tensor *x);
/*
 * The cells of a stream as they are now: [cells, heads, d], or [heads * d, cells, 1] of columns.
 * NULL: graph->error.
 */
struct pawl_node *pawl_ggml_state_node(
	struct pawl_ggml_translator *t, struct pawl_ggml_state *state, int64_t stream);
/* Looks through the graph for caches that attention reads; before anything is translated. */
enum pawl_status pawl_ggml_find_states(struct pawl_ggml_translator *t);

/* ops: each translates t->source->nodes[t->at]. */
enum pawl_status pawl_ggml_translate_op(
	struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op);
enum pawl_status pawl_ggml_set_rows(
	struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op);
enum pawl_status pawl_ggml_attention(
	struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op);
enum pawl_status pawl_ggml_mul_mat(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op);
enum pawl_status pawl_ggml_soft_max(
	struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op);
enum pawl_status pawl_ggml_rope(struct pawl_ggml_translator *t, const struct pawl_ggml_tensor *op);

/* Computes a waiting value by itself. */
enum pawl_status pawl_ggml_force(struct pawl_ggml_translator *t, struct pawl_ggml_value *value);

#endif

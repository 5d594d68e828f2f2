/*
 * Random valid graphs and their contents, for tests: the same seed and options give the same
 * graph, on every machine.  Graphs are small (every value has at most a few thousand elements),
 * have odd dims among the even ones, and stay numerically tame when their consts are filled by
 * pawl_random_fill_const.  All passes may be run on them; what a flavour is for stands below.
 */
#ifndef PAWL_IR_RANDOM_H
#define PAWL_IR_RANDOM_H

#include "ir/graph.h"

enum pawl_random_flavour {
	/* elementwise chains, norms, casts, concat, gather, matmul of every weight type, argmax */
	PAWL_RANDOM_COMPUTE = 1 << 0,
	/* views of views (also a reshape of permuted or repeated elements), and copies of them */
	PAWL_RANDOM_VIEWS = 1 << 1,
	/* alloc, kv consts and all writes, with readers of destroyed values, in whatever order */
	PAWL_RANDOM_STATE = 1 << 2,
	/* ops that mean nothing, literal subexpressions, the same op twice, dead ops */
	PAWL_RANDOM_REDUNDANT = 1 << 3,
	/* attention as one op and in its decomposed form */
	PAWL_RANDOM_ATTENTION = 1 << 4,
	/* llama-like blocks with a cache, embedding and logits */
	PAWL_RANDOM_BLOCK = 1 << 5,
	/* quantize and pack as a host could write them: results depend on roundings */
	PAWL_RANDOM_LOWERED = 1 << 6,
	/* the token axis is symbol T (1 .. 6), attention and writes use symbols; not in the default
	 */
	PAWL_RANDOM_SYMBOLIC = 1 << 7
};

#define PAWL_RANDOM_DEFAULT (PAWL_RANDOM_SYMBOLIC - 1u)

struct pawl_random_options {
	unsigned flavours; /* 0: PAWL_RANDOM_DEFAULT */
	int n_nodes;       /* about how many; 0: 40 */
};

/* options may be NULL. */
enum pawl_status pawl_random_graph(uint64_t seed, const struct pawl_random_options *options,
	struct pawl_graph **out, struct pawl_error *err);

/*
 * n elements (a multiple of the block size) from the seed and a name: floats and decoded
 * weights within about [-1, 1], integers of -8 .. 7 (0 .. 15 where unsigned).
 */
void pawl_random_fill(enum pawl_dtype dtype, uint64_t seed, const char *name, void *dst, int64_t n);

/*
 * Fills a const (or the literal's own numbers) of pawl_type_elems elements, dims at the given
 * symbol values (NULL when the type is static), so that every user can take it: ids within
 * their table, starts and positions within their buffer, row indices distinct, masks (attention's,
 * or a name that starts with "mask") of 0 and -inf.  Bytes depend on the users: fill from the
 * graph as it was before any pass.
 */
enum pawl_status pawl_random_fill_const(const struct pawl_graph *graph,
	const struct pawl_node *node, uint64_t seed, const int64_t *symbols, void *dst,
	struct pawl_error *err);

#endif

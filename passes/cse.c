/*
 * cse: of two nodes that compute the same value the later one goes.
 *
 * Never a const (its storage is its identity; literals of equal value are merged, they have none),
 * never an alloc (two buffers), never a write.  At stage VALUES a node denotes a value, so equal
 * operands are enough, whatever is written in place between the two.
 *
 * Hashing makes one walk of it; buckets are chained by node id.
 */
#include <string.h>

#include "passes/pass.h"

static bool
is_literal(const struct pawl_node *node)
{
	return node->op == PAWL_OP_CONST && node->attrs.role == PAWL_ROLE_LITERAL;
}

static bool
is_candidate(const struct pawl_node *node)
{
	return is_literal(node) || !pawl_op_has(node->op, PAWL_OPF_LEAF | PAWL_OPF_INPLACE);
}

static uint64_t
mix(uint64_t h, int64_t x)
{
	return (h ^ (uint64_t)x) * UINT64_C(0x9e3779b97f4a7c15) >> 7;
}

static uint64_t
hash_node(const struct pawl_node *node)
{
	uint64_t h = mix(node->op, node->type.dtype);
	int64_t bits;
	uint32_t v;
	int i;

	for (i = 0; i < node->type.rank; i++)
		h = mix(mix(h, node->type.dim[i].base), node->attrs.start[i]);
	memcpy(&bits, &node->attrs.scale, sizeof(bits));
	h = mix(h, bits);
	for (i = 0; i < node->n_inputs; i++)
		h = mix(h, node->inputs[i].def->id);
	for (v = 0; v < node->attrs.n_values; v++) {
		memcpy(&bits, &node->attrs.values[v], sizeof(bits));
		h = mix(h, bits);
	}
	return h;
}

static int
attr_rank(const struct pawl_node *node)
{
	return node->n_inputs ? node->inputs[0].def->type.rank : node->type.rank;
}

static bool
is_same(const struct pawl_node *a, const struct pawl_node *b)
{
	int i;

	if (a->op != b->op || a->n_inputs != b->n_inputs || !pawl_type_equal(&a->type, &b->type))
		return false;
	for (i = 0; i < a->n_inputs; i++) {
		if (a->inputs[i].def != b->inputs[i].def)
			return false;
	}
	return pawl_attrs_equal(a->op, attr_rank(a), &a->attrs, &b->attrs);
}

enum pawl_status
pawl_pass_cse(struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	size_t n_buckets = (size_t)graph->n_nodes + 1;
	struct pawl_node **bucket = pawl_arena_alloc(&ctx->scratch, n_buckets, sizeof(*bucket));
	struct pawl_node **chain =
		pawl_arena_alloc(&ctx->scratch, (size_t)graph->n_ids + 1, sizeof(*chain));
	struct pawl_node *node, *next, *seen, **first;

	if (!bucket || !chain)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory");
	for (node = graph->first; node; node = next) {
		next = node->next;
		if (!is_candidate(node))
			continue;
		first = &bucket[hash_node(node) % n_buckets];
		for (seen = *first; seen && !is_same(seen, node);)
			seen = chain[seen->id];
		if (seen) {
			pawl_graph_replace_uses(graph, node, seen);
			pawl_graph_remove(graph, node);
			ctx->n_changes++;
		} else {
			chain[node->id] = *first;
			*first = node;
		}
	}
	return PAWL_OK;
}

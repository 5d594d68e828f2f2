/*
 * cse: of two nodes that compute the same value the later one goes.
 *
 * Never a const (its storage is its identity; literals of equal value are merged, they have none),
 * never an alloc (two buffers), never a write, and never a node that reads storage written in place
 * meanwhile: at stage VALUES a node denotes a value, so equal operands are enough.
 *
 * Hashing makes one walk of it; buckets are chained by node id.
 */
#include <string.h>

#include "passes/pass.h"

enum { N_BUCKETS = 1024 };

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

static uint32_t
hash_node(const struct pawl_node *node)
{
	uint32_t h = 2166136261u;
	int i;

	h = (h ^ (uint32_t)node->op) * 16777619u;
	h = (h ^ (uint32_t)node->type.dtype) * 16777619u;
	for (i = 0; i < node->type.rank; i++)
		h = (h ^ (uint32_t)node->type.dim[i].base) * 16777619u;
	for (i = 0; i < node->n_inputs; i++)
		h = (h ^ (uint32_t)node->inputs[i].def->id) * 16777619u;
	return h % N_BUCKETS;
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
	struct pawl_node **bucket = pawl_arena_alloc(&ctx->scratch, N_BUCKETS, sizeof(*bucket));
	struct pawl_node **chain =
		pawl_arena_alloc(&ctx->scratch, (size_t)graph->n_ids + 1, sizeof(*chain));
	struct pawl_node *node, *next, *seen;

	if (!bucket || !chain)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory");
	for (node = graph->first; node; node = next) {
		uint32_t h;

		next = node->next;
		if (!is_candidate(node))
			continue;
		h = hash_node(node);
		for (seen = bucket[h]; seen && !is_same(seen, node);)
			seen = chain[seen->id];
		if (seen) {
			pawl_graph_replace_uses(graph, node, seen);
			pawl_graph_remove(graph, node);
			ctx->n_changes++;
		} else {
			chain[node->id] = bucket[h];
			bucket[h] = node;
		}
	}
	return PAWL_OK;
}

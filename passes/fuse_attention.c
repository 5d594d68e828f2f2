/*
 * fuse-attention: attention spelled out becomes the one op that has a kernel.
 *
 *	%s = batch_matmul %q, %k : f32[9, 4, 64]          ; q [h, t, d], k [h, m, d]
 *	%a = scale %s {scale = 0.125}                     ; optional
 *	%b = add %a, %mask                                ; optional, mask [t, m] broadcast over h
 *	%p = softmax %b
 *	%u = permute %v {perm = [0, 2, 1]}                ; v [h, m, dv]
 *	%y = batch_matmul %p, %u : f32[9, 4, 64]
 * becomes permutes and reshapes around
 *	%z = attention %q', %k', %v', %zero, %mask {scale = 0.125, causal = 0}
 *
 * Keys and values repeated for grouped queries (reshape of broadcast of reshape) are used unrepeated.
 * None of the values between may be used elsewhere.
 *
 * Rounds: the same sums in another order, and the division moved behind the last sum: an element
 * moves by at most 1e-5 of the largest |v| of its head for scores within +-60.  A row whose mask hides
 * everything gives 0 in both forms.
 */
#include "ir/build.h"
#include "passes/pass.h"

struct match {
	struct pawl_node *q, *k, *v; /* [h, t, d], [h, m, d] or [g, 1, m, d], and so with dv */
	struct pawl_node *mask;      /* [t, m], or NULL */
	double scale;
};

static bool
is_sole(const struct pawl_node *node, enum pawl_op op)
{
	return node->op == op && pawl_node_n_uses(node) == 1;
}

/* [g, 1, m, d] when x [h, m, d] repeats each of its groups h / g times, else x itself. */
static struct pawl_node *
strip_repeat(struct pawl_node *x)
{
	struct pawl_node *wide, *thin;

	if (x->op != PAWL_OP_RESHAPE || x->inputs[0].def->op != PAWL_OP_BROADCAST)
		return x;
	wide = x->inputs[0].def;
	thin = wide->inputs[0].def;
	if (wide->type.rank != 4 || thin->type.rank != 4 || thin->type.dim[1].base != 1 ||
		!pawl_dim_equal(thin->type.dim[0], wide->type.dim[0]) ||
		!pawl_dim_equal(thin->type.dim[2], wide->type.dim[2]) ||
		!pawl_dim_equal(thin->type.dim[3], wide->type.dim[3]) ||
		!pawl_dim_equal(x->type.dim[1], wide->type.dim[2]) ||
		!pawl_dim_equal(x->type.dim[2], wide->type.dim[3]))
		return x;
	return thin;
}

static bool
match_mask(struct pawl_node *operand, struct match *m)
{
	struct pawl_node *mask = operand;

	if (mask->op == PAWL_OP_BROADCAST)
		mask = mask->inputs[0].def;
	if (mask->type.rank != 2 || mask->type.dtype != PAWL_DTYPE_F32)
		return false;
	m->mask = mask;
	return pawl_dim_equal(mask->type.dim[0], operand->type.dim[1]) &&
		pawl_dim_equal(mask->type.dim[1], operand->type.dim[2]);
}

static bool
match_scores(struct pawl_node *s, struct match *m)
{
	m->scale = 1.0;
	m->mask = NULL;
	if (is_sole(s, PAWL_OP_ADD)) {
		bool first = s->inputs[0].def->op == PAWL_OP_BROADCAST;

		if (!match_mask(s->inputs[first ? 0 : 1].def, m))
			return false;
		s = s->inputs[first ? 1 : 0].def;
	}
	if (is_sole(s, PAWL_OP_SCALE)) {
		m->scale = s->attrs.scale;
		s = s->inputs[0].def;
	}
	if (!is_sole(s, PAWL_OP_BATCH_MATMUL))
		return false;
	m->q = s->inputs[0].def;
	m->k = strip_repeat(s->inputs[1].def);
	return true;
}

static bool
match_attention(const struct pawl_node *y, struct match *m)
{
	struct pawl_node *p, *u;

	if (y->op != PAWL_OP_BATCH_MATMUL || !pawl_type_is_static(&y->type))
		return false;
	p = y->inputs[0].def;
	u = y->inputs[1].def;
	if (!is_sole(p, PAWL_OP_SOFTMAX) || u->op != PAWL_OP_PERMUTE || u->attrs.perm[0] != 0 ||
		u->attrs.perm[1] != 2)
		return false;
	m->v = strip_repeat(u->inputs[0].def);
	if (!match_scores(p->inputs[0].def, m) || !pawl_type_is_static(&m->k->type) ||
		!pawl_type_is_static(&m->v->type))
		return false;
	return m->k->type.dtype == m->v->type.dtype && m->k->type.dim[0].base == m->v->type.dim[0].base;
}

static struct pawl_node *
as_cache(struct pawl_graph *graph, struct pawl_node *x)
{
	const struct pawl_dim *dim = x->type.dim;
	int64_t dims[4] = {1, dim[0].base, dim[x->type.rank - 2].base, dim[x->type.rank - 1].base};

	return pawl_build_reshape(graph, x, 4, dims);
}

static struct pawl_node *
build_attention(struct pawl_graph *graph, const struct match *m)
{
	static const int swap[3] = {1, 0, 2};
	struct pawl_type scalar = pawl_type_make(PAWL_DTYPE_I64, 0, NULL);
	struct pawl_attrs attrs = pawl_attrs_default();
	struct pawl_node *in[5], *z;

	attrs.scale = m->scale;
	attrs.causal = false;
	in[0] = pawl_build_permute(graph, m->q, swap);
	in[1] = as_cache(graph, m->k);
	in[2] = as_cache(graph, m->v);
	in[3] = pawl_build_splat(graph, &scalar, 0);
	in[4] = m->mask;
	z = pawl_build(graph, PAWL_OP_ATTENTION, NULL, in, m->mask ? 5 : 4, &attrs, NULL);
	return pawl_build_permute(graph, z, swap);
}

enum pawl_status
pawl_pass_fuse_attention(struct pawl_pass_ctx *ctx, struct pawl_graph *graph, struct pawl_error *err)
{
	struct pawl_node *node, *next, *made;
	struct match m;

	(void)err;
	for (node = graph->first; node; node = next) {
		next = node->next;
		if (!match_attention(node, &m))
			continue;
		graph->cursor = node;
		made = build_attention(graph, &m);
		graph->cursor = NULL;
		if (!made)
			return PAWL_OK; /* the runner reports graph->error */
		pawl_graph_replace_uses(graph, node, made);
		pawl_graph_remove(graph, node); /* what fed it is dce's to remove */
		ctx->n_changes++;
	}
	return PAWL_OK;
}

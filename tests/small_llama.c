#include "tests/small_llama.h"

#include "ir/build.h"

#include <check.h>
#include <stdio.h>

enum { WIDTH = 64, HEADS = 4, GROUPS = 2, SIZE = 16, POSITIONS = 32, WIDE = 96, WORDS = 40 };

struct llama {
	struct pawl_graph *graph;
	int64_t n_tokens;
	int layer;
	struct pawl_node *ids, *cos, *sin, *offset;
};

static struct pawl_node *
new_const(struct llama *l, enum pawl_role role, const char *what, enum pawl_dtype dtype, int rank,
	const int64_t *dims)
{
	struct pawl_type type = pawl_type_make(dtype, rank, dims);
	char name[64];

	if (role == PAWL_ROLE_KV && what[0] == 'k')
		type.layout = PAWL_LAYOUT_K16;
	snprintf(name, sizeof(name), role == PAWL_ROLE_DATA ? "%s" : "%s.%d", what, l->layer);
	return pawl_build_const(l->graph, role, name, &type);
}

static struct pawl_node *
linear(struct llama *l, struct pawl_node *x, const char *what, enum pawl_dtype dtype, int64_t n)
{
	int64_t dims[] = {n, pawl_type_row_length(&x->type)};

	return pawl_build_matmul(l->graph, x, new_const(l, PAWL_ROLE_WEIGHT, what, dtype, 2, dims));
}

static struct pawl_node *
norm(struct llama *l, struct pawl_node *x, const char *what)
{
	int64_t dims[] = {WIDTH};

	return pawl_build_rms_norm(
		l->graph, x, new_const(l, PAWL_ROLE_WEIGHT, what, PAWL_DTYPE_F32, 1, dims), 1e-5);
}

static struct pawl_node *
split(struct llama *l, struct pawl_node *x, int64_t n)
{
	return pawl_build_reshape(l->graph, x, 3, (int64_t[]){l->n_tokens, n, SIZE});
}

static struct pawl_node *
append(struct llama *l, const char *cache, struct pawl_node *x)
{
	int64_t dims[] = {1, GROUPS, POSITIONS, SIZE};
	struct pawl_node *to = new_const(l, PAWL_ROLE_KV, cache, PAWL_DTYPE_F16, 4, dims);

	x = pawl_build_cast(l->graph, x, PAWL_DTYPE_F16);
	x = pawl_build_permute(l->graph, x, (int[]){1, 0, 2});
	x = pawl_build_reshape(l->graph, x, 4, (int64_t[]){1, GROUPS, l->n_tokens, SIZE});
	return pawl_build_write_slice(l->graph, to, x, NULL, 2, l->offset);
}

static struct pawl_node *
attention(struct llama *l, struct pawl_node *x)
{
	struct pawl_attrs attrs = pawl_attrs_default();
	struct pawl_node *in[4];

	attrs.scale = 0.25;
	in[0] = split(l, linear(l, x, "q", PAWL_DTYPE_Q4_0, HEADS * SIZE), HEADS);
	in[1] = split(l, linear(l, x, "k", PAWL_DTYPE_Q4_0, GROUPS * SIZE), GROUPS);
	in[2] = split(l, linear(l, x, "v", PAWL_DTYPE_Q8_0, GROUPS * SIZE), GROUPS);
	in[0] = pawl_build_rope(l->graph, in[0], l->cos, l->sin, PAWL_PAIRS_ADJACENT);
	in[1] = pawl_build_rope(l->graph, in[1], l->cos, l->sin, PAWL_PAIRS_ADJACENT);
	in[1] = append(l, "kc", in[1]);
	in[2] = append(l, "vc", in[2]);
	in[3] = l->offset;
	x = pawl_build(l->graph, PAWL_OP_ATTENTION, NULL, in, 4, &attrs, NULL);
	pawl_graph_add_output(l->graph, in[1]);
	pawl_graph_add_output(l->graph, in[2]);
	return pawl_build_reshape(l->graph, x, 2, (int64_t[]){l->n_tokens, HEADS * SIZE});
}

static struct pawl_node *
block(struct llama *l, struct pawl_node *x)
{
	struct pawl_node *y = attention(l, norm(l, x, "attn_norm")), *gate;

	x = pawl_build_binary(l->graph, PAWL_OP_ADD, linear(l, y, "o", PAWL_DTYPE_Q4_0, WIDTH), x);
	y = norm(l, x, "ffn_norm");
	gate = pawl_build_unary(l->graph, PAWL_OP_SILU, linear(l, y, "gate", PAWL_DTYPE_Q4_0, WIDE));
	y = linear(l, y, "up", PAWL_DTYPE_Q4_0, WIDE);
	y = pawl_build_binary(l->graph, PAWL_OP_MUL, gate, y);
	return pawl_build_binary(l->graph, PAWL_OP_ADD, linear(l, y, "down", PAWL_DTYPE_Q8_0, WIDTH), x);
}

struct pawl_graph *
pawl_test_small_llama(int64_t n_tokens, int n_layers)
{
	struct llama l = {.graph = pawl_graph_new("llama"), .n_tokens = n_tokens};
	int64_t table[] = {WORDS, WIDTH}, angles[] = {n_tokens, SIZE};
	struct pawl_node *x, *embedding;

	l.ids = new_const(&l, PAWL_ROLE_DATA, "ids", PAWL_DTYPE_U32, 1, &n_tokens);
	l.cos = new_const(&l, PAWL_ROLE_DATA, "cos", PAWL_DTYPE_F32, 2, angles);
	l.sin = new_const(&l, PAWL_ROLE_DATA, "sin", PAWL_DTYPE_F32, 2, angles);
	l.offset = new_const(&l, PAWL_ROLE_DATA, "offset", PAWL_DTYPE_I64, 0, NULL);
	embedding = new_const(&l, PAWL_ROLE_WEIGHT, "embedding", PAWL_DTYPE_Q8_0, 2, table);
	x = pawl_build_gather(l.graph, embedding, l.ids);
	for (l.layer = 1; l.layer <= n_layers; l.layer++)
		x = block(&l, x);
	x = pawl_build_matmul(l.graph, norm(&l, x, "output_norm"), embedding);
	pawl_graph_add_output(l.graph, x);
	ck_assert_msg(l.graph->error.status == PAWL_OK, "%s", l.graph->error.text);
	return l.graph;
}

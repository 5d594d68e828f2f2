#include "models/latent_graph.h"

#include <stdio.h>

struct pawl_node *
pawl_latent_cache(struct pawl_graph *graph, const struct pawl_decode_inputs *in,
	const struct pawl_latent_dims *dims, int64_t layer)
{
	const int64_t shape[] = {in->request->capacity, dims->rank + dims->rope};
	struct pawl_type type = pawl_type_make(in->request->kv_dtype, 2, shape);
	char name[64];

	snprintf(name, sizeof(name), "cache.0.%lld", (long long)layer);
	return pawl_build_const(graph, PAWL_ROLE_KV, name, &type);
}

static struct pawl_node *
concat(struct pawl_graph *graph, struct pawl_node *a, struct pawl_node *b, int64_t axis)
{
	struct pawl_node *parts[] = {a, b};
	struct pawl_attrs attrs = pawl_attrs_default();

	attrs.axis = axis;
	return pawl_build(graph, PAWL_OP_CONCAT, NULL, parts, 2, &attrs, NULL);
}

struct pawl_node *
pawl_latent_append(struct pawl_graph *graph, const struct pawl_decode_inputs *in,
	struct pawl_node *cache, struct pawl_node *c, struct pawl_node *r)
{
	struct pawl_node *inputs[3] = {cache, NULL, in->write_index};
	int64_t rows[2];

	if (!r)
		return NULL;
	rows[0] = in->request->n_tokens;
	rows[1] = r->type.dim[2].base;
	r = pawl_build_reshape(graph, r, 2, rows);
	inputs[1] = pawl_build_cast(graph, concat(graph, c, r, 1), in->request->kv_dtype);
	if (in->offset)
		return pawl_build_write_slice(graph, cache, inputs[1], NULL, 0, in->offset);
	return pawl_build(graph, PAWL_OP_WRITE_ROWS, NULL, inputs, 3, NULL, NULL);
}

/* x f32[T, heads, k] times each head's matrix of w [heads, n, k]: f32[T, heads, n]. */
static struct pawl_node *
project_heads(struct pawl_graph *graph, struct pawl_node *x, struct pawl_node *w)
{
	static const int swap[] = {1, 0, 2};
	struct pawl_node *inputs[2] = {pawl_build_permute(graph, x, swap), w};

	return pawl_build_permute(graph,
		pawl_build(graph, PAWL_OP_BATCH_MATMUL, NULL, inputs, 2, NULL, NULL), swap);
}

struct pawl_node *
pawl_latent_attend(struct pawl_graph *graph, const struct pawl_decode_inputs *in,
	const struct pawl_latent_dims *dims, const struct pawl_latent_query *q,
	struct pawl_node *cache, const struct pawl_attrs *attrs)
{
	const int64_t m = in->request->capacity, whole[] = {1, 1, m, dims->rank + dims->rope},
		      start[4] = {0}, latents[] = {1, 1, m, dims->rank};
	struct pawl_node *query, *k, *v;

	query = concat(graph, project_heads(graph, q->nope, q->up_k), q->rope, 2);
	k = pawl_build_reshape(graph, cache, 4, whole);
	v = pawl_build_slice(graph, k, start, latents);
	return project_heads(
		graph, pawl_decode_attend(graph, in, query, k, v, attrs), q->up_v);
}

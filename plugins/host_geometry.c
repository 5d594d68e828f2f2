#include "plugins/host_geometry.h"

#include <stdio.h>

const char *
pawl_host_kv_name(const struct pawl_host_geometry *geometry, int32_t layer, int32_t which,
	char out[PAWL_KV_NAME_BYTES])
{
	char letter = geometry->kind == PAWL_GEOMETRY_KV ? "kv"[which] : (char)('0' + which);

	snprintf(out, PAWL_KV_NAME_BYTES, "cache.%c.%d", letter, layer);
	return out;
}

static bool
is_kv(const struct pawl_node *node)
{
	return node && node->op == PAWL_OP_CONST && node->attrs.role == PAWL_ROLE_KV;
}

static int32_t
count_kv(const struct pawl_graph *graph)
{
	int32_t n = 0;

	for (const struct pawl_node *node = graph->first; node; node = node->next)
		n += is_kv(node);
	return n;
}

static bool
is_static(const struct pawl_type *type)
{
	for (int i = 0; i < type->rank; i++)
		if (type->dim[i].factor)
			return false;
	return true;
}

/* The window that attention of the graph sees, the first there is; 0: none does. */
static int64_t
find_window(const struct pawl_graph *graph)
{
	for (const struct pawl_node *node = graph->first; node; node = node->next)
		if (pawl_op_attends(node->op) && node->attrs.window)
			return node->attrs.window;
	return 0;
}

static const struct pawl_type *
type_at(const struct pawl_graph *graph, const struct pawl_host_geometry *g, int32_t layer,
	int32_t which)
{
	char name[PAWL_KV_NAME_BYTES];
	const struct pawl_node *node =
		pawl_graph_find(graph, pawl_host_kv_name(g, layer, which, name));

	return is_kv(node) ? &node->type : NULL;
}

/* Every const is there and of the type that the shape says. */
static enum pawl_status
check(const struct pawl_graph *graph, const struct pawl_host_geometry *g, struct pawl_error *why)
{
	char name[PAWL_KV_NAME_BYTES];

	for (int32_t i = 0; i < g->n_layers * g->n_which; i++) {
		int32_t layer = i / g->n_which, which = i % g->n_which;
		const struct pawl_type *type = type_at(graph, g, layer, which);
		const struct pawl_type wanted =
			g->kind == PAWL_GEOMETRY_KV
				? pawl_kv_shape_type(&g->kv, layer, (enum pawl_kv_slot)which)
				: pawl_latent_shape_type(&g->latents, which);

		pawl_host_kv_name(g, layer, which, name);
		if (!type)
			return pawl_fail(
				why, PAWL_UNSUPPORTED, "the graph has no kv const %s", name);
		if (!pawl_type_equal(type, &wanted))
			return pawl_fail(why, PAWL_UNSUPPORTED,
				"kv const %s is not of the type of the others", name);
	}
	return PAWL_OK;
}

static enum pawl_status
find_rings(const struct pawl_graph *graph, struct pawl_host_geometry *g, struct pawl_error *why)
{
	struct pawl_kv_shape *shape = &g->kv;

	for (int32_t i = 0; i < g->n_layers; i++) {
		const struct pawl_type *type = type_at(graph, g, i, 0);

		if (type && type->rank == 4 && type->dim[2].base > shape->max_seq_len)
			shape->max_seq_len = type->dim[2].base;
	}
	for (int32_t i = 0; i < g->n_layers; i++) {
		const struct pawl_type *type = type_at(graph, g, i, 0);

		if (!type || type->rank != 4 || type->dim[2].base == shape->max_seq_len)
			continue;
		if (i >= PAWL_MAX_WINDOW_LAYERS)
			return pawl_fail(why, PAWL_UNSUPPORTED, "layer %d has a ring", i);
		shape->rings.positions = type->dim[2].base;
		pawl_layer_set_add(&shape->rings.layers, i);
	}
	if (!shape->rings.positions)
		return PAWL_OK;
	shape->rings.window = find_window(graph);
	return shape->rings.window ? PAWL_OK
				   : pawl_fail(why, PAWL_UNSUPPORTED,
					     "the graph has rings and no attention with a window");
}

static enum pawl_status
find_kv(const struct pawl_graph *graph, struct pawl_host_geometry *g, struct pawl_error *why)
{
	const struct pawl_type *k = type_at(graph, g, 0, 0), *v = type_at(graph, g, 0, 1);

	if (!v || k->rank != 4 || v->rank != 4 || !is_static(k) || k->dim[0].base != 1)
		return pawl_fail(why, PAWL_UNSUPPORTED,
			"kv consts cache.k.0 and cache.v.0 are not [1, heads, positions, width]");
	g->kv = (struct pawl_kv_shape){.n_layers = g->n_layers,
		.n_kv_heads = k->dim[1].base,
		.head_dim = k->dim[3].base,
		.dtype = k->dtype,
		.layout = {k->layout, v->layout}};
	return find_rings(graph, g, why);
}

static enum pawl_status
find_latents(const struct pawl_graph *graph, struct pawl_host_geometry *g, struct pawl_error *why)
{
	const struct pawl_type *first = type_at(graph, g, 0, 0);

	g->latents = (struct pawl_latent_shape){.n_layers = g->n_layers,
		.n_slots = g->n_which,
		.max_seq_len = first->rank ? first->dim[0].base : 0,
		.dtype = first->dtype};
	for (int32_t i = 0; i < g->n_which; i++) {
		const struct pawl_type *type = type_at(graph, g, 0, i);
		struct pawl_latent_trailing *trailing = &g->latents.trailing[i];

		if (!type || type->rank < 2 || !is_static(type))
			return pawl_fail(why, PAWL_UNSUPPORTED,
				"kv const cache.%d.0 is not [positions, ...]", i);
		trailing->rank = type->rank - 1;
		for (int j = 1; j < type->rank; j++)
			trailing->dims[j - 1] = type->dim[j].base;
	}
	return PAWL_OK;
}

static enum pawl_status
find(const struct pawl_graph *graph, struct pawl_host_geometry *g, struct pawl_error *why)
{
	int32_t n = count_kv(graph);
	enum pawl_status status;

	if (!n)
		return pawl_fail(why, PAWL_UNSUPPORTED, "the graph has no kv const");
	if (is_kv(pawl_graph_find(graph, "cache.k.0"))) {
		g->kind = PAWL_GEOMETRY_KV;
		g->n_which = PAWL_N_KV_SLOTS;
	} else if (is_kv(pawl_graph_find(graph, "cache.0.0"))) {
		g->kind = PAWL_GEOMETRY_LATENTS;
		while (g->n_which < PAWL_MAX_LATENT_SLOTS && type_at(graph, g, 0, g->n_which))
			g->n_which++;
	} else {
		return pawl_fail(why, PAWL_UNSUPPORTED,
			"the graph has kv consts, and none is cache.k.0 or cache.0.0");
	}
	g->n_layers = n / g->n_which;
	if (n % g->n_which)
		return pawl_fail(why, PAWL_UNSUPPORTED,
			"the graph has %d kv consts, which are no layers of %d each", n,
			g->n_which);
	status = g->kind == PAWL_GEOMETRY_KV ? find_kv(graph, g, why) : find_latents(graph, g, why);
	return status ? status : check(graph, g, why);
}

void
pawl_host_geometry_of(const struct pawl_graph *graph, struct pawl_host_geometry *out)
{
	struct pawl_error why;

	*out = (struct pawl_host_geometry){.kind = PAWL_GEOMETRY_NONE};
	if (!find(graph, out, &why))
		return;
	*out = (struct pawl_host_geometry){.kind = PAWL_GEOMETRY_NONE, .why = why};
}

void
pawl_host_geometry_key(const struct pawl_host_geometry *g, struct pawl_plan_key *key)
{
	switch (g->kind) {
	case PAWL_GEOMETRY_NONE:
		return;
	case PAWL_GEOMETRY_KV:
		key->max_seq_len = g->kv.max_seq_len;
		key->n_kv_heads = g->kv.n_kv_heads;
		key->head_dim = g->kv.head_dim;
		key->cache_dtype = g->kv.dtype;
		key->k_layout = g->kv.layout[PAWL_KV_K];
		key->v_layout = g->kv.layout[PAWL_KV_V];
		key->ring = g->kv.rings.positions;
		key->ring_window = g->kv.rings.window;
		break;
	case PAWL_GEOMETRY_LATENTS:
		key->max_seq_len = g->latents.max_seq_len;
		key->cache_dtype = g->latents.dtype;
		break;
	}
	key->n_layers = g->n_layers;
}

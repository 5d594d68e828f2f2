#include "ir/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* FNV-1a, 64 bits, over the little-endian bytes. */
static void
add_bytes(uint64_t *hash, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	size_t i;

	for (i = 0; i < n; i++)
		*hash = (*hash ^ p[i]) * UINT64_C(0x100000001b3);
}

static void
add_int(uint64_t *hash, int64_t value)
{
	add_bytes(hash, &value, sizeof(value));
}

static void
add_double(uint64_t *hash, double value)
{
	if (isnan(value))
		value = NAN;
	add_bytes(hash, &value, sizeof(value));
}

static void
add_text(uint64_t *hash, const char *text)
{
	add_bytes(hash, text, strlen(text) + 1);
}

static void
add_list(uint64_t *hash, const int64_t *list, int n)
{
	add_bytes(hash, list, (size_t)n * sizeof(*list));
}

static void
add_attr(uint64_t *hash, enum pawl_attr attr, int rank, const struct pawl_attrs *attrs)
{
	uint32_t i;

	switch (attr) {
	case PAWL_ATTR_eps:
		add_double(hash, attrs->eps);
		break;
	case PAWL_ATTR_scale:
		add_double(hash, attrs->scale);
		break;
	case PAWL_ATTR_softcap:
		add_double(hash, attrs->softcap);
		break;
	case PAWL_ATTR_axis:
		add_int(hash, attrs->axis);
		break;
	case PAWL_ATTR_modulus:
		add_int(hash, attrs->modulus);
		break;
	case PAWL_ATTR_block:
		add_int(hash, attrs->block);
		break;
	case PAWL_ATTR_window:
		add_int(hash, attrs->window);
		break;
	case PAWL_ATTR_causal:
		add_int(hash, attrs->causal);
		break;
	case PAWL_ATTR_start:
		add_list(hash, attrs->start, rank);
		break;
	case PAWL_ATTR_stop:
		add_list(hash, attrs->stop, rank);
		break;
	case PAWL_ATTR_perm:
		add_list(hash, attrs->perm, rank);
		break;
	case PAWL_ATTR_sym:
		add_int(hash, attrs->sym);
		break;
	case PAWL_ATTR_dtype:
		add_int(hash, attrs->dtype);
		break;
	case PAWL_ATTR_role:
		add_int(hash, attrs->role);
		break;
	case PAWL_ATTR_fill:
		add_int(hash, attrs->fill);
		break;
	case PAWL_ATTR_pairs:
		add_int(hash, attrs->pairs);
		break;
	case PAWL_ATTR_values:
		add_int(hash, attrs->n_values);
		for (i = 0; i < attrs->n_values; i++)
			add_double(hash, attrs->values[i]);
		break;
	case PAWL_N_ATTRS:
		break;
	}
}

static void
add_type(uint64_t *hash, const struct pawl_type *type)
{
	int i;

	add_int(hash, type->dtype);
	add_int(hash, type->layout);
	add_int(hash, type->rank);
	for (i = 0; i < type->rank; i++) {
		add_int(hash, type->dim[i].base);
		add_int(hash, type->dim[i].factor);
		add_int(hash, type->dim[i].sym);
	}
}

static void
add_node(uint64_t *hash, const int32_t *places, const struct pawl_node *node)
{
	int i;

	add_int(hash, node->op);
	add_type(hash, &node->type);
	for (i = 0; i < PAWL_N_ATTRS; i++) {
		if (pawl_op_has_attr(node->op, (enum pawl_attr)i))
			add_attr(hash, (enum pawl_attr)i, node->type.rank, &node->attrs);
	}
	if (node->op == PAWL_OP_CONST)
		add_text(hash, node->name ? node->name : "");
	add_int(hash, node->n_inputs);
	for (i = 0; i < node->n_inputs; i++)
		add_int(hash, places[node->inputs[i].def->id]);
}

uint64_t
pawl_graph_hash(const struct pawl_graph *graph)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	int32_t *places = calloc((size_t)graph->n_ids + 1, sizeof(*places));
	const struct pawl_node *node;
	int32_t i, n = 0;

	if (!places)
		return 0;
	for (i = 0; i < graph->n_symbols; i++) {
		const struct pawl_symbol *symbol = &graph->symbols[i];

		add_text(&hash, symbol->name);
		add_int(&hash, symbol->min);
		add_int(&hash, symbol->max);
		add_int(&hash, symbol->multiple);
	}
	pawl_foreach_node (node, graph) {
		places[node->id] = n++;
		add_node(&hash, places, node);
	}
	for (i = 0; i < graph->n_outputs; i++)
		add_int(&hash, places[graph->outputs[i]->id]);
	free(places);
	return hash;
}

#include "tools/exec_inputs.h"

#include "ir/random.h"

#include <inttypes.h>
#include <stdlib.h>

/* Symbols are drawn from at most this many values from their smallest on. */
enum { SYMBOL_SPREAD = 64 };

struct pawl_type
pawl_type_at(const struct pawl_type *type, const int64_t *symbols)
{
	struct pawl_type out = *type;

	for (int i = 0; i < type->rank; i++) {
		const struct pawl_dim *dim = &type->dim[i];

		if (dim->factor)
			out.dim[i] = pawl_dim_const(dim->base + dim->factor * symbols[dim->sym]);
	}
	return out;
}

enum pawl_status
pawl_static_tensor(const struct pawl_type *type, void *bytes, struct pawl_tensor *out,
	int64_t *n_bytes, struct pawl_error *err)
{
	int64_t dims[PAWL_MAX_RANK] = {0};
	enum pawl_status status;

	for (int i = 0; i < type->rank; i++)
		dims[i] = type->dim[i].base;
	status = pawl_tensor_init(
		out, type->dtype, type->layout, false, type->rank, dims, n_bytes, err);
	out->data = bytes;
	return status;
}

static int64_t
draw(uint64_t seed, const struct pawl_symbol *symbol)
{
	int64_t step = symbol->multiple > 1 ? symbol->multiple : 1;
	int64_t first = (symbol->min + step - 1) / step;
	int64_t n = symbol->max / step - first + 1;
	unsigned char byte;

	pawl_random_fill(PAWL_DTYPE_I8, seed, symbol->name, &byte, 1);
	if (n > SYMBOL_SPREAD)
		n = SYMBOL_SPREAD;
	return step * (first + (n > 0 ? byte % n : 0));
}

static enum pawl_status
check_size(const struct pawl_node *node, const int64_t *largest, int64_t *n_bytes,
	struct pawl_error *err)
{
	struct pawl_type type = pawl_type_at(&node->type, largest);
	struct pawl_tensor tensor;
	enum pawl_status status = pawl_static_tensor(&type, NULL, &tensor, n_bytes, err);

	if (!status && *n_bytes > PAWL_EXEC_MAX_BYTES)
		status = pawl_fail(err, PAWL_UNSUPPORTED,
			"%s %%%.64s has %" PRId64 " bytes; graphs are run up to %" PRId64
			" a value",
			pawl_op_name(node->op), node->name ? node->name : "", *n_bytes,
			PAWL_EXEC_MAX_BYTES);
	return status;
}

static enum pawl_status
add_input(struct pawl_exec_inputs *inputs, const struct pawl_node *node, uint64_t seed,
	int64_t n_bytes, struct pawl_error *err)
{
	struct pawl_exec_input *input = &inputs->items[inputs->n];

	input->node = node;
	input->type = pawl_type_at(&node->type, inputs->symbols);
	input->n_bytes = n_bytes;
	input->bytes = calloc(1, (size_t)n_bytes + 1);
	if (!input->bytes)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY,
			"no memory for %" PRId64 " bytes of %%%.64s", n_bytes,
			node->name ? node->name : "");
	inputs->n++;
	return pawl_random_fill_const(
		inputs->graph, node, seed, inputs->symbols, input->bytes, err);
}

enum pawl_status
pawl_exec_inputs_init(struct pawl_exec_inputs *inputs, const struct pawl_graph *graph,
	uint64_t seed, struct pawl_error *err)
{
	int64_t *largest = calloc((size_t)graph->n_symbols + 1, sizeof(*largest));
	enum pawl_status status = PAWL_OK;
	const struct pawl_node *node;

	*inputs = (struct pawl_exec_inputs){.graph = graph};
	inputs->symbols = calloc((size_t)graph->n_symbols + 1, sizeof(*inputs->symbols));
	inputs->items = calloc((size_t)graph->n_nodes + 1, sizeof(*inputs->items));
	if (!largest || !inputs->symbols || !inputs->items)
		status = pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for inputs");
	for (int32_t i = 0; i < graph->n_symbols && !status; i++) {
		inputs->symbols[i] = draw(seed, &graph->symbols[i]);
		largest[i] = graph->symbols[i].max;
	}
	for (node = graph->first; node && !status; node = node->next) {
		int64_t n_bytes;

		if (node->type.layout == PAWL_LAYOUT_TILE16)
			continue;
		status = check_size(node, largest, &n_bytes, err);
		if (!status && node->op == PAWL_OP_CONST && node->attrs.role != PAWL_ROLE_LITERAL)
			status = add_input(inputs, node, seed, n_bytes, err);
	}
	free(largest);
	return status;
}

void
pawl_exec_inputs_release(struct pawl_exec_inputs *inputs)
{
	for (int32_t i = 0; i < inputs->n; i++)
		free(inputs->items[i].bytes);
	free(inputs->items);
	free(inputs->symbols);
	*inputs = (struct pawl_exec_inputs){0};
}

#include "codegen/interp.h"

#include "codegen/ref_ops.h"
#include "ir/fpenv.h"
#include "passes/step.h"
#include "passes/view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct value {
	struct pawl_tensor tensor;
	void *memory;      /* own, or NULL */
	int32_t uses_left; /* by nodes, as an output, and to be copied back */
	bool is_kv_end;
};

struct binding {
	void *data;
	int64_t bytes;
};

struct pawl_interp {
	const struct pawl_graph *graph;
	enum pawl_interp_mode mode;
	struct value *values;     /* by node id */
	struct binding *bindings; /* by node id */
	int64_t *symbols;
	bool *is_set; /* by symbol */
	void *scratch;
	int64_t scratch_bytes;
	bool has_run;
};

enum pawl_status
pawl_interp_new(const struct pawl_graph *graph, enum pawl_interp_mode mode,
	struct pawl_interp **out, struct pawl_error *err)
{
	struct pawl_interp *interp = calloc(1, sizeof(*interp));
	size_t n_ids = (size_t)graph->n_ids + 1, n_symbols = (size_t)graph->n_symbols + 1;

	if (interp) {
		interp->graph = graph;
		interp->mode = mode;
		interp->values = calloc(n_ids, sizeof(*interp->values));
		interp->bindings = calloc(n_ids, sizeof(*interp->bindings));
		interp->symbols = calloc(n_symbols, sizeof(*interp->symbols));
		interp->is_set = calloc(n_symbols, sizeof(*interp->is_set));
	}
	if (!interp || !interp->values || !interp->bindings || !interp->symbols ||
		!interp->is_set) {
		pawl_interp_free(interp);
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for an interpreter");
	}
	*out = interp;
	return PAWL_OK;
}

static void
clear_values(struct pawl_interp *interp)
{
	int32_t i;

	for (i = 0; interp->values && i < interp->graph->n_ids; i++)
		free(interp->values[i].memory);
	if (interp->values)
		memset(interp->values, 0, (size_t)interp->graph->n_ids * sizeof(*interp->values));
	interp->has_run = false;
}

void
pawl_interp_free(struct pawl_interp *interp)
{
	if (!interp)
		return;
	clear_values(interp);
	free(interp->values);
	free(interp->bindings);
	free(interp->symbols);
	free(interp->is_set);
	free(interp->scratch);
	free(interp);
}

enum pawl_status
pawl_interp_bind_node(struct pawl_interp *interp, const struct pawl_node *node, void *data,
	int64_t bytes, struct pawl_error *err)
{
	if (node->op != PAWL_OP_CONST || node->attrs.role == PAWL_ROLE_LITERAL)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"node %" PRId32 " is no const with storage", node->id);
	interp->bindings[node->id] = (struct binding){data, bytes};
	return PAWL_OK;
}

enum pawl_status
pawl_interp_bind(struct pawl_interp *interp, const char *name, void *data, int64_t bytes,
	struct pawl_error *err)
{
	const struct pawl_node *node = pawl_graph_find(interp->graph, name);

	if (!node)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "the graph has no const %%%s", name);
	return pawl_interp_bind_node(interp, node, data, bytes, err);
}

enum pawl_status
pawl_interp_set_symbol(
	struct pawl_interp *interp, const char *name, int64_t value, struct pawl_error *err)
{
	int32_t i = pawl_graph_find_symbol(interp->graph, name, strlen(name));
	const struct pawl_symbol *symbol;

	if (i < 0)
		return pawl_fail(err, PAWL_SYMBOL, "the graph has no symbol $%s", name);
	symbol = &interp->graph->symbols[i];
	if (value < symbol->min || value > symbol->max)
		return pawl_fail(err, PAWL_SYMBOL,
			"symbol $%s = %" PRId64 " is not between %" PRId64 " and %" PRId64, name,
			value, symbol->min, symbol->max);
	if (symbol->multiple > 1 && value % symbol->multiple)
		return pawl_fail(err, PAWL_SYMBOL,
			"symbol $%s = %" PRId64 " is no multiple of %" PRId64, name, value,
			symbol->multiple);
	interp->symbols[i] = value;
	interp->is_set[i] = true;
	return PAWL_OK;
}

/* The node that overwrites a value, or NULL; *n counts them. */
static const struct pawl_node *
writer_of(const struct pawl_node *node, int *n)
{
	const struct pawl_node *writer = NULL;
	const struct pawl_use *use;

	*n = 0;
	pawl_foreach_use(use, node) {
		if (pawl_op_has(use->user->op, PAWL_OPF_INPLACE) && use == &use->user->inputs[0]) {
			writer = use->user;
			++*n;
		}
	}
	return writer;
}

/* Marks the last version of a kv const as wanted. */
static enum pawl_status
mark_kv_end(struct pawl_interp *interp, const struct pawl_node *kv, struct pawl_error *err)
{
	const struct pawl_node *last = kv, *writer = kv;
	int n;

	while (writer) {
		last = writer;
		writer = writer_of(last, &n);
		if (n > 1)
			return pawl_fail(err, PAWL_INVALID_GRAPH,
				"kv %%%s is written twice in one version",
				kv->name ? kv->name : "");
	}
	if (last != kv) {
		interp->values[last->id].is_kv_end = true;
		interp->values[last->id].uses_left++;
	}
	return PAWL_OK;
}

static enum pawl_status
prepare(struct pawl_interp *interp, struct pawl_error *err)
{
	const struct pawl_graph *graph = interp->graph;
	const struct pawl_node *node;
	enum pawl_status status = PAWL_OK;
	int32_t i;

	for (i = 0; i < graph->n_symbols; i++) {
		if (!interp->is_set[i])
			return pawl_fail(
				err, PAWL_SYMBOL, "symbol $%s is unbound", graph->symbols[i].name);
	}
	pawl_foreach_node(node, graph) {
		interp->values[node->id].uses_left += pawl_node_n_uses(node);
		if (node->op == PAWL_OP_CONST && node->attrs.role == PAWL_ROLE_KV)
			status = mark_kv_end(interp, node, err);
		else if (pawl_op_has(node->op, PAWL_OPF_INPLACE) &&
			 pawl_op_has(pawl_node_input(node, 0)->op, PAWL_OPF_VIEW))
			status = pawl_fail(err, PAWL_INVALID_GRAPH, "a view is written through");
		if (status)
			return status;
	}
	return PAWL_OK;
}

static enum pawl_status
resolve(const struct pawl_interp *interp, const struct pawl_node *node, enum pawl_layout layout,
	bool wide, int64_t *bytes, struct pawl_error *err)
{
	int64_t dims[PAWL_MAX_RANK] = {0};
	int i;

	for (i = 0; i < node->type.rank; i++) {
		const struct pawl_dim *dim = &node->type.dim[i];

		if (dim->sym < 0)
			dims[i] = dim->base;
		else if (__builtin_mul_overflow(dim->factor, interp->symbols[dim->sym], &dims[i]) ||
			 __builtin_add_overflow(dims[i], dim->base, &dims[i]))
			return pawl_fail(err, PAWL_INVALID_ARGUMENT, "dim %d overflows", i);
	}
	return pawl_tensor_init(&interp->values[node->id].tensor, node->type.dtype, layout, wide,
		node->type.rank, dims, bytes, err);
}

/* Never empty, so that NULL means failure. */
static void *
allocate(int64_t bytes)
{
	return (uint64_t)bytes > SIZE_MAX - 64 ? NULL
					       : aligned_alloc(64, ((size_t)bytes + 64) / 64 * 64);
}

static enum pawl_status
own_memory(struct value *value, int64_t bytes, struct pawl_error *err)
{
	value->memory = allocate(bytes);
	if (!value->memory)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for %" PRId64 " bytes", bytes);
	value->tensor.data = value->memory;
	return PAWL_OK;
}

/* A const's value is its storage; an output is a copy, since a write may come. */
static enum pawl_status
bind_value(struct pawl_interp *interp, const struct pawl_node *node, struct pawl_error *err)
{
	const struct binding *binding = &interp->bindings[node->id];
	struct value *value = &interp->values[node->id];
	enum pawl_layout layout =
		node->type.layout == PAWL_LAYOUT_K16 ? PAWL_LAYOUT_K16 : PAWL_LAYOUT_ROWS;
	struct pawl_tensor stored;
	enum pawl_status status;
	int64_t bytes;

	if (!binding->data)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT, "is unbound");
	status = resolve(interp, node, layout, false, &bytes, err);
	if (status)
		return status;
	if (binding->bytes < bytes)
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"is bound to %" PRId64 " bytes, but has %" PRId64, binding->bytes, bytes);
	value->tensor.data = binding->data;
	if (!node->n_outputs)
		return PAWL_OK;
	stored = value->tensor;
	status = resolve(interp, node, PAWL_LAYOUT_ROWS, false, &bytes, err);
	if (!status)
		status = own_memory(value, bytes, err);
	if (!status)
		pawl_tensor_copy(&stored, &value->tensor);
	return status;
}

static enum pawl_status
reserve_scratch(struct pawl_interp *interp, int64_t bytes, struct pawl_error *err)
{
	if (bytes <= interp->scratch_bytes)
		return PAWL_OK;
	free(interp->scratch);
	interp->scratch_bytes = 0;
	interp->scratch = allocate(bytes);
	if (!interp->scratch)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY,
			"no memory for %" PRId64 " bytes of scratch", bytes);
	interp->scratch_bytes = bytes;
	return PAWL_OK;
}

/* Ids that are there before the run must have rows; those that are computed need not. */
static enum pawl_status
check_ids(const struct pawl_interp *interp, const struct pawl_node *gather, struct pawl_error *err)
{
	const struct pawl_node *table = pawl_node_input(gather, 0), *ids = pawl_node_input(gather, 1);
	const struct pawl_tensor *list = &interp->values[ids->id].tensor;
	int64_t n_rows = interp->values[table->id].tensor.dim[0], i;

	if (pawl_node_base(ids)->op != PAWL_OP_CONST)
		return PAWL_OK;
	for (i = 0; i < list->dim[0]; i++) {
		int64_t id = pawl_tensor_load_i64(list, i);

		if (id < 0 || id >= n_rows)
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"id %" PRId64 " at %" PRId64 " is no row of a table of %" PRId64,
				id, i, n_rows);
	}
	return PAWL_OK;
}

static enum pawl_status
compute(struct pawl_interp *interp, const struct pawl_node *node, struct pawl_error *err)
{
	struct value *value = &interp->values[node->id];
	bool exact = interp->mode == PAWL_INTERP_EXACT;
	bool wide = exact && node->op != PAWL_OP_CONST && pawl_dtype_is_float(node->type.dtype);
	struct pawl_tensor inputs[PAWL_MAX_INPUTS];
	struct pawl_ref_call call = {.attrs = &node->attrs,
		.inputs = inputs,
		.n_inputs = node->n_inputs,
		.out = &value->tensor};
	enum pawl_status status;
	uint32_t saved;
	int64_t bytes;
	int32_t i;

	for (i = 0; i < node->n_inputs; i++)
		inputs[i] = interp->values[pawl_node_input(node, i)->id].tensor;
	if (node->attrs.sym >= 0)
		call.sym = interp->symbols[node->attrs.sym];
	status = resolve(interp, node, PAWL_LAYOUT_ROWS, wide, &bytes, err);
	if (!status)
		status = own_memory(value, bytes, err);
	if (!status && node->op == PAWL_OP_GATHER)
		status = check_ids(interp, node, err);
	if (!status)
		status = reserve_scratch(interp,
			pawl_ref_scratch_bytes(node->op, inputs, node->n_inputs, &value->tensor),
			err);
	call.scratch = interp->scratch;
	if (status)
		return status;
	if (exact)
		return pawl_exact_run(node->op, &call, err);
	saved = pawl_fpenv_enter();
	status = pawl_ref_run(node->op, &call, err);
	pawl_fpenv_leave(saved);
	return status;
}

static enum pawl_status
run_node(struct pawl_interp *interp, const struct pawl_node *node, struct pawl_error *err)
{
	if (node->op == PAWL_OP_CONST && node->attrs.role != PAWL_ROLE_LITERAL)
		return bind_value(interp, node, err);
	if (node->op == PAWL_OP_PACK) {
		interp->values[node->id].tensor =
			interp->values[pawl_node_input(node, 0)->id].tensor;
		return PAWL_OK;
	}
	return compute(interp, node, err);
}

static void
free_if_unused(struct value *value)
{
	if (value->uses_left > 0)
		return;
	free(value->memory);
	value->memory = NULL;
}

static void
copy_back(struct pawl_interp *interp)
{
	const struct pawl_node *node;

	pawl_foreach_node(node, interp->graph) {
		const struct pawl_node *kv;
		struct value *value = &interp->values[node->id];
		struct pawl_tensor stored;
		int64_t bytes;

		if (!value->is_kv_end)
			continue;
		kv = pawl_node_storage(node);
		pawl_tensor_init(&stored, kv->type.dtype, kv->type.layout, false,
			value->tensor.rank, value->tensor.dim, &bytes, NULL);
		stored.data = interp->bindings[kv->id].data;
		pawl_tensor_copy(&value->tensor, &stored);
		value->uses_left--;
		free_if_unused(value);
	}
}

enum pawl_status
pawl_interp_run(struct pawl_interp *interp, struct pawl_error *err)
{
	struct pawl_error local;
	const struct pawl_node *node;
	enum pawl_status status;
	int32_t i;

	if (!err)
		err = &local;
	clear_values(interp);
	status = prepare(interp, err);
	if (status)
		return status;
	pawl_foreach_node(node, interp->graph) {
		status = run_node(interp, node, err);
		if (status && node->name)
			return pawl_error_prefix(
				err, "%s %%%s", pawl_op_name(node->op), node->name);
		if (status)
			return pawl_error_prefix(
				err, "%s %%%" PRId32, pawl_op_name(node->op), node->id);
		free_if_unused(&interp->values[node->id]);
		for (i = 0; i < node->n_inputs; i++) {
			struct value *input = &interp->values[pawl_node_input(node, i)->id];

			input->uses_left--;
			free_if_unused(input);
		}
	}
	copy_back(interp);
	interp->has_run = true;
	return PAWL_OK;
}

const struct pawl_tensor *
pawl_interp_output(const struct pawl_interp *interp, int32_t i)
{
	return &interp->values[interp->graph->outputs[i]->id].tensor;
}

enum pawl_status
pawl_interp_read(
	const struct pawl_interp *interp, int32_t i, double *x, int64_t n, struct pawl_error *err)
{
	const struct pawl_tensor *t;
	int64_t length, row;

	if (!interp->has_run || i < 0 || i >= interp->graph->n_outputs)
		return pawl_fail(
			err, PAWL_INVALID_ARGUMENT, "there is no output %" PRId32 " of a run", i);
	t = pawl_interp_output(interp, i);
	if (n != pawl_tensor_elems(t))
		return pawl_fail(err, PAWL_INVALID_ARGUMENT,
			"output %" PRId32 " has %" PRId64 " elements, not %" PRId64, i,
			pawl_tensor_elems(t), n);
	length = pawl_tensor_row_length(t);
	for (row = 0; row < pawl_tensor_rows(t); row++)
		pawl_tensor_load_f64(t, row, 0, length, x + row * length);
	return PAWL_OK;
}

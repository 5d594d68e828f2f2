#include "ir/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Text that grows, or, with a fixed buffer, is cut. */
struct sink {
	char *text;
	size_t n, cap;
	bool fixed, failed;
};

static void
reserve(struct sink *sink, size_t n)
{
	size_t cap = sink->cap ? sink->cap : 4096;
	char *text;

	if (sink->fixed || sink->failed || sink->n + n < sink->cap)
		return;
	while (cap <= sink->n + n)
		cap *= 2;
	text = realloc(sink->text, cap);
	if (!text) {
		sink->failed = true;
		return;
	}
	sink->text = text;
	sink->cap = cap;
}

static void put(struct sink *sink, const char *format, ...) PAWL_PRINTF(2, 3);

static void
put(struct sink *sink, const char *format, ...)
{
	va_list args, again;
	size_t room;
	int n;

	va_start(args, format);
	va_copy(again, args);
	n = vsnprintf(NULL, 0, format, args);
	reserve(sink, (size_t)n);
	room = sink->n < sink->cap ? sink->cap - sink->n : 0;
	if (!sink->failed)
		vsnprintf(room ? sink->text + sink->n : NULL, room, format, again);
	sink->n += (size_t)n;
	va_end(again);
	va_end(args);
}

static void
put_symbol(struct sink *sink, const struct pawl_graph *graph, int32_t sym)
{
	if (sym >= 0 && sym < graph->n_symbols)
		put(sink, "$%s", graph->symbols[sym].name);
	else
		put(sink, "$?%" PRId32, sym);
}

static void
put_type(struct sink *sink, const struct pawl_graph *graph, const struct pawl_type *type)
{
	int i;

	put(sink, "%s[", pawl_dtype_name(type->dtype));
	for (i = 0; i < type->rank; i++) {
		struct pawl_dim dim = type->dim[i];

		put(sink, "%s", i ? ", " : "");
		if (dim.sym < 0) {
			put(sink, "%" PRId64, dim.base);
			continue;
		}
		if (dim.factor != 1)
			put(sink, "%" PRId64 "*", dim.factor);
		put_symbol(sink, graph, dim.sym);
		if (dim.base)
			put(sink, "+%" PRId64, dim.base);
	}
	put(sink, "]");
	if (type->layout != PAWL_LAYOUT_ROWS)
		put(sink, "@%s", pawl_layout_name(type->layout));
}

int
pawl_print_type(char *out, size_t n, const struct pawl_graph *graph, const struct pawl_type *type)
{
	struct sink sink = {.text = out, .cap = n, .fixed = true};

	put_type(&sink, graph, type);
	return (int)sink.n;
}

static void
put_double(struct sink *sink, double value)
{
	char text[40];

	pawl_print_double(text, sizeof(text), value);
	put(sink, "%s", text);
}

static void
put_list(struct sink *sink, const int64_t *list, int n)
{
	int i;

	for (i = 0; i < n; i++)
		put(sink, "%s%" PRId64, i ? ", " : "[", list[i]);
	put(sink, "]");
}

static void
put_values(struct sink *sink, const struct pawl_attrs *attrs)
{
	uint32_t i;

	for (i = 0; i < attrs->n_values; i++) {
		put(sink, "%s", i ? ", " : "[");
		put_double(sink, attrs->values[i]);
	}
	put(sink, "]");
}

static void
put_attr(struct sink *sink, const struct pawl_graph *graph, const struct pawl_node *node,
	enum pawl_attr attr)
{
	const struct pawl_attrs *attrs = &node->attrs;

	switch (attr) {
	case PAWL_ATTR_eps:
		put_double(sink, attrs->eps);
		break;
	case PAWL_ATTR_scale:
		put_double(sink, attrs->scale);
		break;
	case PAWL_ATTR_softcap:
		put_double(sink, attrs->softcap);
		break;
	case PAWL_ATTR_axis:
		put(sink, "%" PRId64, attrs->axis);
		break;
	case PAWL_ATTR_modulus:
		put(sink, "%" PRId64, attrs->modulus);
		break;
	case PAWL_ATTR_block:
		put(sink, "%" PRId64, attrs->block);
		break;
	case PAWL_ATTR_window:
		put(sink, "%" PRId64, attrs->window);
		break;
	case PAWL_ATTR_causal:
		put(sink, "%s", attrs->causal ? "true" : "false");
		break;
	case PAWL_ATTR_start:
		put_list(sink, attrs->start, node->type.rank);
		break;
	case PAWL_ATTR_stop:
		put_list(sink, attrs->stop, node->type.rank);
		break;
	case PAWL_ATTR_perm:
		put_list(sink, attrs->perm, node->type.rank);
		break;
	case PAWL_ATTR_sym:
		put_symbol(sink, graph, attrs->sym);
		break;
	case PAWL_ATTR_dtype:
		put(sink, "%s", pawl_dtype_name(attrs->dtype));
		break;
	case PAWL_ATTR_role:
		put(sink, "%s", pawl_attr_word(attr, attrs->role));
		break;
	case PAWL_ATTR_fill:
		put(sink, "%s", pawl_attr_word(attr, attrs->fill));
		break;
	case PAWL_ATTR_pairs:
		put(sink, "%s", pawl_attr_word(attr, attrs->pairs));
		break;
	case PAWL_ATTR_values:
		put_values(sink, attrs);
		break;
	case PAWL_N_ATTRS:
		break;
	}
}

static void
put_attrs(struct sink *sink, const struct pawl_graph *graph, const struct pawl_node *node)
{
	const char *before = " {";
	int i;

	for (i = 0; i < PAWL_N_ATTRS; i++) {
		enum pawl_attr attr = (enum pawl_attr)i;

		if (!pawl_op_has_attr(node->op, attr) ||
			pawl_attr_is_default(attr, node->type.rank, &node->attrs))
			continue;
		put(sink, "%s%s = ", before, pawl_attr_info(attr)->name);
		put_attr(sink, graph, node, attr);
		before = ", ";
	}
	if (*before == ',')
		put(sink, "}");
}

/* numbers[id]: 0 for a named node or one outside of the list, else 1 + its number. */
static void
put_value(struct sink *sink, const int32_t *numbers, const struct pawl_node *node)
{
	if (node->name)
		put(sink, "%%%s", node->name);
	else if (numbers[node->id])
		put(sink, "%%%" PRId32, numbers[node->id] - 1);
	else
		put(sink, "%%?%" PRId32, node->id);
}

static void
put_notes(struct sink *sink, const struct pawl_diagnostics *notes, const struct pawl_node *node)
{
	int i;

	for (i = 0; notes && i < notes->n; i++) {
		if (notes->items[i].node == node)
			put(sink, "  ; error: %s\n", notes->items[i].text);
	}
}

static void
put_node(struct sink *sink, const struct pawl_graph *graph, const int32_t *numbers,
	const struct pawl_node *node)
{
	int i;

	put(sink, "  ");
	put_value(sink, numbers, node);
	put(sink, " = %s", pawl_op_name(node->op));
	for (i = 0; i < node->n_inputs; i++) {
		put(sink, "%s", i ? ", " : " ");
		put_value(sink, numbers, node->inputs[i].def);
	}
	put_attrs(sink, graph, node);
	put(sink, " : ");
	put_type(sink, graph, &node->type);
	if (node->group >= 0)
		put(sink, " #%" PRId32, node->group);
	put(sink, "\n");
}

const char *
pawl_stage_name(enum pawl_stage stage)
{
	static const char *const words[PAWL_N_STAGES] = {"values", "ordered", "fused"};

	return words[stage];
}

char *
pawl_print(const struct pawl_graph *graph, const struct pawl_diagnostics *notes)
{
	int32_t *numbers = calloc((size_t)graph->n_ids + 1, sizeof(*numbers));
	const struct pawl_node *node;
	struct sink sink = {0};
	int32_t i, n = 0;

	if (!numbers)
		return NULL;
	pawl_foreach_node (node, graph) {
		if (!node->name)
			numbers[node->id] = ++n;
	}
	put(&sink, "pawl 1\ngraph @%s stage %s {\n", graph->name, pawl_stage_name(graph->stage));
	put_notes(&sink, notes, NULL);
	for (i = 0; i < graph->n_symbols; i++) {
		const struct pawl_symbol *symbol = &graph->symbols[i];

		put(&sink, "  sym $%s : %" PRId64 "..%" PRId64, symbol->name, symbol->min,
			symbol->max);
		if (symbol->multiple != 1)
			put(&sink, " %% %" PRId64, symbol->multiple);
		put(&sink, "\n");
	}
	pawl_foreach_node (node, graph) {
		put_node(&sink, graph, numbers, node);
		put_notes(&sink, notes, node);
	}
	for (i = 0; i < graph->n_outputs; i++) {
		put(&sink, "  output ");
		put_value(&sink, numbers, graph->outputs[i]);
		put(&sink, "\n");
	}
	put(&sink, "}\n");
	free(numbers);
	if (sink.failed) {
		free(sink.text);
		return NULL;
	}
	return sink.text;
}

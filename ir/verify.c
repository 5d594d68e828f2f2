#include "ir/verify.h"

#include "ir/build.h"
#include "ir/infer.h"
#include "ir/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIAGNOSTICS = 1000 };

static const int64_t max_symbol = (int64_t)1 << 40;

/* What is known of a node, by id. */
struct mark {
	const struct pawl_node *node;      /* NULL: not in the list */
	const struct pawl_node *content;   /* what it is a view of, through all views; or itself */
	const struct pawl_node *destroyer; /* the first op in place on it */
	int32_t place;
	bool is_wrong; /* its type tells its users nothing */
};

struct verifier {
	const struct pawl_graph *graph;
	struct pawl_diagnostics found;
	struct mark *marks;
	int64_t n_operands; /* of all nodes */
	bool failed;        /* out of memory */
};

void
pawl_diagnostics_release(struct pawl_diagnostics *diagnostics)
{
	free(diagnostics->items);
	*diagnostics = (struct pawl_diagnostics){0};
}

static void report(struct verifier *v, const struct pawl_node *node, const char *format, ...)
	PAWL_PRINTF(3, 4);

static void
report(struct verifier *v, const struct pawl_node *node, const char *format, ...)
{
	struct pawl_diagnostics *found = &v->found;
	struct pawl_diagnostic *items;
	va_list args;

	if (v->failed || found->n == MAX_DIAGNOSTICS)
		return;
	/* A power of two: full. */
	if (!(found->n & (found->n - 1))) {
		items = realloc(
			found->items, (found->n ? 2 * (size_t)found->n : 1) * sizeof(*items));
		if (!items) {
			v->failed = true;
			return;
		}
		found->items = items;
	}
	va_start(args, format);
	vsnprintf(found->items[found->n].text, sizeof(found->items->text), format, args);
	va_end(args);
	found->items[found->n++].node = node;
}

/* "%name", or "a nameless add". */
struct label {
	char text[80];
};

static const char *
label_of(const struct pawl_node *node, struct label *label)
{
	if (node->name)
		snprintf(label->text, sizeof(label->text), "%%%.70s", node->name);
	else
		snprintf(label->text, sizeof(label->text), "a nameless %s", pawl_op_name(node->op));
	return label->text;
}

const char *
pawl_symbol_fault(const struct pawl_symbol *s)
{
	if (s->min < 0 || s->max < s->min || s->max > max_symbol)
		return "has no range within 0 .. 2^40";
	if (s->multiple < 1 || s->max / s->multiple * s->multiple < s->min)
		return "has no multiple of its divisor in its range";
	return NULL;
}

static void
check_symbols(struct verifier *v)
{
	const struct pawl_graph *graph = v->graph;
	const char *fault;
	int32_t i;

	if (!pawl_name_is_valid(graph->name))
		report(v, NULL, "the name of the graph does not fit the text form");
	for (i = 0; i < graph->n_symbols; i++) {
		const struct pawl_symbol *s = &graph->symbols[i];

		if (!pawl_name_is_valid(s->name))
			report(v, NULL, "the name of symbol %" PRId32 " does not fit the text form",
				i);
		else if (pawl_graph_find_symbol(graph, s->name, strlen(s->name)) != i)
			report(v, NULL, "symbol $%.70s is declared twice", s->name);
		fault = pawl_symbol_fault(s);
		if (fault)
			report(v, NULL, "symbol $%.70s %s", s->name, fault);
	}
}

/* Fills marks; false when the list itself is broken, so that nothing else can be looked at. */
static bool
check_list(struct verifier *v)
{
	const struct pawl_graph *graph = v->graph;
	const struct pawl_node *node, *prev = NULL;
	int32_t place = 0;

	pawl_foreach_node (node, graph) {
		if (node->id < 0 || node->id >= graph->n_ids || v->marks[node->id].node) {
			report(v, node, "its id %" PRId32 " is not its own", node->id);
			return false;
		}
		if (node->prev != prev) {
			report(v, node, "its link to the node before it is wrong");
			return false;
		}
		v->marks[node->id].node = node;
		v->marks[node->id].place = place++;
		prev = node;
	}
	if (graph->last != prev || graph->n_nodes != place) {
		report(v, NULL, "the list has %" PRId32 " nodes, not %" PRId32, place,
			graph->n_nodes);
		return false;
	}
	return true;
}

static bool
is_listed(const struct verifier *v, const struct pawl_node *node)
{
	return node && node->id >= 0 && node->id < v->graph->n_ids &&
	       v->marks[node->id].node == node;
}

static void
check_operands(struct verifier *v, const struct pawl_node *node)
{
	struct mark *mark = &v->marks[node->id];
	struct label label;
	int i;

	for (i = 0; i < node->n_inputs; i++) {
		const struct pawl_use *use = &node->inputs[i];

		v->n_operands++;
		if (!is_listed(v, use->def)) {
			report(v, node, "input %d is not in the graph", i);
			mark->is_wrong = true;
			continue;
		}
		if (v->marks[use->def->id].place >= mark->place)
			report(v, node, "input %d (%s) comes after its user", i,
				label_of(use->def, &label));
		if (v->marks[use->def->id].is_wrong || v->marks[use->def->id].place >= mark->place)
			mark->is_wrong = true;
		if (use->user != node)
			report(v, node, "input %d is the use of another node", i);
		if ((use->prev ? use->prev->next : use->def->uses) != use)
			report(v, node, "input %d is missing among the uses of %s", i,
				label_of(use->def, &label));
	}
}

/* The other way round: what is among the uses of a node is an input of a node in the list. */
static void
check_uses(struct verifier *v)
{
	const struct pawl_node *node;
	const struct pawl_use *use;
	int64_t left = v->n_operands;

	pawl_foreach_node (node, v->graph) {
		pawl_foreach_use (use, node) {
			if (use->def != node || !is_listed(v, use->user) || left-- == 0) {
				report(v, node, "its list of uses is wrong");
				return;
			}
		}
	}
	if (left)
		report(v, NULL, "%" PRId64 " uses are in no list of uses", left);
}

static void
check_type(struct verifier *v, const struct pawl_node *node)
{
	struct pawl_node *inputs[16];
	struct pawl_type type = node->type;
	struct pawl_error error;
	char inferred[128];
	int i;

	if (v->marks[node->id].is_wrong)
		return;
	for (i = 0; i < node->n_inputs && i < 16; i++)
		inputs[i] = node->inputs[i].def;
	if (pawl_infer(v->graph, node->op, inputs, node->n_inputs, &node->attrs, &type, &error)) {
		report(v, node, "%s", error.text);
		v->marks[node->id].is_wrong = true;
	} else if (!pawl_type_equal(&type, &node->type)) {
		pawl_print_type(inferred, sizeof(inferred), v->graph, &type);
		report(v, node, "%s gives %s, not the type it has", pawl_op_name(node->op),
			inferred);
		v->marks[node->id].is_wrong = true;
	}
}

static void
check_name(struct verifier *v, const struct pawl_node *node)
{
	if (node->name && !pawl_name_is_valid(node->name))
		report(v, node, "its name does not fit the text form");
	if (!node->name && node->op == PAWL_OP_CONST && node->attrs.role != PAWL_ROLE_LITERAL)
		report(v, node, "a const of role %s needs a name",
			pawl_attr_word(PAWL_ATTR_role, node->attrs.role));
}

static int
compare_names(const void *a, const void *b)
{
	const struct pawl_node *x = *(const struct pawl_node *const *)a;
	const struct pawl_node *y = *(const struct pawl_node *const *)b;
	int order = strcmp(x->name, y->name);

	return order ? order : (x->id > y->id) - (x->id < y->id);
}

static void
check_unique_names(struct verifier *v)
{
	const struct pawl_node *node, **named;
	int32_t i, n = 0;

	named = malloc(((size_t)v->graph->n_nodes + 1) * sizeof(*named));
	if (!named) {
		v->failed = true;
		return;
	}
	pawl_foreach_node (node, v->graph) {
		if (node->name)
			named[n++] = node;
	}
	qsort(named, (size_t)n, sizeof(*named), compare_names);
	for (i = 1; i < n; i++) {
		if (!strcmp(named[i - 1]->name, named[i]->name))
			report(v, named[i], "another node is named %%%.70s too", named[i]->name);
	}
	free(named);
}

static void
check_outputs(struct verifier *v)
{
	const struct pawl_graph *graph = v->graph;
	const struct pawl_node *node;
	int64_t left = 0;
	int32_t i;

	for (i = 0; i < graph->n_outputs; i++) {
		if (!is_listed(v, graph->outputs[i]))
			report(v, NULL, "output %" PRId32 " is not in the graph", i);
	}
	pawl_foreach_node (node, graph)
		left += node->n_outputs;
	if (left != graph->n_outputs)
		report(v, NULL, "the nodes count %" PRId64 " outputs, not %" PRId32, left,
			graph->n_outputs);
}

static void
check_destination(struct verifier *v, const struct pawl_node *node)
{
	const struct pawl_node *dest = node->inputs[0].def;
	struct label label;

	if (pawl_op_has(dest->op, PAWL_OPF_VIEW))
		report(v, node, "writes through the view %s", label_of(dest, &label));
	else if (dest->op == PAWL_OP_CONST && dest->attrs.role != PAWL_ROLE_KV)
		report(v, node, "writes into %s, a const of role %s", label_of(dest, &label),
			pawl_attr_word(PAWL_ATTR_role, dest->attrs.role));
	else if (dest->op != PAWL_OP_CONST && dest->op != PAWL_OP_ALLOC &&
		 !pawl_op_has(dest->op, PAWL_OPF_INPLACE))
		report(v, node, "writes into %s, which is no buffer", label_of(dest, &label));
	else if (v->marks[dest->id].destroyer)
		report(v, node, "two writers of %s without dataflow between them",
			label_of(dest, &label));
	else
		v->marks[dest->id].destroyer = node;
}

/* Everything that reads a destroyed value, or a view of it, has to come before. */
static void
check_reads(struct verifier *v, const struct pawl_node *node)
{
	struct label label;
	int i;

	for (i = 0; i < node->n_inputs; i++) {
		const struct pawl_node *def = node->inputs[i].def;
		const struct pawl_node *destroyer =
			v->marks[v->marks[def->id].content->id].destroyer;

		if (!destroyer || pawl_op_has(node->op, PAWL_OPF_VIEW))
			continue;
		if (destroyer == node && i > 0)
			report(v, node, "destroys %s while it reads it", label_of(def, &label));
		else if (v->marks[node->id].place > v->marks[destroyer->id].place)
			report(v, node, "reads %s after it is destroyed", label_of(def, &label));
	}
	if (node->n_outputs && v->marks[v->marks[node->id].content->id].destroyer)
		report(v, node, "is an output, but is destroyed");
}

static void
check_groups(struct verifier *v)
{
	const struct pawl_graph *graph = v->graph;
	bool *is_closed = calloc((size_t)graph->n_groups + 1, sizeof(*is_closed));
	const struct pawl_node *node;
	int32_t open = -1;

	if (!is_closed) {
		v->failed = true;
		return;
	}
	pawl_foreach_node (node, graph) {
		bool runs = pawl_node_runs(node);

		if (node->group < -1 || node->group >= graph->n_groups) {
			report(v, node, "group %" PRId32 " of %" PRId32, node->group,
				graph->n_groups);
			continue;
		}
		if (graph->stage != PAWL_STAGE_FUSED)
			continue;
		if (runs != (node->group >= 0)) {
			report(v, node,
				runs ? "belongs to no group"
				     : "belongs to a group, but never runs");
			continue;
		}
		if (!runs || node->group == open)
			continue;
		if (open >= 0)
			is_closed[open] = true;
		open = node->group;
		if (is_closed[open])
			report(v, node, "group %" PRId32 " is not contiguous", open);
	}
	free(is_closed);
}

static void
check_nodes(struct verifier *v)
{
	const struct pawl_node *node;

	pawl_foreach_node (node, v->graph) {
		check_operands(v, node);
		check_name(v, node);
		check_type(v, node);
	}
}

static void
check_state(struct verifier *v)
{
	const struct pawl_node *node;

	pawl_foreach_node (node, v->graph) {
		v->marks[node->id].content = pawl_op_has(node->op, PAWL_OPF_VIEW)
						     ? v->marks[node->inputs[0].def->id].content
						     : node;
		if (pawl_op_has(node->op, PAWL_OPF_INPLACE))
			check_destination(v, node);
	}
	if (v->graph->stage == PAWL_STAGE_VALUES)
		return;
	pawl_foreach_node (node, v->graph)
		check_reads(v, node);
}

static enum pawl_status
finish(struct verifier *v, struct pawl_diagnostics *all, struct pawl_error *err)
{
	enum pawl_status status = PAWL_OK;

	if (v->failed) {
		status = pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory to verify graph '%.300s'",
			v->graph->name);
	} else if (v->found.n) {
		const struct pawl_diagnostic *first = &v->found.items[0];
		struct label label;

		status = pawl_fail(err, PAWL_INVALID_GRAPH, "%s", first->text);
		if (first->node && err)
			pawl_error_prefix(err, "%s", label_of(first->node, &label));
		if (first->node && first->node->line && err)
			pawl_error_prefix(err, "%" PRId32 ":%" PRId32, first->node->line,
				first->node->column);
	}
	if (all)
		*all = v->found;
	else
		pawl_diagnostics_release(&v->found);
	return status;
}

enum pawl_status
pawl_verify(const struct pawl_graph *graph, struct pawl_diagnostics *all, struct pawl_error *err)
{
	struct verifier v = {.graph = graph};

	v.marks = calloc((size_t)graph->n_ids + 1, sizeof(*v.marks));
	if (!v.marks) {
		v.failed = true;
	} else {
		check_symbols(&v);
		if (check_list(&v)) {
			int n = v.found.n;

			check_nodes(&v);
			check_uses(&v);
			check_outputs(&v);
			check_unique_names(&v);
			check_groups(&v);
			if (v.found.n == n)
				check_state(&v);
		}
	}
	free(v.marks);
	return finish(&v, all, err);
}

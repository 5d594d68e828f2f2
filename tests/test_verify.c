#include "ir/verify.h"

#include "ir/build.h"
#include "ir/random.h"

#include "tests/suites.h"
#include "tests/text_files.h"

#include <stdlib.h>
#include <string.h>

static struct pawl_graph *graph;

static void
set_up(void)
{
	graph = pawl_test_graph("every-op.pawl");
}

static void
tear_down(void)
{
	pawl_graph_free(graph);
}

/* The graph is wrong, at the node (NULL: as a whole), and some diagnostic has the text. */
static void
check_wrong(const struct pawl_node *node, const char *text)
{
	struct pawl_diagnostics found;
	struct pawl_error err = {0};
	bool seen = false;
	int i;

	ck_assert_int_eq(pawl_verify(graph, &found, &err), PAWL_INVALID_GRAPH);
	ck_assert_int_gt(found.n, 0);
	ck_assert_ptr_nonnull(strstr(err.text, found.items[0].text));
	for (i = 0; i < found.n; i++)
		seen |= found.items[i].node == node && strstr(found.items[i].text, text);
	ck_assert_msg(seen, "not '%s' but '%s'", text, err.text);
	pawl_diagnostics_release(&found);
	ck_assert_ptr_null(found.items);
}

START_TEST(the_text_is_valid)
{
	struct pawl_diagnostics found;

	ck_assert_int_eq(pawl_verify(graph, &found, NULL), PAWL_OK);
	ck_assert_int_eq(found.n, 0);
	pawl_diagnostics_release(&found);
}
END_TEST

START_TEST(errors_say_where)
{
	struct pawl_node *node = pawl_graph_find(graph, "packed");
	struct pawl_error err = {0};

	node->type.layout = PAWL_LAYOUT_ROWS;
	ck_assert_int_eq(pawl_verify(graph, NULL, &err), PAWL_INVALID_GRAPH);
	ck_assert_str_eq(
		err.text, "31:3: %packed: pack: the result must be the weight in layout tile16");
	node->line = 0;
	ck_assert_int_eq(pawl_verify(graph, NULL, &err), PAWL_INVALID_GRAPH);
	ck_assert_str_eq(err.text, "%packed: pack: the result must be the weight in layout tile16");
	check_wrong(node, "tile16");
}
END_TEST

START_TEST(all_errors_are_collected)
{
	struct pawl_diagnostics found;

	pawl_graph_find(graph, "w")->type.dtype = PAWL_DTYPE_A8;
	pawl_graph_find(graph, "k")->name = "v";
	graph->symbols[0].max = -1;
	ck_assert_int_eq(pawl_verify(graph, &found, NULL), PAWL_INVALID_GRAPH);
	ck_assert_int_eq(found.n, 3);
	ck_assert_str_eq(found.items[0].text, "symbol $len has no range within 0 .. 2^40");
	ck_assert_str_eq(found.items[1].text, "const: may not have element type a8");
	ck_assert_str_eq(found.items[2].text, "another node is named %v too");
	pawl_diagnostics_release(&found);
}
END_TEST

START_TEST(order)
{
	struct pawl_node *node = pawl_graph_find(graph, "packed");

	pawl_graph_move(graph, node, graph->first);
	check_wrong(node, "input 0 (%w) comes after its user");
}
END_TEST

START_TEST(operands_outside_of_the_graph)
{
	struct pawl_node *w = pawl_graph_find(graph, "w");

	w->prev->next = w->next;
	w->next->prev = w->prev;
	graph->n_nodes--;
	check_wrong(pawl_graph_find(graph, "packed"), "input 0 is not in the graph");
}
END_TEST

START_TEST(links)
{
	struct pawl_node *w = pawl_graph_find(graph, "w");

	w->prev = graph->first;
	check_wrong(w, "its link to the node before it is wrong");
}
END_TEST

START_TEST(counts)
{
	graph->n_nodes++;
	check_wrong(NULL, "nodes, not");
	graph->n_nodes--;
	graph->last->n_outputs++;
	check_wrong(NULL, "the nodes count 6 outputs, not 5");
}
END_TEST

START_TEST(ids)
{
	struct pawl_node *w = pawl_graph_find(graph, "w");

	w->id = 0;
	check_wrong(w, "its id 0 is not its own");
	w->id = graph->n_ids;
	check_wrong(w, "is not its own");
}
END_TEST

START_TEST(use_lists)
{
	struct pawl_node *packed = pawl_graph_find(graph, "packed");
	struct pawl_node *w = pawl_graph_find(graph, "w"), *x = pawl_graph_find(graph, "x");

	packed->inputs[0].def = pawl_graph_find(graph, "w.f16");
	check_wrong(packed, "input 0 is missing among the uses of %w.f16");
	packed->inputs[0].def = w;
	w->uses = NULL;
	check_wrong(packed, "input 0 is missing among the uses of %w");
	w->uses = &packed->inputs[0];
	packed->inputs[0].user = x;
	check_wrong(packed, "input 0 is the use of another node");
	packed->inputs[0].user = packed;
	ck_assert_int_eq(pawl_verify(graph, NULL, NULL), PAWL_OK);
	/* A use that leads round in a circle. */
	packed->inputs[0].next = &packed->inputs[0];
	check_wrong(w, "its list of uses is wrong");
}
END_TEST

START_TEST(uses_in_a_ring_of_their_own)
{
	struct pawl_node *x = pawl_graph_find(graph, "x");
	struct pawl_use *first = x->uses, *last = first;

	while (last->next)
		last = last->next;
	first->prev = last;
	last->next = first;
	x->uses = NULL;
	check_wrong(NULL, "uses are in no list of uses");
}
END_TEST

START_TEST(types)
{
	struct pawl_node *node = graph->last;

	node->type.dtype = PAWL_DTYPE_I64;
	check_wrong(node, "argmax gives i32[2], not the type it has");
	node->type.dtype = PAWL_DTYPE_I32;
	node->type.dim[0].sym = 77;
	check_wrong(node, "not the type it has");
}
END_TEST

START_TEST(wrong_types_are_reported_once)
{
	struct pawl_diagnostics found;
	struct pawl_node *x = pawl_graph_find(graph, "x");

	x->type.dim[0].sym = 5;
	ck_assert_int_eq(pawl_verify(graph, &found, NULL), PAWL_INVALID_GRAPH);
	ck_assert_int_eq(found.n, 1);
	ck_assert_ptr_eq(found.items[0].node, x);
	pawl_diagnostics_release(&found);
}
END_TEST

START_TEST(attributes_of_other_ops)
{
	struct pawl_node *node = graph->last;

	node->attrs.window = 3;
	check_wrong(node, "argmax: has no attribute 'window'");
	node->attrs.window = 0;
	node->attrs.start[4] = 3;
	check_wrong(node, "argmax: has no attribute 'start'");
}
END_TEST

START_TEST(names)
{
	struct pawl_node *w = pawl_graph_find(graph, "w");

	w->name = "w w";
	check_wrong(w, "its name does not fit the text form");
	w->name = NULL;
	check_wrong(w, "a const of role weight needs a name");
	w->name = "w";
	graph->name = "";
	check_wrong(NULL, "the name of the graph does not fit");
	graph->name = "g";
	graph->symbols[0].name = "$len";
	check_wrong(NULL, "the name of symbol 0 does not fit");
}
END_TEST

START_TEST(groups)
{
	graph->last->group = 0;
	check_wrong(graph->last, "group 0 of 0");
	graph->last->group = -2;
	check_wrong(graph->last, "group -2 of 0");
}
END_TEST

START_TEST(states_change_the_rules)
{
	struct pawl_node *state = pawl_graph_find(graph, "state"), *reader;

	reader = pawl_build_unary(graph, PAWL_OP_ABS, state);
	ck_assert_int_eq(pawl_verify(graph, NULL, NULL), PAWL_OK);
	graph->stage = PAWL_STAGE_ORDERED;
	check_wrong(reader, "reads %state after it is destroyed");
	pawl_graph_move(graph, reader, state->next);
	ck_assert_int_eq(pawl_verify(graph, NULL, NULL), PAWL_OK);
	graph->stage = PAWL_STAGE_FUSED;
	check_wrong(reader, "belongs to no group");
}
END_TEST

/* Whether something reads `value` or a view of it that `writer` destroys, slowly. */
static bool
is_hazard(const struct pawl_node *writer, const struct pawl_node *value)
{
	const struct pawl_node *node;
	int i;

	if (value->n_outputs)
		return true;
	pawl_foreach_node (node, graph) {
		bool comes_after = false;
		const struct pawl_node *p;

		for (p = writer->next; p; p = p->next)
			comes_after |= p == node;
		for (i = 0; i < node->n_inputs; i++) {
			if (pawl_node_input(node, i) != value)
				continue;
			if (pawl_op_has(node->op, PAWL_OPF_VIEW)
					? is_hazard(writer, node)
					: comes_after || (node == writer && i > 0))
				return true;
		}
	}
	return false;
}

START_TEST(hazards_are_found_in_random_graphs)
{
	struct pawl_random_options options = {.flavours = PAWL_RANDOM_STATE, .n_nodes = 5};
	int n[2] = {0, 0};
	uint64_t seed;

	for (seed = 0; seed < 300; seed++) {
		const struct pawl_node *node;
		bool hazard = false;

		pawl_graph_free(graph);
		ck_assert_int_eq(pawl_random_graph(seed, &options, &graph, NULL), PAWL_OK);
		graph->stage = PAWL_STAGE_ORDERED;
		pawl_foreach_node (node, graph) {
			if (pawl_op_has(node->op, PAWL_OPF_INPLACE))
				hazard |= is_hazard(node, pawl_node_input(node, 0));
		}
		ck_assert_msg((pawl_verify(graph, NULL, NULL) != PAWL_OK) == hazard, "seed %d",
			(int)seed);
		n[hazard]++;
	}
	ck_assert_int_gt(n[0], 10);
	ck_assert_int_gt(n[1], 10);
}
END_TEST

/* A random change by the functions of graph.h leaves links and lists as they should be. */
START_TEST(mutations_keep_the_lists)
{
	uint64_t seed;

	for (seed = 0; seed < 50; seed++) {
		struct pawl_node *node, *next;
		int n_changes = 0;

		pawl_graph_free(graph);
		ck_assert_int_eq(pawl_random_graph(seed, NULL, &graph, NULL), PAWL_OK);
		for (node = graph->first; node; node = next) {
			next = node->next;
			if (!pawl_node_is_used(node)) {
				pawl_graph_remove(graph, node);
				n_changes++;
			} else if (node->op == PAWL_OP_NEG || node->op == PAWL_OP_COPY) {
				pawl_graph_replace_uses(graph, node, pawl_node_input(node, 0));
				pawl_graph_remove(graph, node);
				n_changes++;
			} else if (node->n_inputs == 0) {
				pawl_graph_move(graph, node, graph->first);
				n_changes++;
			}
		}
		ck_assert_int_gt(n_changes, 5);
		/* A copy makes rows of every layout, so that types may not fit any more. */
		if (pawl_verify(graph, NULL, NULL) != PAWL_OK) {
			struct pawl_diagnostics found;
			int i;

			pawl_verify(graph, &found, NULL);
			for (i = 0; i < found.n; i++)
				ck_assert_msg(strstr(found.items[i].text, "layout k16"), "%s",
					found.items[i].text);
			pawl_diagnostics_release(&found);
		}
	}
}
END_TEST

Suite *
pawl_verify_suite(void)
{
	Suite *suite = suite_create("verify");
	TCase *tcase = tcase_create("verify");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, the_text_is_valid);
	tcase_add_test(tcase, errors_say_where);
	tcase_add_test(tcase, all_errors_are_collected);
	tcase_add_test(tcase, order);
	tcase_add_test(tcase, operands_outside_of_the_graph);
	tcase_add_test(tcase, links);
	tcase_add_test(tcase, counts);
	tcase_add_test(tcase, ids);
	tcase_add_test(tcase, use_lists);
	tcase_add_test(tcase, uses_in_a_ring_of_their_own);
	tcase_add_test(tcase, types);
	tcase_add_test(tcase, wrong_types_are_reported_once);
	tcase_add_test(tcase, attributes_of_other_ops);
	tcase_add_test(tcase, names);
	tcase_add_test(tcase, groups);
	tcase_add_test(tcase, states_change_the_rules);
	tcase_add_test(tcase, hazards_are_found_in_random_graphs);
	tcase_add_test(tcase, mutations_keep_the_lists);
	suite_add_tcase(suite, tcase);
	return suite;
}

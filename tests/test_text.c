#include "ir/parse.h"
#include "ir/print.h"

#include "tests/suites.h"
#include "tests/text_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
check_round_trip(const char *name)
{
	struct pawl_graph *graph = pawl_test_graph(name);
	char *printed = pawl_print(graph, NULL);
	size_t n;
	char *text = pawl_test_text(name, &n);

	ck_assert_str_eq(printed, text);
	free(text);
	free(printed);
	pawl_graph_free(graph);
}

START_TEST(canonical_text_round_trips)
{
	ck_assert_int_ge(pawl_test_each_text("", check_round_trip), 4);
}
END_TEST

START_TEST(one_text_has_every_op)
{
	struct pawl_graph *graph = pawl_test_graph("every-op.pawl");
	bool has[PAWL_N_OPS] = {false};
	const struct pawl_node *node;
	int i;

	pawl_foreach_node (node, graph)
		has[node->op] = true;
	for (i = 0; i < PAWL_N_OPS; i++)
		ck_assert_msg(has[i], "no %s in every-op.pawl", pawl_op_name((enum pawl_op)i));
	pawl_graph_free(graph);
}
END_TEST

/* Every error of the text, one a line; NULL when it parses. */
static char *
errors_of(const char *text, size_t n, const char *file)
{
	struct pawl_graph *graph = NULL;
	struct pawl_error err = {0};
	char *all = NULL;

	if (pawl_parse(text, n, file, &graph, &all, &err) == PAWL_OK) {
		pawl_graph_free(graph);
		return NULL;
	}
	ck_assert_ptr_null(graph);
	ck_assert_ptr_nonnull(all);
	ck_assert_int_eq(strncmp(all, err.text, strlen(err.text)), 0);
	ck_assert_int_eq(all[strlen(err.text)], '\n');
	return all;
}

static void
check_bad(const char *name)
{
	char expected_name[512];
	size_t n, n_expected;
	char *text = pawl_test_text(name, &n), *expected, *found;

	snprintf(expected_name, sizeof(expected_name), "%s", name);
	strcpy(strrchr(expected_name, '.'), ".err");
	expected = pawl_test_text(expected_name, &n_expected);
	found = errors_of(text, n, strchr(name, '/') + 1);
	ck_assert_msg(found != NULL, "%s parses", name);
	ck_assert_str_eq(found, expected);
	free(found);
	free(expected);
	free(text);
}

START_TEST(bad_texts_say_what_is_wrong_where)
{
	ck_assert_int_ge(pawl_test_each_text("bad/", check_bad), 120);
}
END_TEST

/* Cut anywhere, a text never crashes and is never taken for a whole one. */
START_TEST(cut_texts_are_errors)
{
	size_t n, i;
	char *text = pawl_test_text("every-op.pawl", &n);

	for (i = 0; i + 2 < n; i += 7) {
		char *copy = malloc(i), *found;

		memcpy(copy, text, i);
		found = errors_of(copy, i, "cut");
		ck_assert_msg(found != NULL, "%zu bytes parse", i);
		free(found);
		free(copy);
	}
	free(text);
}
END_TEST

static void
check_prints(const char *text, const char *canonical)
{
	struct pawl_graph *graph = NULL;
	struct pawl_error err = {0};
	char *printed;

	pawl_parse(text, strlen(text), "text", &graph, NULL, &err);
	ck_assert_msg(graph != NULL, "%s", err.text);
	printed = pawl_print(graph, NULL);
	ck_assert_str_eq(printed, canonical);
	free(printed);
	pawl_graph_free(graph);
}

START_TEST(loose_text_becomes_canonical)
{
	check_prints("; a comment\n\npawl 1 ; the version\r\ngraph@g stage values{\n"
		     "sym $n:1..8% 1\n"
		     "\t%x=const:f32[1*$n,64]{role=data}\n"
		     "%w=const{values=[1.50,-2e0],role=literal}:f32[2];\n"
		     "output %w\n%007=neg%x:f32[$n,64]\n  \n"
		     "%3=scale%007{scale=1}:f32[$n,64]@rows #00\n"
		     "output %007\n}; the end",
		"pawl 1\ngraph @g stage values {\n"
		"  sym $n : 1..8\n"
		"  %x = const {role = data} : f32[$n, 64]\n"
		"  %w = const {role = literal, values = [1.5, -2]} : f32[2]\n"
		"  %0 = neg %x : f32[$n, 64]\n"
		"  %1 = scale %0 : f32[$n, 64] #0\n"
		"  output %w\n"
		"  output %0\n"
		"}\n");
}
END_TEST

static const char one_node[] = "pawl 1\ngraph @g stage values {\n"
			       "  %x = const {role = literal, values = [";

/* The errors of a literal with n values. */
static char *
errors_of_values(size_t n)
{
	size_t size = sizeof(one_node) + 2 * n + 64, at = sizeof(one_node) - 1, i;
	char *text = malloc(size), *found;

	memcpy(text, one_node, at);
	for (i = 0; i < n; i++) {
		text[at++] = i ? ',' : ' ';
		text[at++] = '1';
	}
	at += (size_t)snprintf(text + at, size - at, "]} : f32[%zu]\n}\n", n);
	found = errors_of(text, at, "t");
	free(text);
	return found;
}

START_TEST(values_are_limited)
{
	char *found;

	ck_assert_ptr_null(errors_of_values(65536));
	found = errors_of_values(65537);
	ck_assert_ptr_nonnull(strstr(found, "more than 65536 values"));
	free(found);
}
END_TEST

START_TEST(bytes_are_limited)
{
	size_t limit = (size_t)16 << 20;
	char *text = malloc(limit + 1), *found;
	const char *end = "pawl 1\ngraph @g stage values {\n}\n";

	memset(text, '\n', limit + 1);
	memcpy(text + limit - strlen(end), end, strlen(end));
	ck_assert_ptr_null(errors_of(text, limit, "t"));
	found = errors_of(text, limit + 1, "t");
	ck_assert_str_eq(found, "t:1:1: longer than 16 MiB\n");
	free(found);
	free(text);
}
END_TEST

START_TEST(symbols_are_limited)
{
	char text[257 * 24 + 64], *found;
	int i, n = snprintf(text, sizeof(text), "pawl 1\ngraph @g stage values {\n");

	for (i = 0; i < 257; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "sym $s%d : 1..2\n", i);
	snprintf(text + n, sizeof(text) - (size_t)n, "}\n");
	found = errors_of(text, strlen(text), "t");
	ck_assert_str_eq(found, "t:259:5: more than 256 symbols\n");
	free(found);
}
END_TEST

START_TEST(notes_stand_under_their_nodes)
{
	struct pawl_graph *graph = pawl_test_graph("ordered.pawl");
	struct pawl_diagnostics notes;
	char *printed;

	graph->last->type.dim[0] = pawl_dim_const(7);
	ck_assert_int_eq(pawl_verify(graph, &notes, NULL), PAWL_INVALID_GRAPH);
	printed = pawl_print(graph, &notes);
	ck_assert_ptr_nonnull(
		strstr(printed, ": f32[7, 64]\n"
				"  ; error: write_slice gives f32[8, 64], not the type it has\n"
				"  output"));
	free(printed);
	pawl_diagnostics_release(&notes);
	pawl_graph_free(graph);
}
END_TEST

START_TEST(types_are_cut_like_snprintf)
{
	struct pawl_graph *graph = pawl_graph_new("g");
	struct pawl_type type = pawl_type_make(PAWL_DTYPE_F16, 4, (int64_t[]){1, 3, 0, 64});
	char text[64];

	type.dim[2] = (struct pawl_dim){1, 32, pawl_graph_add_symbol(graph, "T", 1, 9, 1)};
	type.layout = PAWL_LAYOUT_K16;
	ck_assert_int_eq(pawl_print_type(text, sizeof(text), graph, &type), 26);
	ck_assert_str_eq(text, "f16[1, 3, 32*$T+1, 64]@k16");
	ck_assert_int_eq(pawl_print_type(text, 8, graph, &type), 26);
	ck_assert_str_eq(text, "f16[1, ");
	pawl_graph_free(graph);
}
END_TEST

Suite *
pawl_text_suite(void)
{
	Suite *suite = suite_create("text");
	TCase *tcase = tcase_create("text");

	tcase_add_test(tcase, canonical_text_round_trips);
	tcase_add_test(tcase, one_text_has_every_op);
	tcase_add_test(tcase, bad_texts_say_what_is_wrong_where);
	tcase_add_test(tcase, cut_texts_are_errors);
	tcase_add_test(tcase, loose_text_becomes_canonical);
	tcase_add_test(tcase, values_are_limited);
	tcase_add_test(tcase, bytes_are_limited);
	tcase_add_test(tcase, symbols_are_limited);
	tcase_add_test(tcase, notes_stand_under_their_nodes);
	tcase_add_test(tcase, types_are_cut_like_snprintf);
	suite_add_tcase(suite, tcase);
	return suite;
}

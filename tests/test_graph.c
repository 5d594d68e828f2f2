#include "ir/build.h"

#include "ir/parse.h"
#include "ir/verify.h"

#include "tests/suites.h"
#include "tests/text_files.h"

#include <stdlib.h>
#include <string.h>

static struct pawl_graph *graph;

static void
set_up(void)
{
	graph = pawl_graph_new("g");
}

static void
tear_down(void)
{
	pawl_graph_free(graph);
}

static struct pawl_node *
data(const char *name, int64_t rows, int64_t columns)
{
	struct pawl_type type = pawl_type_make(PAWL_DTYPE_F32, 2, (const int64_t[]){rows, columns});

	return pawl_build_const(graph, PAWL_ROLE_DATA, name, &type);
}

static void
check_valid(void)
{
	struct pawl_error err = {0};

	ck_assert_msg(pawl_verify(graph, NULL, &err) == PAWL_OK, "%s", err.text);
}

static void
check_order(const char *names)
{
	char text[256] = "";
	const struct pawl_node *node, *prev = NULL;

	pawl_foreach_node (node, graph) {
		strcat(text, node->name ? node->name : "-");
		ck_assert_ptr_eq(node->prev, prev);
		prev = node;
	}
	ck_assert_ptr_eq(graph->last, prev);
	ck_assert_str_eq(text, names);
}

static struct pawl_node *
unary(const char *name, struct pawl_node *x)
{
	return pawl_build(graph, PAWL_OP_NEG, name, &x, 1, NULL, NULL);
}

START_TEST(uses_follow_operands)
{
	struct pawl_node *x = data("x", 2, 3), *y = data("y", 2, 3);
	struct pawl_node *sum = pawl_build_binary(graph, PAWL_OP_ADD, x, x);

	ck_assert_int_eq(pawl_node_n_uses(x), 2);
	ck_assert_ptr_null(pawl_node_only_user(x));
	ck_assert(!pawl_node_is_used(y));
	pawl_graph_set_input(sum, 1, y);
	ck_assert_int_eq(pawl_node_n_uses(x), 1);
	ck_assert_ptr_eq(pawl_node_only_user(x), sum);
	ck_assert_ptr_eq(pawl_node_only_user(y), sum);
	ck_assert_ptr_eq(pawl_node_input(sum, 0), x);
	ck_assert_ptr_eq(pawl_node_input(sum, 1), y);
	pawl_graph_add_output(graph, x);
	ck_assert_ptr_null(pawl_node_only_user(x));
	ck_assert_int_eq(pawl_node_n_uses(x), 2);
	check_valid();
}
END_TEST

START_TEST(replacing_moves_uses_outputs_and_names)
{
	struct pawl_node *x = data("x", 2, 3), *a = unary("a", x), *b = unary("b", x);
	struct pawl_node *user = pawl_build_binary(graph, PAWL_OP_MUL, a, a);

	pawl_graph_add_output(graph, a);
	pawl_graph_add_output(graph, user);
	pawl_graph_add_output(graph, a);
	pawl_graph_move(graph, user, NULL);
	pawl_graph_replace_uses(graph, a, b);
	ck_assert(!pawl_node_is_used(a));
	ck_assert_int_eq(pawl_node_n_uses(b), 4);
	ck_assert_ptr_eq(graph->outputs[0], b);
	ck_assert_ptr_eq(graph->outputs[1], user);
	ck_assert_ptr_eq(graph->outputs[2], b);
	ck_assert_str_eq(b->origins->name, "a");
	ck_assert_ptr_null(b->origins->next);
	pawl_graph_remove(graph, a);
	check_order("xb-");
	check_valid();
	pawl_graph_set_output(graph, 0, user);
	ck_assert_int_eq(user->n_outputs, 2);
	ck_assert_int_eq(b->n_outputs, 1);
	check_valid();
}
END_TEST

START_TEST(origins_pile_up_once)
{
	struct pawl_node *x = data("x", 2, 3), *a = unary("a", x), *b = unary("b", x);
	struct pawl_node *c = unary("c", x);

	pawl_graph_add_origin(graph, b, a);
	pawl_graph_add_origin(graph, c, b);
	pawl_graph_add_origin(graph, c, a);
	pawl_graph_add_origin(graph, c, c);
	ck_assert_str_eq(c->origins->name, "b");
	ck_assert_str_eq(c->origins->next->name, "a");
	ck_assert_ptr_null(c->origins->next->next);
}
END_TEST

START_TEST(moving_and_the_cursor)
{
	struct pawl_node *a = data("a", 1, 1), *b = data("b", 1, 1), *c = data("c", 1, 1);

	pawl_graph_move(graph, c, a);
	check_order("cab");
	pawl_graph_move(graph, c, NULL);
	check_order("abc");
	pawl_graph_move(graph, a, a);
	pawl_graph_move(graph, a, b);
	check_order("abc");
	pawl_graph_move(graph, a, c);
	check_order("bac");
	graph->cursor = a;
	data("d", 1, 1);
	data("e", 1, 1);
	check_order("bdeac");
	pawl_graph_remove(graph, a);
	data("f", 1, 1);
	check_order("bdefc");
	pawl_graph_remove(graph, b);
	pawl_graph_remove(graph, c);
	ck_assert_ptr_null(graph->cursor);
	data("h", 1, 1);
	check_order("defh");
	ck_assert_int_eq(graph->n_nodes, 4);
	ck_assert_int_eq(graph->n_ids, 7);
	check_valid();
}
END_TEST

START_TEST(moving_the_last_to_the_end)
{
	struct pawl_node *a, *b;

	a = data("a", 1, 1);
	b = data("b", 1, 1);
	pawl_graph_move(graph, b, NULL);
	check_order("ab");
	pawl_graph_move(graph, a, NULL);
	check_order("ba");
}
END_TEST

START_TEST(finding)
{
	struct pawl_node *x = data("x", 1, 1), *y = unary("y", x);

	pawl_graph_add_symbol(graph, "T", 1, 8, 1);
	pawl_graph_add_symbol(graph, "TT", 1, 8, 1);
	ck_assert_ptr_eq(pawl_graph_find(graph, "y"), y);
	ck_assert_ptr_null(pawl_graph_find(graph, "z"));
	ck_assert_int_eq(pawl_graph_find_symbol(graph, "TTT", 2), 1);
	ck_assert_int_eq(pawl_graph_find_symbol(graph, "TTT", 3), -1);
}
END_TEST

START_TEST(storage_is_found_through_views_and_writes)
{
	struct pawl_type type = pawl_type_make(PAWL_DTYPE_F32, 2, (const int64_t[]){4, 6});
	struct pawl_node *kv = pawl_build_const(graph, PAWL_ROLE_KV, "kv", &type);
	struct pawl_node *x = data("x", 1, 6);
	struct pawl_node *written = pawl_build_write_slice(graph, kv, x, NULL, -1, NULL);
	struct pawl_node *view = pawl_build_reshape(graph, written, 1, (const int64_t[]){24});
	struct pawl_node *sum = pawl_build_unary(graph, PAWL_OP_ABS, view);

	ck_assert_ptr_eq(pawl_node_storage(view), kv);
	ck_assert_ptr_eq(pawl_node_storage(sum), sum);
	check_valid();
}
END_TEST

START_TEST(a_copy_shares_nothing)
{
	struct pawl_graph *text = pawl_test_graph("every-op.pawl"), *copy;
	const struct pawl_node *node, *other;
	int32_t id = 0;
	uint64_t hash;

	pawl_graph_move(text, pawl_graph_find(text, "scratch"), text->first);
	ck_assert_int_eq(pawl_graph_clone(text, &copy, NULL), PAWL_OK);
	hash = pawl_graph_hash(text);
	ck_assert_uint_eq(pawl_graph_hash(copy), hash);
	other = text->first;
	pawl_foreach_node (node, copy) {
		ck_assert_int_eq(node->id, id++);
		ck_assert_int_eq(node->line, other->line);
		ck_assert(node->name != other->name || !node->name);
		ck_assert(!node->attrs.values || node->attrs.values != other->attrs.values);
		other = other->next;
	}
	ck_assert_ptr_null(other);
	pawl_graph_free(text);
	ck_assert_uint_eq(pawl_graph_hash(copy), hash);
	ck_assert_int_eq(pawl_verify(copy, NULL, NULL), PAWL_OK);
	pawl_graph_free(copy);
}
END_TEST

START_TEST(the_first_failure_sticks)
{
	struct pawl_node *x = data("x", 2, 3), *y = data("y", 2, 4);
	int32_t n = graph->n_nodes;

	ck_assert_ptr_null(pawl_build_binary(graph, PAWL_OP_ADD, x, y));
	ck_assert_int_eq(graph->error.status, PAWL_INVALID_GRAPH);
	ck_assert_str_eq(
		graph->error.text, "add: dim 1 of input 1 (%y) differs from that of input 0");
	ck_assert_ptr_null(unary(NULL, x));
	ck_assert_ptr_null(pawl_build_scale(graph, NULL, 2));
	ck_assert_ptr_null(data("z", 1, 1));
	ck_assert_int_eq(graph->n_nodes, n);
	ck_assert_str_eq(
		graph->error.text, "add: dim 1 of input 1 (%y) differs from that of input 0");
}
END_TEST

START_TEST(a_missing_operand_is_an_error)
{
	ck_assert_ptr_null(pawl_build_permute(graph, NULL, NULL));
	ck_assert_int_eq(graph->error.status, PAWL_INVALID_ARGUMENT);
	ck_assert_str_eq(graph->error.text, "permute: an operand is missing");
}
END_TEST

START_TEST(names_are_checked)
{
	static const char *const good[] = {"a", "_", "blk.0.attn_norm.weight", "A..b", "x9"};
	static const char *const bad[] = {"", "0", "9x", "a b", "a-b", ".a", "%a", "\xc3\xb6"};
	char longer[PAWL_MAX_NAME + 2];
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ck_assert_msg(pawl_name_is_valid(good[i]), "'%s'", good[i]);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!pawl_name_is_valid(bad[i]), "'%s'", bad[i]);
	memset(longer, 'n', sizeof(longer));
	longer[PAWL_MAX_NAME + 1] = '\0';
	ck_assert(!pawl_name_is_valid(longer));
	longer[PAWL_MAX_NAME] = '\0';
	ck_assert(pawl_name_is_valid(longer));
	data("x", 1, 1);
	ck_assert_ptr_null(data("x", 1, 1));
	ck_assert_str_eq(graph->error.text, "const %x: the name is taken");
}
END_TEST

START_TEST(types_are_stated_where_they_are_not_inferred)
{
	struct pawl_node *x = data("x", 2, 3);
	struct pawl_type type = x->type;

	ck_assert_ptr_null(pawl_build(graph, PAWL_OP_RESHAPE, NULL, &x, 1, NULL, NULL));
	ck_assert_str_eq(graph->error.text, "reshape: the type must be stated");
	graph->error.status = PAWL_OK;
	ck_assert_ptr_null(pawl_build(graph, PAWL_OP_NEG, NULL, &x, 1, NULL, &type));
	ck_assert_str_eq(graph->error.text, "neg: the type is inferred");
}
END_TEST

START_TEST(binary_broadcasts_either_way)
{
	struct pawl_type row = pawl_type_make(PAWL_DTYPE_F32, 1, (const int64_t[]){3});
	struct pawl_type one = pawl_type_make(PAWL_DTYPE_F32, 0, NULL);
	struct pawl_node *x = data("x", 2, 3), *y;

	y = pawl_build_binary(
		graph, PAWL_OP_SUB, x, pawl_build_const(graph, PAWL_ROLE_DATA, "row", &row));
	ck_assert_int_eq(pawl_node_input(y, 1)->op, PAWL_OP_BROADCAST);
	y = pawl_build_binary(graph, PAWL_OP_SUB, pawl_build_splat(graph, &one, 1.5), y);
	ck_assert_int_eq(pawl_node_input(y, 0)->op, PAWL_OP_BROADCAST);
	ck_assert(pawl_type_equal(&y->type, &x->type));
	y = pawl_build_binary(graph, PAWL_OP_ADD, x, y);
	ck_assert_ptr_eq(pawl_node_input(y, 0), x);
	check_valid();
}
END_TEST

static uint64_t
hash_of(const char *text)
{
	struct pawl_graph *parsed = NULL;
	struct pawl_error err = {0};
	uint64_t hash;

	pawl_parse(text, strlen(text), "t", &parsed, NULL, &err);
	ck_assert_msg(parsed != NULL, "%s", err.text);
	hash = pawl_graph_hash(parsed);
	pawl_graph_free(parsed);
	return hash;
}

#define HEAD "pawl 1\ngraph @g stage values {\n"
#define X "%x = const {role = data} : f32[2, 4]\n"
#define C "%c = const {role = literal, values = [1]} : f32[2, 4]\n"

START_TEST(the_hash_sees_meaning_only)
{
	uint64_t hash = hash_of(HEAD X C "%y = sub %x, %c : f32[2, 4]\noutput %y\n}");
	static const char *const same[] = {
		HEAD X C "%z = sub %x, %c : f32[2, 4]\noutput %z\n}",
		HEAD X C "%0 = sub %x, %c : f32[2, 4] #3 ; fused\noutput %0\n}",
	};
	static const char *const others[] = {
		HEAD X C "%y = sub %c, %x : f32[2, 4]\noutput %y\n}",
		HEAD X C "%y = add %x, %c : f32[2, 4]\noutput %y\n}",
		HEAD X C "%y = sub %x, %c : f32[2, 4]\noutput %x\n}",
		HEAD X C "%y = sub %x, %c : f32[2, 4]\noutput %y\noutput %y\n}",
		HEAD X C "%y = sub %x, %c : f32[2, 4]\n}",
		HEAD C X "%y = sub %x, %c : f32[2, 4]\noutput %y\n}",
		HEAD "sym $n : 1..2\n" X C "%y = sub %x, %c : f32[2, 4]\noutput %y\n}",
		HEAD "sym $n : 1..3\n" X C "%y = sub %x, %c : f32[2, 4]\noutput %y\n}",
		HEAD "%x2 = const {role = data} : f32[2, 4]\n" C
		     "%y = sub %x2, %c : f32[2, 4]\noutput %y\n}",
		HEAD "%x = const : f32[2, 4]\n" C "%y = sub %x, %c : f32[2, 4]\noutput %y\n}",
		HEAD X "%c = const {role = literal, values = [1.5]} : f32[2, 4]\n"
		       "%y = sub %x, %c : f32[2, 4]\noutput %y\n}",
	};
	const size_t n = sizeof(others) / sizeof(others[0]);
	uint64_t hashes[sizeof(others) / sizeof(others[0])];
	size_t i, j;

	for (i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		ck_assert_uint_eq(hash_of(same[i]), hash);
	for (i = 0; i < n; i++) {
		hashes[i] = hash_of(others[i]);
		ck_assert_uint_ne(hashes[i], hash);
		for (j = 0; j < i; j++)
			ck_assert_msg(hashes[i] != hashes[j], "%zu and %zu", i, j);
	}
}
END_TEST

START_TEST(the_hash_does_not_see_ids)
{
	struct pawl_node *x = data("x", 2, 3), *gone = unary(NULL, x), *y;
	uint64_t hash;

	pawl_graph_remove(graph, gone);
	y = unary(NULL, x);
	pawl_graph_add_output(graph, y);
	hash = pawl_graph_hash(graph);
	pawl_graph_free(graph);
	set_up();
	pawl_graph_add_output(graph, unary("y", data("x", 2, 3)));
	ck_assert_uint_eq(pawl_graph_hash(graph), hash);
}
END_TEST

Suite *
pawl_graph_suite(void)
{
	Suite *suite = suite_create("graph");
	TCase *tcase = tcase_create("graph");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, uses_follow_operands);
	tcase_add_test(tcase, replacing_moves_uses_outputs_and_names);
	tcase_add_test(tcase, origins_pile_up_once);
	tcase_add_test(tcase, moving_and_the_cursor);
	tcase_add_test(tcase, moving_the_last_to_the_end);
	tcase_add_test(tcase, finding);
	tcase_add_test(tcase, storage_is_found_through_views_and_writes);
	tcase_add_test(tcase, a_copy_shares_nothing);
	tcase_add_test(tcase, the_first_failure_sticks);
	tcase_add_test(tcase, a_missing_operand_is_an_error);
	tcase_add_test(tcase, names_are_checked);
	tcase_add_test(tcase, types_are_stated_where_they_are_not_inferred);
	tcase_add_test(tcase, binary_broadcasts_either_way);
	tcase_add_test(tcase, the_hash_sees_meaning_only);
	tcase_add_test(tcase, the_hash_does_not_see_ids);
	suite_add_tcase(suite, tcase);
	return suite;
}

#include "ir/infer.h"

#include "ir/build.h"
#include "ir/print.h"

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
value(enum pawl_role role, enum pawl_dtype dtype, int rank, const int64_t *dims)
{
	struct pawl_type type = pawl_type_make(dtype, rank, dims);
	struct pawl_attrs attrs = pawl_attrs_default();

	attrs.role = role;
	return pawl_graph_add(graph, PAWL_OP_CONST, NULL, NULL, 0, &attrs, &type);
}

#define DIMS(...)                                                                                  \
	(int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (const int64_t[])                             \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

static void
check_type(const struct pawl_type *type, const char *expected)
{
	char text[128];

	pawl_print_type(text, sizeof(text), graph, type);
	ck_assert_str_eq(text, expected);
}

static bool
infers(enum pawl_op op, struct pawl_node *const *inputs, int n, const struct pawl_attrs *attrs)
{
	struct pawl_type type = {0};
	struct pawl_error err = {0};
	enum pawl_status status = pawl_infer(graph, op, inputs, n, attrs, &type, &err);

	ck_assert(status == PAWL_OK || status == PAWL_INVALID_GRAPH);
	if (status)
		ck_assert_msg(!strncmp(err.text, pawl_op_name(op), strlen(pawl_op_name(op))), "%s",
			err.text);
	return status == PAWL_OK;
}

/* Which weights a matmul takes, by the activation's type. */
START_TEST(matmul_takes_what_can_be_multiplied)
{
	int x, w;

	for (x = 0; x < PAWL_N_DTYPES; x++) {
		for (w = 0; w < PAWL_N_DTYPES; w++) {
			enum pawl_dtype_kind of_x = pawl_dtype_info((enum pawl_dtype)x)->kind;
			enum pawl_dtype_kind of_w = pawl_dtype_info((enum pawl_dtype)w)->kind;
			bool takes = (x == PAWL_DTYPE_F32 && (of_w == PAWL_KIND_FLOAT ||
								     of_w == PAWL_KIND_QUANT)) ||
				     (of_x == PAWL_KIND_ACT && of_w == PAWL_KIND_QUANT);
			struct pawl_node *inputs[] = {
				value(PAWL_ROLE_DATA, (enum pawl_dtype)x, DIMS(3, 256)),
				value(PAWL_ROLE_WEIGHT, (enum pawl_dtype)w, DIMS(5, 256))};

			ck_assert_msg(infers(PAWL_OP_MATMUL, inputs, 2, NULL) == takes, "%s by %s",
				pawl_dtype_name((enum pawl_dtype)x),
				pawl_dtype_name((enum pawl_dtype)w));
		}
	}
}
END_TEST

START_TEST(casts)
{
	int from, to;

	for (from = 0; from < PAWL_N_DTYPES; from++) {
		for (to = 0; to < PAWL_N_DTYPES; to++) {
			enum pawl_dtype_kind of_from = pawl_dtype_info((enum pawl_dtype)from)->kind;
			enum pawl_dtype_kind of_to = pawl_dtype_info((enum pawl_dtype)to)->kind;
			struct pawl_node *x =
				value(PAWL_ROLE_DATA, (enum pawl_dtype)from, DIMS(1, 256));
			struct pawl_attrs attrs = pawl_attrs_default();
			bool takes = (of_from == PAWL_KIND_FLOAT && of_to == PAWL_KIND_FLOAT) ||
				     (of_from == PAWL_KIND_INT && to == PAWL_DTYPE_F32);

			attrs.dtype = (enum pawl_dtype)to;
			ck_assert_int_eq(infers(PAWL_OP_CAST, &x, 1, &attrs), takes);
		}
	}
}
END_TEST

/* i8[7, 3] in place of any operand of the text that has every op. */
START_TEST(operands_of_another_type_are_refused)
{
	const struct pawl_node *node;
	struct pawl_node *odd, *inputs[8];
	int n_checked = 0, i;

	pawl_graph_free(graph);
	graph = pawl_test_graph("every-op.pawl");
	odd = value(PAWL_ROLE_DATA, PAWL_DTYPE_I8, DIMS(7, 3));
	pawl_foreach_node (node, graph) {
		for (i = 0; i < node->n_inputs; i++)
			inputs[i] = pawl_node_input(node, i);
		for (i = 0; i < node->n_inputs; i++) {
			struct pawl_type type = node->type;
			struct pawl_error err = {0};

			inputs[i] = odd;
			if (node->op != PAWL_OP_COPY && node->op != PAWL_OP_CAST &&
				node->op != PAWL_OP_ZERO_FILL) {
				ck_assert_msg(
					pawl_infer(graph, node->op, inputs, node->n_inputs,
						&node->attrs, &type, &err) == PAWL_INVALID_GRAPH,
					"%s takes it as input %d", pawl_op_name(node->op), i);
				ck_assert_msg(!strncmp(err.text, pawl_op_name(node->op),
						      strlen(pawl_op_name(node->op))),
					"%s", err.text);
				n_checked++;
			}
			inputs[i] = pawl_node_input(node, i);
		}
	}
	ck_assert_int_gt(n_checked, 60);
}
END_TEST

/* k16 and tile16 where rows are wanted, in place of an operand of the same type. */
START_TEST(layouts_enter_where_they_are_known)
{
	const struct pawl_node *node;
	int i, n_taken = 0, n_refused = 0;

	pawl_graph_free(graph);
	graph = pawl_test_graph("every-op.pawl");
	pawl_foreach_node (node, graph) {
		struct pawl_node *inputs[8];

		for (i = 0; i < node->n_inputs; i++)
			inputs[i] = pawl_node_input(node, i);
		for (i = 0; i < node->n_inputs; i++) {
			struct pawl_node other = *pawl_node_input(node, i);
			struct pawl_type type = node->type;
			struct pawl_error err = {0};
			bool takes = node->op == PAWL_OP_MATMUL && i == 1;

			if (other.type.layout != PAWL_LAYOUT_ROWS)
				continue;
			other.type.layout = PAWL_LAYOUT_TILE16;
			inputs[i] = &other;
			ck_assert_msg((pawl_infer(graph, node->op, inputs, node->n_inputs,
					       &node->attrs, &type, &err) == PAWL_OK) == takes,
				"%s, input %d", pawl_op_name(node->op), i);
			inputs[i] = pawl_node_input(node, i);
			n_taken += takes;
			n_refused += !takes;
		}
	}
	ck_assert_int_ge(n_taken, 1);
	ck_assert_int_gt(n_refused, 60);
}
END_TEST

START_TEST(k16_enters_state_ops_copy_and_attention)
{
	struct pawl_node *k = value(PAWL_ROLE_KV, PAWL_DTYPE_F32, DIMS(1, 2, 16, 8));
	struct pawl_node *inputs[] = {k, value(PAWL_ROLE_DATA, PAWL_DTYPE_F32, DIMS(1, 2, 1, 8))};
	struct pawl_type type = {0};

	k->type.layout = PAWL_LAYOUT_K16;
	ck_assert_int_eq(
		pawl_infer(graph, PAWL_OP_WRITE_SLICE, inputs, 2, NULL, &type, NULL), PAWL_OK);
	check_type(&type, "f32[1, 2, 16, 8]@k16");
	ck_assert_int_eq(
		pawl_infer(graph, PAWL_OP_ZERO_FILL, inputs, 1, NULL, &type, NULL), PAWL_OK);
	check_type(&type, "f32[1, 2, 16, 8]@k16");
	ck_assert_int_eq(pawl_infer(graph, PAWL_OP_COPY, inputs, 1, NULL, &type, NULL), PAWL_OK);
	check_type(&type, "f32[1, 2, 16, 8]");
	ck_assert(!infers(PAWL_OP_NEG, inputs, 1, NULL));
	inputs[1]->type.layout = PAWL_LAYOUT_K16;
	ck_assert(!infers(PAWL_OP_WRITE_SLICE, inputs, 2, NULL));
}
END_TEST

START_TEST(symbolic_dims)
{
	int32_t n = pawl_graph_add_symbol(graph, "n", 2, 10, 1);
	struct pawl_node *x = value(PAWL_ROLE_DATA, PAWL_DTYPE_F32, DIMS(1, 6, 4));
	struct pawl_dim dim = {1, 3, n};
	struct pawl_node *y;

	ck_assert_int_eq(pawl_dim_min(graph, dim), 7);
	ck_assert_int_eq(pawl_dim_max(graph, dim), 31);
	ck_assert_int_eq(pawl_dim_max(graph, pawl_dim_const(5)), 5);
	x->type.dim[0] = dim;
	y = pawl_build_reshape(graph, x, 2, (const int64_t[]){-1, 24});
	check_type(&y->type, "f32[3*$n+1, 24]");
	y = pawl_build_permute(graph, x, (const int[]){1, 0, 2});
	check_type(&y->type, "f32[6, 3*$n+1, 4]");
	ck_assert(!infers(PAWL_OP_ABS, &y, 1, NULL));
	y = pawl_build_slice(graph, x, (const int64_t[]){0, 2, 0}, (const int64_t[]){0, 6, 1});
	check_type(&y->type, "f32[3*$n+1, 4, 1]");
	y = pawl_build_unary(graph, PAWL_OP_ARGMAX, y);
	check_type(&y->type, "i32[3*$n+1, 4]");
	ck_assert_int_eq(graph->error.status, PAWL_OK);
	x->type.dim[0].factor = INT64_MAX;
	ck_assert_int_eq(pawl_dim_max(graph, x->type.dim[0]), INT64_MAX);
	ck_assert(!infers(PAWL_OP_ABS, &x, 1, NULL));
}
END_TEST

/* A slab with a symbolic length fits when its longest does. */
START_TEST(symbolic_slabs)
{
	int32_t n = pawl_graph_add_symbol(graph, "n", 1, 8, 1);
	struct pawl_node *inputs[] = {value(PAWL_ROLE_KV, PAWL_DTYPE_F32, DIMS(9, 4)),
		value(PAWL_ROLE_DATA, PAWL_DTYPE_F32, DIMS(1, 4))};
	struct pawl_attrs attrs = pawl_attrs_default();

	inputs[1]->type.dim[0] = (struct pawl_dim){0, 1, n};
	attrs.start[0] = 1;
	ck_assert(infers(PAWL_OP_WRITE_SLICE, inputs, 2, &attrs));
	attrs.start[0] = 2;
	ck_assert(!infers(PAWL_OP_WRITE_SLICE, inputs, 2, &attrs));
	attrs.start[0] = INT64_MAX;
	ck_assert(!infers(PAWL_OP_WRITE_SLICE, inputs, 2, &attrs));
	attrs.start[0] = 0;
	attrs.start[4] = 1;
	ck_assert(!infers(PAWL_OP_WRITE_SLICE, inputs, 2, &attrs));
}
END_TEST

/* Weights through a stop of the builder: types of every op that infers one, from few operands. */
START_TEST(result_types)
{
	struct pawl_node *x = value(PAWL_ROLE_DATA, PAWL_DTYPE_F32, DIMS(3, 64));
	struct pawl_node *w = value(PAWL_ROLE_WEIGHT, PAWL_DTYPE_Q4_0, DIMS(5, 64));
	struct pawl_node *row = value(PAWL_ROLE_DATA, PAWL_DTYPE_F32, DIMS(64));
	struct pawl_node *cube = value(PAWL_ROLE_DATA, PAWL_DTYPE_F32, DIMS(3, 2, 64));

	check_type(&pawl_build_matmul(graph, x, w)->type, "f32[3, 5]");
	check_type(&pawl_build_matmul(graph, row, w)->type, "f32[5]");
	check_type(&pawl_build_matmul(graph, cube, w)->type, "f32[3, 2, 5]");
	check_type(&pawl_build_unary(graph, PAWL_OP_ARGMAX, row)->type, "i32[]");
	check_type(
		&pawl_build_gather(graph, w, value(PAWL_ROLE_DATA, PAWL_DTYPE_U32, DIMS(7)))->type,
		"f32[7, 64]");
	check_type(&pawl_build_rms_norm(graph, cube, row, 0)->type, "f32[3, 2, 64]");
	check_type(&pawl_build_cast(graph, x, PAWL_DTYPE_BF16)->type, "bf16[3, 64]");
	ck_assert_int_eq(graph->error.status, PAWL_OK);
}
END_TEST

START_TEST(no_operand_has_no_row)
{
	struct pawl_node *x = value(PAWL_ROLE_DATA, PAWL_DTYPE_F32, 0, NULL);

	ck_assert(infers(PAWL_OP_NEG, &x, 1, NULL));
	ck_assert(!infers(PAWL_OP_SOFTMAX, &x, 1, NULL));
	ck_assert(!infers(PAWL_OP_ARGMAX, &x, 1, NULL));
}
END_TEST

/* Whatever an attribute holds, inference answers. */
START_TEST(wild_attributes)
{
	struct pawl_node *x = value(PAWL_ROLE_DATA, PAWL_DTYPE_F32, DIMS(3, 64));
	struct pawl_attrs attrs = pawl_attrs_default();

	attrs.dtype = (enum pawl_dtype)99;
	ck_assert(!infers(PAWL_OP_CAST, &x, 1, &attrs));
	attrs = pawl_attrs_default();
	attrs.perm[0] = 70;
	ck_assert(!infers(PAWL_OP_PERMUTE, &x, 1, &attrs));
	attrs.perm[0] = -1;
	ck_assert(!infers(PAWL_OP_PERMUTE, &x, 1, &attrs));
	attrs = pawl_attrs_default();
	attrs.axis = 1000;
	ck_assert(!infers(PAWL_OP_CONCAT, (struct pawl_node *[]){x, x}, 2, &attrs));
	attrs = pawl_attrs_default();
	attrs.axis = 0;
	attrs.sym = 12;
	ck_assert(!infers(PAWL_OP_WRITE_SLICE, (struct pawl_node *[]){x, x}, 2, &attrs));
	attrs = pawl_attrs_default();
	attrs.start[1] = INT64_MIN;
	attrs.stop[1] = INT64_MAX;
	ck_assert(!infers(PAWL_OP_SLICE, &x, 1, &attrs));
}
END_TEST

Suite *
pawl_infer_suite(void)
{
	Suite *suite = suite_create("infer");
	TCase *tcase = tcase_create("infer");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, matmul_takes_what_can_be_multiplied);
	tcase_add_test(tcase, casts);
	tcase_add_test(tcase, operands_of_another_type_are_refused);
	tcase_add_test(tcase, layouts_enter_where_they_are_known);
	tcase_add_test(tcase, k16_enters_state_ops_copy_and_attention);
	tcase_add_test(tcase, symbolic_dims);
	tcase_add_test(tcase, symbolic_slabs);
	tcase_add_test(tcase, result_types);
	tcase_add_test(tcase, no_operand_has_no_row);
	tcase_add_test(tcase, wild_attributes);
	suite_add_tcase(suite, tcase);
	return suite;
}
